//! What is still missing, for `/health/ready`. Strangers read it: no path, no host, no id.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tidegate_core::{
    clock::{Clock, Timestamp},
    port::{KeyStore as _, KnowledgeBase, LineLog, PageRequest},
};
use tidegate_engine::{Engine, Memory};
use tidegate_store::Store;

use crate::{
    config,
    http::{ReadinessItem, ReadinessSource},
};

/// How long the index may take to say how it does: whoever probes gives up soon.
const STATUS_WAIT: Duration = Duration::from_secs(2);

/// From when on a turn has waited too long to be learned from.
const LATE_AFTER: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);

/// Knows what is in place.
#[derive(Debug)]
pub(super) struct Readiness {
    pub(super) store: Arc<Store>,
    pub(super) engine: Arc<Engine>,
    pub(super) missing_model: Option<String>,
    pub(super) logs: Vec<Arc<dyn LineLog>>,
    pub(super) policy_is_stale: Arc<AtomicBool>,
    pub(super) knowledge: Option<Arc<dyn KnowledgeBase>>,
    pub(super) clock: Arc<dyn Clock>,
}

#[async_trait]
impl ReadinessSource for Readiness {
    async fn readiness(&self) -> Vec<ReadinessItem> {
        let first = PageRequest {
            after: None,
            limit: 1,
            newest_first: false,
        };
        let database = match self.store.list(&first).await {
            Ok(_) => self
                .store
                .write_fault()
                .map(|fault| format!("nothing can be written to the database: {fault}")),
            Err(_) => Some("the database does not answer; `tidegate doctor` says why".to_owned()),
        };
        let faults = self.engine.faults();
        let documents = documents(self.knowledge.as_deref()).await;
        let memory = memory(self.engine.memory().map(AsRef::as_ref), self.clock.now()).await;
        let dropped: u64 = self.logs.iter().map(|log| log.dropped()).sum();
        vec![
            ReadinessItem {
                name: "database",
                ok: database.is_none(),
                message: database.unwrap_or_default(),
            },
            ReadinessItem {
                name: "model",
                ok: self.missing_model.is_none(),
                message: self.missing_model.clone().unwrap_or_default(),
            },
            // A fault here is shown and stops nothing: the last good version is served.
            ReadinessItem {
                name: "instructions",
                ok: true,
                message: faults.join("; "),
            },
            ReadinessItem {
                name: "policy",
                ok: true,
                message: if self.policy_is_stale.load(Ordering::Relaxed) {
                    "the policy was read again and cannot be used; the last good one is in force, and the log says \
                     which entry is wrong"
                        .into()
                } else {
                    String::new()
                },
            },
            // Without vectors a search goes by words, and without documents the rest goes on.
            ReadinessItem {
                name: "knowledge",
                ok: true,
                message: documents,
            },
            // What waits to be learned from is late, and answers go on.
            ReadinessItem {
                name: "memory",
                ok: true,
                message: memory,
            },
            ReadinessItem {
                name: "logs",
                ok: true,
                message: if dropped == 0 {
                    String::new()
                } else {
                    format!("{dropped} log lines were lost; the disk is full, slow or not writable")
                },
            },
        ]
    }
}

/// What is wrong with learning just now.
async fn memory(memory: Option<&Memory>, now: Timestamp) -> String {
    let Some(memory) = memory else {
        return String::new();
    };
    let Ok(Ok(counts)) = tokio::time::timeout(STATUS_WAIT, memory.counts()).await else {
        return "memory does not answer; `tidegate doctor` says why".into();
    };
    let is_late = counts
        .oldest_at
        .is_some_and(|oldest| now.duration_since(oldest) > LATE_AFTER);
    if counts.dead > 0 {
        format!(
            "learning was given up for {}; `tidegate doctor` says what to do",
            turns(counts.dead)
        )
    } else if is_late {
        format!(
            "learning is late: {} wait, some for more than an hour; the log says why",
            turns(counts.waiting + counts.leased)
        )
    } else {
        String::new()
    }
}

fn turns(count: u64) -> String {
    config::count(usize::try_from(count).unwrap_or(usize::MAX), "turn")
}

/// What is wrong with the documents just now, without the names and addresses that `kb status` gives.
async fn documents(knowledge: Option<&dyn KnowledgeBase>) -> String {
    let Some(knowledge) = knowledge else {
        return String::new();
    };
    match tokio::time::timeout(STATUS_WAIT, knowledge.status()).await {
        Ok(Ok(status)) if status.problems.is_empty() => String::new(),
        Ok(Ok(_)) => "something is wrong with the embedder, the vectors or the folder, and searches may go by words alone; \
                  `tidegate kb status` says what"
            .into(),
        Ok(Err(_)) | Err(_) => "the index does not answer; `tidegate doctor` says why".into(),
    }
}
