use serde_json::Value;
use tidegate_gate::guards::secrets::Redactor;

use super::*;
use crate::{
    boundary::{Boundary, Held, Limits},
    kinds::Kinds,
};

/// What the rules find in a turn and the gate lets through.
fn kept(kinds: &Kinds, turn: &str) -> Vec<(String, String)> {
    let redactor = Redactor::new([]).unwrap();
    let gate = Boundary {
        kinds,
        limits: Limits::default(),
        redactor: &redactor,
    };
    let reading = Reading::of(turn, []);
    gate.judge(&reading, Held::default(), &extract(&reading))
        .into_iter()
        .flatten()
        .map(|accepted| (accepted.kind, accepted.value))
        .collect()
}

/// Days of the week without their ending.
fn singular(value: &str) -> String {
    value.replace("days", "day").replace("weekends", "weekend")
}

#[test]
fn genuine_statements_are_found() {
    let kinds = Kinds::shipped().unwrap();
    let mut counts = std::collections::BTreeMap::<String, (usize, usize)>::new();
    for line in include_str!("../../../../../tests/memory/genuine.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| line[name].as_str().unwrap_or_default();
        let found = kept(&kinds, text("text"));
        // What was found may say more: "humor in explanations" for "humor".
        let expected = format!(
            " {} ",
            text("value").trim_start_matches("the ").trim_start_matches("a ")
        );
        let is_kept = found.iter().any(|(kind, value)| {
            kind == text("kind") && format!(" {} ", singular(value)).contains(&expected)
        });
        let count = counts.entry(text("half").to_owned()).or_default();
        count.1 += 1;
        if is_kept {
            count.0 += 1;
        } else {
            println!(
                "not kept ({}): {} [{}={}] {found:?}",
                text("half"),
                text("text"),
                text("kind"),
                text("value")
            );
        }
    }
    println!("genuine statements kept with the rules, by half: {counts:?}");
    let (kept, all) = counts
        .values()
        .fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    assert!(kept * 100 >= all * 95, "{kept} of {all}");
}

#[test]
fn what_is_over_is_taken_back() {
    use tidegate_core::memory::Stance;
    let kinds = Kinds::shipped().unwrap();
    let redactor = Redactor::new([]).unwrap();
    let gate = Boundary {
        kinds: &kinds,
        limits: Limits::default(),
        redactor: &redactor,
    };
    for (turn, kind, value) in [
        ("I no longer teach 4th grade.", "grade_level", "4"),
        ("I no longer teach chemistry.", "subject_focus", "chemistry"),
        ("I stopped teaching chemistry.", "subject_focus", "chemistry"),
        ("I am no longer a teacher.", "role", "teacher"),
        ("I no longer like tables.", "preference", "tables"),
        ("I no longer live in Rome.", "location", "rome"),
    ] {
        let reading = Reading::of(turn, []);
        let kept: Vec<_> = gate
            .judge(&reading, Held::default(), &extract(&reading))
            .into_iter()
            .flatten()
            .collect();
        let is_found = kept
            .iter()
            .any(|kept| kept.kind == kind && kept.value == value && kept.stance == Stance::Retracted);
        assert!(is_found && kept.len() == 1, "{turn}: {kept:?}");
    }
}

#[test]
fn the_rules_know_how_things_are_said() {
    let kinds = Kinds::shipped().unwrap();
    let fact = |kind: &str, value: &str| (kind.to_owned(), value.to_owned());
    for (turn, expected) in [
        (
            "I like tables, lists and diagrams.",
            vec![
                fact("preference", "tables"),
                fact("preference", "lists"),
                fact("preference", "diagrams"),
            ],
        ),
        (
            "I teach fourth grade math.",
            vec![fact("subject_focus", "math"), fact("grade_level", "4")],
        ),
        (
            "I'm a 7th grade biology teacher.",
            vec![
                fact("grade_level", "7"),
                fact("role", "biology teacher"),
                fact("subject_focus", "biology"),
            ],
        ),
        ("Hello, I'm Ben. Can you help?", vec![fact("name", "ben")]),
        ("I'm Catholic.", vec![]),
        ("I have a test on Friday.", vec![]),
        ("I need help with my homework.", vec![]),
        ("I like it.", vec![]),
        ("My friend struggles with commas.", vec![]),
        ("> I like tables.", vec![]),
        ("I live in a small house.", vec![]),
    ] {
        assert_eq!(kept(&kinds, turn), expected, "{turn}");
    }
}
