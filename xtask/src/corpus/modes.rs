//! Modes, questions and answers over time, put to a daemon of the line's own with a scripted model behind it.
//!
//! A `call` is a turn in which the model makes that call; `grant` and `deny` are an operator's answers over the
//! approvals API. All turns of a line belong to one conversation of one key.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_testkit::{Reply, Upstream};
use tokio::runtime::Runtime;

use super::case::{Case, Outcome};
use super::{Judged, Verdict};
use crate::daemon::{Daemon, Start};
use crate::http;

/// The configuration that is understood.
const CONFIG: [&str; 4] = ["attendance", "denial_breaker_threshold", "grant", "mode"];
/// Steps about surfaces that the product does not have yet.
const ABSENT: [(&str, &str); 5] = [
    ("subagent", "sub-agents"),
    ("present_plan", "plans"),
    ("operator", "plans"),
    ("mcp", "MCP"),
    ("browser", "browser"),
];
/// What every turn asks; one text, so that all turns are one conversation.
const QUESTION: &str = "please go on";
/// How long one turn may take.
const TURN_TIMEOUT: Duration = Duration::from_mins(1);
/// How long an approval can be answered where a line waits for its end, and a little more.
const APPROVAL_S: u64 = 1;
const PAST_APPROVAL: Duration = Duration::from_millis(1_300);

/// The scripted model of all lines.
pub(super) struct Modes {
    runtime: Runtime,
    upstream: Upstream,
}

/// One line's daemon.
struct Stage<'m> {
    modes: &'m Modes,
    start: Start,
    /// `None` where the daemon refuses to start: then nothing runs.
    daemon: Option<Daemon>,
    /// The key that asks, and its id.
    asker: String,
    asker_id: String,
    mode: String,
    /// What the model and the tools have said before.
    said: Vec<Value>,
    /// The newest approval of each call.
    approvals: BTreeMap<String, String>,
    _folder: TempDir,
}

/// What came of a call, and why.
type Outcomes = (Outcome, String);

impl Modes {
    pub(super) fn new() -> Result<Self> {
        let runtime = Runtime::new()?;
        let upstream = runtime.block_on(Upstream::start())?;
        Ok(Self { runtime, upstream })
    }

    pub(super) fn judge(&mut self, case: &Case) -> Result<Judged> {
        let Some(steps) = case.input["steps"].as_array() else {
            return Ok(Judged::Unknown("there are no steps".to_owned()));
        };
        for step in steps.iter().filter_map(Value::as_object) {
            if let Some((_, surface)) = ABSENT.iter().find(|(name, _)| step.contains_key(*name)) {
                return Ok(Judged::Absent((*surface).to_owned()));
            }
        }
        let mut stage = Stage::new(self, case, steps)?;
        let calls = steps.iter().filter(|step| step.get("call").is_some()).count();
        let mut verdict = Verdict::new(Outcome::Refuse, "there is no call");
        let mut made = 0;
        for (number, step) in steps.iter().enumerate() {
            match stage.step(step)? {
                Step::Done => {}
                Step::Unknown(name) => return Ok(Judged::Unknown(format!("the step `{name}` is not known"))),
                Step::Called(outcome, by) => {
                    made += 1;
                    let expected = step["expect"].as_str().unwrap_or_default();
                    if made == calls {
                        (verdict.outcome, verdict.by) = (outcome, by);
                    } else if !is_right(expected, outcome) {
                        let failure = format!(
                            "step {}: {} instead of {expected} [{by}]",
                            number + 1,
                            outcome.name()
                        );
                        verdict.failures.push(failure);
                    }
                }
            }
        }
        verdict.unchecked = case.unknown_config(&CONFIG);
        Ok(Judged::Done(verdict))
    }
}

/// Whether a call before the last came out as the line says; to refuse where one would ask is safe.
fn is_right(expected: &str, outcome: Outcome) -> bool {
    match outcome {
        Outcome::Allow | Outcome::Transform => expected == "allow",
        Outcome::Ask => expected == "ask",
        Outcome::Refuse => expected == "refuse" || expected == "ask",
    }
}

