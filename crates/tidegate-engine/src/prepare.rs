//! From a request to a turn: whose it is and what it may do, which tools are offered, what the system prompt
//! says, and whether it is answered at all.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, AtomicUsize},
    },
};

use futures_util::{FutureExt as _, future};
use tidegate_core::{
    id::{CallId, RunId},
    knowledge::Citation,
    message::{Message, Source, last_human_text},
    model::{ToolChoice, ToolSchema},
};
use tidegate_gate::Session;

use crate::{
    RunError, RunRequest, approval,
    budget::Budget,
    capabilities::{self, Subject},
    emitter::Emitter,
    graph::Graph,
    guard,
    memory::{
        capture::{self, Draft},
        recall::{self, Told},
    },
    prompt::{ComposeInput, Prompt, secrecy},
    results::{Repeats, Results},
    routing,
    run::{self, Engine},
    sources::{self, Shown},
    toolset::{Selection, Toolset},
    turn::{Counts, Opening, Turn},
};

/// A turn that is ready to be worked on.
pub(crate) struct Prepared {
    /// The turn.
    pub(crate) turn: Turn,
    /// It asks for the prompt's text and is refused before any model is asked.
    pub(crate) refused: bool,
}

/// Prepares a turn.
pub(crate) async fn turn(
    engine: &Arc<Engine>,
    mut request: RunRequest,
    run_id: RunId,
    emitter: Emitter,
) -> Result<Prepared, RunError> {
    if !request.caller.may_use_model(&request.model) {
        return Err(RunError::ModelNotAllowed(request.model));
    }
    let model = engine.model().resolve(&request.model).await?;
    let human = new_words(&request.messages);
    let refused = said_now(&request.messages)
        .iter()
        .any(|text| secrecy::asks_for_prompt(text));
    let scene = scene(engine, &request, human.as_deref()).await?;
    let draft = engine
        .memory()
        .and_then(|_| Draft::of(&request, engine.now(), engine.today()));

    let messages = std::mem::take(&mut request.messages);
    let messages = messages
        .into_iter()
        .filter(|message| message.source() != Source::ClientSystem)
        .map(guard::inbound)
        .collect();
    let (messages, cited) = with_held(engine, &request, messages).await;
    let client: HashSet<String> = request
        .client_tools
        .iter()
        .map(|tool| tool.name.clone())
        .collect();
    let mut tools = with_client(&request, scene.tools, scene.is_answered);
    tools.find_again(&messages);
    if let ToolChoice::Named(name) = &request.tool_choice {
        tools.find(name);
        tools.take_in();
    }
    check_choice(&request.tool_choice, tools.offered())?;
    let caller = Arc::new(request.caller.clone());
    let mode = engine.mode_of(&caller, request.mode);
    let shown =
        sources::can_show(engine.catalogue().rows().iter().map(|row| row.spec.as_ref())).then(Arc::<Shown>::default);
    if let Some(shown) = &shown {
        shown.add(&cited);
    }
    let turn = Turn {
        run_id,
        session: Session {
            caller: Arc::clone(&caller),
            mode,
            conversation: approval::conversation(&caller, request.conversation.as_deref(), &messages),
            attendance: engine.attendance_of(request.origin),
        },
        caller,
        model,
        system: scene.prompt.text(),
        prints: engine.prints().of(&scene.prompt),
        tools,
        client,
        history_len: messages.len(),
        messages,
        notes: Vec::new(),
        graph: Graph::default(),
        budget: Budget::new(engine.options()),
        results: Results::default(),
        shown,
        repeats: Repeats::default(),
        emitter,
        deadline: run::deadline(engine.options()),
        counts: Counts::default(),
        effects_in_flight: AtomicUsize::new(0),
        writes: AtomicU32::new(0),
        denials: AtomicU32::new(0),
        claimed: Mutex::default(),
        cut_usage: Arc::default(),
        aside: Mutex::default(),
        has_model: true,
        draft,
        opened: Opening::new(future::ready(Ok(())).boxed()),
        engine: Arc::clone(engine),
        request,
    };
    Ok(Prepared { turn, refused })
}

