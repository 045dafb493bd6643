//! The planner node: ask the model, show its words as they come, and turn its calls into follow-up nodes.

use std::collections::HashSet;

use futures_util::StreamExt;
use tidegate_core::{
    message::Message,
    model::{FinishReason, ModelError, ModelEvent, ModelRequest, ToolChoice},
    port::ModelStream,
    run::Stage,
    tool::ToolCall,
    usage::{Role, Usage},
};
use tidegate_gate::guards::prompt_leak::Passage;

use crate::{
    allowance,
    event::{RunError, RunEvent},
    graph::Plan,
    guard,
    meter::{Booked, Meter},
    parse::{Dialect, DisplayFilter, Parsed, Visible, parse_calls, strip_markup, strip_reasoning},
    run::SECRECY_REFUSAL,
    turn::Turn,
};

/// Bytes of visible text that one model reply may have; more is a model that does not stop.
const REPLY_BYTES_MAX: usize = 8 << 20;

/// What a model call came to.
#[derive(Debug)]
pub(crate) struct Reply {
    /// Visible text, reasoning and call markup removed.
    pub(crate) text: String,
    /// Calls of tools that exist, in call order, with unique ids.
    pub(crate) calls: Vec<ToolCall>,
    /// Names the reply called that do not exist.
    pub(crate) unknown: Vec<String>,
    /// Why the model stopped; `None` where it did not come to an end.
    pub(crate) reason: Option<FinishReason>,
    /// What it cost, as far as is known.
    pub(crate) usage: Usage,
    /// The same in US dollars, by the operator's prices.
    pub(crate) cost_usd: f64,
    /// Why there is no complete reply.
    pub(crate) failure: Option<RunError>,
    /// Whether any of this reply's text has been shown.
    pub(crate) shown: bool,
    /// Whether the day's quota left it less room than it would have had.
    pub(crate) is_shortened: bool,
}

impl Reply {
    fn failed(failure: RunError) -> Self {
        Self {
            text: String::new(),
            calls: Vec::new(),
            unknown: Vec::new(),
            reason: None,
            usage: Usage::default(),
            cost_usd: 0.0,
            failure: Some(failure),
            shown: false,
            is_shortened: false,
        }
    }
}

/// Asks the model once. Works on the turn as it stands and changes nothing in it; the caller merges the reply.
pub(crate) async fn ask(turn: &Turn, plan: Plan) -> Reply {
    let mut request = request(turn, plan);
    let allowance = match allowance::reserve(turn, &mut request).await {
        Ok(allowance) => allowance,
        Err(failure) => return Reply::failed(failure),
    };
    // What is reserved is booked on every way out of here, so that it holds up no other call of the key.
    let mut meter = Meter::start(turn, &allowance, Role::Main);
    let round = turn.budget.spent().rounds + 1;
    // The first checkpoint was written when the run was opened.
    if round > 1
        && let Err(failure) = turn.checkpoint(Stage::BeforeModel { round }, None).await
    {
        meter.settle(Some(Usage::default()));
        return Reply::failed(failure);
    }
    let silent = plan == Plan::Round && turn.formats_apart();
    meter.asking(turn);
    // The journal is opened beside the first call; nothing of an answer is shown before both are there. The
    // question goes out first: the model works on it while the journal is written.
    let opening = async {
        tokio::task::yield_now().await;
        turn.opened.done().await
    };
    let (asked, opened) = tokio::join!(biased; turn.engine.model().ask(request), opening);
    if let Err(failure) = opened {
        return Reply::failed(failure);
    }
    let stream = match asked {
        Ok(stream) => stream,
        Err(error) => {
            // No byte of an answer has arrived: nothing was spent.
            meter.ended(Err(&error));
            meter.settle(Some(Usage::default()));
            return Reply::failed(error.into());
        }
    };
    let heard = Listener::new(turn, silent).listen(stream, &mut meter).await;
    Reply {
        is_shortened: allowance.is_shortened,
        ..finish(turn, plan, heard, meter)
    }
}

