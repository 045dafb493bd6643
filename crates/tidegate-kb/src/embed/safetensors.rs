//! The frame of a safetensors file: eight bytes of length, a JSON header, then the numbers.

use std::{collections::HashMap, ops::Range};

use serde::Deserialize;

/// The longest header that is read, in bytes. A model of a hundred layers has less than a tenth of it.
const HEADER_BYTES_MAX: u64 = 1 << 20;

/// The header's entries.
#[derive(Debug)]
pub(super) struct Tensors<'a> {
    entries: HashMap<String, Entry>,
    /// Name and value pairs about the whole file.
    pub metadata: HashMap<String, String>,
    data: &'a [u8],
}

#[derive(Debug, Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: Range2,
}

/// Begin and end, as two numbers of a list.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Range2(usize, usize);

impl From<Range2> for Range<usize> {
    fn from(Range2(start, end): Range2) -> Self {
        start..end
    }
}

/// One tensor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tensor<'a, 'header> {
    /// The type of its numbers, as the file names it: `F32`, `I8`.
    pub dtype: &'header str,
    /// Its shape.
    pub shape: &'header [usize],
    /// Its numbers, little endian, row by row.
    pub bytes: &'a [u8],
}

impl<'a> Tensors<'a> {
    /// Reads the header. `Err` says what is wrong with the file.
    pub(super) fn read(file: &'a [u8]) -> Result<Self, String> {
        let (length, rest) = file
            .split_first_chunk::<8>()
            .ok_or("it is shorter than its own frame")?;
        let length = u64::from_le_bytes(*length);
        if length > HEADER_BYTES_MAX {
            return Err(format!("its header would be {length} bytes long"));
        }
        let (header, data) = usize::try_from(length)
            .ok()
            .and_then(|length| rest.split_at_checked(length))
            .ok_or("it ends within its header")?;
        let mut header: HashMap<String, serde_json::Value> =
            serde_json::from_slice(header).map_err(|problem| format!("its header is no JSON: {problem}"))?;
        let metadata = match header.remove("__metadata__") {
            Some(metadata) => serde_json::from_value(metadata)
                .map_err(|problem| format!("its metadata cannot be read: {problem}"))?,
            None => HashMap::new(),
        };
        let entries = header
            .into_iter()
            .map(|(name, entry)| match serde_json::from_value(entry) {
                Ok(entry) => Ok((name, entry)),
                Err(problem) => Err(format!("its entry `{name}` cannot be read: {problem}")),
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            entries,
            metadata,
            data,
        })
    }

    /// A tensor by its name, whose bytes are there and as many as its type and shape take.
    pub(super) fn get<'header>(&'header self, name: &str) -> Result<Tensor<'a, 'header>, String> {
        let entry = self
            .entries
            .get(name)
            .ok_or_else(|| format!("it holds no `{name}`"))?;
        let bytes = self
            .data
            .get(Range::from(entry.data_offsets))
            .ok_or_else(|| format!("`{name}` lies beyond its end"))?;
        let width = match entry.dtype.as_str() {
            "I8" | "U8" => 1,
            "F16" | "BF16" => 2,
            "F32" => 4,
            other => return Err(format!("`{name}` is of type {other}, which is not read here")),
        };
        let expected = entry
            .shape
            .iter()
            .try_fold(width, |bytes: usize, side| bytes.checked_mul(*side));
        if expected != Some(bytes.len()) {
            return Err(format!("`{name}` does not have as many bytes as its shape says"));
        }
        Ok(Tensor {
            dtype: &entry.dtype,
            shape: &entry.shape,
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut file = u64::try_from(header.len()).unwrap().to_le_bytes().to_vec();
        file.extend_from_slice(header.as_bytes());
        file.extend_from_slice(data);
        file
    }

    #[test]
    fn a_tensor_is_found_or_the_fault_is_named() {
        let header = r#"{"__metadata__":{"model":"m"},"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},
            "short":{"dtype":"F32","shape":[2,2],"data_offsets":[0,8]},
            "beyond":{"dtype":"I8","shape":[9],"data_offsets":[0,9]},
            "back":{"dtype":"I8","shape":[9],"data_offsets":[8,1]},
            "wide":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},
            "huge":{"dtype":"F32","shape":[18446744073709551615,4],"data_offsets":[0,8]}}"#;
        let bytes = file(header, &[1, 2, 3, 4, 5, 6, 7, 8]);
        let tensors = Tensors::read(&bytes).unwrap();
        assert_eq!(tensors.metadata.get("model").map(String::as_str), Some("m"));
        let tensor = tensors.get("a").unwrap();
        assert_eq!(
            (tensor.dtype, tensor.shape, tensor.bytes.len()),
            ("F32", &[1, 2][..], 8)
        );
        for (name, part) in [
            ("none", "holds no"),
            ("short", "as many bytes"),
            ("huge", "as many bytes"),
            ("beyond", "beyond its end"),
            ("back", "beyond its end"),
            ("wide", "type F64"),
        ] {
            let fault = tensors.get(name).unwrap_err();
            assert!(fault.contains(part), "{name}: {fault}");
        }
    }

    #[test]
    fn a_file_that_is_none_is_told() {
        for (bytes, part) in [
            (vec![1, 2], "shorter"),
            (u64::MAX.to_le_bytes().to_vec(), "would be"),
            (8_u64.to_le_bytes().to_vec(), "within its header"),
            (file("{", b""), "no JSON"),
            (file(r#"{"a":1}"#, b""), "`a`"),
            (file(r#"{"__metadata__":1}"#, b""), "metadata"),
        ] {
            let fault = Tensors::read(&bytes).unwrap_err();
            assert!(fault.contains(part), "{fault}");
        }
    }
}
