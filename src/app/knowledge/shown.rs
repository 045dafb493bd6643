//! The knowledge base behind the policy in force.
//!
//! A document that a new policy shuts leaves the index, but only when the folder has been looked at again, and a
//! command beside a daemon never looks. So what comes out of the index is asked about once more: by its path, since
//! documents stand in the index under their real names, and by what stands at that path now. A name that has become a
//! second name of a guarded file is one that nobody is shown.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use tidegate_core::{
    knowledge::{
        Document, DocumentState, DocumentText, Filter, KnowledgeStatus, ReadFrom, SearchAnswer,
        SearchExplained, SearchRequest,
    },
    port::{KnowledgeBase, KnowledgeError},
};
use tidegate_gate::{Access, ZoneVerdict, Zones, floors};

use crate::app::live_zones::LiveZones;

/// The knowledge base, without what may not be read any more.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) inner: Arc<dyn KnowledgeBase>,
    pub(super) zones: LiveZones,
    /// The real path of the knowledge bank.
    pub(super) bank: PathBuf,
}

/// Whether everybody may read the file without being asked.
pub(super) fn is_open(real: &Path, zones: &Zones) -> bool {
    may_enter(real, zones)
        && match zones.judge(Access::Read, real) {
            ZoneVerdict::NoPrompt | ZoneVerdict::Inside => true,
            ZoneVerdict::Ask(_) | ZoneVerdict::Outside | ZoneVerdict::Blocked => false,
        }
}

/// Whether a folder is one that no floor shuts and that is not blocked; something in it may be open.
pub(super) fn may_enter(real: &Path, zones: &Zones) -> bool {
    !zones.is_blocked(real) && floors::check_reading(real, zones).is_none()
}

impl Shown {
    fn shows(&self, zones: &Zones, document: &str) -> bool {
        is_open(&self.bank.join(document), zones)
    }

    /// Those of the documents that are shown to nobody.
    async fn hidden<'d>(&self, documents: impl IntoIterator<Item = &'d str>) -> HashSet<String> {
        let zones = self.zones.now();
        let asked: HashSet<String> = documents.into_iter().map(str::to_owned).collect();
        let (open, mut hidden): (HashSet<String>, HashSet<String>) = asked
            .into_iter()
            .partition(|document| self.shows(&zones, document));
        if open.is_empty() {
            return hidden;
        }
        let (bank, twins) = (self.bank.clone(), self.zones.twins().remembering());
        let everything = open.clone();
        let looking = tokio::task::spawn_blocking(move || {
            let is_twin = |document: &String| twins.guards(&bank.join(document));
            open.into_iter().filter(is_twin).collect::<HashSet<String>>()
        });
        // Where nobody can tell, nothing is shown.
        hidden.extend(looking.await.unwrap_or(everything));
        hidden
    }
}

#[async_trait]
impl KnowledgeBase for Shown {
    async fn search(&self, request: &SearchRequest) -> Result<SearchAnswer, KnowledgeError> {
        let mut answer = self.inner.search(request).await?;
        let found = answer.passages.iter().map(|passage| passage.document.as_str());
        let hidden = self.hidden(found).await;
        answer
            .passages
            .retain(|passage| !hidden.contains(&passage.document));
        Ok(answer)
    }

    async fn explain(&self, request: &SearchRequest) -> Result<SearchExplained, KnowledgeError> {
        let mut explained = self.inner.explain(request).await?;
        let found = explained.passages.iter();
        let hidden = self
            .hidden(found.map(|explained| explained.passage.document.as_str()))
            .await;
        let (mut at, mut relevant) = (0, 0);
        let until = explained.relevant;
        explained.passages.retain(|explained| {
            let is_shown = !hidden.contains(&explained.passage.document);
            relevant += usize::from(is_shown && at < until);
            at += 1;
            is_shown
        });
        explained.relevant = relevant;
        Ok(explained)
    }

    async fn read(&self, from: &ReadFrom, chars_max: usize) -> Result<DocumentText, KnowledgeError> {
        let text = self.inner.read(from, chars_max).await?;
        if self.hidden([text.document.path.as_str()]).await.is_empty() {
            return Ok(text);
        }
        // As if it had left the index already.
        Err(KnowledgeError::NotFound(match from {
            ReadFrom::Citation(citation) => {
                format!("no passage has the citation {citation}; search again")
            }
            ReadFrom::Document { path, .. } | ReadFrom::Page { path, .. } => {
                format!("no document is at `{path}`; list the documents to see their paths")
            }
        }))
    }

    async fn list(
        &self,
        filter: &Filter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<Document>, bool), KnowledgeError> {
        let mut after = after.map(str::to_owned);
        // A page of which nothing is left has no last document to go on after. Ends with the list: every round
        // begins further on.
        loop {
            let (mut documents, has_more) = self.inner.list(filter, after.as_deref(), limit).await?;
            after = documents.last().map(|document| document.path.clone());
            // One that could not be read is listed with the reason, which may be that its name is a second one.
            let (read, failed): (Vec<&Document>, Vec<&Document>) = documents
                .iter()
                .partition(|document| matches!(document.state, DocumentState::Indexed { .. }));
            let mut hidden = self
                .hidden(read.into_iter().map(|document| document.path.as_str()))
                .await;
            let zones = self.zones.now();
            let shut = failed
                .into_iter()
                .filter(|document| !self.shows(&zones, &document.path));
            hidden.extend(shut.map(|document| document.path.clone()));
            documents.retain(|document| !hidden.contains(&document.path));
            if !documents.is_empty() || !has_more {
                return Ok((documents, has_more));
            }
        }
    }

    fn written(&self, path: &Path) {
        self.inner.written(path);
    }

    async fn settled(&self, limit: Duration) -> bool {
        self.inner.settled(limit).await
    }

    async fn status(&self) -> Result<KnowledgeStatus, KnowledgeError> {
        self.inner.status().await
    }
}
