//! A policy that is read again while the server runs: on SIGHUP the `[gate]` section takes effect from the next
//! decision on, without a restart. What is broken changes nothing: the last good policy stays, the log says which
//! entry is wrong, and `/health/ready` says that there is one.
//!
//! The index of documents follows: what the new policy shuts leaves it, and what it opens comes back.
//!
//! Everything else of the configuration waits for a restart, and so do the rows of the tools file.

use std::{
    path::PathBuf,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use tidegate_core::{
    caller::Mode,
    tool::{ToolCall, ToolResult, ToolSpec},
};
use tidegate_engine::Engine;
use tidegate_gate::{
    Authorized, Facts, PermissionGate, ToolBox, ToolContext, Zones, guards::secrets::Redactor,
};
use tidegate_kb::ingest::Ingest;
use tidegate_tools::Tools;

use super::{
    Error, Purpose,
    knowledge::Knowledge,
    live_zones::LiveZones,
    part, policy,
    surroundings::{self, surroundings},
    zones::zones,
};
use crate::config::Settings;

/// The tools under the policy in force. A call that has begun keeps those that it began with.
#[derive(Debug)]
pub(super) struct Live(RwLock<Arc<Tools>>);

impl Live {
    fn new(tools: Tools) -> Self {
        Self(RwLock::new(Arc::new(tools)))
    }

    fn now(&self) -> Arc<Tools> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, tools: Tools) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tools);
    }
}

#[async_trait]
impl ToolBox for Live {
    fn specs(&self) -> Arc<[Arc<ToolSpec>]> {
        self.now().specs()
    }

    fn check(&self, call: &ToolCall, spec: &ToolSpec) -> Result<(), ToolResult> {
        self.now().check(call, spec)
    }

    async fn facts(&self, call: &ToolCall, spec: &ToolSpec, mode: Mode) -> Facts {
        self.now().facts(call, spec, mode).await
    }

    async fn run(&self, call: Authorized<ToolCall>, context: &ToolContext) -> ToolResult {
        self.now().run(call, context).await
    }
}

/// What goes by the zones outside of any call.
#[derive(Debug)]
pub(super) struct Following {
    pub(super) zones: LiveZones,
    /// The reader of the knowledge bank, which looks at everything again under new zones.
    ingest: Option<Ingest>,
}

impl Following {
    /// The zones that the knowledge base goes by, where there is one.
    pub(super) fn of(settings: &Settings, knowledge: Option<&Knowledge>) -> Self {
        Self {
            zones: knowledge.map_or_else(|| LiveZones::of(settings), |knowledge| knowledge.zones.clone()),
            ingest: knowledge.and_then(|knowledge| knowledge.ingest.clone()),
        }
    }

    fn set(&self, zones: Zones) {
        self.zones.set(zones);
        if let Some(ingest) = &self.ingest {
            ingest.rescan();
        }
    }
}

/// What a new policy is put into.
#[derive(Debug)]
pub(super) struct Reload {
    pub(super) tools: Arc<Live>,
    pub(super) gate: Arc<PermissionGate>,
    redactor: Arc<Redactor>,
    following: Following,
    /// This binary, which confines programs.
    program: PathBuf,
    /// Whether the newest policy could not be used.
    pub(super) is_stale: Arc<AtomicBool>,
}

impl Reload {
    /// The policy of these settings, with the tools that were opened under it.
    pub(super) fn new(
        settings: &Settings,
        tools: Tools,
        redactor: Arc<Redactor>,
        following: Following,
    ) -> Result<Self, Error> {
        let policy = policy::policy(settings, tools.network(), tools.zones());
        Ok(Self {
            tools: Arc::new(Live::new(tools)),
            gate: Arc::new(PermissionGate::new(policy)),
            redactor,
            following,
            program: std::env::current_exe().map_err(part)?,
            is_stale: Arc::default(),
        })
    }

    /// Takes the policy of freshly read settings into force, or says what is wrong with it and changes nothing.
    /// `running` are the settings that the server was started with.
    pub(super) async fn take(
        &self,
        running: &Settings,
        fresh: Result<Settings, String>,
        engine: &Engine,
    ) -> Result<(), Error> {
        let taken = match fresh {
            Ok(fresh) => self.put_in_force(running, &fresh, engine).await,
            Err(problem) => Err(Error::Part(problem)),
        };
        self.is_stale.store(taken.is_err(), Ordering::Relaxed);
        match &taken {
            Ok(()) => tracing::info!("the policy was read again and is in force"),
            Err(error) => {
                tracing::error!(%error, "the policy was read again and cannot be used; the last good one stays in force");
            }
        }
        taken
    }

    async fn put_in_force(&self, running: &Settings, fresh: &Settings, engine: &Engine) -> Result<(), Error> {
        let mut settings = running.clone();
        settings.config.gate.clone_from(&fresh.config.gate);
        for warning in &fresh.warnings {
            tracing::warn!("configuration: {warning}");
        }
        if waits_for_restart(&settings, fresh) {
            tracing::warn!(
                "only [gate] is read again; other changes of the configuration wait for a restart"
            );
        }
        let knowledge = self.tools.now().knowledge();
        let outside = policy::outside(
            &settings,
            &self.redactor.values(),
            self.program.clone(),
            knowledge,
        )?;
        let zones = zones(&settings);
        let tools = self.tools.now().under(zones.clone(), outside).map_err(part)?;
        let policy = policy::policy(&settings, tools.network(), tools.zones());
        engine.set_surroundings(surroundings(&settings, &tools, Purpose::Serve).await);
        surroundings::warn_of_settings(&settings);
        self.tools.set(tools);
        self.gate.set_policy(policy);
        self.following.set(zones);
        Ok(())
    }
}

/// Whether anything but the policy differs.
fn waits_for_restart(settings: &Settings, fresh: &Settings) -> bool {
    settings.config != fresh.config
}
