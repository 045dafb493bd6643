//! What is still missing, for `/health/ready`. Strangers read it: no path, no host, no id.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tidegate_core::port::{KeyStore, KnowledgeBase, LineLog, PageRequest};
use tidegate_engine::Engine;

use crate::http::{ReadinessItem, ReadinessSource};

/// How long the index may take to say how it does: whoever probes gives up soon.
const STATUS_WAIT: Duration = Duration::from_secs(2);

/// Knows what is in place.
#[derive(Debug)]
pub(super) struct Readiness {
    pub(super) keys: Arc<dyn KeyStore>,
    pub(super) engine: Arc<Engine>,
    pub(super) missing_model: Option<String>,
    pub(super) logs: Vec<Arc<dyn LineLog>>,
    pub(super) policy_is_stale: Arc<AtomicBool>,
    pub(super) knowledge: Option<Arc<dyn KnowledgeBase>>,
}

#[async_trait]
impl ReadinessSource for Readiness {
    async fn readiness(&self) -> Vec<ReadinessItem> {
        let first = PageRequest {
            after: None,
            limit: 1,
            newest_first: false,
        };
        let database = self.keys.list(&first).await;
        let faults = self.engine.faults();
        let documents = documents(self.knowledge.as_deref()).await;
        let dropped: u64 = self.logs.iter().map(|log| log.dropped()).sum();
        vec![
            ReadinessItem {
                name: "database",
                ok: database.is_ok(),
                message: if database.is_ok() {
                    String::new()
                } else {
                    "the database does not answer; `tidegate doctor` says why".into()
                },
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
