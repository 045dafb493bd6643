//! Sentences and words. Short forms are written out ("don't" is "do not"), so that the rules need know only one form.

use std::ops::Range;

use super::text::{Folded, is_mixed};

/// What stands for something that was cut out in the middle of a sentence.
pub(crate) const GAP: &str = "\u{fffc}";

/// A word, a punctuation mark, or a gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// Where it stands in the folded text.
    pub(crate) at: Range<usize>,
    /// What it reads.
    pub(crate) word: String,
    /// Whether a hyphen joins it to the word before it.
    pub(crate) is_joined: bool,
}

impl Token {
    /// Whether it is a word or a number.
    pub(crate) fn is_word(&self) -> bool {
        self.word
            .starts_with(|letter: char| letter.is_alphanumeric() || letter == '\'')
    }
}

/// What a sentence is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sentence {
    /// Its words and marks, without the one it ends with.
    pub(crate) tokens: Vec<Token>,
    /// Whether it ends with a question mark.
    pub(crate) is_question: bool,
    /// Whether a word is written with letters of several scripts.
    pub(crate) is_mixed: bool,
}

impl Sentence {
    /// The word at a place; nothing reads as an empty word.
    pub(crate) fn word(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| token.word.as_str())
    }

    /// Where it stands in the folded text.
    pub(crate) fn span(&self) -> Range<usize> {
        let start = self.tokens.first().map_or(0, |token| token.at.start);
        start..self.tokens.last().map_or(start, |token| token.at.end)
    }

    /// Where tokens stand in the folded text.
    pub(crate) fn span_of(&self, tokens: Range<usize>) -> Range<usize> {
        let Some(tokens) = self.tokens.get(tokens) else {
            return 0..0;
        };
        let start = tokens.first().map_or(0, |token| token.at.start);
        start..tokens.last().map_or(start, |token| token.at.end)
    }

    /// Whether these words stand one after the other from a place on.
    pub(crate) fn reads(&self, at: usize, phrase: &str) -> bool {
        let first = self.word(at);
        if first.is_empty() || !phrase.starts_with(first) {
            return false;
        }
        phrase
            .split(' ')
            .enumerate()
            .all(|(index, word)| self.word(at + index) == word)
    }

    /// Whether the word at a place is a part of a longer one that is written with hyphens.
    pub(crate) fn is_joined(&self, at: usize) -> bool {
        let joins = |at: usize| self.tokens.get(at).is_some_and(|token| token.is_joined);
        joins(at) || joins(at + 1)
    }

    /// The first place between two at which one of the phrases begins.
    pub(crate) fn find(&self, within: Range<usize>, phrases: &[&str]) -> Option<usize> {
        within
            .clone()
            .find(|at| phrases.iter().any(|phrase| self.reads(*at, phrase)))
    }
}

/// What becomes of a byte of a text.
pub(crate) trait Mask {
    /// Whether the byte is not to be read; and if so, whether the sentence goes on behind it.
    fn hidden(&self, at: usize) -> Option<Hidden>;
}

/// How a sentence goes on behind something that is not to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hidden {
    /// It does, with a gap.
    Gap,
    /// It does not.
    End,
}

/// Nothing is hidden.
pub(crate) struct Everything;

impl Mask for Everything {
    fn hidden(&self, _: usize) -> Option<Hidden> {
        None
    }
}

/// The words of a text that is no turn: a quote, a value.
pub(crate) fn words(text: &str) -> Vec<String> {
    sentences(&Folded::of(text), &Everything)
        .into_iter()
        .flat_map(|sentence| sentence.tokens)
        .filter(Token::is_word)
        .map(|token| token.word)
        .collect()
}

