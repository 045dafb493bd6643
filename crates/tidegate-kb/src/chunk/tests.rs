use std::{cell::Cell, collections::BTreeMap};

use proptest::prelude::*;

use super::*;
use crate::parse;

/// Counts as subword tokenizers do: words fall into pieces of four characters, each mark is one, two are added.
fn tokens(text: &str) -> usize {
    let words = text
        .split(|one: char| !one.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let marks = text
        .chars()
        .filter(|one| !one.is_alphanumeric() && !one.is_whitespace())
        .count();
    2 + marks + words.map(|word| word.chars().count().div_ceil(4)).sum::<usize>()
}

/// Counts words, and knows none that is long.
fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn parsed(name: &str, text: &str) -> Parsed {
    parse::read(name, text.as_bytes(), &parse::Limits::default()).expect("a document")
}

fn chunks(name: &str, text: &str, limits: &Limits) -> Vec<Piece> {
    split(&parsed(name, text), &tokens, limits)
}

fn texts(pieces: &[Piece]) -> Vec<&str> {
    pieces.iter().map(|piece| piece.text.as_str()).collect()
}

fn prose(sentences: usize) -> String {
    (0..sentences).fold(String::new(), |mut text, number| {
        text.push_str("Sentence number ");
        text.push_str(&number.to_string());
        text.push_str(if number % 5 == 4 {
            " closes a paragraph.\n\n"
        } else {
            " says something about pumps. "
        });
        text
    })
}

#[test]
fn long_texts_fall_into_chunks_of_the_right_size_at_paragraphs() {
    let text = prose(400);
    let pieces = chunks("a.txt", &text, &Limits::default());
    let (last, full) = pieces.split_last().expect("chunks");
    assert!(full.len() > 5 && tokens(&last.text) <= 450);
    for piece in full {
        let count = tokens(&piece.text);
        assert!((350..=450).contains(&count), "{count}");
        assert!(piece.text.ends_with("paragraph."), "{}", piece.text);
    }
}

#[test]
fn headings_are_never_crossed_and_count() {
    let text = format!("# Manual\n\n## One\n\nshort\n\n## Two\n\n{}", prose(100));
    let pieces = chunks("a.md", &text, &Limits::default());
    assert_eq!(pieces[0].text, "short");
    assert_eq!(pieces[0].place.headings, ["Manual", "One"]);
    for piece in &pieces {
        assert!(tokens(&embedded_text(&piece.place, &piece.text)) <= 450);
        assert_eq!(piece.place.headings[0], "Manual");
    }
    assert_eq!(
        embedded_text(&pieces[0].place, &pieces[0].text),
        "Manual > One\nshort"
    );
    let long = format!(
        "# {}\n\n## {}\n\ntext",
        "long heading ".repeat(12),
        "another one ".repeat(12)
    );
    let limits = Limits::within(24);
    let pieces = chunks("a.md", &long, &limits);
    assert!(
        pieces
            .iter()
            .all(|piece| tokens(&embedded_text(&piece.place, &piece.text)) <= 24),
        "{pieces:?}"
    );
    assert_eq!(pieces[0].text, "text");
}

#[test]
fn tables_and_code_stay_whole_where_they_fit() {
    let table = (0..20).fold("| a | b |\n|---|---|\n".to_owned(), |table, row| {
        table + &format!("| {row} | x |\n")
    });
    let text = format!("{}\n\n{table}\n\n{}", prose(45), prose(45));
    let pieces = chunks("a.md", &text, &Limits::default());
    assert!(
        pieces.iter().any(|piece| piece.text.contains(table.trim())),
        "{:#?}",
        texts(&pieces)
    );
    // One that does not fit is cut between its rows.
    let long = table.repeat(20);
    let pieces = chunks("a.md", &long, &Limits::default());
    assert!(pieces.len() > 2);
    assert!(
        pieces
            .iter()
            .all(|piece| piece.text.starts_with('|') && piece.text.ends_with('|'))
    );
}

#[test]
fn code_is_cut_between_its_items() {
    let function = |number: usize| format!("fn number_{number}() {{\n    call(1);\n\n    call(2);\n}}\n\n");
    let text: String = (0..120).map(function).collect();
    let pieces = chunks("a.rs", &text, &Limits::default());
    assert!(pieces.len() > 3);
    for piece in &pieces {
        assert!(
            piece.text.starts_with("fn number_") && piece.text.ends_with('}'),
            "{}",
            piece.text
        );
    }
}

#[test]
fn indents_at_the_start_are_kept() {
    let pieces = chunks("a.py", "\n\n    indented\n", &Limits::default());
    assert_eq!(texts(&pieces), ["    indented"]);
    assert_eq!(pieces[0].place.bytes, 2..14);
}

#[test]
fn huge_texts_without_borders_take_bounded_work() {
    for (name, text) in [
        ("letters", "x".repeat(1 << 20)),
        ("marks", ".".repeat(1 << 17)),
        ("wide", "漢".repeat(1 << 17)),
        ("lines", "\n".repeat(1 << 17) + "x" + &"\n".repeat(1 << 17)),
        ("blanks", " ".repeat(1 << 17) + "x"),
    ] {
        for count in [tokens as fn(&str) -> usize, words] {
            let counted = Cell::new(0_usize);
            let counting = |part: &str| {
                counted.set(counted.get() + part.len() + 1);
                count(part)
            };
            let document = parsed("a.txt", &text);
            let pieces = split(&document, &counting, &Limits::default());
            assert!(
                counted.get() <= text.len() * 8,
                "{name}: {} of {}",
                counted.get(),
                text.len()
            );
            let longest = pieces.iter().map(|piece| piece.text.len()).max().unwrap_or(0);
            assert!(longest <= 450 * 16, "{name}: {longest}");
        }
    }
}

#[test]
fn citations_stay_while_the_passage_does() {
    let before = chunks("a.md", "# A\none\n# B\ntwo\n# B\ntwo", &Limits::default());
    let after = chunks(
        "a.md",
        "# New\nzero\n# A\none\n# B\ntwo\n# B\ntwo\n# B\nthree",
        &Limits::default(),
    );
    let (old, new) = (citations("a.md", &before), citations("a.md", &after));
    assert_eq!(old[..], new[1..4]);
    let distinct: BTreeMap<&CitationId, usize> = new.iter().zip(0..).collect();
    assert_eq!(distinct.len(), new.len(), "equal passages are told apart");
    assert_ne!(citations("b.md", &before), old, "another document has its own");
    let kept = before.iter().map(|piece| (&piece.place, piece.text.as_str()));
    assert_eq!(citations_of("a.md", kept), old);
    assert_eq!(before[1].sha256, before[2].sha256);
    assert_ne!(before[0].sha256, before[1].sha256);
}

#[test]
fn limits_follow_the_embedder() {
    assert_eq!(Limits::within(8192), Limits::default());
    let small = Limits::within(256);
    assert_eq!((small.tokens_min, small.tokens_max), (199, 256));
    assert_eq!(Limits::within(0).tokens_max, 1);
}

/// Without white space.
fn dense(text: &str) -> String {
    text.chars().filter(|one| !one.is_whitespace()).collect()
}

fn check(document: &Parsed, limits: &Limits, count: fn(&str) -> usize) -> Result<(), TestCaseError> {
    let pieces = split(document, &count, limits);
    let mut at = 0;
    for piece in &pieces {
        let range = usize::try_from(piece.place.bytes.start).unwrap()
            ..usize::try_from(piece.place.bytes.end).unwrap();
        prop_assert!(range.start >= at, "in order");
        at = range.end;
        prop_assert_eq!(document.text.get(range), Some(piece.text.as_str()));
        prop_assert!(!piece.text.trim().is_empty());
        let total = count(&embedded_text(&piece.place, &piece.text));
        let is_one_character = piece.text.trim().chars().count() == 1;
        prop_assert!(
            total <= limits.tokens_max || is_one_character,
            "{} tokens: {:?}",
            total,
            piece
        );
    }
    let inside: String = document
        .sections
        .iter()
        .map(|section| &document.text[section.bytes.clone()])
        .collect();
    let kept: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
    prop_assert_eq!(dense(&inside), dense(&kept), "nothing is lost");
    Ok(())
}

proptest! {
    #[test]
    fn chunks_are_the_text(
        name in prop::sample::select(vec!["a.md", "a.txt", "a.rs", "a.csv", "a.html"]),
        text in "([a-z]{1,9}[ .,\n]|# [a-z]{1,5}\n|\\| a \\| b \\|\n|```\n|\n\n|    |[a-z]{60,90}|é漢🦀){1,60}",
        tokens_max in 6_usize..60,
        is_words in any::<bool>(),
    ) {
        if let Ok(document) = parse::read(name, text.as_bytes(), &parse::Limits::default()) {
            let limits = Limits::within(tokens_max);
            check(&document, &limits, if is_words { words } else { tokens })?;
        }
    }
}
