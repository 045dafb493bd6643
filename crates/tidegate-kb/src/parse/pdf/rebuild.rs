//! A PDF whose table of objects is broken or cut off gets a new one.
//!
//! Objects are found by their heads (`12 0 obj`, ISO 32000-2, 7.3.10), the root by the last trailer that names it. What
//! was written last holds, as it does in a file that was changed by appending. Encrypted files are not rebuilt: their
//! keys were in what is lost.

use std::collections::BTreeMap;

/// The most objects that are looked for.
const OBJECTS_MAX: usize = 1_000_000;

/// The longest head of an object, in bytes before the word `obj`.
const HEAD_BYTES_MAX: usize = 24;

/// The file with a new table at its end; `None` where no root can be found.
pub(super) fn rebuild(bytes: &[u8]) -> Option<Vec<u8>> {
    if positions(bytes, b"/Encrypt").next().is_some() {
        return None;
    }
    let offsets = offsets(bytes);
    let root = root(bytes, &offsets)?;
    let size = offsets.keys().next_back()?.0.checked_add(1)?;
    let mut whole = bytes.to_vec();
    whole.extend_from_slice(b"\n");
    let table_at = whole.len();
    let entries = offsets
        .iter()
        .map(|((number, generation), offset)| format!("{number} 1\n{offset:010} {generation:05} n \n"));
    let table: String = std::iter::once("xref\n0 1\n0000000000 65535 f \n".to_owned())
        .chain(entries)
        .chain(std::iter::once(format!(
            "trailer\n<< /Size {size} /Root {} {} R >>\nstartxref\n{table_at}\n%%EOF\n",
            root.0, root.1
        )))
        .collect();
    whole.extend_from_slice(table.as_bytes());
    Some(whole)
}

/// Where each object begins, by number and generation; the last one of a number holds.
fn offsets(bytes: &[u8]) -> BTreeMap<(u32, u32), usize> {
    let mut found: BTreeMap<u32, (u32, usize)> = BTreeMap::new();
    for at in positions(bytes, b"obj") {
        let start = at.saturating_sub(HEAD_BYTES_MAX);
        let Some(((number, generation), length)) = bytes.get(start..at).and_then(head) else {
            continue;
        };
        found.insert(number, (generation, at - length));
        if found.len() >= OBJECTS_MAX {
            break;
        }
    }
    found
        .into_iter()
        .map(|(number, (generation, at))| ((number, generation), at))
        .collect()
}

/// The two numbers at the end of some bytes, and how many bytes they take with the blanks behind.
fn head(bytes: &[u8]) -> Option<((u32, u32), usize)> {
    let mut rest = bytes;
    let mut number = |is_last: bool| {
        let blank = rest.len() - rest.trim_ascii_end().len();
        if blank == 0 && !is_last {
            return None;
        }
        rest = rest.trim_ascii_end();
        let digits = rest.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let (before, digits) = rest.split_at_checked(rest.len() - digits)?;
        rest = before;
        std::str::from_utf8(digits).ok()?.parse().ok()
    };
    let generation: u32 = number(true)?;
    let number: u32 = number(false)?;
    Some(((number, generation), bytes.len() - rest.len()))
}

/// The root by the last trailer, or the object that says that it is one.
fn root(bytes: &[u8], offsets: &BTreeMap<(u32, u32), usize>) -> Option<(u32, u32)> {
    let named = positions(bytes, b"/Root").filter_map(|at| {
        let rest = bytes.get(at + 5..)?;
        let rest = rest.get(..HEAD_BYTES_MAX).unwrap_or(rest);
        let end = rest.iter().position(|byte| *byte == b'R')?;
        head(rest.get(..end)?).map(|(id, _)| id)
    });
    named.last().or_else(|| {
        let is_catalog = |at: usize| {
            let rest = bytes.get(at..).unwrap_or_default();
            let rest = rest.get(..200).unwrap_or(rest);
            let end = positions(rest, b"endobj").next().unwrap_or(rest.len());
            rest.get(..end)
                .is_some_and(|object| positions(object, b"/Catalog").next().is_some())
        };
        offsets.iter().find(|(_, at)| is_catalog(**at)).map(|(id, _)| *id)
    })
}

fn positions<'b>(bytes: &'b [u8], word: &'b [u8]) -> impl Iterator<Item = usize> + 'b {
    bytes
        .windows(word.len())
        .enumerate()
        .filter(move |(_, window)| *window == word)
        .map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_by_their_heads() {
        let bytes =
            b"%PDF-1.4\n1 0 obj\n<</Type/Catalog>>\nendobj\n12 3  obj x endobj\n1 0 obj <</Catalog>>endobj";
        let found = offsets(bytes);
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [(1, 0), (12, 3)]);
        assert!(
            bytes[found[&(1, 0)]..].starts_with(b"1 0 obj <<"),
            "the last one holds"
        );
        assert_eq!(root(bytes, &found), Some((1, 0)));
        assert_eq!(root(b"trailer <</Root 12 3 R>>", &found), Some((12, 3)));
        assert!(rebuild(b"obj 0 obj").is_none() && rebuild(b"").is_none());
    }
}
