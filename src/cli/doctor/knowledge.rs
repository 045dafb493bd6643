//! The embedder and the index of documents, for `doctor`.

use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use tidegate_core::{
    clock::{Clock, Entropy},
    embedding::Purpose,
    knowledge::{
        Document, DocumentText, Filter, KnowledgeStatus, ReadFrom, SearchAnswer, SearchExplained,
        SearchRequest,
    },
    port::{Embedder, KnowledgeBase, KnowledgeError},
};

use super::Line;
use crate::{
    app::{
        self,
        knowledge::{self, PlaceName, ProviderName},
    },
    clock::{OsEntropy, SystemClock},
    config::{self, Config, Settings},
    lifecycle::Lifecycle,
};

const EMBEDDER: &str = "embedder";
const BASE: &str = "knowledge base";

/// What is asked of an embedder to see whether it answers.
const PROBE: &str = "Does this find the documents?";

/// How the embedder and the index do. `has_database` says that there is one of this version: another one is neither
/// made nor migrated to find out.
pub(super) async fn lines(settings: &Settings, has_database: bool) -> Vec<Line> {
    if !settings.config.kb.enabled {
        return vec![Line::ok(BASE, "switched off (`kb.enabled`)")];
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new(settings.zone.clone()));
    let entropy: Arc<dyn Entropy> = Arc::new(OsEntropy);
    let embedder = match knowledge::embedder(settings, &clock, &entropy).await {
        Ok(embedder) => embedder,
        Err(error) => {
            let fix = "mend the setting in `[embeddings]` that is named";
            return vec![Line::failed(EMBEDDER, error.to_string(), fix)];
        }
    };
    let mut lines = vec![asked(embedder.as_deref()).await];
    lines.push(if has_database {
        let lifecycle = Lifecycle::new();
        let line = index(settings, embedder.as_ref(), &clock, &lifecycle).await;
        lifecycle.close().await;
        line
    } else {
        Line::ok(
            BASE,
            "nothing is indexed yet; the next start reads the knowledge bank",
        )
    });
    lines
}

/// Whether the embedder answers. One that is away fails no request, so that this is never a failure.
async fn asked(embedder: Option<&dyn Embedder>) -> Line {
    let Some(embedder) = embedder else {
        return Line::ok(EMBEDDER, "none; searches go by words (`embeddings.provider`)");
    };
    let id = &embedder.model().id;
    match embedder.embed(&[PROBE], Purpose::Query).await {
        Ok(vectors) => {
            let dimensions = vectors
                .into_iter()
                .flatten()
                .next()
                .map_or(0, |vector| vector.len());
            Line::ok(EMBEDDER, format!("{id}, {dimensions} dimensions"))
        }
        Err(error) => Line::warning(
            EMBEDDER,
            format!("{id}: {error}"),
            "start its server, check `embeddings.base_url`, or set `embeddings.provider = \"builtin\"`; until it answers \
             searches go by words",
        ),
    }
}

async fn index(
    settings: &Settings,
    embedder: Option<&Arc<dyn Embedder>>,
    clock: &Arc<dyn Clock>,
    lifecycle: &Lifecycle,
) -> Line {
    match status(settings, embedder, clock, lifecycle).await {
        Ok(status) => judge(&status, &settings.config),
        Err(problem) => Line::failed(BASE, problem, "mend what is named, or set `kb.enabled = false`"),
    }
}

async fn status(
    settings: &Settings,
    embedder: Option<&Arc<dyn Embedder>>,
    clock: &Arc<dyn Clock>,
    lifecycle: &Lifecycle,
) -> Result<KnowledgeStatus, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let store = app::open_store(settings, Arc::clone(clock), lifecycle).await;
    let store = Arc::new(store.map_err(|error| text(&error))?);
    let opened = knowledge::open(settings, &store, embedder, clock, false).map_err(|error| text(&error))?;
    let opened = opened.ok_or_else(|| "it is switched off".to_owned())?;
    if opened.chroma.is_some() {
        // Whether it answers is known once it was asked.
        opened.warm().await.map_err(|error| text(&error))?;
    }
    opened.base.status().await.map_err(|error| text(&error))
}

/// What helps against a problem: what can be down is what the settings name.
fn remedy(config: &Config) -> String {
    let chroma = (config.kb.vectors == PlaceName::Chroma)
        .then_some("start Chroma, check `kb.chroma_url`, or set `kb.vectors = \"embedded\"`");
    let embedder = matches!(
        config.embeddings.provider,
        ProviderName::Ollama | ProviderName::Openai
    )
    .then_some("start the embedder, check `embeddings.base_url`, or set `embeddings.provider = \"builtin\"`");
    let rest =
        "what only waits for vectors a running daemon completes, and `tidegate kb status` says how far it is";
    let steps: Vec<&str> = chroma.into_iter().chain(embedder).chain([rest]).collect();
    steps.join("; ")
}

fn judge(status: &KnowledgeStatus, config: &Config) -> Line {
    let (documents, chunks) = (size(status.documents), size(status.chunks));
    let lacks_vectors = status.configured_model.is_some() && status.embedded < status.chunks;
    let vectors = lacks_vectors.then(|| format!(", {} of them with vectors", status.embedded));
    let message = format!(
        "{} in {}{}",
        config::count(documents, "document"),
        config::count(chunks, "piece"),
        vectors.unwrap_or_default()
    );
    if let Some(problem) = status.problems.first() {
        return Line::warning(BASE, format!("{message}; {problem}"), remedy(config));
    }
    if status.failed > 0 {
        let failed = config::count(size(status.failed), "file");
        let message = format!("{message}; {failed} could not be read");
        return Line::warning(
            BASE,
            message,
            "`tidegate kb status` says why, and what would help",
        );
    }
    Line::ok(BASE, message)
}

fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Stands where the documents will be, so that their tools are among those that are looked at. Nobody asks it.
#[derive(Debug)]
pub(super) struct Unopened;

impl Unopened {
    fn answer<T>() -> Result<T, KnowledgeError> {
        Err(KnowledgeError::NotFound("nothing is opened".to_owned()))
    }
}

#[async_trait]
impl KnowledgeBase for Unopened {
    async fn search(&self, _request: &SearchRequest) -> Result<SearchAnswer, KnowledgeError> {
        Self::answer()
    }

    async fn explain(&self, _request: &SearchRequest) -> Result<SearchExplained, KnowledgeError> {
        Self::answer()
    }

    async fn read(&self, _from: &ReadFrom, _chars_max: usize) -> Result<DocumentText, KnowledgeError> {
        Self::answer()
    }

    async fn list(
        &self,
        _filter: &Filter,
        _after: Option<&str>,
        _limit: usize,
    ) -> Result<(Vec<Document>, bool), KnowledgeError> {
        Self::answer()
    }

    fn written(&self, _path: &Path) {}

    async fn settled(&self, _limit: Duration) -> bool {
        true
    }

    async fn status(&self) -> Result<KnowledgeStatus, KnowledgeError> {
        Self::answer()
    }
}
