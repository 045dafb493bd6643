//! What a run costs: tokens, summed over every internal model call and attributed to a role.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// What a model call was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The planner: the agent's own turn.
    Main,
    /// A sub-agent.
    Subagent,
    /// Memory extraction.
    Memory,
    /// Plan audit.
    Audit,
}

impl Role {
    /// The role's name in the ledger.
    pub fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Subagent => "subagent",
            Self::Memory => "memory",
            Self::Audit => "audit",
        }
    }
}

/// Tokens of one or more model calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Prompt tokens.
    pub input_tokens: u64,
    /// Answer tokens, reasoning included.
    pub output_tokens: u64,
    /// Prompt tokens the provider had cached.
    #[serde(default)]
    pub cached_tokens: u64,
    /// Answer tokens spent on reasoning.
    #[serde(default)]
    pub reasoning_tokens: u64,
    /// True where at least one call reported no usage and it was estimated.
    #[serde(default)]
    pub estimated: bool,
}

impl Usage {
    /// Prompt and answer together.
    pub fn total_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(other.reasoning_tokens);
        self.estimated = self.estimated || other.estimated;
    }
}