enum Step {
    Done,
    Called(Outcome, String),
    Unknown(String),
}

impl<'m> Stage<'m> {
    fn new(modes: &'m Modes, case: &Case, steps: &[Value]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let has = |name: &str| steps.iter().find_map(|step| step.get(name));
        let configured = has("start_mode").and_then(Value::as_str);
        let mode = case
            .config
            .get("mode")
            .and_then(Value::as_str)
            .unwrap_or("readonly");
        let mut start = Start::new(folder.path().join("home"), modes.upstream.base_url(), "scripted");
        // The key's ceiling is the operator's switch; where a start value is in question, that alone decides.
        let configured = Value::from(configured.unwrap_or("full-auto"));
        let mut settings = vec![
            "[engine]".to_owned(),
            format!("default_permission_mode = {configured}"),
        ];
        if let Some(threshold) = case
            .config
            .get("denial_breaker_threshold")
            .and_then(Value::as_u64)
        {
            settings.push(format!("denials_max = {threshold}"));
        }
        if let Some(attendance) = case.config.get("attendance").and_then(Value::as_str) {
            settings.push(format!("attendance = \"{attendance}\""));
        }
        if has("wait_past_approval_timeout").is_some() {
            settings.push(format!("approval_s = {APPROVAL_S}"));
        }
        start.settings = settings.join("\n") + "\n";
        let mut stage = Self {
            modes,
            start,
            daemon: None,
            asker: String::new(),
            asker_id: String::new(),
            mode: if has("start_mode").is_some() {
                "full-auto"
            } else {
                mode
            }
            .to_owned(),
            said: Vec::new(),
            approvals: BTreeMap::new(),
            _folder: folder,
        };
        stage.launch();
        stage.make_asker()?;
        Ok(stage)
    }

    fn launch(&mut self) {
        self.daemon = Daemon::start(&self.start).ok();
    }

    fn make_asker(&mut self) -> Result<()> {
        let policy = json!({"name": "asker", "scopes": ["chat", "tools"], "mode_ceiling": self.mode});
        let Some(made) = self.operator("POST", "/v1/admin/keys", &policy)? else {
            return Ok(());
        };
        let text = |name: &str| made[name].as_str().unwrap_or_default().to_owned();
        (self.asker, self.asker_id) = (text("value"), text("id"));
        Ok(())
    }

    /// One request of the operator's; the answer, where there is a daemon and it serves it.
    fn operator(&self, method: &str, path: &str, body: &Value) -> Result<Option<Value>> {
        let Some(daemon) = &self.daemon else {
            return Ok(None);
        };
        let answer = daemon.call(method, path, body)?;
        Ok((answer.status < 300).then(|| answer.json()))
    }

    fn step(&mut self, step: &Value) -> Result<Step> {
        let Some((name, value)) = step
            .as_object()
            .and_then(|step| step.iter().find(|(name, _)| *name != "expect"))
        else {
            return Ok(Step::Unknown(step.to_string()));
        };
        match name.as_str() {
            "call" => {
                let (outcome, by) = self.call(value)?;
                return Ok(Step::Called(outcome, by));
            }
            "grant" => self.answer(value, "approve")?,
            "deny" => self.answer(value, "deny")?,
            "approve_id" => {
                let id = value.as_str().unwrap_or_default();
                self.decide(id, "approve")?;
            }
            "approve_without_token" => self.decide_as(None)?,
            "approve_as" => {
                let other = self.other_key()?;
                self.decide_as(other.as_deref())?;
            }
            "tool_output" => self.tool_output(value)?,
            "remember" => return self.remember(value),
            "model_says" => self.said.push(json!({"role": "assistant", "content": value})),
            "user_says" => self.said.push(json!({"role": "user", "content": value})),
            "set_mode" => {
                let mode = value.as_str().unwrap_or_default();
                let path = format!("/v1/admin/keys/{}", self.asker_id);
                self.operator("PATCH", &path, &json!({"mode_ceiling": mode}))?;
            }
            // Read when the daemon was started.
            "start_mode" => {}
            "restart" => self.restart(None)?,
            "corrupt_permission_store" => self.restart(Some("data/tidegate.db"))?,
            "wait_past_approval_timeout" => std::thread::sleep(PAST_APPROVAL),
            other => return Ok(Step::Unknown(other.to_owned())),
        }
        Ok(Step::Done)
    }

