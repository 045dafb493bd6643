//! The composition root: options → store, models, tools, gate, engine → [`App`].
//!
//! Everything long-lived is built here, once, and plugged into the ports. Reading order: [`App::build`] makes
//! the parts, [`App::serve`] opens the door.

mod background;
mod bank;
pub mod bootstrap;
pub mod error;
pub mod knowledge;
mod live_zones;
mod logs;
pub mod memory;
pub mod policy;
mod readiness;
mod reindex;
mod reload;
pub mod shipped;
mod surroundings;
mod zones;

use std::{io::Write, sync::Arc};

use tidegate_core::{
    clock::{Clock, Entropy},
    port::{
        ApprovalStore as _, AuditTrail, Embedder, KeyStore, KnowledgeBase, LastAdmin, LineLog, OperatorFiles,
        RunStore,
    },
    secret::Secret,
};
use tidegate_engine::{Engine, hooks::Hooks, prompt::Composer, routing::RoutingGate};
use tidegate_gate::guards::secrets::Redactor;
use tidegate_io::{http::OperatorClient, operator_files::DiskBut};
use tidegate_llm::Models;
use tidegate_store::Store;
use tidegate_tools::Tools;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::{
    bootstrap::FirstKey,
    knowledge::Knowledge,
    logs::Logs,
    reload::{Following, Reload},
    zones::{real, zones},
};
pub use self::{error::Error, logs::NoLog};
use crate::{
    clock::{OsEntropy, SystemClock},
    config::{
        Environment, Settings,
        discover::{self, Source},
        secret,
    },
    hooks,
    http::{self, DocumentDoor},
    lifecycle::Lifecycle,
    telemetry::Masked,
};

/// What an app is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To serve: the database is this process's alone, and what is decided is logged.
    Serve,
    /// To look at what would happen: nothing is logged, and a daemon may run beside it.
    Look,
}

impl Purpose {
    fn serves(self) -> bool {
        self == Self::Serve
    }
}

/// Everything, plugged together.
#[derive(Debug)]
pub struct App {
    settings: Settings,
    lifecycle: Lifecycle,
    store: Arc<Store>,
    models: Arc<Models>,
    source: Source,
    engine: Arc<Engine>,
    routing: Arc<RoutingGate>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    audit: Arc<dyn AuditTrail>,
    knowledge: Option<Arc<Knowledge>>,
    documents: Arc<dyn DocumentDoor>,
    logs: Vec<Arc<dyn LineLog>>,
    reload: Reload,
}

