//! The letters of a line: which are plain, what a line looks like, and which may stand without quotes.
//!
//! All of it is linear in the line, and cheap for the letters that people write in: most need no table.

use unicode_normalization::{
    UnicodeNormalization,
    char::{canonical_combining_class, is_combining_mark},
    is_nfkc,
};

use crate::guards::untrusted::is_invisible;

/// The most marks in a row on one letter: no language needs more (Stream-Safe Text, UAX #15 §13).
const MARKS_MAX: usize = 30;

/// What a line looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Look {
    /// What it is.
    AsIs,
    /// Another line.
    Other(String),
    /// More than is judged: letters that stand for many, or heaps of marks.
    TooMuch,
}

/// The line as it looks: other blanks as blanks, other line ends as line ends, nothing invisible, and letters in
/// their plain form (NFKC, UAX #15).
pub(super) fn look(line: &str, chars_max: usize) -> Look {
    if line.chars().all(is_clear) {
        return Look::AsIs;
    }
    let mut seen = Seen {
        text: String::with_capacity(line.len()),
        run: String::new(),
        room: chars_max,
    };
    let mut marks = 0_usize;
    for letter in line.chars() {
        let is_added = match letter {
            letter if is_clear(letter) => {
                marks = 0;
                seen.settled(letter)
            }
            '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => seen.settled('\n'),
            letter if letter.is_whitespace() => seen.settled(' '),
            letter if letter.is_control() || is_invisible(letter) => true,
            // The wide forms of ASCII, each of which is one letter for itself.
            '\u{ff01}'..='\u{ff5e}' => {
                marks = 0;
                seen.settled(char::from_u32(u32::from(letter) - 0xfee0).unwrap_or(letter))
            }
            letter => {
                marks = if canonical_combining_class(letter) == 0 {
                    0
                } else {
                    marks + 1
                };
                seen.run.push(letter);
                marks <= MARKS_MAX
            }
        };
        if !is_added {
            return Look::TooMuch;
        }
    }
    if !seen.end_run() {
        Look::TooMuch
    } else if seen.text == line {
        Look::AsIs
    } else {
        Look::Other(seen.text)
    }
}

/// A line as it looks, while it is read.
struct Seen {
    text: String,
    /// Letters whose plain forms depend on each other, and on the last one of the text.
    run: String,
    /// Characters that may still come.
    room: usize,
}

impl Seen {
    /// Adds a letter that is its own plain form and joins with none before it; false where there is no room.
    fn settled(&mut self, letter: char) -> bool {
        let has_room = self.end_run() && self.room > 0;
        self.room = self.room.saturating_sub(1);
        self.text.push(letter);
        has_room
    }

    fn end_run(&mut self) -> bool {
        if self.run.is_empty() {
            return true;
        }
        let before = self.text.pop();
        self.room += usize::from(before.is_some());
        let mut plain = before.into_iter().chain(self.run.chars()).nfkc();
        for letter in plain.by_ref().take(self.room) {
            self.text.push(letter);
            self.room -= 1;
        }
        let is_whole = plain.next().is_none();
        self.run.clear();
        is_whole
    }
}

