//! Paths, put to the file tools in a world made for each line.
//!
//! Reading, listing and writing go the whole way: facts, gate, runner. For what no tool does by itself (renaming,
//! copying, deleting) the same facts are made of both paths and the gate is asked.

mod race;
mod world;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use serde_json::{Map, Value};
use tidegate_core::tool::{FailureCode, ToolCall, ToolResult, ToolSpec};
use tidegate_gate::{Access, Facts, ZoneEntries, Zones, shell::Place};
use tidegate_io::files::{Roots, View, real_path_of};

use super::case::{Case, Outcome};
use super::desk::{self, CONFIG, Desk, Ruling, Surroundings};
use super::{Judged, REFUSAL_MAX, Verdict};
use race::Race;
use world::World;

/// What is written.
const WRITTEN: &str = "written by the corpus";
/// How often a call is made while another thread swaps what it is about.
const RACE_ROUNDS: usize = 300;

/// One line in its world.
struct Scene<'a> {
    case: &'a Case,
    world: &'a World,
    desk: &'a Desk,
    roots: &'a Roots,
    op: Op,
    path: String,
    to: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Read,
    List,
    Write,
    Delete,
    Rename,
    Copy,
}

impl Op {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "read" => Self::Read,
            "list" => Self::List,
            "write" => Self::Write,
            "delete" => Self::Delete,
            "rename" => Self::Rename,
            "copy" => Self::Copy,
            _ => return None,
        })
    }

    /// The tool that does it.
    fn tool(self) -> &'static str {
        match self {
            Self::Read => "read_text",
            Self::List => "list_files",
            // What changes files is judged as a write, whatever would do it.
            Self::Write | Self::Delete | Self::Rename | Self::Copy => "write_file",
        }
    }
}

pub(super) fn judge(case: &Case) -> Result<Judged> {
    let unknown = |reason: &str| Ok(Judged::Unknown(reason.to_owned()));
    let Some(op) = case.input["op"].as_str().and_then(Op::of) else {
        return unknown("the operation is not known");
    };
    let race = match case.input.get("race") {
        None => None,
        Some(race) => match race.as_str().and_then(Race::read) {
            Some(race) => Some(race),
            None => return unknown("the race is not known"),
        },
    };
    let world = match World::new(&case.input["setup"]) {
        Ok(world) => world,
        Err(problem) => return unknown(&format!("the setup cannot be made: {problem:#}")),
    };
    let Some(path) = world.text(&case.input["path"]) else {
        return unknown("the path is no text");
    };
    let to = case.input.get("to").and_then(|to| world.text(to));
    if matches!(op, Op::Rename | Op::Copy) && to.is_none() {
        return unknown("there is no second path");
    }
    let (desk, roots) = open(case, &world)?;
    let scene = Scene {
        case,
        world: &world,
        desk: &desk,
        roots: &roots,
        op,
        path,
        to,
    };
    Ok(Judged::Done(match race {
        Some(race) => scene.race(&race)?,
        None => scene.judge()?,
    }))
}

/// The desk of a line, and the folders that it opens.
fn open(case: &Case, world: &World) -> Result<(Desk, Roots)> {
    let list = |name: &str| -> Vec<PathBuf> {
        let entries = case.list(name).into_iter();
        entries.map(|entry| PathBuf::from(world.fill(&entry))).collect()
    };
    let lists = [
        "allowed_paths",
        "read_paths",
        "blocked_paths",
        "no_prompt_paths",
        "prompt_paths",
        "allowed_sensitive_files",
        "own_paths",
    ]
    .map(list);
    let [allowed, read, blocked, no_prompt, prompt, allowed_sensitive, own] = &lists;
    let entries = ZoneEntries {
        allowed,
        read,
        blocked,
        no_prompt,
        prompt,
        allowed_sensitive,
        own,
    };
    let zones = Zones::of(&world.workspace, &entries, real_path_of);
    let roots = Roots::open(&zones.readable)?;
    let place = Place::new(world.workspace.to_string_lossy(), world.home.to_string_lossy());
    let around = Surroundings {
        bank: world.workspace.clone(),
        zones,
        place,
        view: View::open("/".as_ref())?,
    };
    Ok((Desk::new(case, around)?, roots))
}

