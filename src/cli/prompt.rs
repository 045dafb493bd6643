//! `tidegate prompt`: what a request's system prompt would be made of, and why. Never its text.

use std::path::Path;

use serde_json::{Value, json};
use tidegate_core::{
    caller::{Caller, Mode, Origin, Scope},
    id::{KeyId, RequestId, UserId},
    key::Disconnect,
    message::Message,
    model::{Sampling, ToolChoice},
};
use tidegate_engine::{
    Lease, RunRequest,
    prompt::Prompt,
    routing::{Decision, Tier},
};

use super::{
    args,
    error::Error,
    output::{self, Out},
};
use crate::{
    app::{self, App, Purpose},
    clock::OsEntropy,
    config::{Environment, Settings},
    lifecycle::Lifecycle,
};

/// The key in whose name this looks where none is named: it exists nowhere else.
const KEY: &str = "cli";

/// Composes the prompt of one message, as the daemon would now.
pub async fn run(
    settings: Settings,
    environment: &Environment,
    command: &args::Prompt,
    out: Out<'_>,
) -> Result<(), Error> {
    let request = request(command)?;
    let lifecycle = Lifecycle::new();
    let outcome = explain(settings, environment, request, &lifecycle).await;
    lifecycle.close().await;
    let (prompt, decision, home) = outcome?;
    let parts: Vec<Value> = prompt
        .parts
        .iter()
        .enumerate()
        .map(|(at, part)| {
            json!({
                "order": at + 1,
                "name": part.name,
                "source": part.source_file.as_deref().map(|path| below(path, &home)),
                "hash": part.hash,
                "tokens": part.tokens_estimate,
                "why": part.why,
            })
        })
        .collect();
    let routing = json!({
        "about_agent": decision.about_agent,
        "tier": decision.tier,
        "rule": decision.rule,
        "excluded_by": decision.excluded_by,
        "score": decision.score(),
        "threshold": decision.threshold,
        "near_miss": decision.near_miss,
    });
    if command.output.json {
        let tokens: usize = prompt.parts.iter().map(|part| part.tokens_estimate).sum();
        let skill = prompt.skill.as_ref().map(|skill| skill.name.as_str());
        let value = json!({"parts": parts, "tokens": tokens, "skill": skill, "routing": routing});
        return Ok(output::json(out, &value)?);
    }
    print(&prompt, &decision, &parts, out)
}

fn print(prompt: &Prompt, decision: &Decision, parts: &[Value], out: Out<'_>) -> Result<(), Error> {
    let cell = |part: &Value, name: &str| match part.get(name) {
        Some(Value::String(text)) => output::plain(text),
        Some(Value::Null) | None => "-".to_owned(),
        Some(value @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_))) => {
            value.to_string()
        }
    };
    let names = ["order", "name", "source", "hash", "tokens", "why"];
    let rows: Vec<Vec<String>> = parts
        .iter()
        .map(|part| names.iter().map(|name| cell(part, name)).collect())
        .collect();
    output::columns(
        &mut *out,
        &["#", "PART", "SOURCE", "HASH", "TOKENS", "WHY"],
        &rows,
    )?;
    let tokens: usize = prompt.parts.iter().map(|part| part.tokens_estimate).sum();
    writeln!(out, "\nabout {tokens} tokens in all")?;
    match &prompt.skill {
        Some(skill) => {
            let keywords = output::plain(&skill.keywords.join(", "));
            writeln!(
                out,
                "skill: {} (score {}, matched {keywords})",
                output::plain(&skill.name),
                skill.score
            )?;
        }
        None => writeln!(out, "skill: none matches")?,
    }
    let tier = match decision.tier {
        Tier::Pattern => "pattern",
        Tier::Embedding => "embedding",
        Tier::None => "no",
    };
    let rule = decision.rule.as_deref().map(output::plain);
    match (decision.about_agent, rule, &decision.excluded_by) {
        (true, rule, _) => {
            let rule = rule.unwrap_or_default();
            writeln!(
                out,
                "routing: about the agent itself ({tier} tier, {rule}): no tools are offered"
            )?;
        }
        (false, Some(rule), Some(word)) if decision.tier == Tier::Pattern => {
            writeln!(
                out,
                "routing: an ordinary question; `{rule}` matched, but `{}` speaks against it",
                output::plain(word)
            )?;
        }
        (false, Some(_) | None, _) => writeln!(out, "routing: an ordinary question")?,
    }
    Ok(())
}

async fn explain(
    settings: Settings,
    environment: &Environment,
    request: RunRequest,
    lifecycle: &Lifecycle,
) -> Result<(Prompt, Decision, std::path::PathBuf), Error> {
    let home = settings.home.clone();
    let app = Box::pin(App::build(settings, environment, lifecycle, Purpose::Look)).await?;
    // A daemon has done so long before the first question.
    app.routing().prepare().await;
    let (prompt, decision) = app
        .engine()
        .explain(request)
        .await
        .map_err(|error| app::Error::Part(error.to_string()))?;
    Ok((prompt, decision, home))
}

fn request(command: &args::Prompt) -> Result<RunRequest, Error> {
    let key_id = KeyId::new(command.key.as_deref().unwrap_or(KEY));
    let user =
        UserId::of(&key_id, command.user.as_deref()).map_err(|fault| Error::Usage(fault.to_string()))?;
    Ok(RunRequest {
        caller: Caller {
            key_id,
            user,
            scopes: [Scope::Chat, Scope::Tools].into(),
            mode_ceiling: Mode::ReadOnly,
            models: None,
            tools: None,
            tokens_per_day: None,
        },
        origin: Origin::Terminal,
        request_id: RequestId::generate(&OsEntropy),
        model: tidegate_llm::DEFAULT_ALIAS.to_owned(),
        messages: vec![Message::human(&command.message)],
        client_tools: Vec::new(),
        tool_choice: ToolChoice::Auto,
        parallel_tool_calls: true,
        sampling: Sampling::default(),
        response_format: None,
        stream: false,
        mode: None,
        conversation: None,
        on_disconnect: Disconnect::Cancel,
        lease: Lease::default(),
        approver: None,
    })
}

/// A path as people know it: below home where it is.
fn below(path: &Path, home: &Path) -> String {
    path.strip_prefix(home).unwrap_or(path).display().to_string()
}
