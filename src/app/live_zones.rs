//! The zones of the policy in force, for what asks about paths outside of any call: the index of documents, and the
//! operator's own way into their folder.

use std::sync::{Arc, PoisonError, RwLock};

use tidegate_gate::Zones;
use tidegate_io::files::Twins;

use super::zones::zones;
use crate::config::Settings;

/// The zones in force, shared by everybody who was given a clone.
#[derive(Debug, Clone)]
pub(super) struct LiveZones(Arc<RwLock<Arc<Zones>>>);

impl LiveZones {
    /// Those of the settings.
    pub(super) fn of(settings: &Settings) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(zones(settings)))))
    }

    /// Those of this moment.
    pub(super) fn now(&self) -> Arc<Zones> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What must not be known by another name under those of this moment.
    pub(super) fn twins(&self) -> Twins {
        let zones = self.now();
        Twins::new(zones.own.clone(), zones.readable.clone())
    }

    /// Puts others in force.
    pub(super) fn set(&self, zones: Zones) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(zones);
    }
}
