//! How many tokens a text has for a model whose tokenizer is not here: rather too many than too few.

use std::{ops::Range, sync::Arc};

use super::{
    Builtin,
    characters::{Class, class},
    models::Tokenizer,
};

/// The built-in vocabulary's first piece that BERT does not have: whole words were added at its end.
const ADDED_FROM: u16 = 28_086;

/// The bytes of a known piece for which a tokenizer with a larger vocabulary is granted one token. Those of
/// multilingual and byte-level models need about one for 4.5 bytes of English.
const BYTES_A_TOKEN: usize = 4;

/// Counts from above.
#[derive(Debug, Clone)]
pub(super) struct Estimate {
    builtin: Arc<Builtin>,
    tokenizer: Tokenizer,
}

impl Estimate {
    pub(super) fn new(builtin: Arc<Builtin>, tokenizer: Tokenizer) -> Self {
        Self { builtin, tokenizer }
    }

    /// No fewer tokens than the text has for the model, without the marks the model adds. Exact for BERT's word
    /// pieces where all words are cut as BERT cuts them; a bound where not. For other tokenizers it is a bound for
    /// what no dictionary has, and generous for what one has.
    pub(super) fn count(&self, text: &str) -> usize {
        match self.tokenizer {
            Tokenizer::BertUncased => self.bert(text),
            Tokenizer::Other => self.other(text),
        }
    }

    fn bert(&self, text: &str) -> usize {
        let mut total = 0;
        let mut word = Word::default();
        for token in self.builtin.tokens(text) {
            if !self.builtin.vocabulary().continues(token.id) {
                total += word.count();
                word = Word::default();
            }
            word.pieces += 1;
            word.bytes += token.span.len();
            let unknown = token.id == self.builtin.vocabulary().unknown();
            // An ideograph is one token in every BERT.
            word.uncertain |= token.id >= ADDED_FROM || unknown && !is_ideograph(text, &token.span);
        }
        total + word.count()
    }

    fn other(&self, text: &str) -> usize {
        let mut total = 0;
        let mut end = 0;
        for token in self.builtin.tokens(text) {
            let bytes = token.span.len();
            let piece = text.get(token.span.clone()).unwrap_or_default().as_bytes();
            // One space belongs to the word after it; the rest are runs of blanks.
            total += token.span.start.saturating_sub(end + 1).div_ceil(2);
            end = token.span.end;
            let known = token.id != self.builtin.vocabulary().unknown();
            let shouted = piece.iter().skip(1).any(u8::is_ascii_uppercase);
            // Some give each digit a token of its own.
            let plain = piece.iter().all(u8::is_ascii_alphabetic);
            total += match (known && plain, shouted) {
                (true, false) => bytes.div_ceil(BYTES_A_TOKEN),
                (true, true) => bytes.div_ceil(2),
                (false, _) => bytes,
            };
        }
        total + text.len().saturating_sub(end).div_ceil(2)
    }
}

#[derive(Debug, Default)]
struct Word {
    pieces: usize,
    bytes: usize,
    /// Whether BERT may cut it otherwise; then it has at most a token a byte.
    uncertain: bool,
}

impl Word {
    fn count(&self) -> usize {
        if self.uncertain {
            self.bytes.max(self.pieces)
        } else {
            self.pieces
        }
    }
}

fn is_ideograph(text: &str, span: &Range<usize>) -> bool {
    let mut characters = text.get(span.clone()).unwrap_or_default().chars();
    characters
        .next()
        .is_some_and(|first| class(first) == Class::Ideograph)
        && characters.next().is_none()
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    static BUILTIN: LazyLock<Arc<Builtin>> = LazyLock::new(|| Arc::new(Builtin::load().unwrap()));

    fn estimate(tokenizer: Tokenizer) -> Estimate {
        Estimate::new(BUILTIN.clone(), tokenizer)
    }

    #[test]
    fn berts_tokens_are_counted_as_bert_counts_them_or_from_above() {
        let estimate = estimate(Tokenizer::BertUncased);
        for (text, expected) in [
            ("", 0),
            ("How does human memory work?", 6),
            // BERT has no `refund`, and cuts it in two.
            ("a refund", 1 + 6),
            ("東京", 2),
            ("Привет", 12),
            ("unaffordability", 4),
        ] {
            assert_eq!(estimate.count(text), expected, "{text:?}");
        }
    }

    #[test]
    fn other_tokenizers_are_granted_more() {
        let estimate = estimate(Tokenizer::Other);
        for (text, expected) in [
            ("", 0),
            ("the memory", 1 + 2),
            ("THE MEMORY", 2 + 3),
            ("2048", 4),
            ("東", 3),
            ("a\n\n\n\na", 1 + 2 + 1),
        ] {
            assert_eq!(estimate.count(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn estimates_stay_within_the_bytes(text in "\\PC{0,60}|[a-z A-Z0-9.,\n]{0,200}") {
            for tokenizer in [Tokenizer::BertUncased, Tokenizer::Other] {
                let estimate = estimate(tokenizer);
                prop_assert!(estimate.count(&text) <= text.len());
                if tokenizer == Tokenizer::BertUncased {
                    prop_assert!(estimate.count(&text) >= estimate.builtin.tokens(&text).count());
                }
            }
        }
    }
}
