//! What a model call costs, booked on every way out: at its end as the provider reports it, and where the run
//! is cancelled in the middle as far as it was heard.

use std::sync::{Arc, Mutex, PoisonError};

use tidegate_core::{
    message::{Message, Part},
    model::{FinishReason, ModelError, ModelRef, ModelRequest, ToolSchema},
    port::{Ledger, UsageRecord},
    usage::{Prices, Role, Usage},
};

use crate::{allowance::Allowance, model_log, turn::Turn};

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
    prices: Arc<Prices>,
    line: Option<model_log::Line>,
}

/// What a call came to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Booked {
    /// Its tokens.
    pub(crate) usage: Usage,
    /// What they cost, in US dollars; 0 where the operator names no price.
    pub(crate) cost_usd: f64,
}

impl Meter {
    /// Starts the meter of a call that was allowed this much.
    pub(crate) fn start(turn: &Turn, allowance: &Allowance, role: Role) -> Self {
        let engine = &turn.engine;
        Self {
            ledger: Arc::clone(engine.ledger()),
            cut: Arc::clone(&turn.cut_usage),
            record: Some(UsageRecord {
                at: engine.now(),
                day: allowance.day,
                key_id: turn.caller.key_id.clone(),
                user: turn.caller.user.clone(),
                run_id: turn.run_id.clone(),
                provider: turn.model.provider.clone(),
                model: turn.model.name.clone(),
                role,
                usage: Usage::default(),
                reservation: Some(allowance.reservation),
            }),
            prompt_tokens: allowance.prompt_tokens,
            heard_bytes: 0,
            prices: Arc::clone(engine.prices()),
            line: None,
        }
    }

    /// Starts the meter of a call that belongs to no turn, and that is asked now.
    pub(crate) fn of(
        ledger: &Arc<dyn Ledger>,
        prices: &Arc<Prices>,
        record: UsageRecord,
        prompt_tokens: u64,
        line: model_log::Line,
    ) -> Self {
        Self {
            ledger: Arc::clone(ledger),
            cut: Arc::default(),
            record: Some(record),
            prompt_tokens,
            heard_bytes: 0,
            prices: Arc::clone(prices),
            line: Some(line),
        }
    }

    /// Notes that the model is asked now: from here on there will be a line about it.
    pub(crate) fn asking(&mut self, turn: &Turn) {
        self.line = Some(model_log::Line::start(turn));
    }

    /// Notes how the call ended, for its line.
    pub(crate) fn ended(&mut self, end: Result<Option<FinishReason>, &ModelError>) {
        if let Some(line) = &mut self.line {
            line.ended(end);
        }
    }

    /// Counts what arrived.
    pub(crate) fn heard(&mut self, bytes: usize) {
        self.heard_bytes += bytes;
    }

    /// Notes that another model answers than the one that was asked.
    pub(crate) fn answered_by(&mut self, model: &ModelRef) {
        if let Some(record) = &mut self.record {
            record.provider.clone_from(&model.provider);
            record.model.clone_from(&model.name);
        }
    }

    /// Books the call: as reported, or estimated where the provider says nothing, or nothing of the prompt.
    pub(crate) fn settle(mut self, reported: Option<Usage>) -> Booked {
        let mut usage = reported.unwrap_or_else(|| self.estimate());
        if usage.estimated && usage.input_tokens == 0 {
            usage.input_tokens = self.prompt_tokens;
        }
        let cost_usd = self.book(usage).unwrap_or_default();
        Booked { usage, cost_usd }
    }

    fn estimate(&self) -> Usage {
        Usage {
            input_tokens: self.prompt_tokens,
            output_tokens: self.heard_bytes.div_ceil(BYTES_PER_TOKEN) as u64,
            estimated: true,
            ..Usage::default()
        }
    }

    fn book(&mut self, usage: Usage) -> Option<f64> {
        let mut record = self.record.take()?;
        record.usage = usage;
        let price = self.prices.of(&record.provider, &record.model);
        let cost_usd = price.map(|price| price.cost_usd(usage));
        if let Some(line) = self.line.take() {
            line.write(&record, cost_usd);
        }
        self.ledger.record(record);
        cost_usd
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if self.record.is_some() {
            let usage = self.estimate();
            *self.cut.lock().unwrap_or_else(PoisonError::into_inner) += usage;
            let _cost_usd = self.book(usage);
        }
    }
}

/// About how many tokens a request has.
pub(crate) fn estimate_prompt_tokens(request: &ModelRequest) -> u64 {
    Size::of(&request.messages).tokens(&request.system, &request.tools)
}

/// How much there is of some messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// Bytes of text, names and arguments.
    text_bytes: usize,
    /// Pictures and other parts that are no text.
    attachments: usize,
    /// Their bytes.
    attachment_bytes: usize,
}

impl Size {
    /// The size of messages.
    pub(crate) fn of<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Self {
        let mut size = Self::default();
        for message in messages {
            size.add(message);
        }
        size
    }

    /// About how many bytes they take when they are written down.
    pub(crate) fn bytes(self) -> usize {
        self.text_bytes + self.attachment_bytes
    }

    /// About how many tokens a model reads with these messages, a system prompt and tools.
    pub(crate) fn tokens(self, system: &str, tools: &[Arc<ToolSchema>]) -> u64 {
        let tools: usize = tools
            .iter()
            .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.text().get().len())
            .sum();
        let text = (system.len() + tools + self.text_bytes).div_ceil(BYTES_PER_TOKEN);
        (text + self.attachments * PART_TOKENS) as u64
    }

    fn add(&mut self, message: &Message) {
        match message {
            Message::Human { parts, .. } => {
                for part in parts {
                    self.add_part(part);
                }
            }
            Message::Assistant { text, calls } => {
                self.text_bytes += text.len();
                for call in calls {
                    self.text_bytes += call.name.len() + call.arguments.to_json().len();
                }
            }
            Message::ClientSystem { text }
            | Message::Tool { text, .. }
            | Message::Harness { text, .. }
            | Message::Recalled { text } => self.text_bytes += text.len(),
        }
    }

    fn add_part(&mut self, part: &Part) {
        let bytes = match part {
            Part::Text { text } => {
                self.text_bytes += text.len();
                return;
            }
            Part::Image { url, .. } => url.len(),
            Part::Audio { data, .. } => data.len(),
            Part::File { file } => file.to_string().len(),
        };
        self.attachments += 1;
        self.attachment_bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attachment_has_many_bytes_and_few_tokens() {
        let messages = [
            Message::human("12345678"),
            Message::Human {
                parts: vec![
                    Part::Text {
                        text: "1234".to_owned(),
                    },
                    Part::Image {
                        url: "x".repeat(100_000),
                        detail: None,
                    },
                ],
                name: None,
            },
        ];
        let size = Size::of(&messages);
        assert_eq!(size.bytes(), 100_012);
        assert_eq!(size.tokens("1234", &[]), 4 + PART_TOKENS as u64);
    }
}
