use std::sync::LazyLock;

use serde_json::Value;
use tidegate_core::memory::Stance;
use tidegate_gate::guards::secrets::Redactor;

use super::*;
use crate::{
    boundary::{Accepted, Boundary, Held, Limits, Refusal},
    kinds::Kinds,
};

/// Made once: it takes time.
static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| Redactor::new([]).unwrap());

/// What the rules find in a turn, each with what the gate says to it.
fn judged(kinds: &Kinds, turn: &str) -> Vec<(Candidate, Result<Accepted, Refusal>)> {
    let gate = Boundary {
        kinds,
        limits: Limits::default(),
        redactor: &REDACTOR,
    };
    let reading = Reading::of(turn, []);
    let found = extract(&reading);
    let verdicts = gate.judge(&reading, Held::default(), &found);
    found.into_iter().zip(verdicts).collect()
}

/// What the rules find in a turn and the gate lets through.
fn accepted(kinds: &Kinds, turn: &str) -> Vec<Accepted> {
    judged(kinds, turn)
        .into_iter()
        .filter_map(|(_, verdict)| verdict.ok())
        .collect()
}

fn kept(kinds: &Kinds, turn: &str) -> Vec<(String, String)> {
    accepted(kinds, turn)
        .into_iter()
        .map(|accepted| (accepted.kind, accepted.value))
        .collect()
}

/// Whether a value says another one: it may say more, "humor in explanations" for "humor", and days in the plural.
fn says(value: &str, expected: &str) -> bool {
    let singular = value.replace("days", "day").replace("weekends", "weekend");
    let expected = expected.trim_start_matches("the ").trim_start_matches("a ");
    format!(" {singular} ").contains(&format!(" {expected} "))
}

/// Nine hundred and fifty of a thousand: each that is lost is printed, with who lost it.
#[test]
fn genuine_statements_are_found() {
    let kinds = Kinds::shipped().unwrap();
    let mut counts = std::collections::BTreeMap::<String, (usize, usize)>::new();
    for line in include_str!("../../../../../tests/memory/genuine.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| line[name].as_str().unwrap_or_default();
        let judged = judged(&kinds, text("text"));
        let is_kept = judged.iter().any(|(_, verdict)| {
            let kept = verdict.as_ref().ok();
            kept.is_some_and(|kept| kept.kind == text("kind") && says(&kept.value, text("value")))
        });
        let count = counts.entry(text("half").to_owned()).or_default();
        count.1 += 1;
        if is_kept {
            count.0 += 1;
            continue;
        }
        let refused: Vec<&str> = judged
            .iter()
            .filter(|(found, _)| found.kind == text("kind"))
            .filter_map(|(_, verdict)| verdict.as_ref().err().map(|refusal| refusal.reason.code()))
            .collect();
        let lost_by = if refused.is_empty() {
            "not found"
        } else {
            "refused"
        };
        println!(
            "{lost_by} {refused:?}: {} [{}={}]",
            text("text"),
            text("kind"),
            text("value")
        );
    }
    println!("genuine statements kept with the rules, by half: {counts:?}");
    let (kept, all) = counts
        .values()
        .fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    assert!(kept * 100 >= all * 95, "{kept} of {all}");
}

/// What sounds like a statement of a kind and is none.
#[test]
fn what_only_sounds_like_it_is_not_found() {
    let kinds = Kinds::shipped().unwrap();
    for turn in [
        "I'm Catholic, by the way.",
        "I'm German and I have a question.",
        "I'm Tired.",
        "Everyone calls me names.",
        "Everyone calls me stupid.",
        "My brother calls me Dummy.",
        "I'm a slow reader.",
        "I'm a bit tired.",
        "I'm a vegetarian.",
        "I'm a perfectionist.",
        "I'm a big fan of yours.",
        "I'm a former teacher.",
        "I'm an aspiring actor.",
        "I work in May.",
        "I'm in Calculus.",
        "I'm in Paris this week.",
        "I teach kids.",
        "I teach a late class.",
        "I teach evening classes.",
        "I tutor a boy.",
        "I want to ask you something.",
        "I want to know more about volcanoes.",
        "I want to learn how to do this.",
        "I'm trying to finish this essay tonight.",
        "I don't understand your answer.",
        "I don't understand the question.",
        "I don't get what you mean.",
        "I don't know how to thank you.",
        "I get lost in the music.",
        "I need help with my homework.",
        "I need a break.",
        "I need a new phone.",
        "I have a dentist appointment on Friday.",
        "I like your answer.",
        "I like it when it works.",
        "My kids are bad with fractions.",
        "My daughter has choir on Mondays.",
        "I have a deaf brother.",
        "I work with deaf children.",
        "I have questions about dyslexia.",
        "I have a pen pal at a school in Rome.",
    ] {
        assert_eq!(kept(&kinds, turn), [], "{turn}");
    }
}

#[test]
fn what_is_over_is_taken_back() {
    let kinds = Kinds::shipped().unwrap();
    for (turn, kind, value) in [
        ("I no longer teach 4th grade.", "grade_level", "4"),
        ("I don't work with my 4th graders anymore.", "grade_level", "4"),
        ("I no longer teach chemistry.", "subject_focus", "chemistry"),
        ("I stopped teaching chemistry.", "subject_focus", "chemistry"),
        ("I am no longer a teacher.", "role", "teacher"),
        ("I no longer like tables.", "preference", "tables"),
        ("I no longer live in Rome.", "location", "rome"),
        ("I no longer teach on Mondays.", "schedule", "teach on mondays"),
    ] {
        let kept = accepted(&kinds, turn);
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
        (
            "I live in Ohio and teach 4th grade.",
            vec![fact("grade_level", "4"), fact("location", "ohio")],
        ),
        (
            "I teach 4th and 5th grade.",
            vec![fact("grade_level", "4"), fact("grade_level", "5")],
        ),
        (
            "I prefer hands-on activities.",
            vec![fact("preference", "hands-on activities")],
        ),
        (
            "What I really struggle with is punctuation.",
            vec![fact("knowledge_gap", "punctuation")],
        ),
        (
            "I work nights as an ER nurse.",
            vec![fact("role", "er nurse"), fact("schedule", "work nights")],
        ),
        (
            "On Monday evenings I have choir.",
            vec![fact("schedule", "monday evenings")],
        ),
        ("I live just outside the Hague.", vec![fact("location", "hague")]),
        ("My mother tongue is Urdu.", vec![fact("language", "urdu")]),
        (
            "I want to become a paramedic.",
            vec![fact("goal", "become a paramedic")],
        ),
        (
            "I'm blind and use a screen reader.",
            vec![fact("access_need", "screen reader"), fact("access_need", "blind")],
        ),
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
