//! `[memory]` in `tidegate.toml`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tidegate_memory::{boundary::Limits, briefing, recall};

/// The name of the default model.
pub const DEFAULT_MODEL: &str = "tidegate";

/// Who looks for facts in what a person wrote. Neither is believed: what they find is held to the person's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extractor {
    /// Fixed rules for the kinds that ship: they cost nothing, and nothing leaves the process. The default, so that
    /// memory works with small models and with none, and nobody pays for a second call a turn without having asked.
    #[default]
    Rules,
    /// The model of [`Options::model`].
    Model,
    /// Both. What the rules find is kept where the model keeps failing.
    Both,
}

impl Extractor {
    /// Whether a model is asked.
    pub fn asks_model(self) -> bool {
        match self {
            Self::Rules => false,
            Self::Model | Self::Both => true,
        }
    }

    /// Whether the rules are asked.
    pub fn asks_rules(self) -> bool {
        match self {
            Self::Model => false,
            Self::Rules | Self::Both => true,
        }
    }
}

/// How memory works.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Whether anything is learned from people and told of them at all.
    pub enabled: bool,
    /// The table of kinds; the built-in one where the file does not exist.
    pub kinds_file: PathBuf,
    /// People whose facts are kept at hand, so that a request need not work them out anew.
    pub people_cached_max: usize,

    /// How long each step of recall may take, in milliseconds; then the request goes on with what there is.
    pub recall_timeout_ms: u64,
    /// The most notes that a request is told.
    pub recall_notes_max: usize,
    /// How many of them may be uncertain.
    pub recall_uncertain_max: usize,
    /// The longest notes, in characters.
    pub recall_chars_max: usize,
    /// How many notes a search for a question brings up.
    pub recall_limit: usize,
    /// The constant of reciprocal rank fusion.
    pub recall_rrf_k: u32,
    /// How much a rank among the vectors counts against the same one among the words, from 0 to 1.
    pub recall_vector_weight: f32,
    /// The longest answer to "what do you know about me?", in characters.
    pub about_me_chars_max: usize,

    /// Who looks for facts.
    pub extractor: Extractor,
    /// The model that does, by a name that `GET /v1/models` gives.
    pub model: String,
    /// How long the model may take for one turn, in milliseconds.
    pub model_timeout_ms: u64,
    /// The longest reply of the model, in tokens.
    pub model_tokens_max: u64,
    /// Observations that are kept of one turn.
    pub per_turn_max: usize,
    /// Observations that are kept of one person's local day.
    pub per_day_max: usize,
    /// From how many observations on nothing more is learned of a person.
    pub per_person_max: usize,

    /// Turns that are learned from at once.
    pub workers_max: usize,
    /// How often a turn is tried before it is given up.
    pub attempts_max: u32,
    /// The wait after the first failure, in milliseconds; it doubles with each further one.
    pub retry_initial_delay_ms: u64,
    /// The longest wait, in milliseconds.
    pub retry_delay_max_ms: u64,
    /// How long a stop waits for turns that are being learned from, in milliseconds; then they are put back.
    pub drain_timeout_ms: u64,
    /// Days for which turns that were given up are kept; 0 for ever.
    pub dead_days: u32,
    /// Observations of one person that are kept; the oldest go.
    pub kept_per_person_max: u32,
}

impl Default for Options {
    fn default() -> Self {
        let (limits, told, search) = (
            Limits::default(),
            briefing::Options::default(),
            recall::Options::default(),
        );
        Self {
            enabled: true,
            kinds_file: "memory-kinds.toml".into(),
            people_cached_max: 256,
            recall_timeout_ms: 300,
            recall_notes_max: told.notes_max,
            recall_uncertain_max: told.candidates_max,
            recall_chars_max: told.chars_max,
            recall_limit: search.limit,
            recall_rrf_k: search.rrf_k,
            recall_vector_weight: search.vector_weight,
            about_me_chars_max: 6_000,
            extractor: Extractor::Rules,
            model: DEFAULT_MODEL.to_owned(),
            model_timeout_ms: 60_000,
            model_tokens_max: 800,
            per_turn_max: limits.per_turn,
            per_day_max: limits.per_day,
            per_person_max: limits.per_user,
            workers_max: 2,
            attempts_max: 5,
            retry_initial_delay_ms: 5_000,
            retry_delay_max_ms: 600_000,
            drain_timeout_ms: 3_000,
            dead_days: 14,
            kept_per_person_max: 20_000,
        }
    }
}

impl Options {
    /// How much is kept.
    pub(super) fn limits(&self) -> Limits {
        Limits {
            per_turn: self.per_turn_max,
            per_day: self.per_day_max,
            per_user: self.per_person_max,
        }
    }

    /// How much a request is told.
    pub(super) fn briefing(&self) -> briefing::Options {
        briefing::Options {
            chars_max: self.recall_chars_max,
            notes_max: self.recall_notes_max,
            candidates_max: self.recall_uncertain_max,
        }
    }

    /// How notes are searched.
    pub(super) fn search(&self, limit: usize) -> recall::Options {
        recall::Options {
            rrf_k: self.recall_rrf_k,
            vector_weight: self.recall_vector_weight,
            limit,
            ..recall::Options::default()
        }
    }
}