/// The sentences of what is to be read.
pub(crate) fn sentences(folded: &Folded, mask: &impl Mask) -> Vec<Sentence> {
    let mut reader = Reader {
        text: &folded.text,
        done: Vec::new(),
        open: Sentence::default(),
    };
    let mut letters = folded.text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match mask.hidden(at) {
            Some(Hidden::Gap) => {
                if reader.open.tokens.last().is_none_or(|token| token.word != GAP) {
                    reader.push(at..at + letter.len_utf8(), GAP);
                }
                continue;
            }
            Some(Hidden::End) => {
                reader.end(false);
                continue;
            }
            None => {}
        }
        if letter.is_alphanumeric() {
            let mut end = at + letter.len_utf8();
            while let Some((next_at, next)) = letters.next_if(|(next_at, next)| {
                mask.hidden(*next_at).is_none()
                    && (next.is_alphanumeric()
                        || unicode_normalization::char::canonical_combining_class(*next) != 0
                        || (matches!(next, '\'' | '.' | ',') && joins(&folded.text, *next_at, *next)))
            }) {
                end = next_at + next.len_utf8();
            }
            reader.word(at..end);
        } else {
            reader.mark(at, letter);
        }
    }
    reader.end(false);
    reader.done
}

/// Whether a mark between two letters belongs to the word: an apostrophe between letters, a point in a number or in
/// a short form such as "e.g".
fn joins(text: &str, at: usize, mark: char) -> bool {
    let before = text.get(..at).and_then(|text| text.chars().next_back());
    let after = text.get(at + 1..).and_then(|text| text.chars().next());
    let (Some(before), Some(after)) = (before, after) else {
        return false;
    };
    match mark {
        '\'' => before.is_alphabetic() && after.is_alphabetic(),
        ',' => before.is_ascii_digit() && after.is_ascii_digit(),
        _ => before.is_alphanumeric() && after.is_alphanumeric(),
    }
}

struct Reader<'t> {
    text: &'t str,
    done: Vec<Sentence>,
    open: Sentence,
}

/// Words behind which a point ends no sentence.
const SHORT_FORMS: &[&str] = &[
    "mr", "mrs", "ms", "dr", "st", "prof", "e.g", "i.e", "vs", "fr", "hr", "z.b", "d.h", "approx",
];

/// How words begin that stand behind a German ordinal number.
const BEHIND_ORDINAL: &[&str] = &["kl", "jahrg", "schulj", "stufe", "sem"];

impl Reader<'_> {
    fn push(&mut self, at: Range<usize>, word: &str) {
        let hyphen = at
            .start
            .checked_sub(1)
            .filter(|hyphen| self.text.as_bytes().get(*hyphen) == Some(&b'-'));
        let is_joined = hyphen.is_some_and(|hyphen| {
            let last = self.open.tokens.last();
            last.is_some_and(|last| last.is_word() && last.at.end == hyphen)
        });
        self.open.tokens.push(Token {
            at,
            word: word.to_owned(),
            is_joined,
        });
    }

    fn end(&mut self, is_question: bool) {
        let mut sentence = std::mem::take(&mut self.open);
        if sentence.tokens.is_empty() {
            // "?!" and "..." belong to the sentence before them.
            if let (true, Some(last)) = (is_question, self.done.last_mut()) {
                last.is_question = true;
            }
            return;
        }
        sentence.is_question = is_question;
        self.done.push(sentence);
    }

    fn word(&mut self, at: Range<usize>) {
        let word = self.text.get(at.clone()).unwrap_or_default();
        self.open.is_mixed |= is_mixed(word);
        let (base, more) = written_out(word);
        self.push(at.clone(), base);
        for word in more {
            self.push(at.clone(), word);
        }
    }

    fn mark(&mut self, at: usize, mark: char) {
        let rest = self.text.get(at + mark.len_utf8()..).unwrap_or_default();
        match mark {
            '\n' => {
                let next = rest.trim_start_matches([' ', '\t']);
                if next.starts_with('\n') || next.is_empty() || is_listed(next) {
                    self.end(false);
                }
            }
            '.' if self.is_abbreviated(rest) => {}
            '.' | '!' | '…' | ';' | '。' | '！' => self.end(false),
            '?' | '¿' | '؟' => self.end(true),
            '-' => {
                // A hyphen joins words, a dash parts them.
                if rest.starts_with([' ', '\n', '-']) && !self.open.tokens.is_empty() {
                    self.push(at..at + 1, "-");
                }
            }
            '–' => self.push(at..at + mark.len_utf8(), "-"),
            '&' => self.push(at..at + 1, "and"),
            ' ' | '\t' | '*' | '_' | '~' => {}
            _ => {
                let mut letter = [0; 4];
                self.push(at..at + mark.len_utf8(), mark.encode_utf8(&mut letter));
            }
        }
    }

    fn is_abbreviated(&self, rest: &str) -> bool {
        let Some(last) = self.open.tokens.last() else {
            return false;
        };
        let next = rest.trim_start_matches(' ');
        let is_ordinal = last.word.len() <= 2
            && last.word.bytes().all(|byte| byte.is_ascii_digit())
            && BEHIND_ORDINAL.iter().any(|start| next.starts_with(start));
        is_ordinal || SHORT_FORMS.contains(&last.word.as_str())
    }
}

