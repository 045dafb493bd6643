//! What BERT's tokenizer for uncased models does with a character before it looks at words.

use unicode_normalization::char::decompose_canonical;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// What a character is to the tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// It is as if it were not there: control, format, unassigned, private.
    Dropped,
    /// It ends a word.
    Space,
    /// It is a word of its own.
    Ideograph,
    /// It may stand in a word, or be punctuation.
    Other,
}

/// The class of a character as it stands in the text.
pub(super) fn class(character: char) -> Class {
    match character {
        '\t' | '\n' | '\r' | ' ' => Class::Space,
        '!'..='~' => Class::Other,
        '\0' | '\u{fffd}' => Class::Dropped,
        _ if is_ideograph(character) => Class::Ideograph,
        _ => match character.general_category_group() {
            GeneralCategoryGroup::Other => Class::Dropped,
            GeneralCategoryGroup::Separator => Class::Space,
            GeneralCategoryGroup::Letter
            | GeneralCategoryGroup::Mark
            | GeneralCategoryGroup::Number
            | GeneralCategoryGroup::Punctuation
            | GeneralCategoryGroup::Symbol => Class::Other,
        },
    }
}

/// The blocks of CJK ideographs that BERT sets apart.
fn is_ideograph(character: char) -> bool {
    matches!(
        character,
        '\u{4e00}'..='\u{9fff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{20000}'..='\u{2a6df}'
            | '\u{2a700}'..='\u{2b73f}'
            | '\u{2b740}'..='\u{2b81f}'
            | '\u{2b820}'..='\u{2ceaf}'
            | '\u{f900}'..='\u{faff}'
            | '\u{2f800}'..='\u{2fa1f}'
    )
}

/// Whether a character is a word of its own: all of ASCII's signs, and what Unicode calls punctuation.
pub(super) fn is_punctuation(character: char) -> bool {
    if character.is_ascii() {
        character.is_ascii_punctuation()
    } else {
        character.general_category_group() == GeneralCategoryGroup::Punctuation
    }
}

/// Hands on what a character becomes: taken apart (NFD), without its accents, in lower case.
///
/// NFD of a whole text also sorts accents that follow one letter. That is not needed here: almost all of them are
/// dropped, and a word with one of the rest is in no vocabulary in either order.
pub(super) fn fold(character: char, mut each: impl FnMut(char)) {
    if character.is_ascii() {
        each(character.to_ascii_lowercase());
        return;
    }
    decompose_canonical(character, |part| {
        if part.general_category() != GeneralCategory::NonspacingMark {
            part.to_lowercase().for_each(&mut each);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn punctuation_leaves_nothing_beside_it_when_a_character_is_folded() {
        // The tokenizer counts on it: a folded character is one sign, or letters only.
        for character in char::MIN..=char::MAX {
            let mut parts = Vec::new();
            fold(character, |part| parts.push(part));
            let signs = parts.iter().filter(|part| is_punctuation(**part)).count();
            assert!(signs == 0 || parts.len() == 1, "{character:?} becomes {parts:?}");
        }
    }

    #[test]
    fn characters_have_the_classes_of_the_rules() {
        for (character, expected) in [
            ('\0', Class::Dropped),
            ('\u{fffd}', Class::Dropped),
            ('\u{200b}', Class::Dropped),
            ('\u{7}', Class::Dropped),
            ('\u{e000}', Class::Dropped),
            ('\u{378}', Class::Dropped),
            ('\t', Class::Space),
            ('\u{a0}', Class::Space),
            ('\u{2028}', Class::Space),
            ('東', Class::Ideograph),
            ('\u{fa0e}', Class::Ideograph),
            ('é', Class::Other),
            ('!', Class::Other),
        ] {
            assert_eq!(class(character), expected, "{character:?}");
        }
        assert!(is_punctuation('—') && is_punctuation('$') && !is_punctuation('€') && !is_punctuation('a'));
    }
}