/// What people said since the assistant last spoke, whatever a client put behind it: each message, and all of
/// them together, so that a sentence cut in two is still one. After a tool's answer it is what they said last.
fn said_now(messages: &[Message]) -> Vec<String> {
    let end = messages.len()
        - usize::from(
            messages
                .last()
                .is_some_and(|last| last.source() == Source::Assistant),
        );
    let before = messages.get(..end).unwrap_or_default();
    let start = before
        .iter()
        .rposition(|message| message.source() == Source::Assistant)
        .map_or(0, |at| at + 1);
    let mut said: Vec<String> = before
        .iter()
        .skip(start)
        .filter(|message| message.source() == Source::Human)
        .map(Message::text)
        .collect();
    match said.len() {
        0 => said.extend(last_human_text(before)),
        1 => {}
        _ => said.push(said.join(" ")),
    }
    said
}

/// The human's new words, if the newest message is theirs: a tool's answer coming back is no new question, and
/// what a client adds as system text is not theirs.
fn new_words(messages: &[Message]) -> Option<String> {
    let newest = messages
        .iter()
        .rev()
        .map(Message::source)
        .find(|source| *source != Source::ClientSystem);
    if newest != Some(Source::Human) {
        return None;
    }
    let mut said: Vec<String> = messages
        .iter()
        .rev()
        .take_while(|message| matches!(message.source(), Source::Human | Source::ClientSystem))
        .filter(|message| message.source() == Source::Human)
        .map(Message::text)
        .collect();
    said.reverse();
    Some(said.join("\n"))
}

/// The prompt and the routing decision a request would get.
pub(crate) async fn explain(
    engine: &Arc<Engine>,
    request: RunRequest,
) -> Result<(Prompt, routing::Decision), RunError> {
    let human = last_human_text(&request.messages);
    let scene = scene(engine, &request, human.as_deref()).await?;
    Ok((scene.prompt, scene.routing))
}

/// What surrounds the messages.
struct Scene {
    prompt: Prompt,
    routing: routing::Decision,
    /// The question is answered from the prompt, and needs no tools.
    is_answered: bool,
    /// The server's tools.
    tools: Toolset,
}

async fn route(engine: &Engine, request: &RunRequest, human: Option<&str>) -> routing::Decision {
    match human {
        Some(text) => {
            let context = routing::Context {
                request_id: &request.request_id,
                key_id: &request.caller.key_id,
                user: &request.caller.user,
            };
            engine.parts().routing.decide(text, &context).await
        }
        None => routing::Decision::default(),
    }
}

/// What the prompt says of the person. After a tool's answer it is what their last words call for: the question is still
/// the same.
async fn told(engine: &Engine, request: &RunRequest, human: Option<&str>) -> Option<Told> {
    if !capture::is_person(request.origin) {
        return None;
    }
    let Some(memory) = engine.memory() else {
        return recall::without_memory(human);
    };
    let words = human.map_or_else(
        || last_human_text(&request.messages).unwrap_or_default(),
        str::to_owned,
    );
    memory.told(&request.caller.user, &words, human).await
}

/// Routes and recalls, then composes: the answer of the routing gate decides what the prompt says about tools.
async fn scene(engine: &Arc<Engine>, request: &RunRequest, human: Option<&str>) -> Result<Scene, RunError> {
    let (routing, told) = tokio::join!(route(engine, request, human), told(engine, request, human));
    let is_answered = routing.about_agent || matches!(told, Some(Told::Answer(_)));
    let hidden: HashSet<&str> = request
        .client_tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    let allowed = engine.selection_of(&request.caller);
    let composer = &engine.parts().composer;
    let hooks = engine.hook_names();
    let surroundings = engine.surroundings();
    let mode = engine.mode_of(&request.caller, request.mode);
    // A question about the agent is answered from what is on the disk now.
    let report = routing.about_agent.then(|| {
        let subject = Subject {
            model: &request.model,
            caller: &request.caller,
            requested: request.mode,
            mode,
            attendance: engine.attendance_of(request.origin),
            tools: &allowed.specs(),
            options: engine.options(),
            gate: engine.gate(),
            surroundings: &surroundings,
            hooks: &hooks,
        };
        capabilities::report(subject, &composer.skills_now())
    });
    let server = if is_answered {
        Selection::none(engine.catalogue())
    } else {
        allowed.without(&hidden)
    };
    let client_system: Vec<String> = request
        .messages
        .iter()
        .filter(|message| message.source() == Source::ClientSystem)
        .map(Message::text)
        .collect();
    let compose = |summary: &str| {
        let input = ComposeInput {
            message: human,
            client_system: &client_system,
            clock: engine.parts().clock.as_ref(),
            capability_summary: summary,
            capability_report: report.as_deref(),
            recalled: told.as_ref(),
        };
        composer
            .compose(&input)
            .map_err(|fault| RunError::Prompt(fault.to_string()))
    };
    let mut tools = Toolset::new(server, Vec::new());
    let mut prompt = compose(&capabilities::summary(&tools, mode))?;
    if let Some(left) = left_by_skill(&prompt, tools.selection()) {
        // The prompt names the tools that are offered: those that the skill leaves.
        tools = Toolset::new(left, Vec::new());
        prompt = compose(&capabilities::summary(&tools, mode))?;
    }
    Ok(Scene {
        prompt,
        routing,
        is_answered,
        tools,
    })
}

