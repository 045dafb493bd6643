//! Stores, files, logs and an empty tool box, in memory.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use jiff::civil::Date;
use tidegate_core::{
    clock::Timestamp,
    error::StoreError,
    id::{CallId, KeyId, RunId, UserId},
    key::{KeyPolicy, KeyRecord, PreviousHash},
    port::{
        DayUsage, FileFault, HeldTurn, HeldTurnStore, KeyPage, KeyStore, Ledger, LedgerError, LineLog,
        OperatorFiles, PageRequest, PolicyChange, Reservation, RunStore, UsageRecord,
    },
    run::{Checkpoint, RunEnd, RunRecord, RunState, RunView},
    secret::HashedKey,
    tool::{ToolCall, ToolResult, ToolSpec},
};
use tidegate_gate::{Authorized, Facts, ToolBox, ToolContext};

use crate::http::{ReadinessItem, ReadinessSource};

/// Everything that is kept, in memory.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) keys: Mutex<Vec<KeyRecord>>,
    /// What another process does to a key just before its policy is set, the last one first.
    pub(super) meanwhile: Mutex<Vec<fn(&mut KeyPolicy)>>,
    runs: Mutex<Vec<(RunRecord, Option<RunEnd>)>>,
    pub(super) spent: AtomicU64,
    /// Makes the readiness check panic.
    pub(super) broken: AtomicBool,
}

#[async_trait]
impl KeyStore for Memory {
    async fn find(&self, id: &KeyId) -> Result<Option<KeyRecord>, StoreError> {
        Ok(self
            .keys
            .lock()
            .unwrap()
            .iter()
            .find(|key| key.id == *id)
            .cloned())
    }

    async fn insert(&self, key: &KeyRecord) -> Result<(), StoreError> {
        self.keys.lock().unwrap().push(key.clone());
        Ok(())
    }

    async fn insert_first(&self, key: &KeyRecord) -> Result<bool, StoreError> {
        self.insert(key).await.map(|()| true)
    }

    async fn list(&self, page: &PageRequest) -> Result<KeyPage, StoreError> {
        let mut keys = self.keys.lock().unwrap().clone();
        if page.newest_first {
            keys.reverse();
        }
        let start = page
            .after
            .as_ref()
            .and_then(|id| keys.iter().position(|key| key.id == *id))
            .map_or(0, |at| at + 1);
        let rest = keys.split_off(start);
        let limit = page.limit as usize;
        Ok(KeyPage {
            has_more: rest.len() > limit,
            keys: rest.into_iter().take(limit).collect(),
        })
    }

    async fn set_policy(
        &self,
        id: &KeyId,
        expected: &KeyPolicy,
        new: &KeyPolicy,
    ) -> Result<PolicyChange, StoreError> {
        let mut keys = self.keys.lock().unwrap();
        let Some(key) = keys.iter_mut().find(|key| key.id == *id) else {
            return Ok(PolicyChange::Missing);
        };
        if let Some(meanwhile) = self.meanwhile.lock().unwrap().pop() {
            meanwhile(&mut key.policy);
        }
        if key.policy != *expected {
            return Ok(PolicyChange::Conflict(key.clone()));
        }
        key.policy = new.clone();
        Ok(PolicyChange::Changed(key.clone()))
    }

    async fn rotate(
        &self,
        id: &KeyId,
        new: HashedKey,
        until: Timestamp,
    ) -> Result<Option<KeyRecord>, StoreError> {
        let mut keys = self.keys.lock().unwrap();
        Ok(keys.iter_mut().find(|key| key.id == *id).map(|key| {
            key.previous = Some(PreviousHash {
                hash: key.hash,
                valid_until: until,
            });
            key.hash = new;
            key.clone()
        }))
    }

    async fn delete(&self, id: &KeyId) -> Result<bool, StoreError> {
        let mut keys = self.keys.lock().unwrap();
        let before = keys.len();
        keys.retain(|key| key.id != *id);
        Ok(keys.len() < before)
    }

    fn touch(&self, id: &KeyId, at: Timestamp) {
        if let Some(key) = self.keys.lock().unwrap().iter_mut().find(|key| key.id == *id) {
            key.last_used_at = Some(at);
        }
    }
}

#[async_trait]
impl RunStore for Memory {
    async fn open(&self, run: &RunRecord, _first: &Checkpoint) -> Result<(), StoreError> {
        self.runs.lock().unwrap().push((run.clone(), None));
        Ok(())
    }

