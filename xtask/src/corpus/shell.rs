//! Command lines, judged as a call of `execute_shell` in the corpus's world. Nothing is run.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Map, Value};
use tempfile::TempDir;
use tidegate_gate::{Access, ZoneEntries, Zones, shell::Place};
use tidegate_io::files::{OperandKind, View, resolve_operand};

use super::case::{Case, text};
use super::desk::{self, CONFIG, Desk, Surroundings};
use super::{Judged, Verdict};
use crate::process;

/// The tool that runs command lines.
const TOOL: &str = "execute_shell";

/// The world, and a desk for each configuration met so far.
pub(super) struct Shell {
    folder: TempDir,
    working_folder: String,
    home: String,
    desks: HashMap<String, Desk>,
}

impl Shell {
    /// Builds the world of a fixture below a folder of its own, which stands for `/`.
    pub(super) fn new(fixture: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(fixture)
            .with_context(|| format!("cannot read the fixture {}", fixture.display()))?;
        let fixture: Value = serde_json::from_str(&text)?;
        let named = |name: &str, otherwise: &str| fixture[name].as_str().unwrap_or(otherwise).to_owned();
        let world = Self {
            folder: tempfile::tempdir()?,
            working_folder: named("cwd", "/w/proj"),
            home: named("home", "/w/home"),
            desks: HashMap::new(),
        };
        std::fs::create_dir_all(world.inside(&world.working_folder))?;
        std::fs::create_dir_all(world.inside(&world.home))?;
        for (path, content) in fixture["files"].as_object().into_iter().flatten() {
            put(&world.inside(path), path.ends_with('/'), content).with_context(|| path.clone())?;
        }
        repository(
            &world.inside(&world.working_folder),
            &world.inside("/w/remote.git"),
        );
        Ok(world)
    }

    pub(super) fn judge(&mut self, case: &Case) -> Judged {
        let Some(command) = text(&case.input) else {
            return Judged::Unknown("the command is no text".to_owned());
        };
        match self.rule(case, &command) {
            Ok(verdict) => Judged::Done(verdict),
            Err(problem) => Judged::Unknown(format!("{problem:#}")),
        }
    }

    fn rule(&mut self, case: &Case, command: &str) -> Result<Verdict> {
        let desk = self.desk(case)?;
        let spec = desk.spec(TOOL)?;
        let arguments = Map::from_iter([("command".to_owned(), Value::from(command))]);
        let call = desk::call(TOOL, arguments);
        // A line that the tool itself does not take is refused before the gate is asked.
        if let Err(result) = desk.check(&call, &spec) {
            let by = result.to_model_text();
            return Ok(Verdict::new(super::Outcome::Refuse, by));
        }
        let mut ruling = desk.rule(case, &call, &spec);
        if ruling.took > super::REFUSAL_MAX {
            // Other work of the machine is no fault of the gate's.
            ruling.took = ruling.took.min(desk.rule(case, &call, &spec).took);
        }
        Ok(Verdict {
            took: Some(ruling.took),
            unchecked: case.unknown_config(&CONFIG),
            ..Verdict::new(ruling.outcome, ruling.by)
        })
    }

    fn desk(&mut self, case: &Case) -> Result<&Desk> {
        let mut config = case.config.clone();
        for name in ["mode", "grant", "unattended"] {
            config.remove(name);
        }
        let name = Value::Object(config).to_string();
        if !self.desks.contains_key(&name) {
            let desk = self.open(case)?;
            self.desks.insert(name.clone(), desk);
        }
        self.desks.get(&name).context("it was made just now")
    }

    fn open(&self, case: &Case) -> Result<Desk> {
        let view = View::open(self.folder.path())?;
        let list = |name: &str| -> Vec<PathBuf> { case.list(name).into_iter().map(PathBuf::from).collect() };
        let [allowed, read, blocked, no_prompt, prompt] = [
            "allowed_paths",
            "read_paths",
            "blocked_paths",
            "no_prompt_paths",
            "prompt_paths",
        ]
        .map(list);
        let (allowed_sensitive, own) = (list("allowed_sensitive_files"), list("own_paths"));
        let entries = ZoneEntries {
            allowed: &allowed,
            read: &read,
            blocked: &blocked,
            no_prompt: &no_prompt,
            prompt: &prompt,
            allowed_sensitive: &allowed_sensitive,
            own: &own,
        };
        let zones = Zones::of(Path::new(&self.working_folder), &entries, |path| {
            real(path, &view)
        });
        let around = Surroundings {
            bank: self.inside(&self.working_folder),
            zones,
            place: Place::new(self.working_folder.clone(), self.home.clone()),
            view: view.clone(),
        };
        Desk::new(case, around)
    }

    /// Where a path of the world really lies.
    fn inside(&self, path: &str) -> PathBuf {
        let below = Path::new(path).components().filter_map(|part| match part {
            std::path::Component::Normal(name) => Some(name),
            std::path::Component::Prefix(_)
            | std::path::Component::RootDir
            | std::path::Component::CurDir
            | std::path::Component::ParentDir => None,
        });
        self.folder.path().join(below.collect::<PathBuf>())
    }
}

/// Where a path of the world leads, as far as it exists.
fn real(path: &Path, view: &View) -> PathBuf {
    let facts = resolve_operand(&path.to_string_lossy(), Access::Read, OperandKind::Literal, view);
    let resolved = facts.into_iter().find_map(|fact| fact.resolution.ok());
    resolved.map_or_else(|| path.to_owned(), |resolved| resolved.real)
}

fn put(path: &Path, is_folder: bool, content: &Value) -> Result<()> {
    if is_folder {
        return Ok(std::fs::create_dir_all(path)?);
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    if let Some(target) = content["symlink"].as_str() {
        return Ok(std::os::unix::fs::symlink(target, path)?);
    }
    // What is no text is told apart by being there alone.
    Ok(std::fs::write(path, content.as_str().unwrap_or("\u{1}\u{2}"))?)
}

/// Makes the working folder a repository with one remote, where there is a git to do it with. No verdict depends
/// on it; the files of a repository are there to be named.
fn repository(folder: &Path, remote: &Path) {
    let run = |folder: &Path, arguments: &[&str]| {
        let mut command = process::program("git");
        command.current_dir(folder).args(arguments);
        process::output(&mut command)
    };
    if std::fs::create_dir_all(remote).is_err() || run(remote, &["init", "-q", "--bare"]).is_err() {
        return;
    }
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
    let commit = [&identity[..], &["commit", "-q", "-m", "first"]].concat();
    let steps: [&[&str]; 7] = [
        &["init", "-q", "-b", "main"],
        &["add", "README.md"],
        &commit,
        &["branch", "feature"],
        &["branch", "old"],
        &["branch", "x"],
        &["remote", "add", "origin", "../remote.git"],
    ];
    for arguments in steps {
        // A step that fails leaves out what it would have made.
        drop(run(folder, arguments));
    }
}