/// One place decides what a model is asked.
fn request(turn: &Turn, plan: Plan) -> ModelRequest {
    let tools = turn.offered_for(plan);
    let first = turn.budget.spent().rounds == 0;
    let tool_choice = match (&turn.request.tool_choice, first && !tools.is_empty()) {
        (choice, true) => choice.clone(),
        (_, false) => ToolChoice::Auto,
    };
    let mut sampling = turn.request.sampling.clone();
    let default_max = turn.engine.options().answer_tokens_max;
    if sampling.tokens_max.is_none() && default_max > 0 {
        // A reply that was cut before it said anything gets twice the room.
        let factor = if turn.counts.cut > 0 { 2 } else { 1 };
        sampling.tokens_max = Some(default_max.saturating_mul(factor));
    }
    let formatted = match plan {
        Plan::Round => !turn.formats_apart(),
        Plan::Last(_) | Plan::Format => true,
    };
    ModelRequest {
        model: turn.model.clone(),
        system: turn.system.clone(),
        messages: turn.messages.iter().chain(&turn.notes).cloned().collect(),
        tools,
        tool_choice,
        parallel_tool_calls: turn.request.parallel_tool_calls,
        sampling,
        response_format: turn.request.response_format.clone().filter(|_| formatted),
        // Whatever the client asked for: only a stream shows in time that a model has died.
        stream: true,
        role: Role::Main,
    }
}

/// A model that calls tools natively streams its words unchanged but for reasoning; what another writes may be
/// the start of a call, and is held back until that is clear.
fn visible(turn: &Turn, native_tools: bool) -> Visible {
    if native_tools {
        return Visible::AllButReasoning;
    }
    let names = turn.tools.names().map(str::to_owned);
    let names = names.chain(turn.client.iter().cloned()).collect();
    Visible::NoMarkup {
        names,
        dialect: Dialect::default(),
    }
}

/// What was heard of a reply before it ended or broke off.
#[derive(Debug)]
struct Heard {
    raw: String,
    calls: Vec<ToolCall>,
    end: Option<(FinishReason, Option<Usage>)>,
    error: Option<ModelError>,
    shown: bool,
    /// It carried the text of the prompt; what followed was not listened to.
    has_leaked: bool,
    /// Whether the model that answered calls tools natively.
    native_tools: bool,
}

/// Listens to one model stream and shows its text.
struct Listener<'a> {
    turn: &'a Turn,
    /// Text is kept back: the answer comes in a later call.
    silent: bool,
    heard: Heard,
    words: guard::Answer,
    thoughts: guard::Answer,
}

impl<'a> Listener<'a> {
    fn new(turn: &'a Turn, silent: bool) -> Self {
        Self {
            turn,
            silent,
            heard: Heard {
                raw: String::new(),
                calls: Vec::new(),
                end: None,
                error: None,
                shown: false,
                has_leaked: false,
                native_tools: turn.model.native_tools,
            },
            words: guard::Answer::of_words(turn),
            thoughts: guard::Answer::of_thoughts(turn),
        }
    }

    async fn listen(mut self, mut stream: ModelStream, meter: &mut Meter) -> Heard {
        let mut filter = DisplayFilter::new(visible(self.turn, self.heard.native_tools));
        while let Some(event) = stream.next().await {
            match event {
                Ok(ModelEvent::AnsweredBy(model)) => {
                    meter.answered_by(&model);
                    self.heard.native_tools = model.native_tools;
                    filter = DisplayFilter::new(visible(self.turn, model.native_tools));
                }
                Ok(ModelEvent::Text(text)) => {
                    meter.heard(text.len());
                    self.heard.raw.push_str(&text);
                    let visible = filter.push(&text);
                    self.end_thoughts().await;
                    let passage = self.words.push(&visible);
                    self.show(passage).await;
                    if self.heard.has_leaked {
                        return self.heard;
                    }
                    if self.heard.raw.len() > REPLY_BYTES_MAX {
                        self.heard.error = Some(ModelError::Malformed(format!(
                            "the reply is longer than {REPLY_BYTES_MAX} bytes"
                        )));
                        return self.heard;
                    }
                }
                Ok(ModelEvent::Reasoning(text)) => {
                    meter.heard(text.len());
                    let passage = self.thoughts.push(&text);
                    self.show_thought(passage).await;
                }
                Ok(ModelEvent::Call(call)) => {
                    meter.heard(call.arguments.to_json().len());
                    self.heard.calls.push(call);
                }
                Ok(ModelEvent::Finished { reason, usage }) => {
                    self.heard.end = Some((reason, usage));
                    break;
                }
                Err(error) => {
                    self.heard.error = Some(error);
                    break;
                }
            }
        }
        self.end_thoughts().await;
        let passage = self.words.push(&filter.finish());
        self.show(passage).await;
        if !self.heard.has_leaked {
            let passage = self.words.finish();
            self.show(passage).await;
        }
        if self.heard.has_leaked {
            return self.heard;
        }
        if self.heard.end.is_none() && self.heard.error.is_none() {
            self.heard.error = Some(ModelError::Malformed(
                "the answer broke off before its end".into(),
            ));
        }
        self.heard
    }

