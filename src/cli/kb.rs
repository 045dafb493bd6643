//! `tidegate kb`: the documents, from the command line. It works on the database itself, also while the daemon runs,
//! which notices what was changed by its version.

mod eval;
mod migrate;
mod progress;
mod show;

use std::{path::Path, sync::Arc, time::Duration};

use tidegate_core::{
    clock::{Clock, Entropy},
    error::StoreError,
    knowledge::{Authority, Document, DocumentState, Filter, Format, SearchRequest},
    port::{KnowledgeBase, KnowledgeError},
};
use tidegate_kb::ingest::Ingest;

use super::{
    args::{self, kb::Kb},
    error::Error,
    output::Out,
};
use crate::{
    app::{
        self,
        knowledge::{self, Knowledge},
    },
    clock::{OsEntropy, SystemClock},
    config::Settings,
    lifecycle::Lifecycle,
};

/// Documents that are fetched at a time.
const PAGE: usize = 500;
/// Documents that are looked at for failures.
const DOCUMENTS_MAX: usize = 200_000;
/// How often the progress is shown.
const TICK: Duration = Duration::from_millis(200);

/// Runs a command.
pub async fn run(settings: Settings, command: &Kb, out: Out<'_>) -> Result<(), Error> {
    let folder = &settings.config.tools.knowledge_bank;
    if matches!(command, Kb::Index(_)) && !folder.is_dir() {
        let folder = folder.display();
        return Err(Error::Refused(format!(
            "the knowledge bank {folder} does not exist; make the folder, or set `tools.knowledge_bank`"
        )));
    }
    let lifecycle = Lifecycle::new();
    let outcome = on_store(&settings, command, &lifecycle, out).await;
    lifecycle.close().await;
    outcome
}

async fn on_store(
    settings: &Settings,
    command: &Kb,
    lifecycle: &Lifecycle,
    out: Out<'_>,
) -> Result<(), Error> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new(settings.zone.clone()));
    let entropy: Arc<dyn Entropy> = Arc::new(OsEntropy);
    let store = Arc::new(app::open_store(settings, Arc::clone(&clock), lifecycle).await?);
    let embedder = knowledge::embedder(settings, &clock, &entropy).await?;
    // For the status the folder is looked at and not read.
    let is_reading = matches!(command, Kb::Index(_) | Kb::Status(_));
    let opened = knowledge::open(settings, &store, embedder.as_ref(), &clock, is_reading)?;
    let Some(knowledge) = opened else {
        let text = "the knowledge base is switched off (`kb.enabled`)";
        return Err(Error::Refused(text.to_owned()));
    };
    let base = &*knowledge.base;
    let folder = settings.config.tools.knowledge_bank.as_path();
    match command {
        Kb::Index(output) => {
            index(&knowledge, lifecycle).await?;
            if let Some(chroma) = &knowledge.chroma {
                // What went wrong is a problem in the status.
                drop(migrate::copy(chroma).await);
            }
            status(&knowledge, folder, output.json, out).await?;
            match knowledge.ingest.as_ref().and_then(Ingest::unsaved) {
                Some(problem) => Err(Error::Store(StoreError::Internal(problem))),
                None => Ok(()),
            }
        }
        Kb::Status(output) => {
            if knowledge.chroma.is_some() {
                knowledge.warm().await.map_err(failed)?;
            }
            status(&knowledge, folder, output.json, out).await
        }
        Kb::Search(search) => {
            let answer = base.search(&request(search)?).await.map_err(failed)?;
            let has_documents = base.status().await.map_err(failed)?.documents > 0;
            show::answer(&answer, has_documents, folder, search.output.json, out)
        }
        Kb::Explain(search) => {
            let explained = base.explain(&request(search)?).await.map_err(failed)?;
            show::explained(&explained, usize::from(search.k), search.output.json, out)
        }
        Kb::Eval(command) => eval::run(base, command, out).await,
        Kb::Migrate(command) => migrate::run(settings, &store, &clock, command, out).await,
    }
}

/// Brings the index up to date, with a bar on standard error.
async fn index(knowledge: &Knowledge, lifecycle: &Lifecycle) -> Result<(), Error> {
    let (Some(ingest), Some(task)) = (&knowledge.ingest, knowledge.start()) else {
        return Ok(());
    };
    ingest.rescan();
    lifecycle.tracker.spawn(task.run(lifecycle.soft.clone()));
    let bar = progress::Bar::new();
    while !is_settled(ingest).await {
        bar.show(&ingest.progress().borrow());
    }
    bar.end();
    lifecycle.soft.cancel();
    Ok(())
}

/// Whether everything was read, after at most a moment.
async fn is_settled(ingest: &Ingest) -> bool {
    ingest.settled(TICK).await && ingest.pending() == 0 && ingest.progress().borrow().is_idle()
}

async fn status(knowledge: &Knowledge, folder: &Path, is_json: bool, out: Out<'_>) -> Result<(), Error> {
    let base = &*knowledge.base;
    let status = base.status().await.map_err(failed)?;
    // What a daemon has before it is known to that process alone; what the index lacks can be seen from here.
    let waiting = match &knowledge.ingest {
        Some(ingest) => ingest.behind().await,
        None => None,
    };
    let failures = if status.failed == 0 {
        Vec::new()
    } else {
        failures(base).await?
    };
    show::status(&status, waiting, &failures, folder, is_json, out)
}

async fn failures(base: &dyn KnowledgeBase) -> Result<Vec<Document>, Error> {
    let (mut found, mut after, mut seen): (Vec<Document>, Option<String>, usize) = (Vec::new(), None, 0);
    while seen < DOCUMENTS_MAX {
        let page = base.list(&Filter::default(), after.as_deref(), PAGE).await;
        let (documents, has_more) = page.map_err(failed)?;
        seen += documents.len();
        after = documents.last().map(|document| document.path.clone());
        let is_failed = |document: &Document| matches!(document.state, DocumentState::Failed { .. });
        found.extend(documents.into_iter().filter(is_failed));
        if !has_more {
            break;
        }
    }
    Ok(found)
}

fn request(search: &args::kb::Search) -> Result<SearchRequest, Error> {
    let unknown = |flag: &str, known: &[&str]| Error::Usage(format!("{flag} is one of {}", known.join(", ")));
    let format = search
        .format
        .as_deref()
        .map(|name| Format::named(name).ok_or_else(|| unknown("--format", &Format::ALL.map(Format::name))));
    let authority_min = search.authority_min.as_deref().map(|name| {
        Authority::named(name).ok_or_else(|| unknown("--authority-min", &Authority::ALL.map(Authority::name)))
    });
    Ok(SearchRequest {
        query: search.query.clone(),
        filter: Filter {
            paths: search.path.iter().cloned().collect(),
            formats: format.transpose()?.into_iter().collect(),
            authority_min: authority_min.transpose()?,
        },
        k: usize::from(search.k),
    })
}

fn failed(error: KnowledgeError) -> Error {
    match error {
        KnowledgeError::Invalid(problem) => Error::Usage(problem),
        KnowledgeError::NotFound(problem) => Error::NotFound(problem),
        KnowledgeError::Store(error) => Error::Store(error),
    }
}
