//! `tidegate memory`: what is remembered of people, from the command line. It works on the database itself, also while the
//! daemon runs, which sees every change with its next request. Whoever may run this on the machine may see and change
//! the memory of every user of every key; each change is recorded as the console's.

mod change;
mod queue;
mod show;
mod whose;

use std::{path::PathBuf, sync::Arc};

use tidegate_core::{
    clock::{Clock, Entropy},
    id::{FactId, UserId},
    memory::FactState,
    port::LineLog,
};
use tidegate_engine::memory::{Memory as Engine, MemoryError};
use tidegate_memory::{evidence::View, export};
use tidegate_store::Store;

use super::{
    args::memory::{List, Memory, OneFact, Search, Test},
    error::Error,
    output::{self, Out},
};
use crate::{
    app::{self, knowledge, memory},
    audit,
    clock::{OsEntropy, SystemClock},
    config::{Environment, Settings},
    lifecycle::Lifecycle,
};

/// What the commands work with.
struct Desk {
    memory: Arc<Engine>,
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    audit: audit::Options,
    logs: PathBuf,
    /// Whether the daemon learns and tells nothing, whatever the switches say.
    is_off: bool,
}

/// Runs a command; the exit code where it did what it should.
pub async fn run(
    settings: Settings,
    environment: &Environment,
    command: &Memory,
    out: Out<'_>,
) -> Result<u8, Error> {
    let lifecycle = Lifecycle::new();
    let outcome = Box::pin(on_store(settings, environment, command, &lifecycle, out)).await;
    lifecycle.close().await;
    outcome
}

async fn on_store(
    settings: Settings,
    environment: &Environment,
    command: &Memory,
    lifecycle: &Lifecycle,
    out: Out<'_>,
) -> Result<u8, Error> {
    let desk = open(settings, environment, command, lifecycle).await?;
    match command {
        Memory::List(list) => desk.list(list, out).await?,
        Memory::Why(one) => desk.why(one, out).await?,
        Memory::Search(search) => desk.search(search, out).await?,
        Memory::Add(add) => desk.add(add, out).await?,
        Memory::Correct(correct) => desk.correct(correct, out).await?,
        Memory::Retract(retract) => desk.retract(retract, out).await?,
        Memory::Forget(one) => desk.forget(one, out).await?,
        Memory::Clear(clear) => desk.clear(clear, out).await?,
        Memory::Export(export) => desk.export(export, out).await?,
        Memory::Import(import) => desk.import(import, out).await?,
        Memory::On(turn) => desk.turn(turn, true, out).await?,
        Memory::Off(turn) => desk.turn(turn, false, out).await?,
        Memory::Users(users) => desk.users(users, out).await?,
        Memory::Kinds(output) => show::kinds(&desk.memory.kinds(), output.json, out)?,
        Memory::Status(output) => desk.status(output.json, out).await?,
        Memory::Revive(output) => desk.revive(output.json, out).await?,
        Memory::Test(test) => return desk.test(test, out).await,
    }
    Ok(0)
}

/// Opens memory over the database, also where the daemon has it switched off: what is stored can be seen and erased all
/// the same.
async fn open(
    mut settings: Settings,
    environment: &Environment,
    command: &Memory,
    lifecycle: &Lifecycle,
) -> Result<Desk, Error> {
    let is_off = !settings.config.memory.enabled;
    settings.config.memory.enabled = true;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new(settings.zone.clone()));
    let entropy: Arc<dyn Entropy> = Arc::new(OsEntropy);
    let store = Arc::new(app::open_store(&settings, Arc::clone(&clock), lifecycle).await?);
    let embedder = knowledge::embedder(&settings, &clock, &entropy).await?;
    // Only one of the commands asks a model, and looking for one asks the network.
    let models = if matches!(command, Memory::Test(_)) {
        app::find_models(&settings, environment).await?.models
    } else {
        app::open_models(settings.config.models.clone())?
    };
    let redactor = app::redactor(&settings, environment)?;
    let model_log: Arc<dyn LineLog> = Arc::new(app::NoLog);
    let opened = memory::open(
        &settings,
        memory::Parts {
            store: &store,
            models: &Arc::new(models),
            embedder: embedder.as_ref(),
            model_log: &model_log,
            redactor: &Arc::new(redactor),
            clock: &clock,
            entropy: &entropy,
        },
    )?;
    let memory = opened.ok_or_else(|| Error::Refused("memory is switched off".to_owned()))?;
    Ok(Desk {
        memory,
        store,
        clock,
        audit: settings.config.audit.clone(),
        logs: settings.logs.clone(),
        is_off,
    })
}

