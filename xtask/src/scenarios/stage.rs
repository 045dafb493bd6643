//! Where a scenario is played: a daemon in a folder of its own, whose clock the player turns and whose models the player
//! is.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_core::clock::Timestamp;
use tidegate_testkit::Upstream;
use tokio::runtime::Handle;

use super::api::{self, Who};
use super::form::{Chat, Passage};
use super::script::{self, Script, Shared};
use crate::daemon::{Daemon, Start};

/// How long what happens in the background may take.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(4);
/// From when on a turn that waits is given more time by the clock: an attempt that failed is made again later.
const CLOCK_HELPS_AFTER: Duration = Duration::from_millis(300);
/// By how much at a time, in seconds.
const CLOCK_STEP_S: i64 = 60;
/// The variable that the daemon takes its clock from.
pub(crate) const CLOCK_VARIABLE: &str = "TIDEGATE_TESTING_CLOCK";
/// What every daemon is told, whatever the scenario. Its days are those of the scenarios, and a model that answers
/// nonsense is asked once more, soon.
const SETTINGS: &str = "time_zone = \"UTC\"\n\n[memory]\nextractor = \"model\"\nmodel = \"scripted\"\nattempts_max = 2\nretry_initial_delay_ms = 1\nretry_delay_max_ms = 10\n";

/// A daemon to play on.
pub(super) struct Stage {
    folder: TempDir,
    start: Start,
    daemon: Option<Daemon>,
    upstream: Upstream,
    runtime: Handle,
    script: Shared,
    now: Timestamp,
    restarts: usize,
    /// Files of the knowledge bank, by their paths in it.
    placed: Vec<String>,
    /// What went otherwise than a scenario says, without being a failure.
    pub(super) notes: Vec<String>,
}

/// What every stage has.
#[derive(Debug, Clone)]
pub(super) struct House {
    /// Where the models run.
    pub(super) runtime: Handle,
    /// The program.
    pub(super) binary: PathBuf,
    /// The first key; one for all, since making one takes as long as a scenario.
    pub(super) key: String,
}

/// What a stage is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan<'p> {
    /// The table of kinds.
    pub(super) kinds: &'p str,
    /// The instant at which it begins.
    pub(super) begin: Timestamp,
    /// Whether the rules look for facts, instead of the model.
    pub(super) by_rules: bool,
}

impl Stage {
    /// Starts a daemon.
    pub(super) fn open(house: &House, plan: &Plan<'_>) -> Result<Self> {
        let folder = TempDir::new()?;
        let home = folder.path().join("home");
        fs::create_dir_all(&home)?;
        fs::write(home.join("memory-kinds.toml"), plan.kinds)?;
        fs::write(home.join("key"), &house.key)?;
        let upstream = house.runtime.block_on(Upstream::start())?;
        let script = Shared::default();
        let model = std::sync::Arc::clone(&script);
        upstream.record(false);
        upstream.set_models(Some(vec![script::MODEL.to_owned()]));
        upstream.respond_with(move |body| script::reply(&model, body));
        let mut start = Start::new(home, upstream.base_url(), script::MODEL);
        start.binary.clone_from(&house.binary);
        start.settings = if plan.by_rules {
            SETTINGS.replace("\"model\"", "\"rules\"")
        } else {
            SETTINGS.to_owned()
        };
        let clock = folder.path().join("clock");
        start.environment = vec![(CLOCK_VARIABLE.to_owned(), clock.display().to_string())];
        let mut stage = Self {
            folder,
            start,
            daemon: None,
            upstream,
            runtime: house.runtime.clone(),
            script,
            now: plan.begin,
            restarts: 0,
            placed: Vec::new(),
            notes: Vec::new(),
        };
        stage.turn_clock(plan.begin)?;
        stage.daemon = Some(Daemon::start(&stage.start)?);
        Ok(stage)
    }

    /// The daemon.
    pub(super) fn daemon(&self) -> Result<&Daemon> {
        self.daemon.as_ref().context("the daemon does not run")
    }

    /// The folder of the daemon's files.
    pub(super) fn home(&self) -> &Path {
        &self.start.home
    }

    /// The present instant there.
    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    /// What the models have been asked.
    pub(super) fn seen<T>(&self, look: impl FnOnce(&Script) -> T) -> T {
        look(&script::locked(&self.script))
    }

    /// Sets the clock. The file is always whole: somebody may be reading it.
    pub(super) fn turn_clock(&mut self, to: Timestamp) -> Result<()> {
        let path = self.folder.path().join("clock");
        let new = self.folder.path().join("clock.new");
        fs::write(&new, to.to_string())?;
        fs::rename(new, path)?;
        self.now = to;
        Ok(())
    }

    /// Says something, hears the answer, and waits until it has been learned from.
    pub(super) fn chat(&mut self, chat: &Chat) -> Result<()> {
        ensure!(!chat.messages.is_empty(), "a chat without messages");
        let mut calls = Vec::new();
        for passage in &chat.retrieved {
            let path = self.place("passages", "md", passage)?;
            self.wait_indexed(&path)?;
            calls.push((
                "search_knowledge_base",
                json!({"query": beginning(&passage.text)}),
            ));
            calls.push(("read_document", json!({"path": path})));
        }
        for result in &chat.tool_results {
            let path = self.place("results", "txt", result)?;
            calls.push(("read_text", json!({"path": path})));
        }
        script::locked(&self.script).begin(chat, calls);
        let mut body = json!({"model": "tidegate", "messages": chat.messages});
        if let Some(user) = &chat.user {
            body["user"] = Value::String(user.clone());
        }
        let answer = self.daemon()?.call("POST", "/v1/chat/completions", &body)?;
        ensure!(
            answer.status == 200,
            "the chat was answered {}: {}",
            answer.status,
            answer.text()
        );
        self.look_for_passages(chat)?;
        self.drain(Who(chat.user.as_deref()))
    }