    /// One turn in which the model makes this call.
    fn call(&mut self, call: &Value) -> Result<Outcomes> {
        let (tool, arguments) = named(call);
        let Some(text) = self.turn(&tool, &arguments)? else {
            return Ok((
                Outcome::Refuse,
                "nothing runs: the daemon does not start".to_owned(),
            ));
        };
        let outcome = if text.starts_with("Not run (needs_approval)") {
            Outcome::Ask
        } else if text.starts_with("Refused (")
            || text.starts_with("Error (permission_denied)")
            || text.starts_with("Error (unknown_tool)")
            || text.starts_with("Error (internal)")
            || text.is_empty()
        {
            Outcome::Refuse
        } else {
            Outcome::Allow
        };
        let id = text
            .split_once("approval `")
            .and_then(|(_, rest)| rest.split_once('`'));
        if let Some((id, _)) = id {
            self.approvals.insert(signature(call), id.to_owned());
        }
        Ok((outcome, text.chars().take(160).collect()))
    }

    /// What the tool told the model; `None` without a daemon, empty where the call was not even answered.
    fn turn(&self, tool: &str, arguments: &Value) -> Result<Option<String>> {
        let Some(daemon) = &self.daemon else {
            return Ok(None);
        };
        let upstream = &self.modes.upstream;
        let _runtime = self.modes.runtime.enter();
        upstream.push(Reply::text("").call("call_1", tool, arguments.clone()));
        upstream.push(Reply::text("done"));
        let mut messages = vec![json!({"role": "user", "content": QUESTION})];
        messages.extend(self.said.iter().cloned());
        if messages.last().is_some_and(|last| last["role"] != "user") {
            messages.push(json!({"role": "user", "content": QUESTION}));
        }
        let before = upstream.chats().len();
        let body = json!({"model": "tidegate", "messages": messages});
        let path = "/v1/chat/completions";
        let answer = http::call(
            daemon.address,
            "POST",
            path,
            Some(&self.asker),
            &body,
            TURN_TIMEOUT,
        )?;
        let chats = upstream.chats();
        if chats.len() < before + 2 {
            // The second reply waits for nobody.
            upstream.always(Reply::text("done"));
            anyhow::ensure!(
                chats.len() > before,
                "the model was not asked: {} {}",
                answer.status,
                answer.text()
            );
        }
        let messages = chats
            .last()
            .map(|chat| chat["messages"].clone())
            .unwrap_or_default();
        let results = messages.as_array().into_iter().flatten().rev();
        let result = results
            .filter(|message| message["role"] == "tool")
            .find_map(|message| message["content"].as_str());
        Ok(Some(result.unwrap_or_default().to_owned()))
    }

    /// The operator answers the question about a call; the newest there is, in whatever state.
    fn answer(&self, call: &Value, decision: &str) -> Result<()> {
        match self.approvals.get(&signature(call)) {
            Some(id) => self.decide(id, decision),
            None => self.decide("appr_of_nothing", decision),
        }
    }

    fn decide(&self, id: &str, decision: &str) -> Result<()> {
        let path = format!("/v1/approvals/{id}/decision");
        self.operator("POST", &path, &json!({"decision": decision}))?;
        Ok(())
    }

    /// Somebody else says yes to everything that waits.
    fn decide_as(&self, key: Option<&str>) -> Result<()> {
        let Some(daemon) = &self.daemon else {
            return Ok(());
        };
        for id in self.approvals.values() {
            let path = format!("/v1/approvals/{id}/decision");
            let body = json!({"decision": "approve"});
            http::call(daemon.address, "POST", &path, key, &body, TURN_TIMEOUT)?;
        }
        Ok(())
    }

