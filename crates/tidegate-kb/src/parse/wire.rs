//! What the process that reads a file is told, and what it answers.
//!
//! Both ways the same form: the length of a head as four bytes, the head as JSON, then the bytes it speaks of (the
//! file, or the text that was read).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tidegate_core::knowledge::Format;

use super::{Limits, Parsed, Problem, Section};

/// The name of the hidden command.
pub(super) const COMMAND: &str = "__parse";

/// The most that the sections and titles of a text take as JSON, in bytes.
pub(super) const HEAD_BYTES_MAX: usize = 64 << 20;

/// An order: read these bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// The name of the file.
    pub(super) name: String,
    /// The bounds of what is read.
    pub(super) limits: Limits,
    /// The most memory the process may take, in bytes.
    pub(super) memory_bytes: u64,
    /// The most processor time, in seconds.
    pub(super) cpu_s: u64,
}

/// An answer: the text follows.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    /// Which walls could not be built around the process.
    pub(super) missing_walls: Vec<String>,
    /// What was read, without the text.
    pub(super) outcome: Result<Head, Problem>,
}

/// A [`Parsed`] without its text.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Head {
    format: Format,
    title: Option<String>,
    front_matter: BTreeMap<String, String>,
    sections: Vec<Section>,
    warnings: Vec<String>,
}

impl Head {
    /// Takes the text out.
    pub(super) fn split(parsed: Parsed) -> (Self, String) {
        let head = Self {
            format: parsed.format,
            title: parsed.title,
            front_matter: parsed.front_matter,
            sections: parsed.sections,
            warnings: parsed.warnings,
        };
        (head, parsed.text)
    }

    /// Puts the text back. The other side is not trusted: ranges must be in order and inside of the text.
    pub(super) fn join(self, text: String) -> Option<Parsed> {
        let mut at = 0;
        for section in &self.sections {
            let bytes = &section.bytes;
            if bytes.start < at || text.get(bytes.clone()).is_none() {
                return None;
            }
            let mut inner = bytes.start;
            for whole in &section.whole {
                if whole.start < inner || whole.end > bytes.end || text.get(whole.clone()).is_none() {
                    return None;
                }
                inner = whole.end;
            }
            at = bytes.end;
        }
        Some(Parsed {
            format: self.format,
            title: self.title,
            front_matter: self.front_matter,
            text,
            sections: self.sections,
            warnings: self.warnings,
        })
    }
}

/// Packs a head and its bytes.
pub(super) fn pack(head: &impl Serialize, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let json = serde_json::to_vec(head).map_err(|problem| problem.to_string())?;
    let length = u32::try_from(json.len()).map_err(|problem| problem.to_string())?;
    let mut packed = Vec::with_capacity(4 + json.len() + bytes.len());
    packed.extend_from_slice(&length.to_le_bytes());
    packed.extend_from_slice(&json);
    packed.extend_from_slice(bytes);
    Ok(packed)
}

/// Unpacks a head; the rest are its bytes.
pub(super) fn unpack<T: DeserializeOwned>(packed: &[u8]) -> Option<(T, &[u8])> {
    let (length, rest) = packed.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (json, bytes) = rest.split_at_checked(length)?;
    Some((serde_json::from_slice(json).ok()?, bytes))
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    #[test]
    fn ranges_that_make_no_sense_are_refused() {
        let section = |bytes, inner: Option<Range<usize>>| Section {
            headings: Vec::new(),
            page: None,
            bytes,
            whole: inner.into_iter().collect(),
        };
        let joined = |sections: Vec<Section>| {
            let head = Head {
                format: Format::Text,
                title: None,
                front_matter: BTreeMap::new(),
                sections,
                warnings: Vec::new(),
            };
            head.join("aé and more".to_owned()).is_some()
        };
        assert!(joined(vec![section(0..3, None), section(3..5, Some(4..5))]));
        assert!(!joined(vec![section(0..2, None)]), "inside a character");
        assert!(!joined(vec![section(0..99, None)]), "behind the end");
        assert!(
            !joined(vec![section(3..5, None), section(0..3, None)]),
            "out of order"
        );
        assert!(!joined(vec![section(0..5, Some(3..7))]), "outside of the section");
        assert!(unpack::<Order>(&[255, 255, 255, 255, 0]).is_none() && unpack::<Order>(&[]).is_none());
    }
}
