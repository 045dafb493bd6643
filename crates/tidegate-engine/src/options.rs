//! The engine's settings, with defaults that are right for a newcomer.

use serde::{Deserialize, Serialize};
use tidegate_core::caller::{Attendance, Mode};

/// Bounds of a turn and of what it keeps. `[engine]` in `tidegate.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Where set, the most any run may be allowed whatever its key's ceiling, and the mode of surfaces that have
    /// no key. Unset: the key's ceiling alone (a new key's is `readonly`), and `readonly` where there is no key.
    pub default_permission_mode: Option<Mode>,
    /// Whether somebody can answer questions: `attended`, or nobody is there and they count as answered with
    /// `deny` or `approve`. Scheduled runs are never attended.
    pub attendance: Attendance,
    /// How long a question waits for an answer, and an approval for the call that spends it, in seconds.
    pub approval_s: u64,
    /// Refusals and questions in a row after which a turn ends with the model's report; 0 means no bound.
    pub denials_max: u32,
    /// Model calls in one turn.
    pub rounds_max: u32,
    /// Tool calls in one model reply; the rest are answered with an error.
    pub calls_per_round_max: usize,
    /// Tool calls in one turn.
    pub calls_per_turn_max: usize,
    /// Calls that run side by side in one wave.
    pub parallel_reads_max: usize,
    /// Server tools that a model is shown at once. Where a key has more, those of other servers are found by
    /// `search_tools`; 0 means no bound.
    pub tools_offered_max: usize,
    /// Bytes of their names, descriptions and schemas that a model is shown at once, to the same effect; 0 means no
    /// bound.
    pub tools_offered_bytes_max: usize,
    /// Wall time of a turn, in milliseconds.
    pub turn_timeout_ms: u64,
    /// Tokens of a turn, prompt and answer of every call together; 0 means no bound.
    pub turn_tokens_max: u64,
    /// What a turn may cost, in US dollars, every call together; 0 means no bound. Counts models with a price.
    pub max_turn_cost_usd: f64,
    /// Characters of one tool result that the model sees; the full text stays retrievable by `last_output`.
    pub result_chars_max: usize,
    /// Turns of one key under way at once.
    pub turns_per_key_max: usize,
    /// Bytes of one checkpoint's state; a larger one is kept without its state.
    pub checkpoint_bytes_max: usize,
    /// Answer tokens asked of the model where the client names no number; 0 leaves it to the model's server.
    pub answer_tokens_max: u64,
    /// Answer tokens of a call of a key with a daily quota where neither the client nor `answer_tokens_max` bounds
    /// them: what may be spent must be reserved, so it must be bounded.
    pub quota_answer_tokens_max: u64,
    /// How long server calls of a mixed turn wait for the client's answer, in seconds.
    pub held_turn_s: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            default_permission_mode: None,
            attendance: Attendance::Attended,
            approval_s: 300,
            denials_max: 3,
            rounds_max: 10,
            calls_per_round_max: 32,
            calls_per_turn_max: 100,
            parallel_reads_max: 16,
            tools_offered_max: 64,
            tools_offered_bytes_max: 65_536,
            turn_timeout_ms: 600_000,
            turn_tokens_max: 0,
            max_turn_cost_usd: 0.0,
            result_chars_max: 12_000,
            turns_per_key_max: 16,
            checkpoint_bytes_max: 1 << 20,
            answer_tokens_max: 0,
            quota_answer_tokens_max: 8192,
            held_turn_s: 3600,
        }
    }
}
