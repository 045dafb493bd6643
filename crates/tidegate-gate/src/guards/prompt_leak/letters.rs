//! Text as letters and digits alone.

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// Letters that look like others, in small letters.
const LOOK_ALIKES: [(char, char); 24] = [
    ('0', 'o'),
    ('1', 'i'),
    ('l', 'i'),
    ('3', 'e'),
    ('4', 'a'),
    ('5', 's'),
    ('7', 't'),
    ('ı', 'i'),
    ('а', 'a'),
    ('е', 'e'),
    ('о', 'o'),
    ('р', 'p'),
    ('с', 'c'),
    ('х', 'x'),
    ('у', 'y'),
    ('і', 'i'),
    ('ѕ', 's'),
    ('ј', 'j'),
    ('ο', 'o'),
    ('α', 'a'),
    ('ε', 'e'),
    ('ι', 'i'),
    ('ρ', 'p'),
    ('υ', 'u'),
];

/// Folds characters to what is compared. An escape of a line break in a string (`\n`) is no letter.
#[derive(Debug, Default)]
pub(super) struct Letters {
    is_escaped: [bool; 2],
}

impl Letters {
    /// The letters of a text; as they are, or thirteen further in the alphabet.
    pub(super) fn of(text: &str, is_rotated: bool) -> Vec<u8> {
        let mut letters = Self::default();
        text.chars()
            .flat_map(|letter| letters.fold(letter, is_rotated))
            .collect()
    }

    /// What one character comes to.
    pub(super) fn fold(&mut self, letter: char, is_rotated: bool) -> Vec<u8> {
        let Some(is_escaped) = self.is_escaped.get_mut(usize::from(is_rotated)) else {
            return Vec::new();
        };
        let was_escaped = std::mem::replace(is_escaped, letter == '\\');
        if was_escaped && matches!(letter, 'n' | 'r' | 't') {
            return Vec::new();
        }
        if letter.is_ascii() && !letter.is_ascii_alphanumeric() {
            return Vec::new();
        }
        let mut folded = Vec::new();
        for part in std::iter::once(letter).nfkd() {
            if !part.is_alphanumeric() || is_combining_mark(part) {
                continue;
            }
            for lower in part.to_lowercase() {
                let lower = if is_rotated { rotate(lower) } else { lower };
                let plain = LOOK_ALIKES
                    .iter()
                    .find_map(|(look, plain)| (*look == lower).then_some(*plain));
                let mut bytes = [0; 4];
                folded.extend_from_slice(plain.unwrap_or(lower).encode_utf8(&mut bytes).as_bytes());
            }
        }
        folded
    }
}

fn rotate(letter: char) -> char {
    match letter {
        'a'..='m' => char::from(letter as u8 + 13),
        'n'..='z' => char::from(letter as u8 - 13),
        letter => letter,
    }
}
