//! What a run costs: tokens, summed over every internal model call and attributed to a role.

use std::{collections::BTreeMap, ops::AddAssign};

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
    /// A question that another server had while it worked on a call.
    Sampling,
}

impl Role {
    /// The role's name in the ledger.
    pub fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Subagent => "subagent",
            Self::Memory => "memory",
            Self::Audit => "audit",
            Self::Sampling => "sampling",
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

/// What a model's tokens cost. A negative price counts as none.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Price {
    /// A thousand prompt tokens, in US dollars.
    pub cost_per_1k_input_usd: f64,
    /// A thousand answer tokens, in US dollars.
    pub cost_per_1k_output_usd: f64,
}

impl Price {
    /// What these tokens cost, in US dollars.
    pub fn cost_usd(self, usage: Usage) -> f64 {
        let thousands = |tokens: u64| f64::from(u32::try_from(tokens).unwrap_or(u32::MAX)) / 1000.0;
        let input_usd = self.cost_per_1k_input_usd.max(0.0) * thousands(usage.input_tokens);
        let output_usd = self.cost_per_1k_output_usd.max(0.0) * thousands(usage.output_tokens);
        input_usd + output_usd
    }
}

/// The operator's prices, by a model's name at its provider, or by the provider's own for all of its models.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Prices(BTreeMap<String, Price>);

impl Prices {
    /// The price of a model; `None` where the operator names none.
    pub fn of(&self, provider: &str, model: &str) -> Option<Price> {
        self.0.get(model).or_else(|| self.0.get(provider)).copied()
    }

    /// Whether the operator names no price at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, Price)> for Prices {
    fn from_iter<I: IntoIterator<Item = (String, Price)>>(prices: I) -> Self {
        Self(prices.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_own_price_comes_before_its_providers() {
        let price = |cost_per_1k_input_usd| Price {
            cost_per_1k_input_usd,
            cost_per_1k_output_usd: 2.0,
        };
        let prices: Prices = [
            ("small".to_owned(), price(0.5)),
            ("house".to_owned(), price(-1.0)),
        ]
        .into_iter()
        .collect();
        let usage = Usage {
            input_tokens: 4000,
            output_tokens: 500,
            ..Usage::default()
        };
        let cost = |provider, model| prices.of(provider, model).map(|price| price.cost_usd(usage));
        assert_eq!(cost("house", "small"), Some(3.0));
        assert_eq!(cost("house", "large"), Some(1.0), "a negative price is none");
        assert_eq!(cost("other", "large"), None);
    }
}
