//! Cues: how something is said, as words of which some may be left out and some are one of several.
//!
//! A cue is written `am bad|terrible|weak at|in|with`: words in their order, `|` between words of which one stands there, `?`
//! behind what may be missing, and `..` for up to [`GAP_WORDS_MAX`] words of any kind. Words that change nothing ("really",
//! "still") are left out of the sentence before it is compared, and out of the cue.

use std::collections::HashMap;

use crate::boundary::{Sentence, clauses, is_adverb};

/// How many words `..` stands for at most.
const GAP_WORDS_MAX: usize = 3;

/// One word of a cue.
#[derive(Debug)]
enum Slot {
    /// One of these words.
    Words {
        words: Vec<&'static str>,
        is_optional: bool,
    },
    /// Some words of any kind.
    Gap,
}

/// A cue that can be looked for.
#[derive(Debug)]
pub(super) struct Cue {
    slots: Vec<Slot>,
}

impl Cue {
    fn read(text: &'static str) -> Self {
        let slots = text
            .split(' ')
            .filter(|word| !is_adverb(word) || is_cue_word(word))
            .map(|word| {
                if word == ".." {
                    return Slot::Gap;
                }
                let (words, is_optional) = word.strip_suffix('?').map_or((word, false), |word| (word, true));
                Slot::Words {
                    words: words.split('|').collect(),
                    is_optional,
                }
            })
            .collect();
        Self { slots }
    }

    /// The words with which it may begin.
    fn firsts(&self) -> Vec<&'static str> {
        let mut firsts = Vec::new();
        for slot in &self.slots {
            let Slot::Words { words, is_optional } = slot else {
                break;
            };
            firsts.extend(words);
            if !is_optional {
                break;
            }
        }
        firsts
    }

    /// Where the longest reading of the cue ends that begins at a place of what is plain; there stands what is read as
    /// the person, if that is given.
    fn end(&self, plain: &Plain<'_>, start: usize, person: Option<&str>) -> Option<usize> {
        fn end(slots: &[Slot], plain: &Plain<'_>, at: usize) -> Option<usize> {
            let Some((slot, rest)) = slots.split_first() else {
                return Some(at);
            };
            match slot {
                Slot::Words { words, is_optional } => {
                    let taken = words
                        .contains(&plain.word(at))
                        .then(|| end(rest, plain, at + 1))
                        .flatten();
                    taken.or_else(|| is_optional.then(|| end(rest, plain, at)).flatten())
                }
                Slot::Gap => (0..=GAP_WORDS_MAX)
                    .take_while(|length| *length == 0 || plain.is_word(at + length - 1))
                    .filter_map(|length| end(rest, plain, at + length))
                    .max(),
            }
        }
        match person {
            None => end(&self.slots, plain, start),
            Some(person) => {
                let (first, rest) = self.slots.split_first()?;
                let is_person = matches!(first, Slot::Words { words, .. } if words.contains(&person));
                is_person.then(|| end(rest, plain, start + 1)).flatten()
            }
        }
    }
}

/// Adverbs that are parts of cues.
fn is_cue_word(word: &str) -> bool {
    matches!(word, "do" | "always" | "so")
}

/// A sentence without the words that change nothing.
pub(super) struct Plain<'s> {
    sentence: &'s Sentence,
    at: Vec<usize>,
    /// What "and" and "but" are read as, each with its place: see [`Plain::person`].
    persons: Vec<(usize, &'static str)>,
}

impl<'s> Plain<'s> {
    pub(super) fn of(sentence: &'s Sentence) -> Self {
        let at = (0..sentence.tokens.len())
            .filter(|at| !is_adverb(sentence.word(*at)) || is_cue_word(sentence.word(*at)))
            .collect();
        let mut persons = Vec::new();
        for clause in clauses(sentence) {
            let mut is_named = [false; 2];
            for at in clause {
                match sentence.word(at) {
                    "i" => is_named[0] = true,
                    "ich" => is_named[1] = true,
                    "and" | "but" if is_named[0] => persons.push((at, "i")),
                    "und" | "aber" if is_named[1] => persons.push((at, "ich")),
                    _ => {}
                }
            }
        }
        Self {
            sentence,
            at,
            persons,
        }
    }