    async fn checkpoint(&self, _id: &RunId, _checkpoint: &Checkpoint) -> Result<(), StoreError> {
        Ok(())
    }

    async fn close(&self, id: &RunId, end: &RunEnd) -> Result<(), StoreError> {
        for (record, ended) in self.runs.lock().unwrap().iter_mut() {
            if record.id == *id {
                *ended = Some(end.clone());
            }
        }
        Ok(())
    }

    async fn find(&self, key_id: &KeyId, id: &RunId) -> Result<Option<RunView>, StoreError> {
        let runs = self.runs.lock().unwrap();
        let found = runs
            .iter()
            .find(|(record, _)| record.id == *id && record.key_id == *key_id);
        Ok(found.map(|(record, end)| RunView {
            record: record.clone(),
            state: end.as_ref().map_or(RunState::Running, |end| end.state),
            outcome: end.as_ref().map(|end| end.outcome.clone()),
            ended_at: end.as_ref().map(|end| end.at),
            usage: end.as_ref().map(|end| end.usage).unwrap_or_default(),
            journal: Vec::new(),
        }))
    }

    async fn latest_state(&self, _id: &RunId) -> Result<Option<Checkpoint>, StoreError> {
        Ok(None)
    }

    async fn recover(&self, _now: Timestamp) -> Result<(u64, u64), StoreError> {
        Ok((0, 0))
    }

    async fn prune(&self, _before: Timestamp) -> Result<u64, StoreError> {
        Ok(0)
    }
}

#[async_trait]
impl Ledger for Memory {
    async fn reserve(
        &self,
        _key_id: &KeyId,
        _day: Date,
        _limit_tokens: Option<u64>,
        _estimate_tokens: u64,
    ) -> Result<Reservation, LedgerError> {
        Ok(Reservation::new(0))
    }

    fn record(&self, _record: UsageRecord) {}

    fn spent_tokens(&self, _key_id: &KeyId, _day: Date) -> u64 {
        self.spent.load(Ordering::Relaxed)
    }

    async fn usage(&self, _key_id: &KeyId, first: Date, _last: Date) -> Result<Vec<DayUsage>, StoreError> {
        Ok(vec![DayUsage {
            day: first,
            calls: 1,
            input_tokens: 2,
            output_tokens: 3,
            estimated_tokens: 0,
        }])
    }

    async fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl HeldTurnStore for Memory {
    async fn hold(&self, _turn: &HeldTurn, _now: Timestamp) -> Result<(), StoreError> {
        Ok(())
    }

    async fn find(
        &self,
        _key_id: &KeyId,
        _user: &UserId,
        _call_ids: &[CallId],
        _now: Timestamp,
    ) -> Result<Option<HeldTurn>, StoreError> {
        Ok(None)
    }
}

impl LineLog for Memory {
    fn append(&self, _line: String) {}

    fn dropped(&self) -> u64 {
        0
    }
}

impl OperatorFiles for Memory {
    fn read(&self, path: &Path, _bytes_max: usize) -> Result<String, FileFault> {
        if path.ends_with("AGENT.md") {
            return Ok("You are a test assistant.".to_owned());
        }
        Err(FileFault::Missing(path.display().to_string()))
    }

    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, FileFault> {
        Err(FileFault::Missing(folder.display().to_string()))
    }
}

#[async_trait]
impl ReadinessSource for Memory {
    async fn readiness(&self) -> Vec<ReadinessItem> {
        assert!(!self.broken.load(Ordering::Relaxed), "broken on purpose");
        vec![ReadinessItem {
            name: "model",
            ok: true,
            message: String::new(),
        }]
    }
}

#[async_trait]
impl ToolBox for Memory {
    fn specs(&self) -> Arc<[Arc<ToolSpec>]> {
        Arc::from([])
    }

    fn check(&self, _call: &ToolCall, _spec: &ToolSpec) -> Result<(), ToolResult> {
        Ok(())
    }

    async fn facts(&self, _call: &ToolCall, _spec: &ToolSpec) -> Facts {
        unreachable!("no tool is offered")
    }

    async fn run(&self, _call: Authorized<ToolCall>, _context: &ToolContext) -> ToolResult {
        unreachable!("no tool is offered")
    }
}
