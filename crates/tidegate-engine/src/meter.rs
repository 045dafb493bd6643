//! What a model call costs, booked on every way out: at its end as the provider reports it, and where the run
//! is cancelled in the middle as far as it was heard.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::civil::Date;
use tidegate_core::{
    message::{Message, Part},
    model::ModelRequest,
    port::{Ledger, Reservation, UsageRecord},
    usage::{Role, Usage},
};

use crate::turn::Turn;

/// Bytes of text that make about one token, where nobody counts for us.
const BYTES_PER_TOKEN: usize = 4;
/// Tokens that a picture or another non-text part is taken for.
const PART_TOKENS: usize = 256;

/// Runs from the moment a model is asked. Dropped unsettled it books an estimate.
#[derive(Debug)]
pub(crate) struct Meter {
    ledger: Arc<dyn Ledger>,
    /// Where the turn collects what calls cost that were cut off in the middle.
    cut: Arc<Mutex<Usage>>,
    record: Option<UsageRecord>,
    prompt_tokens: u64,
    heard_bytes: usize,
}

impl Meter {
    /// Starts the meter; `day` is the one the tokens were reserved on.
    pub(crate) fn start(turn: &Turn, day: Date, prompt_tokens: u64, reservation: Reservation) -> Self {
        let engine = &turn.engine;
        Self {
            ledger: Arc::clone(engine.ledger()),
            cut: Arc::clone(&turn.cut_usage),
            record: Some(UsageRecord {
                at: engine.now(),
                day,
                key_id: turn.caller.key_id.clone(),
                user: turn.caller.user.clone(),
                run_id: turn.run_id.clone(),
                provider: turn.model.provider.clone(),
                model: turn.model.name.clone(),
                role: Role::Main,
                usage: Usage::default(),
                reservation: Some(reservation),
            }),
            prompt_tokens,
            heard_bytes: 0,
        }
    }

    /// Counts what arrived.
    pub(crate) fn heard(&mut self, bytes: usize) {
        self.heard_bytes += bytes;
    }

    /// Books the call: as reported, or estimated where the provider says nothing.
    pub(crate) fn settle(mut self, reported: Option<Usage>) -> Usage {
        let usage = reported.unwrap_or_else(|| self.estimate());
        self.book(usage);
        usage
    }

    fn estimate(&self) -> Usage {
        Usage {
            input_tokens: self.prompt_tokens,
            output_tokens: self.heard_bytes.div_ceil(BYTES_PER_TOKEN) as u64,
            estimated: true,
            ..Usage::default()
        }
    }

    fn book(&mut self, usage: Usage) {
        if let Some(mut record) = self.record.take() {
            record.usage = usage;
            self.ledger.record(record);
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if self.record.is_some() {
            let usage = self.estimate();
            *self.cut.lock().unwrap_or_else(PoisonError::into_inner) += usage;
            self.book(usage);
        }
    }
}

/// About how many tokens a request has.
pub(crate) fn estimate_prompt_tokens(request: &ModelRequest) -> u64 {
    let tools: usize = request
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.to_string().len())
        .sum();
    let messages: usize = request.messages.iter().map(message_bytes).sum();
    ((request.system.len() + tools + messages).div_ceil(BYTES_PER_TOKEN)) as u64
}

fn message_bytes(message: &Message) -> usize {
    match message {
        Message::Human { parts, .. } => parts
            .iter()
            .map(|part| match part {
                Part::Text { text } => text.len(),
                Part::Image { .. } | Part::Audio { .. } | Part::File { .. } => PART_TOKENS * BYTES_PER_TOKEN,
            })
            .sum(),
        Message::Assistant { text, calls } => {
            text.len()
                + calls
                    .iter()
                    .map(|call| call.name.len() + call.arguments.to_json().len())
                    .sum::<usize>()
        }
        Message::ClientSystem { text }
        | Message::Tool { text, .. }
        | Message::Harness { text, .. }
        | Message::Recalled { text } => text.len(),
    }
}
