//! The ground: the database, open and recovered, the time and the randomness.

use std::sync::Arc;

use tidegate_core::{
    clock::{Clock, Entropy},
    port::{ApprovalStore as _, OperatorFiles, RunStore as _},
};
use tidegate_store::Store;

use super::{Error, Purpose, servers, surroundings};
use crate::{
    clock::{OsEntropy, SystemClock},
    config::{Environment, Settings},
    lifecycle::Lifecycle,
};

/// What everything else stands on.
pub(super) struct Ground {
    pub(super) store: Arc<Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) entropy: Arc<dyn Entropy>,
}

impl Ground {
    pub(super) async fn open(
        settings: &Settings,
        lifecycle: &Lifecycle,
        purpose: Purpose,
    ) -> Result<Self, Error> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new(settings.zone.clone()));
        let store = Arc::new(open_store(settings, Arc::clone(&clock), lifecycle).await?);
        if purpose.serves() {
            recover(&store, &*clock).await?;
        }
        surroundings::check_disposable(settings, &*store).await?;
        surroundings::warn_of_settings(settings);
        Ok(Self {
            store,
            clock,
            entropy: Arc::new(OsEntropy),
        })
    }

    pub(super) fn house<'h>(
        &'h self,
        network: &'h tidegate_io::guarded::Client,
        environment: &'h Environment,
        files: &'h Arc<dyn OperatorFiles>,
    ) -> servers::House<'h> {
        servers::House {
            store: &self.store,
            network,
            environment,
            files,
            clock: &self.clock,
            entropy: &self.entropy,
        }
    }
}

/// Opens the database; its writer runs until the lifecycle closes.
pub async fn open_store(
    settings: &Settings,
    clock: Arc<dyn Clock>,
    lifecycle: &Lifecycle,
) -> Result<Store, Error> {
    tidegate_io::files::create_private_dir(&settings.data_dir).map_err(|problem| Error::Folder {
        path: settings.data_dir.clone(),
        problem: problem.to_string(),
        setting: "data_dir",
    })?;
    let (store, worker) = Store::open(settings.config.store.clone(), clock).await?;
    lifecycle.writers.spawn(worker.run(lifecycle.closing.clone()));
    Ok(store)
}

/// Makes sure that this is the only daemon, and closes what an earlier one left open.
async fn recover(store: &Store, clock: &dyn Clock) -> Result<(), Error> {
    store.lock_daemon()?;
    let (indeterminate, interrupted) = store.recover(clock.now()).await?;
    if indeterminate + interrupted > 0 {
        tracing::warn!(
            interrupted,
            indeterminate,
            "an earlier process left runs unfinished; they were closed"
        );
    }
    let (void, cut_off) = store.recover_approvals(clock.now()).await?;
    if void + cut_off > 0 {
        tracing::warn!(
            void,
            cut_off,
            "approvals that nothing had spent are void after the restart"
        );
    }
    let keys = store.sweep_deleted_keys().await?;
    if keys > 0 {
        tracing::info!(keys, "what deleted keys had left was erased");
    }
    Ok(())
}