    fn word(&self, at: usize) -> &str {
        self.at.get(at).map_or("", |at| self.sentence.word(*at))
    }

    /// Who is meant by "and" where it leads on from what the person said of themselves: of "I live in Ohio and teach", the
    /// second verb is the person's, too.
    fn person(&self, at: usize) -> Option<&'static str> {
        let place = self.at.get(at)?;
        let found = self.persons.binary_search_by_key(place, |(at, _)| *at).ok()?;
        self.persons.get(found).map(|(_, person)| *person)
    }

    fn is_word(&self, at: usize) -> bool {
        self.at
            .get(at)
            .and_then(|at| self.sentence.tokens.get(*at))
            .is_some_and(crate::boundary::Token::is_word)
    }
}

/// Cues with what each of them tells, found by their first word.
#[derive(Debug)]
pub(super) struct Cues<T> {
    by_word: HashMap<&'static str, Vec<(Cue, T)>>,
}

/// A cue in a sentence.
#[derive(Debug)]
pub(super) struct Cued<'c, T> {
    /// Its first word.
    pub(super) from: usize,
    /// The place behind its last word.
    pub(super) behind: usize,
    /// What it tells.
    pub(super) tells: &'c T,
}

impl<T: Clone> Cues<T> {
    /// Reads cues. A cue that does not begin with a word is never found.
    pub(super) fn read(cues: impl IntoIterator<Item = (&'static str, T)>) -> Self {
        let mut by_word: HashMap<&'static str, Vec<(Cue, T)>> = HashMap::new();
        for (text, tells) in cues {
            for first in Cue::read(text).firsts() {
                by_word
                    .entry(first)
                    .or_default()
                    .push((Cue::read(text), tells.clone()));
            }
        }
        Self { by_word }
    }

    /// Every cue in a sentence, from the left; of those that begin at one place, each as long as it can be read.
    pub(super) fn find(&self, plain: &Plain<'_>) -> Vec<Cued<'_, T>> {
        let mut found = Vec::new();
        for start in 0..plain.at.len() {
            let person = plain.person(start);
            let word = person.unwrap_or_else(|| plain.word(start));
            for (cue, tells) in self.by_word.get(word).into_iter().flatten() {
                let place = cue
                    .end(plain, start, person)
                    .and_then(|end| Some((*plain.at.get(start)?, plain.at.get(end.checked_sub(1)?)? + 1)));
                if let Some((from, behind)) = place {
                    found.push(Cued { from, behind, tells });
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary::Reading;

    #[test]
    fn cues_are_read_in_every_form() {
        let cues = Cues::read([
            ("am bad|weak very? at|in", 1),
            ("my .. weakness is", 2),
            ("i so like", 3),
        ]);
        for (text, expected) in [
            ("I'm really bad at maps", Some((1, "i am really bad at"))),
            ("I am weak in maps", Some((1, "i am weak in"))),
            ("I am bad", None),
            ("My weakness is maps", Some((2, "my weakness is"))),
            ("My one big weakness is maps", Some((2, "my one big weakness is"))),
            ("My a b c d weakness is maps", None),
            ("My house, weakness is", None),
            ("I so really like maps", Some((3, "i so really like"))),
            ("I sing and so like maps", Some((3, "i sing and so like"))),
            ("They sing and so like maps", None),
        ] {
            let reading = Reading::of(text, []);
            let sentence = &reading.sentences()[0];
            let plain = Plain::of(sentence);
            let found = cues.find(&plain).pop().map(|cued| {
                let words: Vec<&str> = (0..cued.behind).map(|at| sentence.word(at)).collect();
                (*cued.tells, words.join(" "))
            });
            assert_eq!(
                found,
                expected.map(|(tells, words)| (tells, words.to_owned())),
                "{text}"
            );
        }
    }
}
