//! The sources of an answer on the wire: `annotations` in the message, as the hosted API has them, and our own
//! `tidegate` member, which streams carry in their finish chunk.

use std::fmt::Write as _;

use serde::Serialize;
use tidegate_core::knowledge::{Citation, Place};
use tidegate_engine::Sources;
use utoipa::ToSchema;

/// A place of the answer that rests on a source.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Annotation {
    /// `url_citation`.
    #[serde(rename = "type")]
    kind: &'static str,
    url_citation: UrlCitation,
}

/// The source, and where the answer names it.
#[derive(Debug, Serialize, ToSchema)]
struct UrlCitation {
    /// The first character of the name.
    start_index: usize,
    /// The character behind it. Both are the length of the answer where it names no source.
    end_index: usize,
    /// The document's title.
    title: String,
    /// `kb:`, the document's path inside the knowledge bank, `#`, the passage's id.
    url: String,
}

/// What tidegate says beyond the hosted API.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Extension {
    /// The passages that the agent was shown.
    citations: Vec<WireCitation>,
    /// Citations that the model made up; they were taken out of the answer.
    #[serde(skip_serializing_if = "is_zero")]
    removed_citations: u64,
}

/// A passage that the agent was shown.
#[derive(Debug, Serialize, ToSchema)]
struct WireCitation {
    /// As the answer names it.
    id: String,
    /// The document's path inside the knowledge bank.
    document: String,
    /// The document's title.
    title: String,
    /// The headings above it, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    headings: Vec<String>,
    /// The page, slide or sheet, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<u32>,
    /// `primary`, `interpretation` or `secondary`.
    authority: &'static str,
    /// Whether the answer names it.
    named: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Extension {
    /// What there is to say of an answer's sources, if anything.
    pub(in crate::http) fn of(sources: &Sources) -> Option<Self> {
        if sources.is_empty() {
            return None;
        }
        let citations = sources.shown.iter().map(|source| {
            let Citation {
                id,
                document,
                title,
                place: Place { headings, page, .. },
                authority,
            } = source.citation.clone();
            WireCitation {
                id: id.to_string(),
                document,
                title,
                headings,
                page,
                authority: authority.name(),
                named: source.is_named,
            }
        });
        Some(Self {
            citations: citations.collect(),
            removed_citations: sources.removed,
        })
    }
}

/// The annotations of an answer: where it names its sources, or, where it names none, all of them at its end.
pub(in crate::http) fn annotations(sources: &Sources, text: &str) -> Vec<Annotation> {
    let spans = sources.spans(text);
    if !spans.is_empty() {
        let named = spans
            .iter()
            .map(|span| annotation(span.citation, span.start, span.end));
        return named.collect();
    }
    let end = text.chars().count();
    let shown = sources.shown.iter();
    shown
        .map(|source| annotation(&source.citation, end, end))
        .collect()
}

fn annotation(citation: &Citation, start_index: usize, end_index: usize) -> Annotation {
    Annotation {
        kind: "url_citation",
        url_citation: UrlCitation {
            start_index,
            end_index,
            title: citation.title.clone(),
            url: address(citation),
        },
    }
}

/// A URI (RFC 3986) of the scheme `kb`, which is ours: the path is escaped but for its slashes.
fn address(citation: &Citation) -> String {
    let mut url = "kb:".to_owned();
    for byte in citation.document.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                url.push(char::from(byte));
            }
            _ => {
                // Writing into a String cannot fail.
                let _infallible = write!(url, "%{byte:02X}");
            }
        }
    }
    url.push('#');
    url.push_str(citation.id.as_str());
    url
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate_core::knowledge::{Authority, Citation, CitationId, Place};
    use tidegate_engine::{Sources, sources::Source};

    use super::{Extension, annotations};

    fn sources(is_named: bool, removed: u64) -> (Sources, String) {
        let id = CitationId::of_digest(&[7; 32]);
        let source = Source {
            citation: Citation {
                id: id.clone(),
                document: "rules/über 50%.pdf".to_owned(),
                title: "Rules".to_owned(),
                place: Place {
                    headings: vec!["Leave".to_owned()],
                    page: Some(3),
                    bytes: 5..10,
                },
                authority: Authority::Primary,
            },
            is_named,
        };
        let sources = Sources {
            shown: vec![source],
            removed,
        };
        (sources, id.to_string())
    }

    #[test]
    fn a_named_source_is_annotated_where_it_stands() {
        let (sources, id) = sources(true, 2);
        let url = format!("kb:rules/%C3%BCber%2050%25.pdf#{id}");
        assert_eq!(
            json!(annotations(&sources, &format!("Zwölf [{id}]."))),
            json!([{"type": "url_citation", "url_citation": {
                "start_index": 7, "end_index": 20, "title": "Rules", "url": url}}])
        );
        assert_eq!(
            json!(Extension::of(&sources)),
            json!({"citations": [{"id": id, "document": "rules/über 50%.pdf", "title": "Rules",
                "headings": ["Leave"], "page": 3, "authority": "primary", "named": true}],
                "removed_citations": 2})
        );
    }

    #[test]
    fn sources_that_are_not_named_stand_at_the_end() {
        let (sources, _) = sources(false, 0);
        let annotated = json!(annotations(&sources, "Zwölf."));
        assert_eq!(annotated[0]["url_citation"]["start_index"], 6);
        assert_eq!(annotated[0]["url_citation"]["end_index"], 6);
        assert_eq!(json!(Extension::of(&sources))["removed_citations"], json!(null));
        assert!(Extension::of(&Sources::default()).is_none());
        assert!(annotations(&Sources::default(), "text").is_empty());
    }
}
