//! Memory: settings and the table of kinds → the engine's memory.

use std::sync::Arc;

use tidegate_core::{
    clock::{Clock, Entropy},
    port::{Embedder, LineLog},
};
use tidegate_engine::{Memory, memory};
use tidegate_gate::guards::secrets::Redactor;
use tidegate_llm::Models;
use tidegate_memory::kinds::Kinds;
use tidegate_store::Store;

use super::Error;
use crate::config::Settings;

/// What memory is built from.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'p> {
    /// Where it is kept.
    pub store: &'p Arc<Store>,
    /// The models.
    pub models: &'p Arc<Models>,
    /// For recall by meaning.
    pub embedder: Option<&'p Arc<dyn Embedder>>,
    /// One line a model call.
    pub model_log: &'p Arc<dyn LineLog>,
    /// Known secrets.
    pub redactor: &'p Arc<Redactor>,
    /// The wall clock.
    pub clock: &'p Arc<dyn Clock>,
    /// Chance.
    pub entropy: &'p Arc<dyn Entropy>,
}

/// Opens memory; `None` where it is switched off.
pub fn open(settings: &Settings, parts: Parts<'_>) -> Result<Option<Arc<Memory>>, Error> {
    let options = settings.config.memory.clone();
    if !options.enabled {
        return Ok(None);
    }
    let kinds = kinds(&options)?;
    let parts = memory::Parts {
        store: Arc::clone(parts.store) as _,
        queue: Arc::clone(parts.store) as _,
        keys: Arc::clone(parts.store) as _,
        embedder: parts.embedder.cloned(),
        model: Arc::clone(parts.models) as _,
        ledger: Arc::clone(parts.store) as _,
        model_log: Arc::clone(parts.model_log),
        prices: Arc::new(settings.config.models.prices.clone()),
        redactor: Arc::clone(parts.redactor),
        clock: Arc::clone(parts.clock),
        entropy: Arc::clone(parts.entropy),
        options,
    };
    Ok(Some(Arc::new(Memory::new(parts, kinds))))
}

/// Reads the table of kinds again. One that is broken changes nothing.
pub(super) fn reread(settings: &Settings, memory: Option<&Arc<Memory>>) {
    let Some(memory) = memory else { return };
    match kinds(&settings.config.memory) {
        Ok(fresh) if fresh == *memory.kinds() => {}
        Ok(fresh) => {
            memory.set_kinds(fresh);
            tracing::info!("the table of what may be remembered was read again and is in force");
        }
        Err(error) => {
            tracing::error!(%error, "the table of what may be remembered cannot be used; the last good one stays");
        }
    }
}

/// The operator's table of kinds, or the one that comes with the program.
pub fn kinds(options: &memory::Options) -> Result<Kinds, Error> {
    let file = &options.kinds_file;
    let broken = |problem: String| {
        Error::Part(format!(
            "the table of what may be remembered, `{}`: {problem}",
            file.display()
        ))
    };
    match std::fs::read_to_string(file) {
        Ok(text) => Kinds::parse(&text).map_err(|problem| broken(problem.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Kinds::shipped().map_err(|problem| broken(problem.to_string()))
        }
        Err(error) => Err(broken(error.to_string())),
    }
}
