//! What one model call may take: set aside before the model is asked, and told to it.
//!
//! A quota is not overrun only if the answer's length counts before it is there. So a call reserves its prompt
//! and the longest answer it may have; what it did not take goes back when it is booked. Near the end of a
//! quota the answer is made shorter instead of refused.

use jiff::civil::Date;
use tidegate_core::{
    model::ModelRequest,
    port::{LedgerError, Need, Reservation},
};

use crate::{event::RunError, meter::estimate_prompt_tokens, turn::Turn};

/// By how much a prompt may turn out longer than it was estimated: text other than English prose has up to
/// twice the tokens.
const PROMPT_MARGIN: u64 = 2;

/// What one call was allowed.
#[derive(Debug)]
pub(crate) struct Allowance {
    /// The day the tokens were reserved on.
    pub(crate) day: Date,
    /// Which reservation the call's record gives back.
    pub(crate) reservation: Reservation,
    /// About how many tokens the prompt has.
    pub(crate) prompt_tokens: u64,
    /// Whether the quota leaves the answer less room than it would have had.
    pub(crate) is_shortened: bool,
}

/// Reserves what `request` may take. For a key with a quota the request then says how long its answer may be.
pub(crate) async fn reserve(turn: &Turn, request: &mut ModelRequest) -> Result<Allowance, RunError> {
    let engine = &turn.engine;
    let day = engine.today();
    let (key_id, limit) = (&turn.caller.key_id, turn.caller.tokens_per_day);
    let prompt_tokens = estimate_prompt_tokens(request);
    let answer_tokens = longest_answer(request, engine.options().quota_answer_tokens_max);
    let need = need(prompt_tokens, answer_tokens);
    let grant = match engine.ledger().reserve_up_to(key_id, day, limit, need).await {
        Ok(grant) => grant,
        Err(LedgerError::QuotaSpent {
            limit_tokens,
            left_tokens,
        }) => {
            return Err(RunError::QuotaSpent {
                limit_tokens,
                left_tokens,
                needed_tokens: need.least_tokens,
                retry_after_s: engine.seconds_left_today(),
            });
        }
        Err(LedgerError::Store(error)) => return Err(error.into()),
    };
    let granted = granted_answer(prompt_tokens, answer_tokens, grant.tokens);
    if limit.is_some() {
        request.sampling.tokens_max = Some(granted);
    }
    Ok(Allowance {
        day,
        reservation: grant.reservation,
        prompt_tokens,
        is_shortened: granted < answer_tokens,
    })
}

/// The longest answer that a request may have; `unbounded_max` where nothing bounds it.
fn longest_answer(request: &ModelRequest, unbounded_max: u64) -> u64 {
    let told = request.sampling.tokens_max.unwrap_or(unbounded_max);
    told.min(request.model.context_tokens.unwrap_or(u64::MAX)).max(1)
}

/// What a call may need: its prompt, and the longest answer it may have.
pub(crate) fn need(prompt_tokens: u64, answer_tokens: u64) -> Need {
    Need {
        least_tokens: prompt_tokens.saturating_add(1),
        most_tokens: prompt_tokens
            .saturating_mul(PROMPT_MARGIN)
            .saturating_add(answer_tokens),
    }
}

/// How long the answer may be with so many tokens for the whole call.
fn granted_answer(prompt_tokens: u64, answer_tokens: u64, granted_tokens: u64) -> u64 {
    granted_tokens
        .saturating_sub(prompt_tokens)
        .min(answer_tokens)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_as_long_as_it_may_be_and_as_what_is_left() {
        let full = need(100, 1_000);
        assert_eq!((full.least_tokens, full.most_tokens), (101, 1_200));
        for (granted, answer) in [(1_200, 1_000), (1_100, 1_000), (1_099, 999), (101, 1), (50, 1)] {
            assert_eq!(granted_answer(100, 1_000, granted), answer, "{granted}");
        }
        let huge = need(u64::MAX, u64::MAX);
        assert_eq!((huge.least_tokens, huge.most_tokens), (u64::MAX, u64::MAX));
    }
}
