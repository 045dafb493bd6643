use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

fn small() -> Vocabulary {
    Vocabulary::new(Cow::Borrowed(
        "[UNK]\n[CLS]\nrun\nrunn\n##ning\n##n\n##er\n!\n=\n東\ncafe\na\n##a\n",
    ))
    .unwrap()
}

fn pieces<'a>(vocabulary: &Vocabulary, text: &'a str) -> Vec<(u16, &'a str)> {
    vocabulary
        .tokens(text)
        .map(|token| (token.id, text.get(token.span).unwrap()))
        .collect()
}

#[test]
fn words_are_cut_by_longest_beginnings_with_their_places() {
    let vocabulary = small();
    for (text, expected) in [
        ("", vec![]),
        (" \t\u{a0}\u{200b}", vec![]),
        ("Running!", vec![(0, "Running"), (7, "!")]),
        ("run runn", vec![(2, "run"), (3, "runn")]),
        ("runner", vec![(3, "runn"), (6, "er")]),
        ("runn\u{ad}er", vec![(3, "runn\u{ad}"), (6, "er")]),
        ("Cafe\u{301} CAFÉ", vec![(10, "Cafe"), (10, "CAFÉ")]),
        ("a東a", vec![(11, "a"), (9, "東"), (11, "a")]),
        ("a≠a", vec![(11, "a"), (8, "≠"), (11, "a")]),
        ("[CLS]", vec![(0, "["), (0, "CLS"), (0, "]")]),
        ("\u{301}\u{302} a", vec![(11, "a")]),
    ] {
        assert_eq!(pieces(&vocabulary, text), expected, "{text:?}");
    }
    assert_eq!(vocabulary.id("[CLS]"), Some(1));
    assert_eq!((vocabulary.id("##ning"), vocabulary.id("ning")), (Some(4), None));
}

#[test]
fn a_word_of_more_than_a_hundred_characters_is_unknown() {
    let vocabulary = small();
    let hundred = "a".repeat(100);
    assert_eq!(vocabulary.tokens(&hundred).count(), 100);
    let longer = format!("{hundred}a a");
    assert_eq!(
        pieces(&vocabulary, &longer),
        [(0, longer.get(..101).unwrap()), (11, "a")]
    );
}

#[test]
fn an_unusable_vocabulary_is_told() {
    let fault = |text: String| Vocabulary::new(Cow::Owned(text)).unwrap_err();
    assert_eq!(fault("a\nb\n".to_owned()), VocabularyError::Missing("[UNK]"));
    assert_eq!(fault(String::new()), VocabularyError::Missing("[UNK]"));
    assert_eq!(
        fault(format!("[UNK]\n{}\n", "a".repeat(65))),
        VocabularyError::TooLong { line: 1 }
    );
    assert_eq!(fault("a\n".repeat(65_535)), VocabularyError::TooMany(65_535));
}

#[test]
fn a_megabyte_of_anything_is_read_to_its_end() {
    let vocabulary = small();
    for unit in ["a", "a ", "!", "\u{301}", "é", "東", "\u{200b}", " ", "runner"] {
        let text = unit.repeat((1 << 20) / unit.len());
        assert!(vocabulary.tokens(&text).count() <= text.len(), "{unit:?}");
    }
}

proptest! {
    #[test]
    fn tokens_are_in_order_whole_characters_and_no_more_than_bytes(text in "\\PC*|.*|[a-zA-Zé!東\u{301} ]*") {
        let vocabulary = small();
        let mut end = 0;
        let mut count = 0;
        for token in vocabulary.tokens(&text) {
            prop_assert!(token.span.start <= token.span.end && end <= token.span.start);
            prop_assert!(text.get(token.span.clone()).is_some());
            prop_assert!(usize::from(token.id) < vocabulary.len());
            end = token.span.end;
            count += 1;
        }
        prop_assert!(count <= text.len());
    }

    #[test]
    fn every_piece_is_found_and_no_other(words in prop::collection::vec("(##)?[a-zé]{1,8}", 0..200), other in "[a-zé]{1,8}") {
        let text = format!("[UNK]\n{}\n", words.join("\n"));
        let vocabulary = Vocabulary::new(Cow::Owned(text)).unwrap();
        let mut first = HashMap::new();
        for (line, word) in words.iter().enumerate() {
            first.entry(word.clone()).or_insert(u16::try_from(line + 1).unwrap());
        }
        for (word, id) in &first {
            prop_assert_eq!(vocabulary.id(word), Some(*id));
        }
        prop_assert_eq!(vocabulary.id(&other), first.get(&other).copied());
    }
}