impl Scene<'_> {
    fn call(&self) -> ToolCall {
        let mut arguments = Map::from_iter([("path".to_owned(), Value::from(self.path.clone()))]);
        if self.op.tool() == "write_file" {
            arguments.insert("content".to_owned(), WRITTEN.into());
        }
        desk::call(self.op.tool(), arguments)
    }

    /// Both paths of what no tool does by itself.
    fn own_facts(&self) -> Option<Facts> {
        let fact = |path: &str, access| self.roots.fact("path", path, access);
        let to = || fact(self.to.as_deref().unwrap_or_default(), Access::Write);
        let paths = match self.op {
            Op::Read | Op::List | Op::Write => return None,
            Op::Delete => vec![fact(&self.path, Access::Write)],
            Op::Rename => vec![fact(&self.path, Access::Write), to()],
            Op::Copy => vec![fact(&self.path, Access::Read), to()],
        };
        Some(Facts {
            paths,
            ..Facts::default()
        })
    }

    fn rule(&self, call: &ToolCall, spec: &ToolSpec) -> Ruling {
        let Some(mut facts) = self.own_facts() else {
            return self.desk.rule(self.case, call, spec);
        };
        // The tool writes one file; two are judged one after the other, and the stricter answer counts.
        let paths = std::mem::take(&mut facts.paths);
        let rulings = paths.into_iter().map(|path| {
            let begin = Instant::now();
            let tool = if path.access == Access::Write {
                spec.name.as_str()
            } else {
                "read_text"
            };
            let spec = self.desk.spec(tool).unwrap_or_else(|_| spec.clone().into());
            let mut call = self.call();
            tool.clone_into(&mut call.name);
            let facts = Facts {
                paths: vec![path],
                ..Facts::default()
            };
            let mut ruling = self.desk.decide(self.case, &call, &spec, &facts, begin);
            ruling.authorized = None;
            ruling
        });
        let strictness = |ruling: &Ruling| match ruling.outcome {
            Outcome::Allow | Outcome::Transform => 0,
            Outcome::Ask => 1,
            Outcome::Refuse => 2,
        };
        let strictest = rulings.max_by_key(strictness);
        strictest.unwrap_or_else(|| self.desk.rule(self.case, call, spec))
    }

    fn judge(&self) -> Result<Verdict> {
        let spec = self.desk.spec(self.op.tool())?;
        let call = self.call();
        let kept = self.kept();
        let begin = Instant::now();
        let mut ruling = self.rule(&call, &spec);
        if ruling.took > REFUSAL_MAX {
            ruling.took = ruling.took.min(self.rule(&call, &spec).took);
        }
        let result = match self.desk.check(&call, &spec) {
            Err(result) => Some(result),
            Ok(()) => ruling
                .authorized
                .take()
                .map(|authorized| self.desk.run(authorized)),
        };
        let whole = begin.elapsed();
        let (outcome, by) = match &result {
            Some(result) => told(result, &ruling),
            None => (ruling.outcome, ruling.by.clone()),
        };
        let mut verdict = Verdict {
            took: Some(ruling.took),
            unchecked: self.case.unknown_config(&CONFIG),
            ..Verdict::new(outcome, by)
        };
        if self.roots.paths().count() > 1 && self.opened_alone(&call, &spec, begin) {
            let failure = "the gate lets it through once every allowed folder is opened";
            verdict.failures.push(failure.to_owned());
        }
        let shown = result.map(|result| result.to_model_text()).unwrap_or_default();
        for (name, value) in &self.case.check {
            let failure = match name.as_str() {
                "returns_within_ms" => {
                    let limit_ms = value.as_u64().unwrap_or_default();
                    (whole.as_millis() > u128::from(limit_ms))
                        .then(|| format!("took {} ms", whole.as_millis()))
                }
                "after_write_unchanged" => {
                    (self.kept() != kept).then(|| "another name of it has changed".to_owned())
                }
                "never_returns_content_of" => self
                    .secret(value)
                    .filter(|secret| shown.contains(secret.as_str()))
                    .map(|_| "what it must not show came back".to_owned()),
                "nothing_created_under" => self.grown(value),
                _ => {
                    verdict.unchecked.push(format!("check `{name}`"));
                    None
                }
            };
            verdict
                .failures
                .extend(failure.map(|failure| format!("{name}: {failure}")));
        }
        Ok(verdict)
    }

    /// Whether the gate by itself would let a call through that must not pass, where the tool box opens fewer
    /// folders than the line allows and so refuses before any floor is asked.
    fn opened_alone(&self, call: &ToolCall, spec: &ToolSpec, begin: Instant) -> bool {
        let access = match self.op {
            Op::Read => Access::Read,
            Op::List => Access::List,
            Op::Write => Access::Write,
            Op::Delete | Op::Rename | Op::Copy => return false,
        };
        let facts = Facts {
            paths: vec![self.roots.fact("path", &self.path, access)],
            ..Facts::default()
        };
        let ruling = self.desk.decide(self.case, call, spec, &facts, begin);
        ruling.outcome == Outcome::Allow && !self.case.accepts(Outcome::Allow)
    }

    /// Makes the call again and again while another thread swaps what it is about; only the checks count.
    fn race(&self, race: &Race) -> Result<Verdict> {
        let spec = self.desk.spec(self.op.tool())?;
        let (mut shown, mut reached) = (Vec::new(), 0_usize);
        let race = race.filled(self.world);
        race.run(|| {
            for _ in 0..RACE_ROUNDS {
                let ruling = self.rule(&self.call(), &spec);
                if let Some(authorized) = ruling.authorized {
                    reached += 1;
                    shown.push(self.desk.run(authorized).to_model_text());
                }
            }
        });
        let mut verdict = Verdict::new(
            Outcome::Refuse,
            format!("{reached} of {RACE_ROUNDS} calls were allowed"),
        );
        for (name, value) in &self.case.check {
            let failure = match name.as_str() {
                "never_returns_content_of" => self.secret(value).and_then(|secret| {
                    let leaks = shown.iter().filter(|text| text.contains(secret.as_str())).count();
                    (leaks > 0).then(|| format!("{leaks} of {reached} calls showed it"))
                }),
                "nothing_created_under" => self.grown(value),
                _ => {
                    verdict.unchecked.push(format!("check `{name}`"));
                    None
                }
            };
            verdict
                .failures
                .extend(failure.map(|failure| format!("{name}: {failure}")));
        }
        Ok(verdict)
    }

    /// What stands in the file that must stay as it is.
    fn kept(&self) -> Option<Vec<u8>> {
        let path = self.case.check.get("after_write_unchanged")?.as_str()?;
        std::fs::read(self.world.fill(path)).ok()
    }

    fn secret(&self, path: &Value) -> Option<String> {
        self.world.original(&self.world.fill(path.as_str()?))
    }

    /// Files below a folder that were not there before the call.
    fn grown(&self, folder: &Value) -> Option<String> {
        let folder = self.world.fill(folder.as_str()?);
        let new = self.world.new_below(folder.as_ref());
        (!new.is_empty()).then(|| format!("new: {new:?}"))
    }
}

/// What a runner's answer means: one that refuses after all, or that gives nothing, has refused.
fn told(result: &ToolResult, ruling: &Ruling) -> (Outcome, String) {
    match result {
        ToolResult::Failed {
            code: FailureCode::TooLarge | FailureCode::PermissionDenied | FailureCode::InvalidArguments,
            message,
        } => (Outcome::Refuse, message.clone()),
        ToolResult::Refused { floor, reason } => (Outcome::Refuse, format!("{floor}: {reason}")),
        ToolResult::TimedOut { after_ms } => (Outcome::Refuse, format!("timed out after {after_ms} ms")),
        ToolResult::Ok { .. }
        | ToolResult::Failed { .. }
        | ToolResult::NeedsApproval { .. }
        | ToolResult::Cancelled => (ruling.outcome, ruling.by.clone()),
    }
}