/// The tools that the prompt's skill leaves; `None` where it leaves them all.
fn left_by_skill(prompt: &Prompt, server: &Selection) -> Option<Selection> {
    let names = prompt.skill.as_ref()?.tools.as_ref()?;
    Some(server.keeping(|spec| spec.mode.is_control() || names.contains(&spec.name)))
}

/// The client's tools first, then the server's. A question about the agent itself, or its memory, is answered without any,
/// unless the client insists on a call.
fn with_client(request: &RunRequest, tools: Toolset, is_answered: bool) -> Toolset {
    let insists = match request.tool_choice {
        ToolChoice::Required | ToolChoice::Named(_) => true,
        ToolChoice::Auto | ToolChoice::None => false,
    };
    let client = request
        .client_tools
        .iter()
        .filter(|_| !is_answered || insists)
        .map(|tool| Arc::new(tool.clone()));
    tools.with_client(client.collect())
}

fn check_choice(choice: &ToolChoice, offered: &[Arc<ToolSchema>]) -> Result<(), RunError> {
    let invalid = |message: String| {
        Err(RunError::Invalid {
            param: Some("tool_choice".to_owned()),
            message,
        })
    };
    match choice {
        ToolChoice::Required if offered.is_empty() => {
            invalid("`tool_choice` is `required`, but no tools are available to this request".to_owned())
        }
        ToolChoice::Named(name) if !offered.iter().any(|tool| tool.name == *name) => invalid(format!(
            "`tool_choice` names the tool `{name}`, which this request does not offer"
        )),
        ToolChoice::Auto | ToolChoice::None | ToolChoice::Required | ToolChoice::Named(_) => Ok(()),
    }
}

/// Assistant turns of a history that are looked up, newest first.
const HELD_LOOKUPS_MAX: usize = 8;

/// Puts what was held of mixed turns back where the client's copies of them stand: the server calls with their
/// results, which the client never saw. What is gone is gone; the turn then goes on with what the client sent.
/// With them come the passages that were shown then.
async fn with_held(
    engine: &Arc<Engine>,
    request: &RunRequest,
    mut messages: Vec<Message>,
) -> (Vec<Message>, Vec<Citation>) {
    let mut citations = Vec::new();
    let (key, user) = (&request.caller.key_id, &request.caller.user);
    for (at, ids) in answered_calls(&messages) {
        match engine.held().find(key, user, &ids, engine.now()).await {
            Ok(Some(held)) => {
                citations.extend(held.citations);
                drop(messages.splice(at..=at, held.messages));
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "held server calls could not be looked up"),
        }
    }
    (messages, citations)
}

/// The newest assistant messages whose calls have been answered: where each stands, last first, and its ids.
fn answered_calls(messages: &[Message]) -> Vec<(usize, Vec<CallId>)> {
    let mut answered = HashSet::new();
    let mut found = Vec::new();
    for (at, message) in messages.iter().enumerate().rev() {
        match message {
            Message::Tool { call_id, .. } => drop(answered.insert(call_id)),
            Message::Assistant { calls, .. } if calls.iter().any(|call| answered.contains(&call.id)) => {
                found.push((at, calls.iter().map(|call| call.id.clone()).collect()));
                if found.len() == HELD_LOOKUPS_MAX {
                    break;
                }
            }
            Message::Assistant { .. }
            | Message::Human { .. }
            | Message::ClientSystem { .. }
            | Message::Harness { .. }
            | Message::Recalled { .. } => {}
        }
    }
    found
}
