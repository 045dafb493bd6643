//! What tools that plan for a person may take for granted: what is believed of them, by the kinds that ship.

use std::time::Duration;

use tidegate_core::{
    error::StoreError,
    id::UserId,
    memory::{Fact, FactState},
};
use tidegate_gate::Learner;

use super::{Memory, capture};
use crate::turn::Turn;

/// The kinds, by the names of the table that ships. Where an operator has others, nothing is known.
const LEVEL: &str = "grade_level";
const SUBJECT: &str = "subject_focus";
const GAP: &str = "knowledge_gap";

/// The most gaps that are told, the newest first.
const GAPS_MAX: usize = 10;

/// What is known of the person of a turn. Nothing, where nobody speaks, recall is off, or the store fails.
pub(crate) async fn of(turn: &Turn) -> Learner {
    let (Some(memory), true) = (turn.engine.memory(), capture::is_person(turn.request.origin)) else {
        return Learner::default();
    };
    let limit = Duration::from_millis(memory.parts().options.recall_timeout_ms);
    match tokio::time::timeout(limit, learner(memory, &turn.caller.user)).await {
        Ok(Ok(learner)) => learner,
        Ok(Err(error)) => {
            tracing::warn!(%error, "what is known of the person cannot be read; a plan is made without");
            Learner::default()
        }
        Err(_elapsed) => {
            tracing::warn!("recall took too long; a plan is made without");
            Learner::default()
        }
    }
}

async fn learner(memory: &Memory, user: &UserId) -> Result<Learner, StoreError> {
    let (of_person, of_key) = memory.parts().store.switches(user).await?;
    if !of_person.and(of_key).recall {
        return Ok(Learner::default());
    }
    Ok(known(&memory.person(user).await?.facts))
}

fn known(facts: &[Fact]) -> Learner {
    let believed = |kind: &'static str| {
        facts
            .iter()
            .filter(move |fact| fact.kind == kind && fact.state == FactState::Stable)
    };
    let newest = |kind| {
        believed(kind)
            .max_by_key(|fact| fact.last_at)
            .map(|fact| fact.value.clone())
    };
    let mut gaps: Vec<&Fact> = believed(GAP).collect();
    gaps.sort_by_key(|fact| std::cmp::Reverse(fact.last_at));
    Learner {
        level: newest(LEVEL),
        subject: newest(SUBJECT),
        gaps: gaps
            .into_iter()
            .take(GAPS_MAX)
            .map(|fact| fact.value.clone())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::{clock::Timestamp, id::FactId, memory::Basis};

    use super::*;

    fn fact(kind: &str, value: &str, state: FactState, second: i64) -> Fact {
        let at = Timestamp::from_second(second).unwrap();
        Fact {
            id: FactId::new(value),
            kind: kind.to_owned(),
            value: value.to_owned(),
            state,
            basis: Basis::Days,
            days: 3,
            valid_from: at,
            valid_to: None,
            last_at: at,
            other: None,
            evidence: Vec::new(),
        }
    }

    #[test]
    fn only_what_is_believed_is_taken_for_granted() {
        let learner = known(&[
            fact(LEVEL, "9", FactState::Stable, 5),
            fact(SUBJECT, "biology", FactState::Contested, 5),
            fact(GAP, "genes", FactState::Stable, 1),
            fact(GAP, "cells", FactState::Candidate, 2),
            fact(GAP, "dna", FactState::Stable, 3),
            fact("role", "teacher", FactState::Stable, 3),
        ]);
        let expected = Learner {
            level: Some("9".to_owned()),
            subject: None,
            gaps: vec!["dna".to_owned(), "genes".to_owned()],
        };
        assert_eq!(learner, expected);
    }
}
