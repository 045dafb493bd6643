//! What goes on beside the requests: reading the documents, learning from turns, and removing what is too old.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use tidegate_core::{
    clock::days_before,
    port::{ApprovalStore as _, RunStore as _},
};
use tidegate_engine::memory::Worker;

use super::App;

/// How often ended runs that are too old are removed, in seconds.
const PRUNE_INTERVAL_S: u64 = 3_600;

impl App {
    /// Does what goes on beside requests, in tracked tasks.
    pub fn attend(&self) {
        self.spawn_pruning();
        self.spawn_reading();
        self.spawn_learning();
        self.spawn_servers();
    }

    /// Reads the documents, now and whenever they change.
    fn spawn_reading(&self) {
        let Some(knowledge) = &self.knowledge else {
            return;
        };
        let (warming, shutdown) = (Arc::clone(knowledge), self.lifecycle.soft.clone());
        self.lifecycle.tracker.spawn(async move {
            if let Err(error) = warming.warm().await {
                tracing::warn!(%error, "the index of documents could not be read");
            }
            warming.keep_up(shutdown).await;
        });
        if let Some(task) = knowledge.start() {
            self.lifecycle
                .tracker
                .spawn(task.run(self.lifecycle.soft.clone()));
        }
    }

    /// Connects to other MCP servers and keeps them. Nobody waits for it.
    fn spawn_servers(&self) {
        let worker = self
            .servers_worker
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(worker) = worker {
            let soft = self.lifecycle.soft.clone();
            self.lifecycle.tracker.spawn(worker.run(soft));
        }
    }

    /// Learns from finished turns, in the background.
    fn spawn_learning(&self) {
        if let Some(memory) = self.engine.memory() {
            let worker = Worker::new(Arc::clone(memory));
            self.lifecycle
                .tracker
                .spawn(worker.run(self.lifecycle.soft.clone()));
        }
    }

    /// Removes ended runs that are too old, now and every hour.
    fn spawn_pruning(&self) {
        let days = self.settings.config.retention.runs_days;
        if days == 0 {
            return;
        }
        let (store, clock, soft) = (
            Arc::clone(&self.store),
            Arc::clone(&self.clock),
            self.lifecycle.soft.clone(),
        );
        self.lifecycle.tracker.spawn(async move {
            let mut tick = tokio::time::interval(Duration::from_secs(PRUNE_INTERVAL_S));
            while soft.run_until_cancelled(tick.tick()).await.is_some() {
                let Some(before) = days_before(clock.now(), days) else {
                    return;
                };
                if let Err(error) = store.prune_approvals(before).await {
                    tracing::warn!(%error, "old approvals could not be removed");
                }
                match store.prune(before).await {
                    Ok(0) => {}
                    Ok(runs) => tracing::info!(runs, "old runs were removed"),
                    Err(error) => tracing::warn!(%error, "old runs could not be removed"),
                }
            }
        });
    }
}
