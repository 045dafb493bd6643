//! `ask_agent`: a whole run, with a notification for each step where the client wants them.

use std::time::Duration;

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResult, ContentBlock, ProgressNotificationParam, ProgressToken, Tool, ToolAnnotations},
    service::RequestContext,
};
use serde_json::{Map, Value, json};
use tidegate_core::{
    caller::{Mode, Origin},
    id::RequestId,
    message::Message,
    model::{Sampling, ToolChoice},
};
use tidegate_engine::{Finished, Run, RunError, RunEvent, RunRequest};
use tidegate_gate::Notice;

use super::{Asker, Server, tools::refused};

/// The tool's name. A tool of the operator's that has it as well is not offered here.
pub(super) const NAME: &str = "ask_agent";

/// The longest question, in characters.
const QUESTION_CHARS_MAX: usize = 200_000;
/// Bytes of an answer; what a model says beyond them is cut.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// How long a client may take for a notification before the next ones are left out.
const NOTICE_WAIT: Duration = Duration::from_secs(1);

/// The tool as clients see it.
pub(super) fn tool(server: &Server) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "question": {"type": "string", "description": "The question or task, whole: the agent knows nothing of this conversation"},
            "model": {"type": "string", "description": "The model that is to answer; leave it out for the usual one"},
        },
        "required": ["question"],
        "additionalProperties": false,
    });
    let schema = schema.as_object().cloned().unwrap_or_default();
    let may_write = server.options.allow_writes;
    let description = "Gives a question or a task to the agent behind this server, which works on it with its own \
                       instructions, tools and documents, and returns its answer.";
    Tool::new(NAME, description, schema).with_annotations(
        ToolAnnotations::new()
            .read_only(!may_write)
            .destructive(may_write)
            .open_world(true),
    )
}

/// Runs a turn to its end.
pub(super) async fn ask(
    server: &Server,
    asker: &Asker,
    arguments: &Map<String, Value>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let text = |name: &str| match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.chars().count() <= QUESTION_CHARS_MAX => Ok(Some(text.clone())),
        Some(_) => Err(ErrorData::invalid_params(
            format!("`{name}` is a text of at most {QUESTION_CHARS_MAX} characters"),
            None,
        )),
    };
    let question = text("question")?.filter(|text| !text.trim().is_empty());
    let question = question.ok_or_else(|| ErrorData::invalid_params("`question` is missing", None))?;
    let model = text("model")?.unwrap_or_else(|| server.model.clone());
    let request = RunRequest {
        caller: asker.caller.clone(),
        origin: Origin::Mcp,
        request_id: RequestId::generate(server.entropy.as_ref()),
        model,
        messages: vec![Message::human(question)],
        client_tools: Vec::new(),
        tool_choice: ToolChoice::Auto,
        parallel_tool_calls: true,
        sampling: Sampling::default(),
        response_format: None,
        stream: false,
        mode: asker.mode(server, Mode::PlanOnly),
        conversation: asker.conversation.clone(),
        on_disconnect: asker.on_disconnect,
        lease: asker.lease.clone(),
    };
    match server.engine.run(request).await {
        Ok(run) => Ok(follow(run, context).await),
        Err(error) => failed(&error),
    }
}

/// Reads the run's events to the last.
async fn follow(mut run: Run, context: &RequestContext<RoleServer>) -> CallToolResult {
    // A client that does not read its notifications must not keep the run from going on.
    run.hand_on();
    let mut notices = Notices::new(context);
    let mut answer = String::new();
    let mut is_answering = false;
    while let Some(event) = run.next().await {
        match event {
            RunEvent::Text(text) => {
                if !is_answering {
                    is_answering = true;
                    notices.tell("answering".to_owned()).await;
                }
                let room = ANSWER_BYTES_MAX.saturating_sub(answer.len());
                answer.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
            }
            RunEvent::ToolStarted { tool, .. } => {
                is_answering = false;
                notices.tell(format!("calling {tool}")).await;
            }
            RunEvent::ToolNotice { tool, notice, .. } => notices.tell(format!("{tool}: {}", said(&notice))).await,
            RunEvent::ToolFinished { tool, status, .. } => notices.tell(format!("{tool}: {status}")).await,
            RunEvent::Reasoning(_) | RunEvent::ClientCalls(_) => {}
            RunEvent::Finished(finished) => return answered(&run, &answer, &finished),
            RunEvent::Failed(error) => {
                return failed(&error).unwrap_or_else(|error| {
                    CallToolResult::error(vec![ContentBlock::text(error.message.into_owned())])
                });
            }
        }
    }
    CallToolResult::error(vec![ContentBlock::text(
        "the run broke off; the server's log says how",
    )])
}

/// What goes on during a call, in one line.
fn said(notice: &Notice) -> String {
    match notice {
        Notice::Progress {
            progress,
            total,
            message,
        } => {
            let far = match total {
                Some(total) => format!("{progress} of {total}"),
                None => progress.to_string(),
            };
            match message {
                Some(message) => format!("{message} ({far})"),
                None => far,
            }
        }
        Notice::Log { level, text } => format!("{level}: {text}"),
    }
}

fn answered(run: &Run, answer: &str, finished: &Finished) -> CallToolResult {
    let sources: Vec<Value> = finished
        .sources
        .shown
        .iter()
        .map(|source| {
            json!({
                "id": source.citation.id,
                "document": source.citation.document,
                "title": source.citation.title,
                "named": source.is_named,
            })
        })
        .collect();
    let mut result = CallToolResult::success(vec![ContentBlock::text(answer)]);
    result.structured_content = Some(json!({
        "answer": answer,
        "outcome": finished.outcome.name(),
        "run_id": run.id,
        "sources": sources,
    }));
    result
}

/// What a model can make something of is a result; what only the operator can is the protocol's error.
fn failed(error: &RunError) -> Result<CallToolResult, ErrorData> {
    match error {
        RunError::Model(_)
        | RunError::ModelNotAllowed(_)
        | RunError::Invalid { .. }
        | RunError::QuotaSpent { .. }
        | RunError::TooManyTurns { .. }
        | RunError::TurnTimeout { .. } => {
            Ok(CallToolResult::error(vec![ContentBlock::text(error.to_string())]))
        }
        RunError::Cancelled | RunError::Stopping | RunError::Prompt(_) | RunError::Store(_) => {
            Err(refused(error))
        }
    }
}

/// Notifications of one request; none where the client asked for none, or does not read them.
struct Notices<'c> {
    context: &'c RequestContext<RoleServer>,
    token: Option<ProgressToken>,
    sent: u32,
}

impl<'c> Notices<'c> {
    fn new(context: &'c RequestContext<RoleServer>) -> Self {
        Self {
            context,
            token: context.meta.get_progress_token(),
            sent: 0,
        }
    }

    async fn tell(&mut self, message: String) {
        let Some(token) = self.token.clone() else {
            return;
        };
        self.sent += 1;
        let mut notice = ProgressNotificationParam::new(token, f64::from(self.sent));
        notice.message = Some(message);
        let told = tokio::time::timeout(NOTICE_WAIT, self.context.peer.notify_progress(notice)).await;
        if !matches!(told, Ok(Ok(()))) {
            self.token = None;
        }
    }
}
