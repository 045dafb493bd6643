use proptest::prelude::*;

use super::*;

fn wanted(query: &str) -> Vec<String> {
    Terms::of(query).wanted
}

#[test]
fn words_of_every_kind_of_query() {
    let table: &[(&str, &[&str])] = &[
        ("", &[]),
        (" \t\n\u{0}\u{7}\u{200b}", &[]),
        ("!?.,;\"'*^()", &[]),
        ("How soon must a lender reply?", &["soon", "lender", "reply"]),
        ("lender, lender, LENDER", &["lender", "lender", "lender"]),
        ("what is the", &["what", "is", "the"]),
        ("to be or not to be", &["to", "be", "or", "not", "to", "be"]),
        (
            "\"a* NEAR(b, 2)\" AND col:x OR -y NOT z^",
            &["near", "b", "2", "col", "x", "y", "z"],
        ),
        ("is the IT policy for us", &["it", "policy"]),
        ("WHAT IS THE POLICY", &["policy"]),
        ("12 CFR § 1002.9(a)(1)", &["12", "cfr", "1002", "9", "1"]),
        ("don't the lender's", &["lender"]),
        ("Zinsänderung für Ärzte", &["zinsänderung", "für", "ärzte"]),
        ("信用 申请", &["信用", "申请"]),
        ("क्रेडिट नियम", &["क्रेडिट", "नियम"]),
        ("cre\u{301}dit", &["cre\u{301}dit"]),
        ("null\u{0}byte \u{202e}turned", &["null", "byte", "turned"]),
        ("🙂 emoji 👩‍👩‍👧", &["emoji"]),
    ];
    for (query, expected) in table {
        assert_eq!(wanted(query), *expected, "{query:?}");
    }
}

#[test]
fn a_long_query_is_bounded() {
    let many: Vec<String> = (0..50_000).map(|number| format!("w{}", number % 1000)).collect();
    let many = many.join(" ");
    let terms = Terms::of(&many);
    assert_eq!(terms.distinct().len(), TERMS_MAX);
    assert_eq!(terms.wanted.len(), TERMS_MAX * REPEATS_MAX);
    assert!(wanted(&"x".repeat(100_000)).is_empty());
    assert_eq!(wanted(&"word ".repeat(20_000)).len(), REPEATS_MAX);
    assert_eq!(Terms::of(&"the and ".repeat(9_000)).wanted.len(), 2 * REPEATS_MAX);
}

fn after_drop(query: &str, frequencies: &[(&str, u64)], chunks: u64) -> (Vec<String>, Vec<String>) {
    let mut terms = Terms::of(query);
    let frequencies: Vec<(String, u64)> = frequencies
        .iter()
        .map(|(term, count)| ((*term).to_owned(), *count))
        .collect();
    terms.drop_common(&frequencies, chunks);
    (terms.wanted, terms.dropped)
}

#[test]
fn what_stands_everywhere_goes_when_three_others_remain() {
    let (wanted, dropped) = after_drop(
        "credit adverse action notice credit",
        &[("credit", 90), ("adverse", 3), ("action", 40), ("notice", 30)],
        100,
    );
    assert_eq!(wanted, ["adverse", "action", "notice"]);
    assert_eq!(dropped, ["credit"]);
    let (wanted, dropped) = after_drop(
        "credit adverse action",
        &[("credit", 90), ("adverse", 3), ("action", 40)],
        100,
    );
    assert_eq!(wanted.len(), 3);
    assert!(dropped.is_empty());
    // Words that stand nowhere are not what remains.
    let (wanted, _) = after_drop(
        "credit xa xb xc",
        &[("credit", 90), ("xa", 0), ("xb", 0), ("xc", 0)],
        100,
    );
    assert!(wanted.contains(&"credit".to_owned()));
}

#[test]
fn the_most_common_go_where_there_is_too_much_to_weigh() {
    let (wanted, dropped) = after_drop(
        "alpha beta gamma delta",
        &[
            ("alpha", 1_000),
            ("beta", 60_000),
            ("gamma", 50_000),
            ("delta", 70_000),
        ],
        1_000_000,
    );
    assert_eq!(wanted, ["alpha", "beta", "gamma"]);
    assert_eq!(dropped, ["delta"]);
    let (wanted, _) = after_drop("alpha beta", &[("alpha", 400_000), ("beta", 400_000)], 1_000_000);
    assert_eq!(wanted.len(), 2);
}

proptest! {
    #[test]
    fn no_text_breaks_it(query in ".{0,300}") {
        let terms = Terms::of(&query);
        prop_assert!(terms.wanted.len() <= TERMS_MAX * REPEATS_MAX);
        for term in terms.wanted.iter().chain(&terms.dropped) {
            prop_assert!(!term.is_empty());
            prop_assert!(term.chars().all(is_of_word));
        }
    }

    #[test]
    fn dropping_never_empties_a_query(counts in prop::collection::vec(0..200_000_u64, 1..20)) {
        let query: Vec<String> = (0..counts.len()).map(|number| format!("w{number}")).collect();
        let mut terms = Terms::of(&query.join(" "));
        let frequencies: Vec<(String, u64)> = query.iter().cloned().zip(counts.iter().copied()).collect();
        terms.drop_common(&frequencies, 200_000);
        let present = counts.iter().filter(|count| **count > 0).count();
        let kept = frequencies.iter().filter(|(term, count)| *count > 0 && terms.wanted.contains(term)).count();
        prop_assert!(kept >= present.min(OTHERS_MIN));
        prop_assert_eq!(terms.wanted.len() + terms.dropped.len(), counts.len());
    }
}