/// Whether a line begins with the mark of a list.
fn is_listed(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let number = line.get(digits..).unwrap_or_default();
    line.starts_with(['-', '*', '•', '·', '+'])
        || ((1..=3).contains(&digits) && number.starts_with(['.', ')']) && number[1..].starts_with(' '))
}

/// A short form written out.
fn written_out(word: &str) -> (&str, Vec<&str>) {
    match word {
        "im" | "i'm" => return ("i", vec!["am"]),
        "ive" => return ("i", vec!["have"]),
        "can't" | "cant" | "cannot" => return ("can", vec!["not"]),
        "won't" | "wont" => return ("will", vec!["not"]),
        "gonna" => return ("going", vec!["to"]),
        "wanna" => return ("want", vec!["to"]),
        "dont" => return ("do", vec!["not"]),
        "doesnt" => return ("does", vec!["not"]),
        "didnt" => return ("did", vec!["not"]),
        "isnt" | "ain't" | "aint" => return ("is", vec!["not"]),
        "arent" => return ("are", vec!["not"]),
        "wasnt" => return ("was", vec!["not"]),
        "havent" => return ("have", vec!["not"]),
        _ => {}
    }
    if let Some(base) = word.strip_suffix("n't") {
        return (base, vec!["not"]);
    }
    let Some((base, end)) = word.rsplit_once('\'') else {
        return (word, Vec::new());
    };
    match end {
        "m" => (base, vec!["am"]),
        "re" => (base, vec!["are"]),
        "ve" => (base, vec!["have"]),
        "ll" => (base, vec!["will"]),
        "d" => (base, vec!["would"]),
        "s" => {
            let is_verb = matches!(
                base,
                "it" | "he" | "she" | "that" | "there" | "what" | "who" | "name" | "here" | "where" | "how"
            );
            let is_us = base == "let";
            (
                base,
                vec![if is_verb {
                    "is"
                } else if is_us {
                    "us"
                } else {
                    "'s"
                }],
            )
        }
        _ => (word, Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        sentences(&Folded::of(text), &Everything)
            .iter()
            .map(|sentence| {
                let words: Vec<&str> = sentence.tokens.iter().map(|token| token.word.as_str()).collect();
                format!(
                    "{}{}",
                    words.join(" "),
                    if sentence.is_question { " ?" } else { "" }
                )
            })
            .collect()
    }

    #[test]
    fn parts_sentences_and_words() {
        for (text, expected) in [
            ("I'm Ben. You're not?!", vec!["i am ben", "you are not ?"]),
            (
                "My name is Mrs. Okafor and I don't know",
                vec!["my name is mrs okafor and i do not know"],
            ),
            (
                "Ich unterrichte die 5. Klasse. Ja",
                vec!["ich unterrichte die 5 klasse", "ja"],
            ),
            (
                "4th-grade math - e.g. 3.5 of 1,000",
                vec!["4th grade math - e.g 3.5 of 1,000"],
            ),
            (
                "Suppose\nI teach\n\nHello\n- one\n- two",
                vec!["suppose i teach", "hello", "one", "two"],
            ),
            (
                "my friend's class, let's go",
                vec!["my friend 's class , let us go"],
            ),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
