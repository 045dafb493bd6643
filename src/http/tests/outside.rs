//! What lies outside of the front end and cannot be had for real in a test: another process that changes keys
//! at the worst moment, and a readiness check that breaks.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use tidegate_core::{
    clock::Timestamp,
    error::StoreError,
    id::KeyId,
    key::{KeyPolicy, KeyRecord},
    port::{KeyPage, KeyRemoval, LastAdmin, PageRequest, PolicyChange},
    secret::HashedKey,
};
use tidegate_store::Store;

use crate::http::{KeyStore, ReadinessItem, ReadinessSource};

/// The keys of the real store, with a command line beside the daemon that is always faster.
#[derive(Debug)]
pub(super) struct Keys {
    pub(super) store: Store,
    /// What another process does to a key just before its policy is set, the last one first.
    pub(super) meanwhile: Mutex<Vec<fn(&mut KeyPolicy)>>,
}

#[async_trait]
impl KeyStore for Keys {
    async fn find(&self, id: &KeyId) -> Result<Option<KeyRecord>, StoreError> {
        KeyStore::find(&self.store, id).await
    }

    async fn insert(&self, key: &KeyRecord) -> Result<(), StoreError> {
        self.store.insert(key).await
    }

    async fn insert_first(&self, key: &KeyRecord) -> Result<bool, StoreError> {
        self.store.insert_first(key).await
    }

    async fn list(&self, page: &PageRequest) -> Result<KeyPage, StoreError> {
        self.store.list(page).await
    }

    async fn set_policy(
        &self,
        id: &KeyId,
        expected: &KeyPolicy,
        new: &KeyPolicy,
        last_admin: LastAdmin,
    ) -> Result<PolicyChange, StoreError> {
        let meanwhile = self.meanwhile.lock().unwrap().pop();
        if let Some(change) = meanwhile {
            let mut policy = expected.clone();
            change(&mut policy);
            self.store
                .set_policy(id, expected, &policy, LastAdmin::MayGo)
                .await?;
        }
        self.store.set_policy(id, expected, new, last_admin).await
    }

    async fn rotate(
        &self,
        id: &KeyId,
        new: HashedKey,
        old_valid_until: Timestamp,
    ) -> Result<Option<KeyRecord>, StoreError> {
        self.store.rotate(id, new, old_valid_until).await
    }

    async fn delete(&self, id: &KeyId, last_admin: LastAdmin) -> Result<KeyRemoval, StoreError> {
        self.store.delete(id, last_admin).await
    }

    fn touch(&self, id: &KeyId, at: Timestamp) {
        self.store.touch(id, at);
    }
}

/// A daemon that lacks nothing, until its check breaks.
#[derive(Debug, Default)]
pub(super) struct Readiness {
    /// Makes the check panic.
    pub(super) is_broken: AtomicBool,
}

#[async_trait]
impl ReadinessSource for Readiness {
    async fn readiness(&self) -> Vec<ReadinessItem> {
        assert!(!self.is_broken.load(Ordering::Relaxed), "broken on purpose");
        vec![ReadinessItem {
            name: "model",
            ok: true,
            message: String::new(),
        }]
    }
}
