//! What MEMORY.md and the README say of memory is so: commands are there and work as pasted, routes exist, what is shown
//! looks as it is shown, and the examples are kept or refused as they say.

use std::{collections::BTreeSet, process::Command};

use jiff::{SignedDuration, tz::TimeZone};
use serde_json::{Value, json};
use tidegate::clock::SystemClock;
use tidegate_core::clock::Clock as _;

use crate::support::{Home, outcome};

const MEMORY: &str = include_str!("../../../MEMORY.md");
const README: &str = include_str!("../../../README.md");

/// The fenced blocks of a language.
fn blocks<'t>(text: &'t str, language: &str) -> Vec<&'t str> {
    let fence = format!("```{language}\n");
    let rest = text.split(fence.as_str()).skip(1);
    rest.map(|block| block.split("\n```").next().unwrap()).collect()
}

/// The block that begins with this.
fn shown(beginning: &str) -> &'static str {
    let found = blocks(MEMORY, "text")
        .into_iter()
        .find(|block| block.starts_with(beginning));
    found.unwrap_or_else(|| panic!("no block `{beginning}`"))
}

fn home() -> Home {
    let home = Home::new("[discovery]\nollama = false\n");
    assert_eq!(home.run(&["keys", "create", "--name", "school"]).0, Some(0));
    home
}