impl App {
    /// Builds every part. Nothing listens yet.
    pub async fn build(
        settings: Settings,
        environment: &Environment,
        lifecycle: &Lifecycle,
        purpose: Purpose,
    ) -> Result<Self, Error> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new(settings.zone.clone()));
        let entropy: Arc<dyn Entropy> = Arc::new(OsEntropy);
        let files: Arc<dyn OperatorFiles> = Arc::new(DiskBut::new(zones::database(&settings)));
        let composer = instructions(&settings, Arc::clone(&files)).await?;
        let store = Arc::new(open_store(&settings, Arc::clone(&clock), lifecycle).await?);
        if purpose.serves() {
            recover(&store, &*clock).await?;
        }
        surroundings::check_disposable(&settings, &*store).await?;
        surroundings::warn_of_settings(&settings);
        let found = find_models(&settings, environment).await?;
        let models = Arc::new(found.models);
        let redactor = Arc::new(redactor(&settings, environment)?);
        let embedder = knowledge::embedder(&settings, &clock, &entropy).await?;
        let knowledge = knowledge::open(&settings, &store, embedder.as_ref(), &clock, purpose.serves())?;
        let base = knowledge.as_ref().map(|knowledge| Arc::clone(&knowledge.base));
        let tools = open_tools(&settings, &redactor.values(), base.clone())?;
        let tools = tools.describe(|text| redactor.redact(text).into_owned());
        let logs = Logs::open(&settings, lifecycle, purpose);
        let (audit, audit_lines) = logs::open_trail(&settings, lifecycle, purpose);
        let triage = Masked::new(Arc::clone(&logs.triage), Arc::clone(&redactor));
        let routing = Arc::new(routing_gate(&settings, files, embedder.as_ref(), triage, &clock));
        let remembering = memory::Parts {
            store: &store,
            models: &models,
            embedder: embedder.as_ref(),
            model_log: &logs.models,
            redactor: &redactor,
            clock: &clock,
            entropy: &entropy,
        };
        let memory = memory::open(&settings, remembering)?;
        let surroundings = surroundings::surroundings(&settings, &tools, purpose).await;
        let following = Following::of(&settings, knowledge.as_ref());
        let bank = bank::Bank::open(&settings, following.zones.clone(), base.clone(), &audit, &clock)?;
        let reload = Reload::new(&settings, tools, Arc::clone(&redactor), following)?;
        let engine = Arc::new(Engine::new(tidegate_engine::Parts {
            model: Arc::clone(&models) as _,
            tools: Arc::clone(&reload.tools) as _,
            gate: Arc::clone(&reload.gate),
            redactor,
            composer: Arc::new(composer),
            routing: Arc::clone(&routing),
            runs: Arc::clone(&store) as _,
            ledger: Arc::clone(&store) as _,
            held: Arc::clone(&store) as _,
            approvals: Arc::clone(&store) as _,
            audit: Arc::clone(&audit),
            hooks: all_hooks(&settings, base.as_ref()),
            memory,
            tool_log: Arc::clone(&logs.tools),
            model_log: Arc::clone(&logs.models),
            prices: Arc::new(settings.config.models.prices.clone()),
            surroundings,
            clock: Arc::clone(&clock),
            entropy: Arc::clone(&entropy),
            tracker: lifecycle.tracker.clone(),
            shutdown: lifecycle.hard.clone(),
            options: settings.config.engine.clone(),
        }));
        Ok(Self {
            lifecycle: lifecycle.clone(),
            store,
            models,
            source: found.source,
            engine,
            documents: Arc::new(bank),
            routing,
            clock,
            entropy,
            knowledge: knowledge.map(Arc::new),
            audit,
            logs: logs.all(audit_lines),
            settings,
            reload,
        })
    }

    /// Puts the policy (`[gate]`) of freshly read settings in force, from the next decision on, and reads the table of
    /// what may be remembered again. On an error, of the reading or of the policy, the last good one stays, and the log
    /// says what is wrong.
    pub async fn reload_policy(&self, fresh: Result<Settings, String>) -> Result<(), Error> {
        memory::reread(&self.settings, self.engine.memory());
        self.reload.take(&self.settings, fresh, &self.engine).await
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The routing gate.
    pub fn routing(&self) -> &RoutingGate {
        &self.routing
    }

    /// What was set.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Opens the door in tracked tasks, and shows the first key where there was none.
    pub async fn serve(&self, environment: &Environment, out: &mut dyn Write) -> Result<(), Error> {
        let address = self.settings.bind;
        let listener = TcpListener::bind(address)
            .await
            .map_err(|problem| Error::Bind { address, problem })?;
        let bound = listener
            .local_addr()
            .map_err(|problem| Error::Bind { address, problem })?;
        let base_url = bootstrap::base_url(bound, &self.settings.config.server.allowed_hosts);
        // Before the first answer: whoever waits for the door to open has a key that fits.
        self.first_key(environment, &base_url, out).await?;
        let soft = self.lifecycle.soft.clone();
        let options = self.settings.config.server.clone();
        let router = http::router(self.parts(soft.clone()));
        self.lifecycle.tracker.spawn(async move {
            http::serve::run(listener, router, &options, soft).await;
        });
        self.spawn_pruning();
        self.spawn_reading();
        self.spawn_learning();
        // The routing rules take a tenth of a second to compile: now, and not in somebody's first question.
        let routing = Arc::clone(&self.routing);
        let compiling = Arc::clone(&routing);
        let compiling = self
            .lifecycle
            .tracker
            .spawn_blocking(move || drop(compiling.check()));
        self.lifecycle.tracker.spawn(async move {
            if compiling.await.is_ok() {
                routing.prepare().await;
            }
        });
        let model = &self.source;
        tracing::info!(%model, version = env!("CARGO_PKG_VERSION"), "tidegate serves on {base_url}");
        if let Source::Nothing(sentence) = &self.source {
            tracing::warn!("{sentence}");
        }
        Ok(())
    }

    /// The documents; `None` where they are switched off.
    pub fn base(&self) -> Option<Arc<dyn KnowledgeBase>> {
        let knowledge = self.knowledge.as_ref()?;
        Some(Arc::clone(&knowledge.base))
    }

    fn parts(&self, shutdown: CancellationToken) -> http::Parts {
        http::Parts {
            engine: Arc::clone(&self.engine),
            keys: Arc::clone(&self.store) as _,
            ledger: Arc::clone(&self.store) as _,
            runs: Arc::clone(&self.store) as _,
            approvals: Arc::clone(&self.store) as _,
            people: Arc::clone(&self.store) as _,
            audit: Arc::clone(&self.audit),
            approval_s: self.settings.config.engine.approval_s,
            knowledge: self.base(),
            knowledge_bank: real(&self.settings.config.tools.knowledge_bank),
            documents: Arc::clone(&self.documents),
            models: Arc::clone(&self.models) as _,
            readiness: Arc::new(readiness::Readiness {
                store: Arc::clone(&self.store),
                engine: Arc::clone(&self.engine),
                missing_model: match &self.source {
                    Source::Nothing(sentence) => Some(sentence.clone()),
                    Source::Configured | Source::Environment { .. } | Source::Ollama { .. } => None,
                },
                logs: self.logs.clone(),
                policy_is_stale: Arc::clone(&self.reload.is_stale),
                knowledge: self.base(),
                clock: Arc::clone(&self.clock),
            }),
            clock: Arc::clone(&self.clock),
            entropy: Arc::clone(&self.entropy),
            options: self.settings.config.server.clone(),
            shutdown,
        }
    }

    async fn first_key(
        &self,
        environment: &Environment,
        base_url: &str,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let given = bootstrap_key(&self.settings, environment)?;
        let given = given.as_ref().map(Secret::expose);
        match bootstrap::first_key(&*self.store, &*self.clock, &*self.entropy, given).await? {
            FirstKey::Made(id, plain) => {
                if let Err(problem) = bootstrap::show(out, base_url, &plain) {
                    // A key that nobody has seen must not stay: there would never be a first one again.
                    self.store.delete(&id, LastAdmin::MayGo).await?;
                    return Err(Error::KeyNotShown(problem));
                }
                tracing::info!(key.id = %id, "the first key was made and shown on standard output");
            }
            FirstKey::Taken(id) => {
                tracing::info!(key.id = %id, "the first key is the one in TIDEGATE_BOOTSTRAP_KEY");
            }
            FirstKey::Present => {}
            FirstKey::Ignored => {
                tracing::warn!(
                    "TIDEGATE_BOOTSTRAP_KEY is ignored: there are keys already, and it is none of them"
                );
            }
        }
        Ok(())
    }
}