    /// Whether what is said to have been in view was in view.
    fn look_for_passages(&mut self, chat: &Chat) -> Result<()> {
        let (offered, returned) = self.seen(|script| (script.called, script.returned.clone()));
        let texts = chat.retrieved.iter().chain(&chat.tool_results);
        for text in texts.filter_map(|passage| longest_line(&passage.text)) {
            if !offered {
                self.notes
                    .push("the model was offered no tool in a turn with passages or results".to_owned());
            } else if !returned.contains(text) {
                bail!("a passage or result did not reach the model: {text:?} is not in {returned:?}");
            }
        }
        Ok(())
    }

    /// Puts a text where tools find it; its path in the knowledge bank.
    fn place(&mut self, folder: &str, ending: &str, passage: &Passage) -> Result<String> {
        let mut hasher = DefaultHasher::new();
        (&passage.source, &passage.text).hash(&mut hasher);
        let path = format!("{folder}/{:016x}.{ending}", hasher.finish());
        if !self.placed.contains(&path) {
            let file = self.home().join("knowledge-bank").join(&path);
            fs::create_dir_all(file.parent().context("no folder")?)?;
            fs::write(file, &passage.text)?;
            self.placed.push(path.clone());
        }
        Ok(path)
    }

    /// Whether a file of the knowledge bank can be found.
    fn is_indexed(&self, path: &str) -> Result<bool> {
        let listed = format!("/v1/admin/kb/documents?path={path}");
        let answer = self.daemon()?.call("GET", &listed, &Value::Null)?;
        ensure!(answer.status == 200, "the documents: {}", answer.text());
        Ok(answer.text().contains(path))
    }

    fn wait_indexed(&self, path: &str) -> Result<()> {
        if self.is_indexed(path)? {
            return Ok(());
        }
        self.daemon()?.call("POST", "/v1/admin/kb/index", &Value::Null)?;
        self.wait(&format!("{path} is not indexed"), |stage| stage.is_indexed(path))
    }

    /// Takes what was placed out of the knowledge bank again: it is no memory, and holds what it holds.
    pub(super) fn clear_bank(&mut self) -> Result<()> {
        for path in std::mem::take(&mut self.placed) {
            fs::remove_file(self.home().join("knowledge-bank").join(&path))?;
            self.daemon()?.call("POST", "/v1/admin/kb/index", &Value::Null)?;
            self.wait(&format!("{path} is still indexed"), |stage| {
                Ok(!stage.is_indexed(&path)?)
            })?;
        }
        Ok(())
    }

    fn wait(&self, problem: &str, mut is_done: impl FnMut(&Self) -> Result<bool>) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !is_done(self)? {
            ensure!(
                Instant::now() < deadline,
                "{problem} after {} s",
                PATIENCE.as_secs()
            );
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// Waits until nothing of a person waits to be learned from.
    pub(super) fn drain(&mut self, who: Who<'_>) -> Result<()> {
        let (begin, now) = (Instant::now(), self.now);
        loop {
            let pending = api::pending(self.daemon()?, who)?;
            if pending == 0 {
                break;
            }
            ensure!(
                begin.elapsed() < PATIENCE,
                "{pending} turns still wait to be learned from after {} s",
                PATIENCE.as_secs()
            );
            if begin.elapsed() > CLOCK_HELPS_AFTER {
                let later = self.now.as_second() + CLOCK_STEP_S;
                self.turn_clock(Timestamp::from_second(later)?)?;
            }
            std::thread::sleep(POLL);
        }
        if self.now == now {
            return Ok(());
        }
        self.turn_clock(now)
    }

    /// Ends the daemon and starts it again: killed and asked to stop by turns.
    pub(super) fn restart(&mut self) -> Result<()> {
        let daemon = self.daemon.take().context("the daemon does not run")?;
        self.restarts += 1;
        if self.restarts % 2 == 1 {
            daemon.kill();
        } else {
            ensure!(daemon.stop()?, "the daemon did not end well");
        }
        self.daemon = Some(Daemon::start(&self.start)?);
        Ok(())
    }

    /// Ends the daemon; its files stay.
    pub(super) fn stop(&mut self) -> Result<()> {
        let daemon = self.daemon.take().context("the daemon does not run")?;
        ensure!(daemon.stop()?, "the daemon did not end well");
        Ok(())
    }

    /// Files that the player has written, and that are no trace of anything.
    pub(super) fn own_files(&self) -> Vec<PathBuf> {
        [
            "tidegate.toml",
            "memory-kinds.toml",
            "key",
            "AGENT.md",
            "knowledge-bank",
        ]
        .map(|name| self.home().join(name))
        .into()
    }

    /// Ends everything.
    pub(super) fn close(mut self) {
        if let Some(daemon) = self.daemon.take() {
            daemon.kill();
        }
        self.runtime.block_on(self.upstream.stop());
    }
}

/// The first words of a text, to search for it.
fn beginning(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(12).collect();
    words.join(" ")
}

/// What of a text is looked for in what came back: parts of it may have been masked or reformatted.
fn longest_line(text: &str) -> Option<&str> {
    let plain = text.split(['\n', '<', '>', '"', '\\']).map(str::trim);
    plain
        .filter(|part| !part.is_empty())
        .max_by_key(|part| part.len())
}
