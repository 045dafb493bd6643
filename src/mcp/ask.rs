//! `ask_agent`: a whole run, with a notification for each step where the client wants them.

use std::time::Duration;

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ProgressNotificationParam,
        ProgressToken, Tool, ToolAnnotations,
    },
    service::RequestContext,
};
use serde_json::{Map, Value, json};
use tidegate_core::{
    caller::{Mode, Origin},
    id::{ApprovalId, RequestId, RunId},
    message::Message,
    model::{Sampling, ToolChoice},
};
use tidegate_engine::{Finished, Run, RunError, RunEvent, RunRequest, Said};

use super::{
    Asker, Server,
    approve::{self, Desk, Given, Question, Way},
    paused::{self, Paused},
    tools::{HowTo, refused},
};

/// The tool's name. A tool of the operator's that has it as well is not offered here.
pub(super) const NAME: &str = "ask_agent";

/// The longest question, in characters.
const QUESTION_CHARS_MAX: usize = 200_000;
/// Bytes of an answer; what a model says beyond them is cut.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// How long a client may take for a notification before the next ones are left out.
const NOTICE_WAIT: Duration = Duration::from_secs(1);

/// The tool as clients see it.
pub(super) fn tool(server: &Server, asker: &Asker) -> Tool {
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
    let may_write = server
        .engine
        .mode_of(&asker.caller, asker.mode(server, Mode::PlanOnly))
        > Mode::PlanOnly;
    let description = "Gives a question or a task to the agent behind this server, which works on it with its own \
                       instructions, tools and documents, and returns its answer.";
    Tool::new(NAME, description, schema).with_annotations(
        ToolAnnotations::new()
            .read_only(!may_write)
            .destructive(may_write)
            .open_world(true),
    )
}

/// Runs a turn to its end, or to a question that the client is to put.
pub(super) async fn ask(
    server: &Server,
    asker: &Asker,
    params: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let begun = if let Some(given) = approve::answered(params) {
        resumed(server, asker, &given).await?.ok_or_else(|| Ok(over()))
    } else {
        let (request, desk) = request(server, asker, params.arguments.as_ref(), context)?;
        let run = server.engine.run(request).await;
        run.map(|run| Following::of(run, desk))
            .map_err(|error| failed(&error))
    };
    let mut following = match begun {
        Ok(following) => following,
        Err(told) => return told.map(Into::into),
    };
    loop {
        let question = match follow(&mut following, context).await {
            Step::Ended(result) => return Ok(result.into()),
            Step::Asked(question) => question,
        };
        let ending = match approve::way(server, asker, context) {
            Some(Way::After) => approve::ending(&question),
            Some(Way::Within) => {
                let said = approve::put(server, asker, context, &question).await;
                question.answer(said);
                continue;
            }
            None => None,
        };
        let Some(ending) = ending else {
            question.answer(Said::Nothing);
            continue;
        };
        paused::keep(server, asker, Paused { following, question });
        return Ok(ending.into());
    }
}

/// The run that an answer lets go on.
async fn resumed(server: &Server, asker: &Asker, given: &Given) -> Result<Option<Following>, ErrorData> {
    // Written down also where the run is over: it was said, and the task may be given again.
    let said = approve::decide(server, asker, given).await?;
    let paused = paused::take(server, asker, &given.id());
    Ok(paused.map(|Paused { following, question }| {
        question.answer(said);
        following
    }))
}

/// An answer for which no run waits.
fn over() -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(
        "The run that waited for this answer is over. Give the task again.",
    )])
}

/// The run as the engine takes it, and where its questions arrive.
fn request(
    server: &Server,
    asker: &Asker,
    arguments: Option<&Map<String, Value>>,
    context: &RequestContext<RoleServer>,
) -> Result<(RunRequest, Option<Desk>), ErrorData> {
    let text = |name: &str| match arguments.and_then(|arguments| arguments.get(name)) {
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
    let (approver, desk) = approve::way(server, asker, context)
        .map(|_| approve::desk(server))
        .unzip();
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
        approver,
    };
    Ok((request, desk))
}

/// A run, and what has been seen of it.
#[derive(Debug)]
pub(super) struct Following {
    run: Run,
    /// Its questions; absent where nobody can be asked.
    desk: Option<Desk>,
    answer: String,
    is_answering: bool,
    /// What waits for a person who is asked in another way.
    waiting: Vec<ApprovalId>,
}

impl Following {
    fn of(mut run: Run, desk: Option<Desk>) -> Self {
        // A client that does not read its notifications must not keep the run from going on.
        run.hand_on();
        Self {
            run,
            desk,
            answer: String::new(),
            is_answering: false,
            waiting: Vec::new(),
        }
    }

    /// The run's id.
    pub(super) fn run_id(&self) -> &RunId {
        &self.run.id
    }
}

/// How far a run was followed.
enum Step {
    Ended(CallToolResult),
    Asked(Question),
}

/// The next question; never, where there is none to come.
async fn asked(desk: &mut Option<Desk>) -> Question {
    let question = match desk {
        Some(desk) => desk.recv().await,
        None => None,
    };
    match question {
        Some(question) => question,
        None => std::future::pending().await,
    }
}

/// Reads the run's events to the last, or to its next question.
async fn follow(following: &mut Following, context: &RequestContext<RoleServer>) -> Step {
    let Following {
        run,
        desk,
        answer,
        is_answering,
        waiting,
    } = following;
    let mut notices = Notices::new(context);
    loop {
        let event = tokio::select! {
            biased;
            event = run.next() => event,
            question = asked(desk) => return Step::Asked(question),
        };
        let Some(event) = event else { break };
        if let RunEvent::ToolFinished {
            approval_id: Some(id),
            ..
        } = &event
        {
            waiting.push(id.clone());
        }
        match event {
            RunEvent::Text(text) => {
                if !*is_answering {
                    *is_answering = true;
                    notices.tell("answering".to_owned()).await;
                }
                let room = ANSWER_BYTES_MAX.saturating_sub(answer.len());
                answer.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
            }
            RunEvent::ToolStarted { tool, .. } => {
                *is_answering = false;
                notices.tell(format!("calling {tool}")).await;
            }
            RunEvent::ToolFinished { tool, status, .. } => notices.tell(format!("{tool}: {status}")).await,
            RunEvent::Reasoning(_) | RunEvent::ClientCalls(_) => {}
            RunEvent::Finished(finished) => return Step::Ended(answered(run, answer, waiting, &finished)),
            RunEvent::Failed(error) => {
                return Step::Ended(failed(&error).unwrap_or_else(|error| {
                    CallToolResult::error(vec![ContentBlock::text(error.message.into_owned())])
                }));
            }
        }
    }
    Step::Ended(CallToolResult::error(vec![ContentBlock::text(
        "the run broke off; the server's log says how",
    )]))
}

fn answered(run: &Run, answer: &str, waiting: &[ApprovalId], finished: &Finished) -> CallToolResult {
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
    let mut content = vec![ContentBlock::text(answer)];
    let mut details = json!({
        "answer": answer,
        "outcome": finished.outcome.name(),
        "run_id": run.id,
        "sources": sources,
    });
    if !waiting.is_empty() {
        let how: Vec<HowTo> = waiting.iter().map(HowTo::approve).collect();
        let sentences: Vec<String> = how.iter().map(HowTo::sentence).collect();
        content.push(ContentBlock::text(format!(
            "Not everything was done: what needs an approval waits for it. {} Then give the very same task again.",
            sentences.join(" ")
        )));
        details["approvals"] = json!(how);
    }
    let mut result = CallToolResult::success(content);
    result.structured_content = Some(details);
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
