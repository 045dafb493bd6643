//! The bounds of a turn, counted and enforced in one place.

use std::collections::BTreeMap;

use tidegate_core::usage::{Role, Usage};

use crate::{Options, graph::Unrunnable, sampling::Aside};

/// What a turn has used up.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub(crate) struct Spent {
    /// Model calls.
    pub(crate) rounds: u32,
    /// Tool calls.
    pub(crate) calls: usize,
    /// Tokens by role.
    pub(crate) usage_by_role: BTreeMap<Role, Usage>,
    /// What they cost, in US dollars, by the operator's prices.
    pub(crate) cost_usd: f64,
}

/// The bounds of one turn and what it has used up of them.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    rounds_max: u32,
    calls_per_round_max: usize,
    calls_per_turn_max: usize,
    tokens_max: u64,
    cost_usd_max: f64,
    spent: Spent,
}

impl Budget {
    /// A fresh budget.
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            rounds_max: options.rounds_max.max(1),
            calls_per_round_max: options.calls_per_round_max,
            calls_per_turn_max: options.calls_per_turn_max,
            tokens_max: options.turn_tokens_max,
            cost_usd_max: options.max_turn_cost_usd,
            spent: Spent::default(),
        }
    }

    /// What has been used up.
    pub(crate) fn spent(&self) -> &Spent {
        &self.spent
    }

    /// Counts a model call.
    pub(crate) fn count_round(&mut self) {
        self.spent.rounds += 1;
    }

    /// Books what a model call cost.
    pub(crate) fn book(&mut self, role: Role, usage: Usage, cost_usd: f64) {
        self.spent.cost_usd += cost_usd;
        *self.spent.usage_by_role.entry(role).or_default() += usage;
    }

    /// The sum over every internal call.
    pub(crate) fn usage(&self) -> Usage {
        let mut sum = Usage::default();
        for usage in self.spent.usage_by_role.values() {
            sum += *usage;
        }
        sum
    }

    /// Whether another ordinary round may follow; if not, the last word is due.
    pub(crate) fn has_round(&self) -> bool {
        self.spent.rounds < self.rounds_max && self.spent.calls < self.calls_per_turn_max
    }

    /// Whether another model call beside the rounds may follow those that are not booked yet.
    pub(crate) fn has_room_beside(&self, aside: &Aside) -> bool {
        let tokens = self.usage().total_tokens().saturating_add(aside.usage.total_tokens());
        let cost_usd = self.spent.cost_usd + aside.cost_usd;
        self.spent.rounds.saturating_add(aside.rounds) < self.rounds_max
            && (self.tokens_max == 0 || tokens < self.tokens_max)
            && (self.cost_usd_max <= 0.0 || cost_usd < self.cost_usd_max)
    }

    /// Whether there were model calls beside the rounds.
    pub(crate) fn has_sampled(&self) -> bool {
        self.spent.usage_by_role.contains_key(&Role::Sampling)
    }

    /// Books model calls beside the rounds.
    pub(crate) fn book_aside(&mut self, aside: &Aside) {
        if aside.rounds > 0 {
            self.spent.rounds = self.spent.rounds.saturating_add(aside.rounds);
            self.book(Role::Sampling, aside.usage, aside.cost_usd);
        }
    }

    /// Whether the turn's tokens are spent.
    pub(crate) fn tokens_spent(&self) -> bool {
        self.tokens_max > 0 && self.usage().total_tokens() >= self.tokens_max
    }

    /// Whether the turn's money is spent.
    pub(crate) fn cost_spent(&self) -> bool {
        self.cost_usd_max > 0.0 && self.spent.cost_usd >= self.cost_usd_max
    }

    /// Admits the call at `index` of its reply, or says why it is not run.
    pub(crate) fn admit_call(&mut self, index: usize) -> Result<(), Unrunnable> {
        if index >= self.calls_per_round_max {
            return Err(Unrunnable::RoundFull);
        }
        if self.spent.calls >= self.calls_per_turn_max {
            return Err(Unrunnable::TurnFull);
        }
        self.spent.calls += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_admitted_up_to_both_bounds() {
        let mut budget = Budget::new(&Options {
            calls_per_round_max: 2,
            calls_per_turn_max: 3,
            ..Options::default()
        });
        assert_eq!(budget.admit_call(0), Ok(()));
        assert_eq!(budget.admit_call(1), Ok(()));
        assert_eq!(budget.admit_call(2), Err(Unrunnable::RoundFull));
        assert_eq!(budget.admit_call(0), Ok(()));
        assert_eq!(budget.admit_call(1), Err(Unrunnable::TurnFull));
        assert!(!budget.has_round());
    }

    #[test]
    fn usage_is_summed_over_roles() {
        let mut budget = Budget::new(&Options {
            turn_tokens_max: 10,
            max_turn_cost_usd: 0.5,
            ..Options::default()
        });
        budget.book(
            Role::Main,
            Usage {
                input_tokens: 4,
                output_tokens: 1,
                ..Usage::default()
            },
            0.25,
        );
        assert!(!budget.tokens_spent() && !budget.cost_spent());
        budget.book(
            Role::Memory,
            Usage {
                input_tokens: 4,
                output_tokens: 1,
                ..Usage::default()
            },
            0.25,
        );
        assert_eq!(budget.usage().total_tokens(), 10);
        assert!(budget.tokens_spent() && budget.cost_spent());
        assert!(!Budget::new(&Options::default()).cost_spent());
    }
}
