//! Hooks of the operator's own: an external command that is asked before a tool runs, or told after it ran.
//!
//! The command gets one JSON object on its standard input and, where it is asked, answers with one on its
//! standard output: `{"decision": "allow"}` or `{"decision": "refuse", "reason": "…"}`. Anything else, a failing
//! exit code or the deadline is a refusal. It starts without a shell and with nothing of the daemon's
//! environment but `PATH`, so no credential can reach it.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tidegate_core::tool::{ToolCall, ToolResult, ToolSpec};
use tidegate_engine::hooks::{GateHook, HookDecision, HookFault, Hooks, ObserverHook};
use tidegate_gate::ToolContext;
use tidegate_io::process::{self, Exit, Program};

/// Bytes of a decision that are read; a longer one is no decision.
const DECISION_BYTES_MAX: usize = 16 * 1024;

/// Bytes of a call that are handed to a hook. A gate cannot judge a longer one and so refuses it.
const CALL_BYTES_MAX: usize = 4 << 20;

/// Characters of a hook's reason that reach the model.
const REASON_CHARS_MAX: usize = 500;

/// When a hook is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Before a tool: it decides.
    #[default]
    BeforeTool,
    /// After a tool: it takes note.
    AfterTool,
}

/// One `[[hooks]]` in `tidegate.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Its name in logs and refusals.
    pub name: String,
    /// When it runs.
    pub when: When,
    /// The tools it is about; empty means every tool.
    pub tools: Vec<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How long it may take.
    pub timeout_ms: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: String::new(),
            when: When::BeforeTool,
            tools: Vec::new(),
            command: Vec::new(),
            timeout_ms: 2_000,
        }
    }
}

impl Options {
    /// What is wrong with it: the key and a sentence.
    pub fn faults(&self) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        if self.name.trim().is_empty() {
            faults.push((
                "name",
                "a hook needs a name, for the logs and for refusals".to_owned(),
            ));
        }
        if self
            .command
            .first()
            .is_none_or(|program| program.trim().is_empty())
        {
            faults.push((
                "command",
                "a hook needs a command, such as `command = [\"/usr/local/bin/check-write\"]`".to_owned(),
            ));
        }
        if self.timeout_ms == 0 {
            faults.push(("timeout_ms", "must be at least 1".to_owned()));
        }
        faults
    }
}

/// Builds the hooks, in the order of the file. `path` is the `PATH` in which commands are found, `folder` where
/// they run.
pub fn build(options: &[Options], folder: &Path, path: Option<&str>) -> Hooks {
    let mut hooks = Hooks::default();
    for options in options {
        let command = Arc::new(Command {
            name: options.name.clone(),
            tools: options.tools.iter().cloned().collect(),
            argv: options.command.clone(),
            timeout_ms: options.timeout_ms,
            folder: folder.to_owned(),
            path: path.unwrap_or("/usr/local/bin:/usr/bin:/bin").to_owned(),
        });
        match options.when {
            When::BeforeTool => hooks.gates.push(command),
            When::AfterTool => hooks.observers.push(command),
        }
    }
    hooks
}

/// An external command as a hook.
#[derive(Debug)]
struct Command {
    name: String,
    tools: BTreeSet<String>,
    argv: Vec<String>,
    timeout_ms: u64,
    folder: PathBuf,
    path: String,
}

/// What a command answers.
#[derive(Debug, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
enum Answer {
    Allow,
    Refuse {
        #[serde(default)]
        reason: String,
    },
}

impl Command {
    fn is_about(&self, call: &ToolCall) -> bool {
        self.tools.is_empty() || self.tools.contains(&call.name)
    }

    /// Runs the command with `input`; its standard output where it reported success.
    async fn run(&self, input: &Value) -> Result<Vec<u8>, HookFault> {
        let Some((program, arguments)) = self.argv.split_first() else {
            return Err(HookFault("the hook has no command".into()));
        };
        let stdin = input.to_string().into_bytes();
        if stdin.len() > CALL_BYTES_MAX {
            return Err(HookFault(format!(
                "the call is larger than the {CALL_BYTES_MAX} bytes a hook is given"
            )));
        }
        let finished = process::run(Program {
            program: PathBuf::from(program),
            arguments: arguments.iter().map(OsString::from).collect(),
            folder: self.folder.clone(),
            environment: vec![("PATH".into(), self.path.clone().into())],
            stdin: Some(stdin),
            output_bytes_max: DECISION_BYTES_MAX,
            timeout: Duration::from_millis(self.timeout_ms),
        })
        .await
        .map_err(|error| HookFault(error.to_string()))?;
        match finished.exit {
            Exit::Code(0) if !finished.stdout.is_cut => Ok(finished.stdout.bytes),
            Exit::Code(0) => Err(HookFault(format!(
                "the hook wrote more than {DECISION_BYTES_MAX} bytes"
            ))),
            Exit::Code(code) => Err(HookFault(format!("the hook ended with exit code {code}"))),
            Exit::Signal(signal) => Err(HookFault(format!("the hook was ended by signal {signal}"))),
        }
    }
}

/// What a hook is told of a call. Nothing of the key but its public id.
fn describe(event: &str, call: &ToolCall, spec: &ToolSpec, context: &ToolContext) -> Value {
    json!({
        "event": event,
        "tool": call.name,
        "mode": spec.mode.name(),
        "effect": spec.effect.name(),
        "call_id": call.id.as_str(),
        "arguments": call.arguments.object(),
        "run_id": context.run_id.as_str(),
        "key_id": context.caller.key_id.as_str(),
        "user": context.caller.user.as_str(),
    })
}

#[async_trait]
impl GateHook for Command {
    fn name(&self) -> &str {
        &self.name
    }

    fn timeout_ms(&self) -> u64 {
        self.timeout_ms
    }

    async fn before_tool(
        &self,
        call: &ToolCall,
        spec: &ToolSpec,
        context: &ToolContext,
    ) -> Result<HookDecision, HookFault> {
        if !self.is_about(call) {
            return Ok(HookDecision::Pass);
        }
        let output = self.run(&describe("before_tool", call, spec, context)).await?;
        match serde_json::from_slice(&output) {
            Ok(Answer::Allow) => Ok(HookDecision::Pass),
            Ok(Answer::Refuse { reason }) if reason.trim().is_empty() => Ok(HookDecision::Refuse(format!(
                "the operator's check `{}` refuses this.",
                self.name
            ))),
            Ok(Answer::Refuse { reason }) => Ok(HookDecision::Refuse(
                reason.trim().chars().take(REASON_CHARS_MAX).collect(),
            )),
            Err(_) => Err(HookFault(
                "the hook's answer is no decision; write {\"decision\":\"allow\"} or \
                 {\"decision\":\"refuse\",\"reason\":\"…\"} to standard output"
                    .into(),
            )),
        }
    }
}

#[async_trait]
impl ObserverHook for Command {
    fn name(&self) -> &str {
        &self.name
    }

    fn timeout_ms(&self) -> u64 {
        self.timeout_ms
    }

    async fn after_tool(
        &self,
        call: &ToolCall,
        spec: &ToolSpec,
        result: &ToolResult,
        context: &ToolContext,
    ) -> Result<(), HookFault> {
        if !self.is_about(call) {
            return Ok(());
        }
        let mut input = describe("after_tool", call, spec, context);
        if let Some(map) = input.as_object_mut() {
            map.insert("status".into(), result.status().into());
            map.insert("output_bytes".into(), result.to_model_text().len().into());
        }
        self.run(&input).await.map(drop)
    }
}

#[cfg(test)]
mod tests;
