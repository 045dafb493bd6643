//! Keeping what a tool says within its row's bound.

/// Adds formatted text.
pub(crate) fn add(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing into a String cannot fail.
    if std::fmt::write(text, more).is_err() {
        tracing::error!("a text could not be put together");
    }
}

/// The text, cut at a character border where it is longer than `bytes_max`; the note says what is missing.
pub(crate) fn bounded(text: String, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    let total = text.len();
    let kept = prefix(&text, bytes_max);
    format!("{kept}\n[cut: {} of {total} bytes shown]", kept.len())
}

/// The longest beginning of the text that is not longer than `bytes_max` and ends at a character border.
pub(crate) fn prefix(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max))
        .unwrap_or_default()
}

/// Text out of bytes that may be cut in the middle of a character at their end. `None` where it is no text.
pub(crate) fn text_of(bytes: &[u8], is_cut: bool) -> Option<String> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if is_cut && error.error_len().is_none() => {
            std::str::from_utf8(bytes.get(..error.valid_up_to())?).ok()?
        }
        Err(_) => return None,
    };
    (!text.contains('\0')).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{bounded, text_of};

    #[test]
    fn cuts_at_characters_and_says_so() {
        assert_eq!(bounded("abc".to_owned(), 3), "abc");
        assert_eq!(bounded("aéé".to_owned(), 4), "aé\n[cut: 3 of 5 bytes shown]");
    }

    #[test]
    fn tells_text_from_bytes() {
        assert_eq!(text_of("é".as_bytes(), false).as_deref(), Some("é"));
        assert_eq!(text_of(&[b'a', 0xc3], true).as_deref(), Some("a"));
        assert_eq!(text_of(&[b'a', 0xc3], false), None);
        assert_eq!(text_of(&[0xff, b'a'], true), None);
        assert_eq!(text_of(b"a\0", false), None);
    }
}