/// Whether a text holds no control character but tab and line end, and nothing invisible.
pub(super) fn is_plain_text(text: &str) -> bool {
    text.chars().all(|letter| {
        is_clear(letter)
            || (!letter.is_ascii()
                && !letter.is_control()
                && !letter.is_whitespace()
                && !is_invisible(letter)
                && !matches!(letter, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}' | '\u{fff0}'..='\u{ffff}'))
    })
}

/// Whether a text without quotes is made of ASCII and of letters, marks and digits of other scripts that are their
/// own plain form and look like nothing that the shell knows.
pub(super) fn is_ordinary(text: &str) -> bool {
    let mut may_bear_mark = false;
    let are_letters = text.chars().all(|letter| {
        if letter.is_ascii() {
            may_bear_mark = letter.is_ascii_alphanumeric();
            true
        } else if is_combining_mark(letter) {
            may_bear_mark && !is_general_mark(letter)
        } else {
            may_bear_mark = letter.is_alphanumeric() && !is_look_alike(letter);
            may_bear_mark
        }
    });
    are_letters && (text.chars().all(is_clear) || is_nfkc(text))
}

/// Marks that belong to no script: what needs them has letters of its own.
fn is_general_mark(letter: char) -> bool {
    matches!(letter,
        '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Letters that look like quotes, bars, slashes and the like: clicks, modifiers, apostrophes of several scripts,
/// counting strokes, and some ideographs.
fn is_look_alike(letter: char) -> bool {
    matches!(letter,
        '\u{1c0}'..='\u{1c3}' | '\u{2b0}'..='\u{2ff}' | '\u{559}' | '\u{7f4}' | '\u{7f5}' | '\u{3021}'..='\u{3029}'
        | '\u{3031}'..='\u{3035}' | '\u{4e28}' | '\u{4e36}' | '\u{4e3f}' | '\u{a717}'..='\u{a721}'
        | '\u{a788}'..='\u{a78c}')
}

/// Letters that everybody sees as they are: printable ASCII, blanks, and the letters of the most written scripts
/// that are their own plain form whatever stands beside them. Others may be, too; they are looked up.
fn is_clear(letter: char) -> bool {
    matches!(letter,
        ' '..='~' | '\t' | '\n'
        // Latin and Greek.
        | 'À'..='ı' | 'Ĵ'..='ľ' | 'Ł'..='ň' | 'Ŋ'..='ž' | 'ά'..='ώ'
        | 'Α'..='Ρ' | 'Σ'..='Ϋ'
        // Cyrillic, Hebrew, Arabic.
        | 'Ѐ'..='ҁ' | 'Ҋ'..='ԯ' | 'א'..='ת' | 'ء'..='ؿ' | 'ف'..='ي'
        // Kana, ideographs, Hangul.
        | 'ぁ'..='ゖ' | 'ァ'..='ヺ' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '가'..='힣')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_normalization::{IsNormalized, is_nfkc_quick};

    use super::*;

    /// The same by the plain way.
    fn slow_look(line: &str) -> String {
        line.chars()
            .filter_map(|letter| match letter {
                '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Some('\n'),
                ' ' | '\t' | '\n' => Some(letter),
                letter if letter.is_whitespace() => Some(' '),
                letter if letter.is_control() || is_invisible(letter) => None,
                letter => Some(letter),
            })
            .nfkc()
            .collect()
    }

    #[test]
    fn clear_letters_stay_what_they_are_whatever_stands_beside_them() {
        for letter in (0..=0x0010_ffff)
            .filter_map(char::from_u32)
            .filter(|letter| is_clear(*letter))
        {
            assert_eq!(
                is_nfkc_quick(std::iter::once(letter)),
                IsNormalized::Yes,
                "{letter:?}"
            );
            assert_eq!(canonical_combining_class(letter), 0, "{letter:?}");
            assert!(!is_invisible(letter), "{letter:?}");
            assert!(
                matches!(letter, '\t' | '\n' | ' ') || !(letter.is_control() || letter.is_whitespace()),
                "{letter:?}"
            );
        }
    }

    #[test]
    fn what_stands_for_more_than_is_judged_is_told() {
        assert_eq!(look(&"\u{fdfa}".repeat(10), 100), Look::TooMuch);
        assert!(matches!(look(&"\u{fdfa}".repeat(5), 100), Look::Other(seen) if seen.chars().count() == 90));
        assert_eq!(look(&format!("a{}", "\u{323}".repeat(31)), 100), Look::TooMuch);
        assert!(matches!(
            look(&format!("a{}", "\u{323}".repeat(30)), 100),
            Look::Other(_)
        ));
        assert_eq!(look("ä潮가", 3), Look::AsIs);
    }

    #[test]
    fn ordinary_letters_are_told_from_what_looks_like_something() {
        for text in [
            "café",
            "Übung.md",
            "潮汐/門.txt",
            "日本語",
            "данные",
            "ελληνικά",
            "हिन्दी",
            "ไทย",
            "עברית",
            "٣",
            "naïve-2",
        ] {
            assert!(is_ordinary(text), "{text:?}");
        }
        for text in [
            "cafe\u{301}",
            "ｌｓ",
            "ﬁ",
            "a\u{200b}b",
            "a\u{202e}b",
            "“a”",
            "a；b",
            "ǀ",
            "ǃ",
            "ʹ",
            "\u{301}a",
            "a\u{338}",
            "丨",
            "a\u{fe0f}",
            "😀",
            "a–b",
            "²",
            "a\u{a0}b",
        ] {
            assert!(!is_ordinary(text), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_line_looks_as_the_plain_way_says(
            line in "([a-c ]|[àäéŉſﬁ]|[\u{300}-\u{345}]|[\u{1100}-\u{11ff}]|[가-각]|[ａ-ｆ；]|\u{200b}|\u{a0}|\u{85}|[潮𝒂Ⅷ㌀]|[\u{1e00}-\u{1eff}]){0,24}"
        ) {
            let seen = match look(&line, 10_000) {
                Look::AsIs => line.clone(),
                Look::Other(seen) => seen,
                Look::TooMuch => return Err(TestCaseError::fail("too much")),
            };
            prop_assert_eq!(seen, slow_look(&line));
        }

        #[test]
        fn what_is_ordinary_looks_as_it_is(line in "\\PC{0,12}") {
            prop_assert!(!is_ordinary(&line) || look(&line, 10_000) == Look::AsIs, "{:?}", line);
        }
    }
}
