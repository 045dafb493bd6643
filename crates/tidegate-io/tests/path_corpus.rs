//! Every line of the path corpus: a world is built as the line says, its paths are resolved as the tools resolve
//! them, and the floors, the zones and the mode give their verdict.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "path_corpus/world.rs"]
mod world;

use std::collections::BTreeMap;

use serde_json::Value;
use tidegate_gate::{Access, Facts, PathFact, ZoneEntries, ZoneVerdict, Zones, floors};
use tidegate_io::files::{FileError, Roots, real_path_of};

use self::world::World;

/// The most that is read, in bytes.
const READ_BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Allow,
    Ask,
    Refuse,
}

impl Outcome {
    fn of(name: &str) -> Self {
        match name {
            "allow" => Self::Allow,
            "ask" => Self::Ask,
            "refuse" => Self::Refuse,
            other => panic!("unknown outcome {other}"),
        }
    }
}

/// The policy of one line.
struct Policy {
    roots: Roots,
    zones: Zones,
    mode: String,
}

impl Policy {
    fn of(config: &Value, world: &World) -> Self {
        let list = |name: &str| world.list(&config[name]);
        let allowed = list("allowed_paths");
        let lists = ["read_paths", "blocked_paths", "no_prompt_paths", "prompt_paths"].map(list);
        let [read, blocked, no_prompt, prompt] = &lists;
        let (sensitive, own) = (list("allowed_sensitive_files"), list("own_paths"));
        let entries = ZoneEntries {
            allowed: &allowed,
            read,
            blocked,
            no_prompt,
            prompt,
            allowed_sensitive: &sensitive,
            own: &own,
        };
        Self {
            roots: Roots::open(&allowed).unwrap(),
            zones: Zones::of(&world.workspace, &entries, real_path_of),
            mode: config["mode"].as_str().unwrap_or("readonly").to_owned(),
        }
    }

    fn judge(&self, paths: Vec<PathFact>) -> Outcome {
        if floors::check_paths(&paths, &self.zones).is_some() {
            return Outcome::Refuse;
        }
        let writes = paths.iter().any(|path| path.access == Access::Write);
        let facts = Facts {
            paths,
            ..Facts::default()
        };
        let verdict = self
            .zones
            .judge_all(&facts)
            .map_or(ZoneVerdict::Inside, |(verdict, _)| verdict);
        match (self.mode.as_str(), verdict) {
            (_, ZoneVerdict::Outside | ZoneVerdict::Blocked) => Outcome::Refuse,
            ("full-auto", _) => Outcome::Allow,
            ("plan-only", _) if writes => Outcome::Refuse,
            (_, ZoneVerdict::Ask(_)) => Outcome::Ask,
            (_, ZoneVerdict::Inside) if writes => Outcome::Ask,
            (_, ZoneVerdict::Inside | ZoneVerdict::NoPrompt) => Outcome::Allow,
        }
    }
}

fn run(line: &Value, world: &World) -> Outcome {
    let policy = Policy::of(&line["config"], world);
    let input = &line["input"];
    let path = world.text(&input["path"]);
    let to = input.get("to").map(|to| world.text(to));
    let fact = |path: &str, access| policy.roots.fact("path", path, access);
    let to_fact = || fact(to.as_deref().unwrap(), Access::Write);
    let op = input["op"].as_str().unwrap();
    let paths = match op {
        "read" => vec![fact(&path, Access::Read)],
        "list" => vec![fact(&path, Access::List)],
        "write" | "delete" => vec![fact(&path, Access::Write)],
        "rename" => vec![fact(&path, Access::Write), to_fact()],
        "copy" => vec![fact(&path, Access::Read), to_fact()],
        other => panic!("unknown operation {other}"),
    };
    let outcome = policy.judge(paths);
    if outcome == Outcome::Allow
        && op == "read"
        && let Ok(place) = policy.roots.resolve(&path)
        && let Err(FileError::TooLarge { .. }) = place.read_text(READ_BYTES_MAX)
    {
        return Outcome::Refuse;
    }
    if outcome == Outcome::Allow && op == "write" {
        let place = policy.roots.resolve(&path).unwrap();
        drop(place.write_atomic(b"written"));
        if let Some(kept) = line["check"]["after_write_unchanged"].as_str() {
            let kept = std::fs::read_to_string(world.fill(kept)).unwrap();
            assert_ne!(kept, "written", "{}", line["id"]);
        }
    }
    outcome
}

#[derive(Debug, Default)]
struct Counts {
    lines: usize,
    expected_allows: usize,
    allowed: usize,
    over_strict: usize,
}

#[test]
fn every_line_comes_out_as_it_must() {
    let text = include_str!("../../../tests/corpora/path.jsonl");
    let mut counts: BTreeMap<(String, String), Counts> = BTreeMap::new();
    let (mut wrong, mut over_strict) = (Vec::new(), Vec::new());
    for line in text.lines().filter(|line| !line.is_empty()) {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["input"].get("race").is_some() {
            continue;
        }
        let world = World::new(&line["input"]["setup"]);
        let outcome = run(&line, &world);
        let expected = Outcome::of(line["expect"].as_str().unwrap());
        let accepted: Vec<Outcome> = match line["accept"].as_array() {
            Some(accepted) => accepted
                .iter()
                .map(|name| Outcome::of(name.as_str().unwrap()))
                .collect(),
            None if expected == Outcome::Ask => vec![Outcome::Ask, Outcome::Refuse],
            None => vec![expected],
        };
        let named = |name: &str| line[name].as_str().unwrap().to_owned();
        let count = counts.entry((named("kind"), named("tier"))).or_default();
        count.lines += 1;
        if expected == Outcome::Allow {
            count.expected_allows += 1;
            count.allowed += usize::from(outcome == Outcome::Allow);
        }
        if outcome != expected && accepted.contains(&outcome) {
            count.over_strict += 1;
            over_strict.push(format!(
                "{} {outcome:?}, expected {expected:?}: {}",
                named("id"),
                line["input"]
            ));
        }
        if !accepted.contains(&outcome) {
            wrong.push(format!(
                "{} {outcome:?}, expected {expected:?}: {}",
                named("id"),
                line["input"]
            ));
        }
    }
    println!(
        "{counts:#?}\nother than expected, and accepted:\n{}",
        over_strict.join("\n")
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
