//! The vocabulary: words of the operator's own work, each of which rules a question out.

use super::rules::plain;

/// The words of the operator's own work.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    phrases: Vec<Vec<String>>,
    /// The letter that each phrase begins with, side by side: few of them are in a question, and the phrases lie
    /// all over the memory. `None` where a form of the word may begin otherwise.
    initials: Vec<Option<char>>,
}

/// Words and phrases that are used; later ones are left out.
const PHRASES_MAX: usize = 5000;

impl Vocabulary {
    /// Reads a vocabulary file: a word or phrase a line.
    pub(super) fn parse(text: &str) -> Self {
        let phrases: Vec<Vec<String>> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(words)
            .filter(|phrase| !phrase.is_empty())
            .take(PHRASES_MAX)
            .collect();
        let initial = |phrase: &Vec<String>| phrase.first().filter(|word| *word != "y")?.chars().next();
        Self {
            initials: phrases.iter().map(initial).collect(),
            phrases,
        }
    }

    /// The phrases that occur in `text`, in the file's order.
    pub(super) fn found(&self, text: &str) -> Vec<String> {
        let text = words(text);
        let begins = |initial: char| text.iter().any(|word| word.starts_with(initial));
        self.initials
            .iter()
            .zip(&self.phrases)
            .filter(|(initial, _)| initial.is_none_or(begins))
            .map(|(_, phrase)| phrase)
            .filter(|phrase| {
                text.windows(phrase.len())
                    .any(|window| same_words(phrase, window))
            })
            .map(|phrase| phrase.join(" "))
            .collect()
    }
}

/// Lower-case words; whatever is no letter, digit, apostrophe or hyphen parts them.
fn words(text: &str) -> Vec<String> {
    plain(text)
        .split(|letter: char| !(letter.is_alphanumeric() || letter == '\'' || letter == '-'))
        .map(|word| word.trim_matches(['\'', '-']).trim_end_matches("'s"))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn same_words(phrase: &[String], window: &[String]) -> bool {
    phrase.iter().zip(window).all(|(want, word)| {
        word == want
            || word
                .strip_prefix(want.as_str())
                .is_some_and(|ending| ending == "s" || ending == "es")
            || want
                .strip_suffix('y')
                .is_some_and(|stem| word.strip_prefix(stem) == Some("ies"))
    })
}
