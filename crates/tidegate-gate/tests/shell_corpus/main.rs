//! The corpus of shell lines, judged as the gate judges them: the verdict on the line, then the files it names
//! against the corpus's world, which is held in memory.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should say where"
)]

mod bash;
mod properties;
mod world;

use std::{collections::BTreeMap, sync::LazyLock};

use self::world::{Outcome, World, corpus};
use serde_json::Value;
use tidegate_gate::shell::{Options, Policy};

static PLAIN: LazyLock<Policy> = LazyLock::new(|| Policy::compile(&Options::default()).unwrap());

#[derive(Default)]
struct Count {
    lines: usize,
    false_allows: usize,
    floor_leaks: usize,
    allows: usize,
    allowed: usize,
}

#[test]
fn every_line_of_the_corpus_is_judged_right() {
    let world = World::read();
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut strict = Vec::new();
    let (mut wide, mut wide_allowed, mut core_missed) = (0, 0, 0);
    for line in corpus() {
        let outcome = judged(&world, &line);
        let accepted: Vec<&str> = match line["accept"].as_array() {
            Some(accepted) => accepted.iter().filter_map(Value::as_str).collect(),
            None if line["expect"] == "ask" => vec!["ask", "refuse"],
            None => vec![line["expect"].as_str().unwrap_or_default()],
        };
        let count = counts
            .entry(line["kind"].as_str().unwrap_or_default().to_owned())
            .or_default();
        count.lines += 1;
        let told = format!("{} {outcome:?} {}", line["kind"], line["input"]);
        if outcome.kind() == "allow" && !accepted.contains(&"allow") {
            count.false_allows += 1;
            wrong.push(format!("false allow: {told}"));
        }
        if line["expect"] == "refuse" && outcome.kind() == "ask" && !accepted.contains(&"ask") {
            count.floor_leaks += 1;
            wrong.push(format!("floor leak: {told}"));
        }
        if line["expect"] == "allow" {
            count.allows += 1;
            let is_allowed = outcome.kind() == "allow";
            count.allowed += usize::from(is_allowed);
            if line["tier"] == "wide" {
                wide += 1;
                wide_allowed += usize::from(is_allowed);
            } else if !is_allowed && !accepted.contains(&outcome.kind()) {
                core_missed += 1;
            }
            if !is_allowed {
                strict.push(format!("not allowed: {} {told}", line["tier"]));
            }
        } else if line["expect"] == "ask" && outcome.kind() == "refuse" {
            strict.push(format!("over-strict: {told}"));
        }
    }
    for (kind, count) in &counts {
        println!(
            "{kind:30} lines {:3}  false allows {}  floor leaks {}  allowed {}/{}",
            count.lines, count.false_allows, count.floor_leaks, count.allowed, count.allows
        );
    }
    println!("{}\n{}", strict.join("\n"), wrong.join("\n"));
    assert!(wrong.is_empty(), "{} lines", wrong.len());
    assert_eq!(core_missed, 0, "core lines that are not allowed");
    assert!(
        wide_allowed * 100 >= wide * 95,
        "{wide_allowed} of {wide} wide lines are allowed"
    );
}

fn judged(world: &World, line: &Value) -> Outcome {
    let config = &line["config"];
    let list = |name: &str| -> Vec<String> {
        config[name]
            .as_array()
            .map(|patterns| {
                patterns
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect()
            })
            .unwrap_or_default()
    };
    let options = Options {
        allow_commands: list("allow_commands"),
        deny_commands: list("deny_commands"),
        ..Options::default()
    };
    let own;
    let policy = if options == Options::default() {
        &*PLAIN
    } else {
        own = Policy::compile(&options).unwrap();
        &own
    };
    let command = world::command(&line["input"]);
    let mode = config["mode"].as_str().unwrap_or_default();
    let is_unattended = config["unattended"] == true;
    world.outcome(policy, &command, mode, is_unattended)
}
