//! One extraction with everything laid open, for `tidegate memory test`. Nothing is kept.

use tidegate_core::model::ModelError;
use tidegate_memory::{
    boundary::{Accepted, Candidate, Held, Reading, Refusal},
    extract::{model, rules},
};
use tokio::time::Instant;

use super::{Memory, MemoryError, asking::Fault};

/// What came of it.
#[derive(Debug)]
pub struct Trial {
    /// Who looked: `rules`, a model's name, or both.
    pub extractor: String,
    /// The model's reply as it came, where one was asked.
    pub raw_reply: Option<String>,
    /// What was found.
    pub parsed: Vec<Candidate>,
    /// Entries of the reply that could not be read, or were too many.
    pub dropped: usize,
    /// Why the model's part came to nothing, if it did.
    pub fault: Option<String>,
    /// What the write gate says of each.
    pub verdicts: Vec<(Candidate, Result<Accepted, Refusal>)>,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
}

impl Memory {
    /// Looks for facts in `text` as in a turn of somebody of whom nothing is known: by the extractors that are set, or by
    /// the model of that name alone.
    pub async fn trial(&self, text: &str, model: Option<&str>) -> Result<Trial, MemoryError> {
        let started = Instant::now();
        let (options, kinds) = (&self.parts().options, self.kinds());
        let reading = Reading::of(text, []);
        let by_rules = model.is_none() && options.extractor.asks_rules();
        let set = options.extractor.asks_model().then_some(options.model.as_str());
        let model = model.or(set);
        let mut trial = Trial {
            extractor: match (by_rules, model) {
                (true, Some(model)) => format!("{} and {model}", rules::NAME),
                (false, Some(model)) => model.to_owned(),
                (_, None) => rules::NAME.to_owned(),
            },
            raw_reply: None,
            parsed: Vec::new(),
            dropped: 0,
            fault: None,
            verdicts: Vec::new(),
            elapsed_ms: 0,
        };
        if by_rules {
            trial.parsed = rules::extract(&reading);
        }
        if let Some(model) = model {
            match self.ask(model, model::prompt(&kinds, &reading), None).await {
                Ok((_name, reply)) => {
                    let read = model::parse(&reply);
                    trial.parsed.extend(read.candidates);
                    trial.dropped = read.dropped;
                    trial.fault = read.fault.map(|fault| fault.to_string());
                    trial.raw_reply = Some(reply);
                }
                Err(Fault::Model(error @ ModelError::NotFound(_))) => {
                    return Err(MemoryError::Invalid {
                        param: "model",
                        message: error.to_string(),
                    });
                }
                Err(fault) => trial.fault = Some(fault.to_string()),
            }
        }
        let verdicts = self
            .boundary(&kinds)
            .judge(&reading, Held::default(), &trial.parsed);
        trial.verdicts = trial.parsed.iter().cloned().zip(verdicts).collect();
        trial.elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(trial)
    }
}