impl Desk {
    async fn list(&self, list: &List, out: Out<'_>) -> Result<(), Error> {
        let user = self.user(&list.whose).await?;
        // First: where none waits the facts are complete.
        let pending = self.memory.pending(&user).await.map_err(failed)?;
        let mut views = self.memory.views(&user).await.map_err(failed)?;
        if let Some(kind) = &list.kind {
            if self.memory.kinds().get(kind).is_none() {
                let text = format!(
                    "there is no kind `{}`; `tidegate memory kinds` lists them",
                    output::plain(kind)
                );
                return Err(Error::Usage(text));
            }
            views.retain(|view| view.kind == *kind);
        }
        if let Some(state) = list.state {
            let state = FactState::from(state);
            views.retain(|view| view.state == state);
        }
        let (own, key) = self.memory.switches(&user).await.map_err(failed)?;
        let about = show::About {
            user: &user,
            pending,
            switches: own.and(key),
            is_off: self.is_off,
        };
        show::list(&views, &about, list.output.json, out)
    }

    async fn why(&self, one: &OneFact, out: Out<'_>) -> Result<(), Error> {
        let user = self.user(&one.whose).await?;
        let view = self.find(&user, &one.id).await?;
        show::why(&view, one.output.json, out)
    }

    async fn search(&self, search: &Search, out: Out<'_>) -> Result<(), Error> {
        let user = self.user(&search.whose).await?;
        let question = search.words.join(" ");
        let found = self
            .memory
            .search(&user, &question, usize::from(search.k))
            .await
            .map_err(failed)?;
        show::found(&found, &user, search.output.json, out)
    }

    async fn test(&self, test: &Test, out: Out<'_>) -> Result<u8, Error> {
        let trial = self
            .memory
            .trial(&test.text, test.model.as_deref())
            .await
            .map_err(failed)?;
        queue::trial(&trial, test.output.json, out)
    }

    /// The fact that an id, or the beginning of one, means.
    async fn find(&self, user: &UserId, typed: &str) -> Result<View, Error> {
        let typed = typed.trim();
        let beginning = typed.strip_prefix(FACT).unwrap_or(typed);
        let views = self.memory.views(user).await.map_err(failed)?;
        let mut meant = views.into_iter().filter(|view| {
            let id = view.id.as_str();
            !beginning.is_empty() && id.strip_prefix(FACT).unwrap_or(id).starts_with(beginning)
        });
        match (meant.next(), meant.next()) {
            (Some(view), None) => Ok(view),
            (Some(_), Some(_)) => Err(Error::Usage(format!(
                "several facts begin with `{}`; type more of the id",
                output::plain(typed)
            ))),
            (None, _) => Err(Error::NotFound(format!(
                "no fact `{}` is remembered of {user}; `tidegate memory list` shows what is",
                output::plain(typed)
            ))),
        }
    }
}

/// What ids of facts begin with.
const FACT: &str = "fact_";

/// The id as far as it must be typed.
fn short(id: &FactId) -> String {
    /// Letters after the beginning: of a hundred thousand facts, two rarely share so many.
    const LETTERS: usize = 8;
    id.as_str().chars().take(FACT.len() + LETTERS).collect()
}

fn failed(error: MemoryError) -> Error {
    match error {
        MemoryError::NoFact(_) => Error::NotFound(error.to_string()),
        MemoryError::Invalid { message, .. } => Error::Usage(message),
        MemoryError::Import(problem) => match problem {
            export::Error::Person(..) => Error::Refused(problem.to_string()),
            export::Error::TooLong(_)
            | export::Error::Form(_)
            | export::Error::Version(_)
            | export::Error::TooMany(_) => Error::Usage(problem.to_string()),
        },
        MemoryError::Store(error) => Error::Store(error),
    }
}
