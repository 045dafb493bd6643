//! The lists of the second tier: canonical questions about the assistant, and canonical ones that are not.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

/// Lines of one list that are used; later ones are left out.
pub(super) const EXAMPLES_MAX: usize = 1_024;

/// Hexadecimal digits of an example's id.
const ID_DIGITS: usize = 8;

/// Hexadecimal digits of the lists' digest.
const DIGEST_DIGITS: usize = 12;

/// An example and the id by which the log names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Example {
    /// The first digits of its hash: it stays the same when lines move.
    pub(super) id: String,
    /// The question.
    pub(super) text: String,
}

/// Reads a list: a question a line, `#` begins a comment.
pub(super) fn parse(text: &str) -> Vec<Example> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .take(EXAMPLES_MAX)
        .map(|line| Example {
            id: example_id(line),
            text: line.to_owned(),
        })
        .collect()
}

/// The id by which the triage log names an example.
fn example_id(line: &str) -> String {
    digits(&Sha256::digest(line.trim().as_bytes()), ID_DIGITS)
}

/// The examples of a list file with their ids, for those who read the triage log.
pub fn example_ids(text: &str) -> impl Iterator<Item = (String, String)> {
    parse(text).into_iter().map(|example| (example.id, example.text))
}

/// Both lists as they are now.
#[derive(Debug, Clone)]
pub(super) struct Lists {
    /// Questions about the assistant.
    pub(super) positives: Arc<Vec<Example>>,
    /// Questions, tasks and talk that are not.
    pub(super) negatives: Arc<Vec<Example>>,
}

impl Lists {
    /// Whether these are the very lists that `other` holds. Looks at no text: a list that was read again and not
    /// changed is the same piece of memory.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.positives, &other.positives) && Arc::ptr_eq(&self.negatives, &other.negatives)
    }

    /// Names this version of both lists. Comments, blank lines and the order of lines do not count.
    pub(super) fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for list in [&self.positives, &self.negatives] {
            let mut texts: Vec<&str> = list.iter().map(|example| example.text.as_str()).collect();
            texts.sort_unstable();
            texts.dedup();
            for text in texts {
                hash.update(text.as_bytes());
                hash.update(b"\n");
            }
            hash.update(b"\n");
        }
        digits(&hash.finalize(), DIGEST_DIGITS)
    }
}

fn digits(hash: &[u8], count: usize) -> String {
    let mut text = crate::prompt::hex(hash);
    text.truncate(count);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(positives: &str, negatives: &str) -> Lists {
        Lists {
            positives: Arc::new(parse(positives)),
            negatives: Arc::new(parse(negatives)),
        }
    }

    #[test]
    fn a_digest_names_what_the_lists_say() {
        let one = lists("# comment\nwho are you\n\nwhat are you\n", "hello");
        assert_eq!(
            one.digest(),
            lists("what are you\nwho are you\nwho are you", "  hello").digest()
        );
        assert_eq!(one.digest().len(), DIGEST_DIGITS);
        for other in [
            lists("who are you", "hello"),
            lists("who are you\nwhat are you", "hello\nbye"),
            lists("who are you\nwhat are you\nhello", ""),
        ] {
            assert_ne!(one.digest(), other.digest());
        }
    }

    #[test]
    fn a_list_ends_somewhere() {
        let text = (0..2_000)
            .map(|line| line.to_string())
            .collect::<Vec<_>>()
            .join("\n");
        assert_eq!(parse(&text).len(), EXAMPLES_MAX);
        assert_eq!(parse("a")[0].id, parse("# b\n\n a ")[0].id);
    }
}