fn routing_gate(
    settings: &Settings,
    files: Arc<dyn OperatorFiles>,
    embedder: Option<&Arc<dyn Embedder>>,
    triage: Masked,
    clock: &Arc<dyn Clock>,
) -> RoutingGate {
    let options = settings.config.routing.clone();
    RoutingGate::new(
        files,
        embedder.cloned(),
        Arc::new(triage),
        Arc::clone(clock),
        options,
    )
}

/// Checks the instructions: without them no request could be served.
async fn instructions(settings: &Settings, files: Arc<dyn OperatorFiles>) -> Result<Composer, Error> {
    let file = settings.config.prompt.agent_file.clone();
    if !file.exists() {
        return Err(Error::NoInstructions(file));
    }
    let composer = Composer::new(files, settings.config.prompt.clone());
    let checked = tokio::task::spawn_blocking(move || composer.check().map(|faults| (composer, faults)));
    let (composer, faults) = checked.await.map_err(part)?.map_err(part)?;
    for fault in faults {
        tracing::warn!("{fault}");
    }
    Ok(composer)
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

/// The models, and how they were found.
#[derive(Debug)]
pub struct Found {
    /// The models.
    pub models: Models,
    /// How they were found.
    pub source: Source,
}

/// Settles which model is used.
pub async fn find_models(settings: &Settings, environment: &Environment) -> Result<Found, Error> {
    let mut options = settings.config.models.clone();
    let probe = |url: String, timeout| async move { tidegate_llm::probe_ollama(&url, timeout).await };
    let source = discover::discover(&mut options, &settings.config.discovery, environment, probe).await;
    let models = open_models(options)?;
    Ok(Found { models, source })
}

/// Settles the providers. Asks nobody.
pub fn open_models(options: tidegate_llm::Options) -> Result<Models, Error> {
    let client = OperatorClient::new(&options.client_options()).map_err(part)?;
    let clock = Arc::new(SystemClock::new(jiff::tz::TimeZone::UTC));
    Models::new(options, client, clock, Arc::new(OsEntropy)).map_err(part)
}

/// Opens the tools over the knowledge bank, which is made where it is missing.
pub fn open_tools(
    settings: &Settings,
    secrets: &[Secret],
    knowledge: Option<Arc<dyn KnowledgeBase>>,
) -> Result<Tools, Error> {
    let options = settings.config.tools.clone();
    if !options.knowledge_bank.exists() {
        tidegate_io::files::create_private_dir(&options.knowledge_bank).map_err(|problem| Error::Folder {
            path: options.knowledge_bank.clone(),
            problem: problem.to_string(),
            setting: "tools.knowledge_bank",
        })?;
    }
    let program = std::env::current_exe().map_err(part)?;
    let outside = policy::outside(settings, secrets, program, knowledge)?;
    let clock = Arc::new(SystemClock::new(settings.zone.clone()));
    Tools::open(options, zones(settings), clock, outside).map_err(part)
}

/// The operator's own hooks, and ours.
fn all_hooks(settings: &Settings, base: Option<&Arc<dyn KnowledgeBase>>) -> Hooks {
    let mut all = hooks::build(
        &settings.config.hooks,
        &settings.home,
        settings.search_path.as_deref(),
    );
    if let Some(base) = base {
        all.observers.push(Arc::new(reindex::Reindex {
            knowledge: Arc::clone(base),
            bank: real(&settings.config.tools.knowledge_bank),
        }));
    }
    all
}

/// Every credential the process knows; none may come out in a tool's result or a log.
fn secrets(settings: &Settings, environment: &Environment) -> Result<Vec<Secret>, Error> {
    let providers = settings.config.models.providers.values();
    Ok(providers
        .flat_map(|provider| {
            let headers = provider.headers.values().map(Secret::new);
            provider.api_key.iter().cloned().chain(headers)
        })
        .chain(settings.config.embeddings.secret.clone())
        .chain(settings.config.kb.chroma_secret.clone())
        .chain(environment.get("OPENAI_API_KEY").map(Secret::new))
        .chain(bootstrap_key(settings, environment)?)
        .collect())
}

/// What masks every credential that the process knows.
pub fn redactor(settings: &Settings, environment: &Environment) -> Result<Redactor, Error> {
    Redactor::new(secrets(settings, environment)?).map_err(part)
}

/// The first key as the environment names it: itself, or by `file:PATH` as containers like it.
fn bootstrap_key(settings: &Settings, environment: &Environment) -> Result<Option<Secret>, Error> {
    let resolve = |text: &str| secret::resolve(text, environment, &settings.home);
    let given = environment.get(bootstrap::VARIABLE).map(resolve).transpose();
    given.map_err(|problem| Error::Part(format!("{}: {problem}", bootstrap::VARIABLE)))
}

fn part(error: impl std::fmt::Display) -> Error {
    Error::Part(error.to_string())
}

#[cfg(test)]
mod tests;
