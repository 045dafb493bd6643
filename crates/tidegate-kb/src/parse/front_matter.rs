//! The head of a Markdown file: `key: value` lines between two lines of `---`.
//!
//! It is a small part of YAML: strings with or without quotes, lists in brackets or as `- ` lines below the key, and
//! comments. What is deeper than that is passed over. It is the place where a document says its title and authority.

use std::collections::BTreeMap;

/// The longest head, in bytes. What is longer is text.
const BYTES_MAX: usize = 16 << 10;

/// How many keys are kept.
const KEYS_MAX: usize = 100;

/// The keys, and where the text begins; `None` where there is no head.
pub(super) fn read(text: &str) -> Option<(BTreeMap<String, String>, usize)> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next()?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut at = first.len();
    let mut keys: BTreeMap<String, String> = BTreeMap::new();
    let mut open: Option<String> = None;
    for line in lines {
        at += line.len();
        if at > BYTES_MAX {
            return None;
        }
        let line = line.trim_end();
        if line == "---" || line == "..." {
            return Some((keys, at));
        }
        if let Some(item) = line.trim_start().strip_prefix("- ") {
            if let Some(list) = open.as_ref().and_then(|key| keys.get_mut(key)) {
                push(list, &value(item));
            }
            continue;
        }
        if line.starts_with([' ', '\t', '#']) || line.is_empty() {
            continue;
        }
        // A line that is none of these says that this is no head but a rule above a text.
        let (key, rest) = line.split_once(':')?;
        let key = value(key).to_lowercase();
        if key.is_empty() || (!rest.is_empty() && !rest.starts_with([' ', '\t'])) {
            return None;
        }
        if keys.len() < KEYS_MAX {
            keys.insert(key.clone(), list_or_value(rest));
            open = Some(key);
        }
    }
    None
}

fn list_or_value(text: &str) -> String {
    let inner = without_comment(text.trim());
    let Some(list) = inner.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return value(inner);
    };
    let mut joined = String::new();
    for item in list.split(',') {
        push(&mut joined, &value(item));
    }
    joined
}

fn push(list: &mut String, item: &str) {
    if item.is_empty() {
        return;
    }
    if !list.is_empty() {
        list.push_str(", ");
    }
    list.push_str(item);
}

/// A value without its quotes or the comment behind it.
fn value(text: &str) -> String {
    let text = text.trim();
    for quote in ['"', '\''] {
        if let Some(rest) = text.strip_prefix(quote)
            && let Some((inner, _)) = rest.rsplit_once(quote)
        {
            return inner.to_owned();
        }
    }
    without_comment(text).to_owned()
}

/// A `#` begins a comment behind a blank, outside of quotes.
fn without_comment(text: &str) -> &str {
    if text.starts_with(['"', '\'']) {
        return text;
    }
    text.find(" #")
        .map_or(text, |at| text.get(..at).unwrap_or(text))
        .trim_end()
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn heads_are_read() {
        let pairs = |text: &str| {
            read(text).map(|(keys, at)| {
                let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
                (keys.join(";"), text[at..].to_owned())
            })
        };
        for (text, expected) in [
            (
                "---\ntitle: A: b\nauthority: primary # ours\n---\nx",
                Some(("authority=primary;title=A: b", "x")),
            ),
            ("---\r\nTitle: \"Q # \"\r\n---\r\nx", Some(("title=Q # ", "x"))),
            ("---\ntags: [a, 'b', \"c\"]\n---\n", Some(("tags=a, b, c", ""))),
            (
                "---\ntags:\n  - a\n  - b # c\nx: y\n...\nz",
                Some(("tags=a, b;x=y", "z")),
            ),
            ("---\n# comment\n\na:\n  deep: 1\n---\nx", Some(("a=", "x"))),
            ("---\n---\nx", Some(("", "x"))),
            ("---\nA rule above a text\n---\n", None),
            ("---\nnever: closed\n", None),
            ("---\nhttp://x\n---\n", None),
            ("----\na: b\n---\n", None),
            ("text", None),
            ("", None),
        ] {
            let expected = expected.map(|(keys, rest)| (keys.to_owned(), rest.to_owned()));
            assert_eq!(pairs(text), expected, "{text:?}");
        }
    }
}
