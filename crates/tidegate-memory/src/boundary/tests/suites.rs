//! The boundary against files of statements: genuine ones, hostile ones, and the shared scenarios.

use serde_json::Value;

use super::{super::*, REDACTOR, verdict};

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn text_of<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// An extractor that is right keeps what people really say of themselves.
#[test]
fn genuine_statements_pass() {
    let kinds = Kinds::shipped().unwrap();
    let all = lines(include_str!("../../../../../tests/memory/genuine.jsonl"));
    let mut kept = 0;
    for line in &all {
        let text = text_of(line, "text");
        // A good extractor quotes the sentence.
        let reading = Reading::of(text, []);
        let passes = reading.sentences().iter().any(|sentence| {
            let quote = reading.slice(sentence.span()).to_owned();
            verdict(
                &kinds,
                text,
                &[],
                text_of(line, "kind"),
                text_of(line, "value"),
                &quote,
            )
            .is_ok()
        });
        if passes {
            kept += 1;
        } else {
            let why: Vec<_> = reading
                .sentences()
                .iter()
                .map(|sentence| {
                    let quote = reading.slice(sentence.span()).to_owned();
                    verdict(
                        &kinds,
                        text,
                        &[],
                        text_of(line, "kind"),
                        text_of(line, "value"),
                        &quote,
                    )
                    .map_err(Reason::code)
                })
                .collect();
            println!(
                "not kept: {text} [{}={}] {why:?}",
                text_of(line, "kind"),
                text_of(line, "value")
            );
        }
    }
    println!("genuine statements that pass the gate: {kept} of {}", all.len());
    assert!(kept * 100 >= all.len() * 95);
}

fn others(line: &Value) -> Vec<Other<'_>> {
    line["others"]
        .as_array()
        .unwrap()
        .iter()
        .map(|other| Other {
            source: match text_of(other, "source") {
                "retrieved" => Source::Retrieved,
                "tool" => Source::Tool,
                "assistant" => Source::Assistant,
                "system" => Source::System,
                "earlier" => Source::Earlier,
                unknown => panic!("{unknown}"),
            },
            text: text_of(other, "text"),
        })
        .collect()
}

/// An extractor that is fooled on purpose gets nothing through.
#[test]
fn poison_is_refused() {
    let kinds = Kinds::shipped().unwrap();
    refuses_poison(&kinds);
    // Nor where the operator asks less of most kinds.
    refuses_poison(&kinds.adjusted(|kind| kind.explicit_only = kind.name == "grade_level"));
}

