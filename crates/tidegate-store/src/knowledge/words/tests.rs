use proptest::prelude::*;
use rusqlite::params;

use super::*;

const MIGRATION: &str = include_str!("../../../../../migrations/0007_knowledge.sql");

fn index(texts: &[&str]) -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(MIGRATION).unwrap();
    for (at, text) in (0_i64..).zip(texts) {
        connection
            .execute(
                "INSERT INTO kb_words (rowid, heading, text) VALUES (?1, '', ?2)",
                params![at, spaced(text)],
            )
            .unwrap();
    }
    connection
}

fn found(connection: &Connection, terms: &[&str]) -> Vec<i64> {
    let terms: Vec<String> = terms.iter().map(|term| (*term).to_owned()).collect();
    let Some(expression) = expression(&terms) else {
        return Vec::new();
    };
    let mut statement = connection
        .prepare("SELECT rowid FROM kb_words WHERE kb_words MATCH ?1 ORDER BY rowid")
        .unwrap();
    let rows = statement.query_map([expression], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

#[test]
fn the_scratch_table_takes_words_apart_like_the_index() {
    assert!(MIGRATION.contains(&format!("tokenize = '{TOKENIZER}'")));
    let connection = index(&[
        "The regulations regulate",
        "a regulation",
        "don't",
        "東京都の規則",
        "Ünïcode",
    ]);
    let mut frequencies = Frequencies::default();
    let terms = [
        "regulating",
        "the",
        "don't",
        "東京",
        "unicode",
        "nowhere",
        "",
        "\u{0}",
    ]
    .map(str::to_owned);
    assert_eq!(
        frequencies.of(&connection, &terms).unwrap(),
        [2, 1, 1, 1, 1, 0, 0, 0]
    );
    // Kept while nothing changes, counted anew when something does.
    connection
        .execute(
            "INSERT INTO kb_words (rowid, heading, text) VALUES (99, 'the', 'the')",
            [],
        )
        .unwrap();
    assert_eq!(frequencies.of(&connection, &terms[1..2]).unwrap(), [1]);
    connection
        .execute("UPDATE kb_state SET version = version + 1", [])
        .unwrap();
    assert_eq!(frequencies.of(&connection, &terms[1..2]).unwrap(), [2]);
}

#[test]
fn terms_are_words_and_never_syntax() {
    let connection = index(&[
        "alpha beta",
        "gamma",
        "and or not near",
        "C++ and C#",
        "東京都の規則です",
        "🌊 wave",
    ]);
    let table: [(&[&str], &[i64]); 18] = [
        (&["alpha"], &[0]),
        (&["ALPHAS"], &[0]),
        (&["alpha", "gamma"], &[0, 1]),
        (&["AND"], &[2, 3]),
        (&["NOT alpha"], &[]),
        (&["alpha\" OR \"gamma"], &[]),
        (&["text:alpha"], &[]),
        (&["alpha*"], &[0]),
        (&["(alpha"], &[0]),
        (&["\"", "'", "*", "^", "", " "], &[]),
        (&["alpha\0gamma"], &[]),
        (&["\0", "gamma\0"], &[1]),
        (&["NEAR(alpha beta)"], &[]),
        (&["c++"], &[3]),
        (&["東京"], &[4]),
        (&["東京都の規則"], &[4]),
        (&["大阪府の規則"], &[4]),
        (&["🌊"], &[]),
    ];
    for (terms, expected) in table {
        assert_eq!(found(&connection, terms), expected, "{terms:?}");
    }
    let huge = "x".repeat(1 << 20);
    assert_eq!(found(&connection, &[&huge, "gamma"]), [1]);
    let many: Vec<&str> = std::iter::repeat_n("alpha", 5_000).collect();
    assert_eq!(found(&connection, &many), [0]);
}

#[test]
fn a_term_that_is_there_twice_counts_twice() {
    let connection = index(&["alpha", "beta", "delta", "delta", "delta", "delta", "delta"]);
    let score = |terms: &[&str]| -> f64 {
        let terms: Vec<String> = terms.iter().map(|term| (*term).to_owned()).collect();
        let expression = expression(&terms).unwrap();
        connection
            .query_row(
                "SELECT -rank FROM kb_words WHERE kb_words MATCH ?1 AND rank MATCH ?2 AND rowid = 0",
                params![expression, rank()],
                |row| row.get(0),
            )
            .unwrap()
    };
    let (once, twice) = (score(&["alpha", "beta"]), score(&["alpha", "alpha", "beta"]));
    assert!((twice - 2.0 * once).abs() < 1e-9, "{once} {twice}");
}

proptest! {
    /// Whatever the term, the index takes it, and a text that is the term is found by it where it has a word.
    #[test]
    fn any_term_is_taken(term in "\\PC{1,30}|[\"'*(): \\x00-\\x1fa-z]{1,20}") {
        let connection = index(&[&term.replace('\0', " "), "other"]);
        let hits = found(&connection, &[&term]);
        if term.chars().any(|letter| letter.is_ascii_alphanumeric()) {
            prop_assert!(hits.contains(&0), "{:?} {:?}", term, hits);
        }
    }
}
