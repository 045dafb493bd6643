//! What the worker does beside the queue: notes that do not follow yet, vectors that are missing, and what is too old.

use std::{sync::Arc, time::Duration};

use tidegate_core::{
    clock::days_before,
    error::StoreError,
    id::UserId,
    port::{Retention, RowKey},
};
use tokio_util::sync::CancellationToken;

use super::super::{Memory, notes::EmbedFault};

/// How often what is too old is removed, in seconds.
const PRUNE_INTERVAL_S: u64 = 3_600;

/// How long a failed embedder is left alone, in seconds.
const EMBEDDER_REST_S: u64 = 60;

/// People whose missing vectors are looked for at once.
const PEOPLE_AT_ONCE: usize = 64;

/// Keeps the house in order until `stop`.
pub(super) async fn keep(memory: Arc<Memory>, stop: CancellationToken) {
    let mut prune = tokio::time::interval(Duration::from_secs(PRUNE_INTERVAL_S));
    let mut rest = Duration::ZERO;
    let keeping = async {
        loop {
            tokio::select! {
                _now = prune.tick() => {
                    if let Err(error) = clear(&memory).await {
                        tracing::warn!(%error, "what is too old to be remembered could not be removed");
                    }
                }
                () = memory.agenda().house.notified() => {}
                () = tokio::time::sleep(rest), if !rest.is_zero() => {}
            }
            align(&memory).await;
            rest = match embed(&memory).await {
                Ok(()) => Duration::ZERO,
                Err(fault) => {
                    tracing::warn!(%fault, "notes have no vectors yet and are found by their words");
                    Duration::from_secs(EMBEDDER_REST_S)
                }
            };
        }
    };
    let _stopped: Option<()> = stop.run_until_cancelled(keeping).await;
}

/// Brings the notes of the people in line who were noted down.
async fn align(memory: &Memory) {
    while let Some(user) = memory.agenda().take_unaligned() {
        if let Err(error) = memory.refresh(&user).await {
            tracing::warn!(%error, "the notes on a person do not follow yet");
        }
    }
}

/// Asks for the vectors that are missing.
async fn embed(memory: &Memory) -> Result<(), EmbedFault> {
    let Some(embedder) = &memory.parts().embedder else {
        return Ok(());
    };
    if !memory.agenda().take_unembedded() {
        return Ok(());
    }
    let model = &embedder.model().id;
    // Whoever was looked at and still has notes without one comes last; so a round without anybody new is the last.
    let mut before: Vec<UserId> = Vec::new();
    loop {
        let users = memory
            .parts()
            .store
            .users_with_unembedded_notes(model, PEOPLE_AT_ONCE)
            .await;
        let users = users.inspect_err(|_| memory.agenda().put_off_embedding())?;
        if users.is_empty() || users == before {
            return Ok(());
        }
        for user in &users {
            let embedding = memory.embed(user).await;
            embedding.inspect_err(|_| memory.agenda().put_off_embedding())?;
        }
        before = users;
    }
}

/// Removes what is too old, or too much.
async fn clear(memory: &Memory) -> Result<(), StoreError> {
    let parts = memory.parts();
    let now = parts.clock.now();
    for kind in memory.kinds().iter().filter(|kind| kind.retention_days > 0) {
        let Some(before) = days_before(now, kind.retention_days) else {
            continue;
        };
        let retention = Retention {
            kind: Some(kind.name.clone()),
            before: Some(before),
            ..Retention::default()
        };
        prune(memory, &retention).await?;
    }
    let retention = Retention {
        newest_max: Some(parts.options.kept_per_person_max),
        ..Retention::default()
    };
    prune(memory, &retention).await?;
    if parts.options.dead_days > 0
        && let Some(before) = days_before(now, parts.options.dead_days)
    {
        let turns = parts.queue.prune_captures(before).await?;
        if turns > 0 {
            tracing::info!(turns, "turns that were given up long ago were removed");
        }
    }
    Ok(())
}

async fn prune(memory: &Memory, retention: &Retention) -> Result<(), StoreError> {
    let (mut from, mut observations): (RowKey, u64) = (0, 0);
    loop {
        let pruned = memory.parts().store.prune_observations(retention, from).await?;
        observations += pruned.observations;
        for user in &pruned.users {
            memory.agenda().align_later(user);
        }
        match pruned.next {
            Some(next) => from = next,
            None => break,
        }
    }
    if observations > 0 {
        tracing::info!(
            observations,
            "what was said too long ago, or too much, is no longer remembered"
        );
    }
    Ok(())
}
