//! What a runner may ask of the run while its call is under way: to be seen, and a model's words. A port, so that
//! whoever runs a call on another server need not know the engine, and the engine not know servers.
//!
//! It travels with the call: what a server says or asks during a call belongs to the run that made it, and to no
//! other.

use async_trait::async_trait;
use tidegate_core::model::FinishReason;

/// What goes on while a call is under way, in the words of whoever works on it: text from outside, which the runner
/// has cleaned and cut.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// How far it is.
    Progress {
        /// So far, in a unit of the other side's.
        progress: f64,
        /// How far it has to go, where that is known.
        total: Option<f64>,
        /// In words.
        message: Option<String>,
    },
    /// A line of the other side's log.
    Log {
        /// How grave, in the protocol's words: `debug` to `emergency`.
        level: &'static str,
        /// The line.
        text: String,
    },
}

/// A question that the other side of a call has for a model.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleRequest {
    /// Who asks, by a name of the operator's.
    pub source: String,
    /// What it would have a model told first. Data like the rest: no model takes instructions from there.
    pub system: Option<String>,
    /// What it says, oldest first.
    pub messages: Vec<SampleMessage>,
    /// The longest answer it wants, in tokens.
    pub tokens_max: u64,
    /// How to sample, 0 to 2.
    pub temperature: Option<f64>,
    /// Texts at which an answer ends.
    pub stop: Vec<String>,
}

/// One message of such a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleMessage {
    /// Whether it stands for an earlier answer of a model.
    pub is_answer: bool,
    /// The text.
    pub text: String,
}

/// A model's answer to such a question: guarded, so that it may leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The text.
    pub text: String,
    /// The model, as the client of the run names it.
    pub model: String,
    /// Why it stopped.
    pub reason: FinishReason,
}

/// Why there is no answer, in words for the other side: no secret and nothing of the run is in them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SampleRefusal(pub String);

/// The run, as a runner of one of its calls sees it.
#[async_trait]
pub trait CallHost: Send + Sync + std::fmt::Debug {
    /// Shows what goes on. Never waits: what comes faster than it is taken is dropped.
    fn notice(&self, notice: Notice);

    /// Asks the run's model, on the run's budget. Refused once the call has ended.
    async fn sample(&self, request: SampleRequest) -> Result<Sample, SampleRefusal>;
}

/// Nobody: nothing is shown and no model is asked. For calls that belong to no run.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

#[async_trait]
impl CallHost for NoHost {
    fn notice(&self, _notice: Notice) {}

    async fn sample(&self, _request: SampleRequest) -> Result<Sample, SampleRefusal> {
        Err(SampleRefusal(
            "no model can be asked: this call belongs to no run".to_owned(),
        ))
    }
}