    /// Shows what may be shown. In place of an answer that carries the prompt, and of all that follows, stands
    /// the refusal that a question for the prompt gets.
    async fn show(&mut self, passage: Passage) {
        let text = match passage {
            Passage::Shown(text) => text,
            Passage::Leak => {
                tracing::warn!("an answer carried the text of the prompt; the rest of it was withheld");
                self.heard.has_leaked = true;
                self.turn.emitter.next_round();
                SECRECY_REFUSAL.to_owned()
            }
        };
        if text.is_empty() || self.silent {
            return;
        }
        self.heard.shown = true;
        self.turn.emitter.show(text).await;
    }

    /// Shows a thought. One that carries the prompt is dropped, and so is all that follows it.
    async fn show_thought(&mut self, passage: Passage) {
        if let Passage::Shown(text) = passage
            && !text.is_empty()
            && !self.silent
        {
            self.turn.emitter.send(RunEvent::Reasoning(text)).await;
        }
    }

    async fn end_thoughts(&mut self) {
        let passage = self.thoughts.finish();
        self.show_thought(passage).await;
    }
}

/// Turns what was heard into a reply: one parser for native and written calls, one set of ids.
fn finish(turn: &Turn, plan: Plan, heard: Heard, mut meter: Meter) -> Reply {
    let (reason, reported) = heard
        .end
        .map_or((None, None), |(reason, usage)| (Some(reason), usage));
    meter.ended(heard.error.as_ref().map_or(Ok(reason), Err));
    let Booked { usage, cost_usd } = meter.settle(reported);
    if heard.has_leaked {
        return Reply {
            text: SECRECY_REFUSAL.to_owned(),
            calls: Vec::new(),
            unknown: Vec::new(),
            reason: Some(FinishReason::Stop),
            usage,
            cost_usd,
            failure: None,
            shown: heard.shown,
            is_shortened: false,
        };
    }
    let mut text = strip_reasoning(&heard.raw);
    let (mut calls, mut unknown) = (heard.calls, Vec::new());
    if !heard.native_tools {
        let known = |name: &str| turn.tools.get(name).is_some() || turn.client.contains(name);
        match parse_calls(&text, &known, Dialect::default()) {
            Parsed::Calls(found) => calls.extend(found.into_iter().map(|call| ToolCall {
                id: tidegate_core::id::CallId::generate(turn.engine.entropy()),
                name: call.name,
                arguments: call.arguments,
            })),
            Parsed::Unknown { names } => unknown = names,
            Parsed::None => {}
        }
        text = strip_markup(&text, &known, Dialect::default());
    }
    if turn.offered_for(plan).is_empty() {
        // No tools were offered, so nothing was there to call; what looks like a call is not executed.
        calls.clear();
        unknown.clear();
    }
    let mut taken = HashSet::new();
    for call in &mut calls {
        call.id = turn.unique_call_id(call.id.clone(), &taken);
        taken.insert(call.id.clone());
        if turn.client.contains(&call.name) {
            guard::client_call(turn, call);
        }
    }
    Reply {
        text: turn.engine.redactor().redact(text.trim()).into_owned(),
        calls,
        unknown,
        reason,
        usage,
        cost_usd,
        failure: heard.error.map(RunError::Model),
        shown: heard.shown,
        is_shortened: false,
    }
}

/// The assistant's message that stands for a reply in the history.
pub(crate) fn message(text: &str, calls: Vec<ToolCall>) -> Message {
    Message::Assistant {
        text: text.to_owned(),
        calls,
    }
}
