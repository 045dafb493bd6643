//! The path of a document as a client writes it, in the one form that it is known by.

use crate::http::NotStored;

/// The longest single name, in bytes (`NAME_MAX` of the usual file systems).
const NAME_BYTES_MAX: usize = 255;

/// Takes out what means nothing (`./`, `//`), or says why it is no path inside the folder. What the disk makes of it
/// is not asked.
pub(super) fn normalised(requested: &str) -> Result<String, NotStored> {
    let problem = if requested.chars().any(char::is_control) {
        "it holds a NUL or control character"
    } else if requested.contains('\\') {
        "it holds a backslash; names are separated by `/`"
    } else if requested.starts_with('/') {
        "it is absolute; write it as seen from the knowledge bank"
    } else if requested.starts_with('~') {
        "it begins with `~`, which is not expanded here"
    } else if requested.ends_with('/') {
        "it ends with `/`, as a folder's does"
    } else if requested.split('/').any(|name| name == "..") {
        "it holds `..`"
    } else if requested.split('/').any(|name| name.len() > NAME_BYTES_MAX) {
        "one of its names has more than 255 bytes"
    } else {
        let names: Vec<&str> = requested
            .split('/')
            .filter(|name| !matches!(*name, "" | "."))
            .collect();
        if names.iter().any(|name| !name.trim().is_empty()) {
            return Ok(names.join("/"));
        }
        "it is empty"
    };
    Err(malformed(problem))
}

/// A path that is none.
pub(super) fn malformed(why: &str) -> NotStored {
    NotStored::Malformed(format!("the path is malformed: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_form_or_says_what_is_wrong() {
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for (given, wanted) in [
            ("x.md", Ok("x.md")),
            ("./x.md", Ok("x.md")),
            ("a//b.md", Ok("a/b.md")),
            ("a/./b/././c.md", Ok("a/b/c.md")),
            ("grün/ä b.md", Ok("grün/ä b.md")),
            ("..a/b..md", Ok("..a/b..md")),
            (&long[1..], Ok(&long[1..])),
            ("", Err("empty")),
            (".", Err("empty")),
            ("  ", Err("empty")),
            ("./", Err("folder")),
            ("a/", Err("folder")),
            ("/a", Err("absolute")),
            ("//a", Err("absolute")),
            ("~/x", Err("`~`")),
            ("..", Err("`..`")),
            ("a/../b", Err("`..`")),
            ("a\\b", Err("backslash")),
            ("a\0b", Err("control")),
            ("a\nb", Err("control")),
            (&long, Err("255")),
        ] {
            match (normalised(given), wanted) {
                (Ok(found), Ok(wanted)) => assert_eq!(found, wanted),
                (Err(NotStored::Malformed(text)), Err(part)) => assert!(text.contains(part), "{text}"),
                (found, wanted) => panic!("{given}: {found:?}, not {wanted:?}"),
            }
        }
    }
}