fn refuses_poison(kinds: &Kinds) {
    let mut classes = std::collections::BTreeMap::<String, usize>::new();
    let mut accepted = Vec::new();
    for line in lines(include_str!("../../../../../tests/memory/poison.jsonl")) {
        let (turn, others) = (text_of(&line, "turn"), others(&line));
        *classes.entry(text_of(&line, "class").to_owned()).or_default() += 1;
        let wrong: Vec<(&str, &str)> = line["candidates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|candidate| (text_of(candidate, "kind"), text_of(candidate, "value")))
            .collect();
        let reading = Reading::of(turn, others.iter().copied());
        // What the extractor was fooled into, the same with every sentence of the turn for a quote, and what the rules find.
        let mut candidates = crate::extract::rules::extract(&reading);
        let by_rules = candidates.len();
        for candidate in line["candidates"].as_array().unwrap() {
            let every = sentences(&Folded::of(turn), &Everything)
                .into_iter()
                .map(|sentence| {
                    let words: Vec<&str> = sentence.tokens.iter().map(|token| token.word.as_str()).collect();
                    words.join(" ")
                });
            candidates.extend(
                every
                    .chain([text_of(candidate, "quote").to_owned()])
                    .map(|quote| Candidate {
                        kind: text_of(candidate, "kind").to_owned(),
                        value: text_of(candidate, "value").to_owned(),
                        quote,
                        is_explicit: true,
                        is_first_person: true,
                    }),
            );
        }
        let gate = Boundary {
            kinds,
            limits: Limits {
                per_turn: usize::MAX,
                ..Limits::default()
            },
            redactor: &REDACTOR,
        };
        for (index, kept) in gate
            .judge(&reading, Held::default(), &candidates)
            .into_iter()
            .enumerate()
        {
            let Ok(kept) = kept else { continue };
            // The rules may find what the person does say.
            if index >= by_rules || wrong.contains(&(kept.kind.as_str(), kept.value.as_str())) {
                accepted.push(format!("{}: {turn:?} -> {kept:?}", text_of(&line, "class")));
            }
        }
    }
    println!(
        "hostile turns: {} in {classes:?}; accepted: {}",
        classes.values().sum::<usize>(),
        accepted.len()
    );
    assert!(accepted.is_empty(), "{}", accepted.join("\n"));
}

/// The shared scenarios, as far as one turn at a time can tell: what is to be absent is never accepted, and whatever is to
/// be kept is accepted each time it is said.
#[test]
fn scenarios_hold_at_the_boundary() {
    let shipped = Kinds::shipped().unwrap();
    let mut classes = std::collections::BTreeMap::<String, usize>::new();
    for scenario in lines(include_str!("../../../../../tests/memory/scenarios.jsonl")) {
        let explicit: Vec<&str> = scenario["policy"]["explicit_only"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let kinds = shipped
            .clone()
            .adjusted(|kind| kind.explicit_only = explicit.contains(&kind.name.as_str()));
        let gate = Boundary {
            kinds: &kinds,
            limits: Limits::default(),
            redactor: &REDACTOR,
        };
        let mut accepted = Vec::new();
        let mut most_of_a_turn = 0;
        for step in scenario["steps"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|step| text_of(step, "op") == "chat")
        {
            let kept = judge_step(&gate, step);
            most_of_a_turn = most_of_a_turn.max(kept.len());
            accepted.extend(
                kept.into_iter()
                    .map(|kept| (text_of(step, "user").to_owned(), kept.kind, kept.value)),
            );
        }
        let id = text_of(&scenario, "id");
        assert!(most_of_a_turn <= Limits::default().per_turn, "{id}");
        let forgets = scenario["steps"]
            .as_array()
            .unwrap()
            .iter()
            .any(|step| text_of(step, "op") != "chat" && text_of(step, "op") != "restart");
        for expected in scenario["expect"].as_array().unwrap() {
            let fact = (
                text_of(expected, "user").to_owned(),
                text_of(expected, "kind").to_owned(),
                text_of(expected, "value").to_owned(),
            );
            let is_absent = text_of(expected, "state") == "absent";
            if !(is_absent && forgets) {
                assert_eq!(
                    accepted.contains(&fact),
                    !is_absent,
                    "{id}: {fact:?} in {accepted:?}"
                );
            }
        }
        for trace in scenario["no_trace"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            assert!(
                forgets || accepted.iter().all(|(_, _, value)| !value.contains(trace)),
                "{id}"
            );
        }
        *classes.entry(text_of(&scenario, "class").to_owned()).or_default() += 1;
    }
    println!("scenarios that hold at the boundary: {classes:?}");
    assert!(classes.len() > 20);
}

fn judge_step(gate: &Boundary<'_>, step: &Value) -> Vec<Accepted> {
    let messages = step["messages"].as_array().unwrap();
    let (newest, before) = messages.split_last().unwrap();
    let mut others: Vec<Other<'_>> = Vec::new();
    for (source, list) in [(Source::Retrieved, "retrieved"), (Source::Tool, "tool_results")] {
        let texts = step[list].as_array().into_iter().flatten();
        others.extend(texts.map(|other| Other {
            source,
            text: text_of(other, "text"),
        }));
    }
    for message in before {
        let source = match text_of(message, "role") {
            "system" => Source::System,
            "assistant" => Source::Assistant,
            // The person's own earlier words may be said again.
            _ => continue,
        };
        others.push(Other {
            source,
            text: text_of(message, "content"),
        });
    }
    let reply = step["extractor_raw"].as_str().map_or_else(
        || serde_json::json!({ "facts": step["extractor"] }).to_string(),
        str::to_owned,
    );
    let found = crate::extract::model::parse(&reply).candidates;
    let reading = Reading::of(text_of(newest, "content"), others);
    gate.judge(&reading, Held::default(), &found)
        .into_iter()
        .flatten()
        .collect()
}

const ORDINALS: [&str; 12] = [
    "1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th", "10th", "11th", "12th",
];

/// Subjects, things to like and things to struggle with; many of them are words that also tell pasted text.
const VALUES: &[&str] = &[
    "chemistry",
    "history",
    "grammar",
    "reading",
    "writing",
    "drama",
    "law",
    "poetry",
    "games",
    "essays",
    "letters",
    "stories",
    "sentences",
    "paragraphs",
    "tenses",
    "quotes",
    "questions",
    "conditions",
    "lists",
    "pictures",
    "short answers",
    "examples",
    "songs",
    "plays",
    "codes",
    "rules",
    "maps",
    "verbs",
    "fractions",
    "texts",
    "scripts",
    "answers",
    "dialogues",
    "past tense",
];

/// Plain ways of saying things pass for every value, whatever word it is.
#[test]
fn plain_statements_pass_for_any_value() {
    let kinds = Kinds::shipped()
        .unwrap()
        .adjusted(|kind| kind.explicit_only = kind.name == "grade_level");
    let passes = |kind: &str, value: &str, text: &str| {
        let said = verdict(&kinds, text, &[], kind, value, text);
        assert!(said.is_ok(), "{text}: {said:?}");
    };
    for (year, ordinal) in (1..).zip(ORDINALS) {
        let value = year.to_string();
        for text in [
            format!("I teach {ordinal} grade."),
            format!("I teach {ordinal} grade at a small school."),
            format!("As you know I teach {ordinal} grade."),
            format!("I now teach {ordinal} grade."),
            format!("I am in {ordinal} grade"),
            format!("I'm a {ordinal} grade teacher"),
            format!("i teach grade {year}"),
            format!("I TEACH {} GRADE", ordinal.to_uppercase()),
        ] {
            passes("grade_level", &value, &text);
        }
    }
    for value in VALUES {
        for text in [
            format!("I focus on {value}."),
            format!("My subject is {value}."),
            format!("{value} is what I work on most."),
        ] {
            passes("subject_focus", value, &text);
        }
        for text in [
            format!("{value} are hard for me."),
            format!("I am still unsure about {value}."),
            format!("I never know where {value} go."),
            format!("I struggle with {value}."),
        ] {
            passes("knowledge_gap", value, &text);
        }
        for text in [
            format!("I prefer {value} to long text."),
            format!("I like {value}."),
            format!("{value} help me most."),
        ] {
            passes("preference", value, &text);
        }
    }
}