/// Spaces, ids, days and times do not matter: they are another's.
fn outline(text: &str) -> String {
    let words = text.split_whitespace().map(|word| {
        let bare = word.trim_end_matches(['.', ',', ':']);
        let is_date = bare.len() >= 10 && bare.bytes().take(4).all(|byte| byte.is_ascii_digit());
        if bare.starts_with("fact_") {
            "ID".to_owned()
        } else if is_date && bare.contains('-') {
            "WHEN".to_owned()
        } else if bare.contains(":ann") {
            "WHO".to_owned()
        } else {
            word.to_owned()
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn every_command_that_is_named_is_one() {
    let home = home();
    let mut named = BTreeSet::new();
    for text in [MEMORY, README] {
        for rest in text.split("tidegate memory ").skip(1) {
            named.extend(rest.split(|letter: char| !letter.is_ascii_lowercase()).next());
        }
    }
    assert!(named.len() >= 15, "{named:?}");
    for name in named {
        assert_eq!(
            home.run(&["memory", name, "--help"]).0,
            Some(0),
            "tidegate memory {name}"
        );
    }
}

#[test]
fn every_route_that_is_named_is_one() {
    let home = home();
    let (_, document, _) = home.run(&["openapi"]);
    let document: Value = serde_json::from_str(&document).unwrap();
    let mut found = 0;
    for text in [MEMORY, README] {
        for method in ["GET", "POST", "PATCH", "PUT", "DELETE"] {
            for rest in text.split(&format!("`{method} /v1/memory")).skip(1) {
                let path = rest.split(['`', '?']).next().unwrap().replace("/ID", "/{id}");
                let path = format!("/v1/memory{path}");
                assert!(
                    document["paths"][&path][method.to_lowercase()].is_object(),
                    "{method} {path}"
                );
                found += 1;
            }
        }
    }
    assert!(found >= 12, "{found}");
}

#[test]
fn the_example_of_the_readme_works_as_pasted() {
    let home = home();
    let block = blocks(README, "sh")
        .into_iter()
        .find(|block| block.contains("tidegate memory add"))
        .unwrap();
    let program = home.command(&[]).get_program().to_owned();
    let folder = std::path::Path::new(&program).parent().unwrap().to_owned();
    #[expect(clippy::disallowed_methods, reason = "the test types what the document says")]
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-e", "-c", block])
        .current_dir(home.folder())
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
    let (code, stdout, stderr) = outcome(&shell.output().unwrap());
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    for part in [
        "grade level: 4 (stable)",
        "SCORE",
        "kept      preference: answers with examples first",
        "is erased",
    ] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
}

/// Somebody of whom is known what the document shows, by an import of words that were said on other days.
fn person(home: &Home) {
    let (_, empty, _) = home.run(&["memory", "export", "--user", "ann"]);
    let mut document: Value = serde_json::from_str(&empty).unwrap();
    let said = [
        (9, "grade_level", "4", "I teach 4th grade", "stated"),
        (
            8,
            "preference",
            "answers with examples first",
            "I like answers with examples first.",
            "stated",
        ),
        (7, "grade_level", "4", "I teach 4th grade at Hillside", "stated"),
        (6, "grade_level", "4", "I teach 4th grade", "stated"),
        (
            5,
            "name",
            "mcleod",
            "Remember that my name is McLeod.",
            "remembered",
        ),
        (
            4,
            "knowledge_gap",
            "fractions",
            "I find fractions hard.",
            "stated",
        ),
    ];
    let now = SystemClock::new(TimeZone::UTC).now();
    let observations: Vec<Value> = (1_u8..)
        .zip(said)
        .map(|(number, (days_ago, kind, value, quote, voice))| {
            let at = now
                .checked_sub(SignedDuration::from_hours(24 * days_ago))
                .unwrap();
            let day = TimeZone::UTC.to_datetime(at).date();
            json!({
                "id": format!("obs_{number}"), "kind": kind, "value": value, "quote": quote,
                "turn": format!("{number:02x}").repeat(32), "conversation": "c", "day": day.to_string(),
                "at": at.to_string(), "voice": voice, "stance": "affirmed", "extractor": "rules",
                "is_explicit": true, "is_first_person": true,
            })
        })
        .collect();
    document["observations"] = json!(observations);
    home.write("ann.json", &document.to_string());
    let (code, _, stderr) = home.run(&["memory", "import", "ann.json", "--user", "ann"]);
    assert_eq!(code, Some(0), "{stderr}");
}

#[test]
fn what_is_shown_looks_as_it_is_shown() {
    let home = home();
    person(&home);
    let run = |arguments: &[&str]| {
        let all: Vec<&str> = ["memory"]
            .iter()
            .chain(arguments)
            .chain(&["--user", "ann"])
            .copied()
            .collect();
        let (code, stdout, stderr) = home.run(&all);
        assert_eq!(code, Some(0), "{all:?}: {stderr}");
        // These came by an import, those of the document did not.
        outline(&stdout.replace("imported, found by import:rules", "in passing, found by rules"))
    };
    let list = run(&["list"]);
    assert_eq!(list, outline(shown("ID ")));
    let (_, text, _) = home.run(&["memory", "list", "--user", "ann", "--json"]);
    let facts: Value = serde_json::from_str(&text).unwrap();
    let four = facts["facts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|fact| fact["value"] == "4")
        .unwrap();
    let four = four["id"].as_str().unwrap();
    assert_eq!(run(&["why", four]), outline(shown("grade level: 4 (stable)")));
    run(&[
        "correct",
        four,
        "5",
        "--quote",
        "Remember that I teach 5th grade.",
    ]);
    assert_eq!(run(&["why", four]), outline(shown("grade level: 4 (superseded)")));
    assert_eq!(
        run(&["clear", "--yes"])
            .replacen("7 sayings", "N sayings", 1)
            .split(':')
            .next(),
        outline(shown_that_holds("is erased")).split(':').next()
    );
}

fn shown_that_holds(part: &str) -> &'static str {
    blocks(MEMORY, "text")
        .into_iter()
        .find(|block| block.contains(part))
        .unwrap()
}

/// What the document says of its examples is what the write gate says.
#[test]
fn the_examples_are_kept_or_refused_as_it_says() {
    let home = home();
    let code = |text: &str| home.run(&["memory", "test", text]).0;
    let quoted: Vec<&str> = MEMORY
        .lines()
        .filter_map(|line| line.strip_prefix("> "))
        .collect();
    assert!(quoted.len() >= 3, "{quoted:?}");
    for text in quoted {
        assert_eq!(code(text), Some(0), "{text}");
    }
    let never = MEMORY.split("## What is never remembered").nth(1).unwrap();
    let never = never.split("\n\nA model may").next().unwrap();
    let examples: Vec<&str> = never.split('"').skip(1).step_by(2).collect();
    assert!(examples.len() >= 4, "{examples:?}");
    for text in examples {
        assert_eq!(code(text), Some(3), "{text}");
    }
    let block = shown_that_holds("refused ");
    let asked = block.lines().next().unwrap();
    let text = asked.split('"').nth(1).unwrap();
    let (_, said, _) = home.run(&["memory", "test", text]);
    // The first line is what was typed; the time is another one each time.
    let body = |text: &str| -> Vec<String> {
        text.lines()
            .skip(1)
            .map(|line| line.trim_end().to_owned())
            .filter(|line| !line.is_empty())
            .collect()
    };
    assert_eq!(body(&said), body(block.split_once('\n').unwrap().1));
}
