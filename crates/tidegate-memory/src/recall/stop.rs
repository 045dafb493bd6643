//! Words of a question that say nothing of its matter.

/// In alphabetical order. A person's notes are few and short: a word such as "like" in a question must not bring up
/// everything that the person likes.
#[rustfmt::skip]
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "aren", "as", "at",
    "be", "because", "been", "before", "being", "both", "but", "by", "can", "could", "did", "didn", "do",
    "does", "doesn", "doing", "don", "down", "each", "few", "for", "from", "further", "get", "give", "had",
    "has", "have", "having", "he", "help", "her", "here", "hers", "him", "his", "how", "i", "if", "in",
    "into", "is", "isn", "it", "its", "just", "know", "let", "like", "make", "may", "me", "might", "mine",
    "more", "most", "much", "must", "my", "need", "no", "nor", "not", "now", "of", "off", "on", "once",
    "only", "or", "other", "our", "ours", "out", "over", "own", "per", "please", "really", "same", "say",
    "she", "should", "show", "so", "some", "such", "tell", "than", "thank", "thanks", "that", "the",
    "their", "theirs", "them", "then", "there", "these", "they", "this", "those", "through", "to", "too",
    "under", "until", "up", "us", "very", "want", "was", "we", "were", "what", "when", "where", "which",
    "while", "who", "whom", "whose", "why", "will", "with", "would", "you", "your", "yours",
];

/// Whether a word in small letters is one of them.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_order() {
        assert!(STOP_WORDS.is_sorted_by(|left, right| left < right));
        assert!(is_stop_word("what") && is_stop_word("a") && is_stop_word("yours"));
        assert!(!is_stop_word("commas") && !is_stop_word(""));
    }
}
