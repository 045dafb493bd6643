//! From a queued turn to observations: the extractors propose, and the write gate disposes.
//!
//! The person's words are read with everything that was in sight of them. Rules and model see only what remains; what
//! they find goes through [`Boundary::judge`], which believes neither.

use tidegate_core::{
    error::StoreError,
    id::{ObservationId, UserId},
    memory::Observation,
    port::{Capture, Seen, Sight},
};
use tidegate_memory::{
    boundary::{Boundary, Candidate, Held, Other, Reading, Source},
    extract::{
        has_statements,
        model::{self, Parsed},
        rules,
    },
    kinds::Kinds,
};

use super::{
    Memory,
    asking::{self, Account},
};

/// Why nothing was learned from a turn this time.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// The model failed, or its key may spend no more today.
    #[error(transparent)]
    Asking(#[from] asking::Fault),
    /// The model's reply is none.
    #[error(transparent)]
    Reply(#[from] model::Fault),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Fault {
    /// Its name, for the row and for logs: a provider's own words may repeat what people wrote.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Asking(asking::Fault::Model(error)) => error.kind(),
            Self::Asking(asking::Fault::QuotaSpent) => "quota_spent",
            Self::Asking(asking::Fault::Store(_)) | Self::Store(_) => "store",
            Self::Reply(model::Fault::Empty) => "reply_empty",
            Self::Reply(model::Fault::NoJson) => "reply_without_json",
            Self::Reply(model::Fault::NoFacts) => "reply_without_facts",
        }
    }
}

/// What the extractors found in a turn.
#[derive(Debug, Default)]
struct Proposed {
    candidates: Vec<Candidate>,
    /// How many of them come from the rules; the others are the model's.
    of_rules: usize,
    /// The model's name, where it was asked.
    model: String,
}

impl Memory {
    /// What is to be kept of a turn. With `is_last` a model that fails is done without, where the rules have looked, too.
    pub(super) async fn learn(
        &self,
        user: &UserId,
        capture: &Capture,
        is_last: bool,
    ) -> Result<Vec<Observation>, Fault> {
        let kinds = self.kinds();
        let earlier = earlier(&capture.in_sight);
        let earlier = earlier.into_iter().map(|text| Other {
            source: Source::Earlier,
            text,
        });
        let others = capture.in_sight.iter().filter_map(other).chain(earlier);
        let reading = Reading::of(&capture.said, others);
        let account = Account {
            user,
            run: &capture.run,
        };
        let proposed = self.propose(&kinds, &reading, account, is_last).await?;
        if proposed.candidates.is_empty() {
            return Ok(Vec::new());
        }
        let held = self.held(user, capture).await?;
        let verdicts = self.boundary(&kinds).judge(&reading, held, &proposed.candidates);
        let refused = verdicts.iter().filter(|verdict| verdict.is_err()).count();
        if refused > 0 {
            tracing::debug!(refused, run.id = %capture.run, "findings in a turn were refused");
        }
        Ok(verdicts
            .into_iter()
            .enumerate()
            .filter_map(|(at, verdict)| {
                let extractor = if at < proposed.of_rules {
                    rules::NAME
                } else {
                    proposed.model.as_str()
                };
                let accepted = verdict.ok()?;
                Some(Observation {
                    id: ObservationId::generate(&*self.parts().entropy),
                    kind: accepted.kind,
                    value: accepted.value,
                    quote: accepted.quote,
                    turn: capture.turn,
                    conversation: capture.conversation.clone(),
                    day: capture.day,
                    at: capture.at,
                    voice: accepted.voice,
                    stance: accepted.stance,
                    extractor: extractor.to_owned(),
                    is_explicit: accepted.is_explicit,
                    is_first_person: accepted.is_first_person,
                })
            })
            .collect())
    }

    async fn propose(
        &self,
        kinds: &Kinds,
        reading: &Reading<'_>,
        account: Account<'_>,
        is_last: bool,
    ) -> Result<Proposed, Fault> {
        let options = &self.parts().options;
        let mut proposed = Proposed::default();
        if options.extractor.asks_rules() {
            proposed.candidates = rules::extract(reading);
            proposed.of_rules = proposed.candidates.len();
        }
        if !options.extractor.asks_model() || !has_statements(reading) {
            return Ok(proposed);
        }
        match self.extract(kinds, reading, account).await {
            Ok((model, parsed)) => {
                proposed.candidates.extend(parsed.candidates);
                proposed.model = model;
            }
            // The day's tokens come back tomorrow; what the rules know need not wait so long.
            Err(fault @ Fault::Asking(asking::Fault::QuotaSpent)) if options.extractor.asks_rules() => {
                tracing::debug!(%fault, "a turn is learned from by rules alone");
            }
            Err(fault) if is_last && options.extractor.asks_rules() => {
                tracing::warn!(
                    fault = fault.name(),
                    "the model for memory keeps failing; a turn is learned from by rules alone"
                );
            }
            Err(fault) => return Err(fault),
        }
        Ok(proposed)
    }

    async fn extract(
        &self,
        kinds: &Kinds,
        reading: &Reading<'_>,
        account: Account<'_>,
    ) -> Result<(String, Parsed), Fault> {
        let prompt = model::prompt(kinds, reading);
        let asking = self.ask(&self.parts().options.model, prompt, Some(account));
        let (model, reply) = asking.await?;
        let parsed = model::parse(&reply);
        match parsed.fault {
            Some(fault) => Err(fault.into()),
            None => Ok((model, parsed)),
        }
    }

    /// The write gate.
    pub(super) fn boundary<'b>(&'b self, kinds: &'b Kinds) -> Boundary<'b> {
        Boundary {
            kinds,
            limits: self.parts().options.limits(),
            redactor: &self.parts().redactor,
        }
    }

    /// How much is kept of the person already. What is learned at once from two turns may go over a bound by one turn.
    async fn held(&self, user: &UserId, capture: &Capture) -> Result<Held, StoreError> {
        let person = self.person(user).await?;
        let observations = person.ledger.observations();
        Ok(Held {
            today: observations
                .iter()
                .filter(|observation| observation.day == capture.day)
                .count(),
            total: observations.len(),
        })
    }
}

/// A text that the words are held against as it is.
fn other(seen: &Seen) -> Option<Other<'_>> {
    let source = match seen.sight {
        Sight::Retrieved => Source::Retrieved,
        Sight::Tool => Source::Tool,
        Sight::Assistant => Source::Assistant,
        Sight::System => Source::System,
        // What the person said before in their own words may be said again.
        Sight::Earlier => return None,
    };
    Some(Other {
        source,
        text: &seen.text,
    })
}

/// What of the person's earlier messages was not their own.
fn earlier(in_sight: &[Seen]) -> Vec<&str> {
    in_sight
        .iter()
        .filter(|seen| seen.sight == Sight::Earlier)
        .flat_map(|seen| Reading::of(&seen.text, []).cut_parts())
        .collect()
}
