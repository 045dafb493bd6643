//! The sources of an answer: which passages the turn has shown to its model, and which of them the answer names.
//!
//! Citations come from tool results, never from the model's words. A model that names a source which nobody has
//! shown it has made it up: the name is taken out of the answer (`guard/citations.rs`) and counted.

use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use tidegate_core::{
    knowledge::{Citation, CitationId},
    tool::{ToolMode, ToolSpec},
};

/// Passages that one turn may show; what comes later cannot be named.
const PASSAGES_MAX: usize = 512;

/// A source of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// The passage.
    #[serde(flatten)]
    pub citation: Citation,
    /// Whether the answer names it.
    pub is_named: bool,
}

/// The sources of a finished answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// What was shown, in the order in which it was.
    pub shown: Vec<Source>,
    /// Names of passages that nobody has shown, which were taken out.
    pub removed: u64,
}

impl Sources {
    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.shown.is_empty() && self.removed == 0
    }

    /// Where `text` names its sources, in characters from `start` to before `end`.
    pub fn spans<'s>(&'s self, text: &str) -> Vec<Span<'s>> {
        let mut spans = Vec::new();
        for (at, _) in text.match_indices(CitationId::PREFIX) {
            let end = at + CitationId::PREFIX.len() + CitationId::CHARS;
            let named = text.get(at..end);
            let source = self
                .shown
                .iter()
                .find(|source| named == Some(source.citation.id.as_str()));
            if let Some(source) = source {
                let start = text.get(..at).unwrap_or_default().chars().count();
                spans.push(Span {
                    start,
                    end: start + end - at,
                    citation: &source.citation,
                });
            }
        }
        spans
    }
}

/// A place in an answer that names a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span<'s> {
    /// Its first character.
    pub start: usize,
    /// The character behind its last.
    pub end: usize,
    /// The source.
    pub citation: &'s Citation,
}

/// The sources of a turn under way.
#[derive(Debug, Default)]
pub(crate) struct Shown(Mutex<Sources>);

impl Shown {
    /// Takes note of passages that the model is shown.
    pub(crate) fn add(&self, citations: &[Citation]) {
        if citations.is_empty() {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for citation in citations {
            let is_known = kept.shown.iter().any(|source| source.citation.id == citation.id);
            if !is_known && kept.shown.len() < PASSAGES_MAX {
                kept.shown.push(Source {
                    citation: citation.clone(),
                    is_named: false,
                });
            }
        }
    }

    /// Whether a passage was shown; from then on it counts as named.
    pub(crate) fn name(&self, id: &str) -> bool {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept
            .shown
            .iter_mut()
            .find(|source| source.citation.id.as_str() == id);
        let is_known = found.is_some();
        match found {
            Some(source) => source.is_named = true,
            None => kept.removed += 1,
        }
        is_known
    }

    /// The passages, for a turn that goes on later.
    pub(crate) fn citations(&self) -> Vec<Citation> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.shown.iter().map(|source| source.citation.clone()).collect()
    }

    /// What there is to say of them.
    pub(crate) fn report(&self) -> Sources {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Whether any of these tools can show passages: without one, an answer is not searched for citations.
pub(crate) fn can_show<'t>(tools: impl IntoIterator<Item = &'t ToolSpec>) -> bool {
    tools
        .into_iter()
        .any(|tool| matches!(tool.mode, ToolMode::SearchKnowledge | ToolMode::ReadDocument))
}

#[cfg(test)]
mod tests {
    use tidegate_core::knowledge::{Authority, Citation, CitationId, Place};

    use super::{Shown, Source, Sources};

    fn citation(number: u8) -> Citation {
        Citation {
            id: CitationId::of_digest(&[number; 32]),
            document: format!("{number}.md"),
            title: "T".to_owned(),
            place: Place::default(),
            authority: Authority::Secondary,
        }
    }

    #[test]
    fn only_what_was_shown_can_be_named() {
        let shown = Shown::default();
        shown.add(&[citation(1), citation(2), citation(1)]);
        assert!(shown.name(citation(2).id.as_str()));
        assert!(!shown.name("kb-0000000000"));
        let report = shown.report();
        let named: Vec<bool> = report.shown.iter().map(|source| source.is_named).collect();
        assert_eq!((named, report.removed), (vec![false, true], 1));
        assert_eq!(shown.citations(), [citation(1), citation(2)]);
    }

    #[test]
    fn a_turn_keeps_a_bounded_number() {
        let shown = Shown::default();
        for high in 0..=255_u8 {
            let ids = (0..=3_u8).map(|low| Citation {
                id: CitationId::of_digest(&[high, low, 0, 0, 0, 0, 0, 0]),
                ..citation(0)
            });
            shown.add(&ids.collect::<Vec<_>>());
        }
        assert_eq!(shown.report().shown.len(), super::PASSAGES_MAX);
    }

    #[test]
    fn spans_count_characters() {
        let sources = Sources {
            shown: vec![Source {
                citation: citation(1),
                is_named: true,
            }],
            removed: 0,
        };
        let id = citation(1).id;
        let text = format!("Für alle é [{id}], nicht kb-, kb-0000000000 {id}");
        let spans = sources.spans(&text);
        let cut: Vec<String> = spans
            .iter()
            .map(|span| {
                text.chars()
                    .skip(span.start)
                    .take(span.end - span.start)
                    .collect()
            })
            .collect();
        assert_eq!(cut, [id.as_str(), id.as_str()]);
    }
}
