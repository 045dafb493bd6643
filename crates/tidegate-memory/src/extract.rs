//! Extractors: what in a turn might be a fact about the person.
//!
//! There are two, and neither is believed: [`rules`] knows the kinds that ship and needs no model; [`model`] asks one, and
//! reads whatever it replies. What they find goes through the [`boundary`](crate::boundary).

pub mod model;
pub mod rules;

use crate::boundary::{Reading, is_any};

/// Words with which people speak of themselves.
const FIRST_PERSON: &[&str] = &[
    "i", "im", "ive", "me", "my", "mine", "myself", "we", "our", "us", "i'm", "i've", "i'd", "i'll", "ich",
    "mir", "mich", "mein", "meine", "meinen", "meiner", "wir",
];

/// Whether nothing of a turn could ever be kept, told without reading it closely: the person does not speak of
/// themselves in it. Such a turn needs no place in the queue and no model.
pub fn is_trivial(turn: &str) -> bool {
    let is_edge = |letter: char| !letter.is_alphanumeric() && !matches!(letter, '\'' | '’' | '´' | '`');
    !turn.split(is_edge).any(|word| {
        // No such word is longer, so the others need not be folded.
        word.len() <= WORD_BYTES_MAX
            && is_any(
                FIRST_PERSON,
                word.to_lowercase()
                    .replace(['’', '´', '`'], "'")
                    .trim_matches('\''),
            )
    })
}

/// The longest word that is compared, in bytes: typographic apostrophes have three.
const WORD_BYTES_MAX: usize = 10;

/// Whether any sentence that remains of a turn could state something of the person. If not, a model need not be asked.
pub fn has_statements(reading: &Reading<'_>) -> bool {
    reading.sentences().iter().any(|sentence| {
        let speaks = |at: usize| is_any(FIRST_PERSON, sentence.word(at));
        let length = sentence.tokens.len();
        let asks = sentence.is_question
            && is_any(
                &[
                    "can", "could", "would", "will", "what", "how", "why", "do", "does", "is", "are", "when",
                    "where", "should", "may",
                ],
                sentence.word(0),
            )
            && !(0..length)
                .any(|at| matches!(sentence.word(at), "," | "remember" | "because" | "since" | "mind"));
        (0..length).any(speaks) && !asks && length > 2
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_trivial_turns() {
        for turn in [
            "",
            "Thanks!",
            "What is the capital of Norway?",
            "14 + 27",
            "Name three rivers.",
            "ok",
        ] {
            assert!(is_trivial(turn), "{turn}");
        }
        for turn in [
            "I teach 4th grade.",
            "I’m Ben",
            "im ben",
            "Tables help me",
            "ich bin Anna",
            "MY NAME IS BO",
        ] {
            assert!(!is_trivial(turn), "{turn}");
        }
        for (turn, expected) in [
            ("Can you help me with fractions?", false),
            ("Show me.", false),
            ("I teach 4th grade, can you help me?", true),
            ("What is photosynthesis? I am in 9th grade.", true),
            ("Can you remember that I teach Latin?", true),
            ("> I teach 4th grade.", false),
        ] {
            assert_eq!(has_statements(&Reading::of(turn, [])), expected, "{turn}");
        }
    }
}
