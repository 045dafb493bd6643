//! All tools of all servers, as one list that changes as a whole.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use tidegate_core::tool::ToolSpec;

use crate::slot::Slot;

/// A tool and the server it belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) slot: Arc<Slot>,
    /// The name that the server knows it by.
    pub(crate) raw: String,
    pub(crate) spec: Arc<ToolSpec>,
}

/// One state of the list.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) specs: Arc<[Arc<ToolSpec>]>,
    pub(crate) entries: HashMap<String, Entry>,
}

/// The servers and the list of their tools.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    slots: RwLock<BTreeMap<String, Arc<Slot>>>,
    snapshot: RwLock<Arc<Snapshot>>,
    building: Mutex<()>,
    /// Rows that are there whatever servers there are.
    always: Vec<Arc<ToolSpec>>,
}

impl Registry {
    pub(crate) fn new(always: Vec<Arc<ToolSpec>>) -> Self {
        Self {
            always,
            ..Self::default()
        }
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn slots(&self) -> BTreeMap<String, Arc<Slot>> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn slot(&self, server: &str) -> Option<Arc<Slot>> {
        self.slots
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(server)
            .cloned()
    }

    /// Puts other servers in the place of all.
    pub(crate) fn set(&self, slots: BTreeMap<String, Arc<Slot>>) {
        *self.slots.write().unwrap_or_else(PoisonError::into_inner) = slots;
        self.rebuild();
    }

    /// Makes the list anew from what the servers offer now.
    pub(crate) fn rebuild(&self) {
        let _one_at_a_time = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        let slots = self.slots();
        let mut entries = HashMap::new();
        let mut specs = Vec::new();
        for slot in slots.values() {
            for tool in &slot.catalog().tools {
                specs.push(Arc::clone(&tool.spec));
                entries.insert(
                    tool.spec.name.clone(),
                    Entry {
                        slot: Arc::clone(slot),
                        raw: tool.raw.clone(),
                        spec: Arc::clone(&tool.spec),
                    },
                );
            }
        }
        let has_servers = slots.values().any(|slot| slot.server.enabled);
        specs.extend(self.always.iter().filter(|_| has_servers).cloned());
        let snapshot = Snapshot {
            specs: specs.into(),
            entries,
        };
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
    }
}
