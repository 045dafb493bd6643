//! Whether writes go through.
//!
//! A write may fail for what it writes, or because nothing can be written. Only in the second case the database is at
//! fault, and what tells the two apart is another write, a small one that needs room: made after a failure, and again
//! from time to time until one goes through, so that a fault is not believed in for longer than it lasts.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use sqlx::Connection as _;
use tokio::time::Instant;

use crate::{error, files, options::Options};

/// How often a trial is made at most.
const TRIAL_EVERY: Duration = Duration::from_secs(1);

/// Some fifteen pages that are added and freed again. No version has the number 0, and nobody sees the rows.
const TRIAL: &str = "BEGIN IMMEDIATE; \
     INSERT INTO kb_changes (version, key) \
     WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 4096) SELECT 0, n FROM numbers; \
     DELETE FROM kb_changes WHERE version = 0; \
     COMMIT";

/// Why nothing can be written just now, if so. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Fault(Arc<Mutex<Option<&'static str>>>);

impl Fault {
    pub(super) fn get(&self) -> Option<&'static str> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, fault: Option<&'static str>) {
        let before = std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), fault);
        match (before, fault) {
            (None, Some(fault)) => tracing::error!(fault, "nothing can be written to the database"),
            (Some(_), None) => tracing::info!("the database can be written to again"),
            (Some(_), Some(_)) | (None, None) => {}
        }
    }
}

/// The writer's view of it.
pub(super) struct Pulse {
    fault: Fault,
    options: Options,
    /// Whether a write failed for whatever reason since one went through.
    is_doubtful: bool,
    tried_at: Option<Instant>,
}

impl Pulse {
    pub(super) fn new(fault: Fault, options: Options) -> Self {
        Self {
            fault,
            options,
            is_doubtful: false,
            tried_at: None,
        }
    }

    /// A write went through.
    pub(super) fn written(&mut self) {
        self.is_doubtful = false;
        self.fault.set(None);
    }

    /// A write failed, and it is not known why.
    pub(super) fn failed(&mut self) {
        self.is_doubtful = true;
    }

    /// Waits until a trial is called for: for ever where there is no doubt.
    pub(super) async fn due(&self) {
        match self.tried_at {
            _ if !self.is_doubtful => std::future::pending().await,
            Some(tried_at) => tokio::time::sleep_until(tried_at + TRIAL_EVERY).await,
            None => {}
        }
    }

    /// Makes a trial where one is called for. Nobody else of this process may be writing.
    pub(super) async fn try_if_due(&mut self) {
        let now = Instant::now();
        let is_due = self.tried_at.is_none_or(|tried_at| now >= tried_at + TRIAL_EVERY);
        if !self.is_doubtful || !is_due {
            return;
        }
        match trial(&self.options).await {
            Ok(()) => self.written(),
            Err(error) => {
                tracing::debug!(%error, "a trial write failed");
                self.fault.set(Some(error::fault(&error)));
            }
        }
        // After it, since it may have waited for another process.
        self.tried_at = Some(Instant::now());
    }
}

/// On a connection of its own: what befell the other one says nothing about the next.
async fn trial(options: &Options) -> Result<(), sqlx::Error> {
    let mut connection = files::trial(options).await?;
    sqlx::raw_sql(TRIAL).execute(&mut connection).await?;
    // It did its work, whatever becomes of the connection.
    connection.close().await.or(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Opened, folder};

    #[tokio::test]
    async fn a_trial_needs_room_and_leaves_nothing() {
        let (_folder, path) = folder();
        let opened = Opened::at(&path).await;
        let options = opened.store.options().clone();
        trial(&options).await.unwrap();
        let mut connection = files::trial(&options).await.unwrap();
        let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM kb_changes")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert_eq!(rows, 0);
        // Nothing is free after this, and nothing may be added.
        sqlx::raw_sql("VACUUM; PRAGMA max_page_count = 1")
            .execute(&mut connection)
            .await
            .unwrap();
        let error = sqlx::raw_sql(TRIAL).execute(&mut connection).await.unwrap_err();
        assert!(error::fault(&error).contains("the disk is full"), "{error}");
        connection.close().await.unwrap();
        opened.close().await;
    }
}