    fn other_key(&self) -> Result<Option<String>> {
        let scopes = ["chat", "tools", "approvals:read", "approvals:decide:own"];
        let policy = json!({"name": "other", "scopes": scopes, "mode_ceiling": "full-auto"});
        let made = self.operator("POST", "/v1/admin/keys", &policy)?;
        Ok(made.and_then(|made| made["value"].as_str().map(str::to_owned)))
    }

    /// A tool that shows a text which claims to be the operator's.
    fn tool_output(&self, text: &Value) -> Result<()> {
        let file = self.start.home.join("knowledge-bank/said.md");
        std::fs::write(file, text.as_str().unwrap_or_default())?;
        self.turn("read_text", &json!({"path": "said.md"}))?;
        Ok(())
    }

    /// Something is remembered of the person who asks: they say so in a turn of the same conversation, and enter it by
    /// hand. Whether it is kept is memory's to say; what is looked at is that the calls behind it are judged as before.
    fn remember(&mut self, what: &Value) -> Result<Step> {
        let told = ["text", "fact", "value", "quote"]
            .iter()
            .find_map(|name| what[*name].as_str());
        let Some(text) = what.as_str().or(told) else {
            return Ok(Step::Unknown("remember".to_owned()));
        };
        let Some(daemon) = &self.daemon else {
            return Ok(Step::Done);
        };
        let asks = |method: &str, path: &str, body: &Value| {
            http::call(
                daemon.address,
                method,
                path,
                Some(&self.asker),
                body,
                TURN_TIMEOUT,
            )
        };
        let said = json!({"role": "user", "content": format!("Please remember that {text}")});
        let reply = json!({"role": "assistant", "content": "Noted."});
        let mut messages = vec![json!({"role": "user", "content": QUESTION})];
        messages.extend(self.said.iter().chain([&said]).cloned());
        {
            let _runtime = self.modes.runtime.enter();
            self.modes.upstream.push(Reply::text("Noted."));
        }
        let body = json!({"model": "tidegate", "messages": messages});
        let answer = asks("POST", "/v1/chat/completions", &body)?;
        anyhow::ensure!(
            answer.status == 200,
            "the turn failed: {} {}",
            answer.status,
            answer.text()
        );
        let kind = what["kind"].as_str().unwrap_or("preference");
        asks("POST", "/v1/memory/facts", &json!({"kind": kind, "value": text}))?;
        self.said.extend([said, reply]);
        Ok(Step::Done)
    }

    /// Ends the daemon and starts it again; a file of its home is damaged in between.
    fn restart(&mut self, damaged: Option<&str>) -> Result<()> {
        if let Some(daemon) = self.daemon.take() {
            daemon.kill();
        }
        if let Some(name) = damaged {
            let path = self.start.home.join(name);
            let length = path.metadata().context("there is nothing to damage")?.len();
            let length = usize::try_from(length).unwrap_or_default().max(4096);
            for ending in ["-wal", "-shm"] {
                let mut beside = path.as_os_str().to_owned();
                beside.push(ending);
                drop(std::fs::remove_file(beside));
            }
            std::fs::write(&path, b"allow=all\n".repeat(length / 10 + 1))?;
        }
        self.launch();
        Ok(())
    }
}

/// The tool and the arguments of a call in a corpus's words.
fn named(call: &Value) -> (String, Value) {
    let tool = match call["tool"].as_str().unwrap_or_default() {
        "shell" => "execute_shell",
        tool => tool,
    };
    let mut arguments = call.clone();
    if let Some(arguments) = arguments.as_object_mut() {
        arguments.remove("tool");
    }
    (tool.to_owned(), arguments)
}

/// What a call is known by in a line.
fn signature(call: &Value) -> String {
    let (tool, arguments) = named(call);
    format!("{tool} {arguments}")
}
