//! The knowledge base behind the policy in force.
//!
//! A document that a new policy shuts leaves the index, but only when the folder has been looked at again, and a
//! command beside a daemon never looks. So what comes out of the index is asked about once more: by its path alone,
//! which costs nothing, since documents stand in the index under their real names.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use tidegate_core::{
    knowledge::{
        Document, DocumentText, Filter, KnowledgeStatus, ReadFrom, SearchAnswer, SearchExplained,
        SearchRequest,
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
}

#[async_trait]
impl KnowledgeBase for Shown {
    async fn search(&self, request: &SearchRequest) -> Result<SearchAnswer, KnowledgeError> {
        let mut answer = self.inner.search(request).await?;
        let zones = self.zones.now();
        answer
            .passages
            .retain(|passage| self.shows(&zones, &passage.document));
        Ok(answer)
    }

    async fn explain(&self, request: &SearchRequest) -> Result<SearchExplained, KnowledgeError> {
        let mut explained = self.inner.explain(request).await?;
        let zones = self.zones.now();
        let (mut at, mut relevant) = (0, 0);
        let until = explained.relevant;
        explained.passages.retain(|explained| {
            let is_shown = self.shows(&zones, &explained.passage.document);
            relevant += usize::from(is_shown && at < until);
            at += 1;
            is_shown
        });
        explained.relevant = relevant;
        Ok(explained)
    }

    async fn read(&self, from: &ReadFrom, chars_max: usize) -> Result<DocumentText, KnowledgeError> {
        let text = self.inner.read(from, chars_max).await?;
        if self.shows(&self.zones.now(), &text.document.path) {
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
        let zones = self.zones.now();
        let mut after = after.map(str::to_owned);
        // A page of which nothing is left has no last document to go on after. Ends with the list: every round
        // begins further on.
        loop {
            let (mut documents, has_more) = self.inner.list(filter, after.as_deref(), limit).await?;
            after = documents.last().map(|document| document.path.clone());
            documents.retain(|document| self.shows(&zones, &document.path));
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
