//! What may be written about a key: the same bounds whether it comes by the API or by the command line.

use std::collections::BTreeMap;

use tidegate_gate::guards::untrusted::is_invisible;

/// Characters of a key's name.
pub const NAME_CHARS_MAX: usize = 200;
/// Names that an allow-list of models or tools may hold.
pub const LISTED_MAX: usize = 256;
/// Characters of a model's or a tool's name.
pub const LISTED_CHARS_MAX: usize = 256;
/// Pairs of metadata.
pub const METADATA_PAIRS_MAX: usize = 16;
/// Characters of the name of a pair.
pub const METADATA_NAME_CHARS_MAX: usize = 64;
/// Characters of the value of a pair.
pub const METADATA_VALUE_CHARS_MAX: usize = 512;

/// Whether a character has no business in a name: it controls the terminal, shows nothing, or turns the
/// direction of what is shown, so that one name can pass for another.
pub fn is_deceptive(letter: char) -> bool {
    letter.is_control() || is_invisible(letter)
}

/// A text that is there and fits. The error is the rule, to be put after the name of the field.
pub fn check_text(text: &str, chars_max: usize) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("may not be empty".to_owned());
    }
    check_value(text, chars_max)
}

/// The same for a text that may be empty.
fn check_value(text: &str, chars_max: usize) -> Result<(), String> {
    if text.chars().count() > chars_max || text.chars().any(is_deceptive) {
        return Err(format!(
            "has at most {chars_max} characters, none of them a control character or one that does not show"
        ));
    }
    Ok(())
}

/// Whether an allow-list may be so long. The error is the rule, to be put after the name of the field.
pub fn check_list(names: &[String]) -> Result<(), String> {
    if names.len() > LISTED_MAX {
        return Err(format!("has at most {LISTED_MAX} names"));
    }
    Ok(())
}

/// Pairs of metadata. The error is the rule, to be put after the name of the field.
pub fn check_metadata(pairs: &BTreeMap<String, String>) -> Result<(), String> {
    if pairs.len() > METADATA_PAIRS_MAX {
        return Err(format!("has at most {METADATA_PAIRS_MAX} pairs"));
    }
    for (name, value) in pairs {
        check_text(name, METADATA_NAME_CHARS_MAX).map_err(|rule| format!("has a pair whose name {rule}"))?;
        check_value(value, METADATA_VALUE_CHARS_MAX)
            .map_err(|rule| format!("has a pair whose value {rule}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_shows_what_it_is() {
        for good in ["ann", "Zoë", "张伟", "محمد", "a b", "🙂"] {
            assert_eq!(check_text(good, 20), Ok(()), "{good}");
        }
        for bad in [
            "",
            " ",
            "a\n",
            "a\u{1b}[2J",
            "a\u{9b}",
            "\u{202e}nna",
            "a\u{202a}",
            "a\u{2066}b",
            "a\u{2069}",
            "a\u{200b}",
            "a\u{200d}b",
            "a\u{feff}",
            "a\u{e0041}",
        ] {
            assert!(check_text(bad, 20).is_err(), "{bad:?}");
        }
        assert!(check_text(&"é".repeat(20), 20).is_ok());
        assert!(check_text(&"é".repeat(21), 20).is_err());
    }

    #[test]
    fn metadata_has_names_and_may_have_empty_values() {
        let of = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        assert_eq!(check_metadata(&of("team", "")), Ok(()));
        assert_eq!(check_metadata(&of(&"n".repeat(64), &"v".repeat(512))), Ok(()));
        for (name, value) in [("", "a"), ("a", "b\nc"), ("a\u{200b}", "b"), ("a", "\u{202e}b")] {
            assert!(check_metadata(&of(name, value)).is_err(), "{name:?} {value:?}");
        }
        assert!(check_metadata(&of(&"n".repeat(65), "a")).is_err());
        assert!(check_metadata(&of("a", &"v".repeat(513))).is_err());
        let pairs = |count: usize| (0..count).map(|n| (n.to_string(), String::new())).collect();
        assert_eq!(check_metadata(&pairs(16)), Ok(()));
        assert!(check_metadata(&pairs(17)).is_err());
    }
}
