//! The tools over the indexed documents: a search, a document's text, and the list of documents.
//!
//! What they show is quoted by citation ids. Each result carries the passages that it shows as data, so that the
//! engine knows the answer's sources without looking for them in any text.

use std::time::Duration;

use tidegate_core::{
    knowledge::{
        Authority, Citation, CitationId, Document, DocumentState, DocumentText, Filter, Format, Passage,
        Place, ReadFrom, SearchAnswer, SearchRequest,
    },
    port::{KnowledgeBase, KnowledgeError},
    tool::{FailureCode, ToolResult, ToolSpec},
};

use crate::{arguments::Values, output::add};

/// Passages of a search that asks for no number.
const PASSAGES_DEFAULT: usize = 5;
/// Passages of one search at most.
const PASSAGES_MAX: usize = 20;
/// Documents of one list at most.
const DOCUMENTS_MAX: usize = 100;
/// How long a search waits for files that a tool has just written.
const WRITTEN_WAIT: Duration = Duration::from_secs(2);
/// Bytes of a result that are kept for what stands around a document's text.
const NOTES_BYTES: usize = 1024;
/// Bytes that a character may take, to turn a bound on bytes into one on characters.
const CHARACTER_BYTES: usize = 4;

/// `search_knowledge_base`: passages that answer a question.
pub(crate) async fn search(base: &dyn KnowledgeBase, values: &Values<'_>) -> ToolResult {
    let filter = match filter(values) {
        Ok(filter) => filter,
        Err(problem) => return ToolResult::failed(FailureCode::InvalidArguments, problem),
    };
    let request = SearchRequest {
        query: values.text("query").unwrap_or_default().to_owned(),
        filter,
        k: values
            .count("k")
            .unwrap_or(PASSAGES_DEFAULT)
            .clamp(1, PASSAGES_MAX),
    };
    // Whoever has just saved a file expects to find it.
    let is_settled = base.settled(WRITTEN_WAIT).await;
    match base.search(&request).await {
        Ok(answer) => ToolResult::Ok {
            text: found(&answer, is_settled),
            citations: answer.passages.iter().map(Citation::from).collect(),
        },
        Err(error) => failed(&error),
    }
}

/// `read_document`: a document's text, around a citation or from a place on.
pub(crate) async fn read(base: &dyn KnowledgeBase, spec: &ToolSpec, values: &Values<'_>) -> ToolResult {
    let from = match start(values) {
        Ok(from) => from,
        Err(problem) => return ToolResult::failed(FailureCode::InvalidArguments, problem),
    };
    let chars_max = spec.output_bytes_max.saturating_sub(NOTES_BYTES) / CHARACTER_BYTES;
    match base.read(&from, chars_max).await {
        Ok(document) => ToolResult::Ok {
            text: page(&document),
            citations: citations(&document),
        },
        Err(error) => failed(&error),
    }
}

/// `list_documents`: what there is.
pub(crate) async fn list(base: &dyn KnowledgeBase, values: &Values<'_>) -> ToolResult {
    let filter = match filter(values) {
        Ok(filter) => filter,
        Err(problem) => return ToolResult::failed(FailureCode::InvalidArguments, problem),
    };
    let after = values.text("after").filter(|path| !path.is_empty());
    match base.list(&filter, after, DOCUMENTS_MAX).await {
        Ok((documents, has_more)) => ToolResult::ok(listed(&documents, has_more)),
        Err(error) => failed(&error),
    }
}

fn failed(error: &KnowledgeError) -> ToolResult {
    match error {
        KnowledgeError::Invalid(problem) => {
            ToolResult::failed(FailureCode::InvalidArguments, problem.clone())
        }
        KnowledgeError::NotFound(problem) => ToolResult::failed(FailureCode::NotFound, problem.clone()),
        KnowledgeError::Store(error) => {
            tracing::error!(%error, "the knowledge base cannot be read");
            let message = "the documents cannot be read at the moment; the operator's log says why.";
            ToolResult::failed(FailureCode::Internal, message)
        }
    }
}

fn filter(values: &Values<'_>) -> Result<Filter, String> {
    let given = |name: &str| values.text(name).map(str::trim).filter(|text| !text.is_empty());
    let authority_min = given("authority_min")
        .map(|name| {
            Authority::named(name)
                .ok_or_else(|| unknown("authority", name, &Authority::ALL.map(Authority::name)))
        })
        .transpose()?;
    let formats = given("format")
        .map(|name| {
            Format::named(name).ok_or_else(|| unknown("format", name, &Format::ALL.map(Format::name)))
        })
        .transpose()?;
    Ok(Filter {
        paths: given("path").map(str::to_owned).into_iter().collect(),
        formats: formats.into_iter().collect(),
        authority_min,
    })
}

fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let shown: String = name.chars().take(64).flat_map(char::escape_debug).collect();
    format!("`{shown}` is no {what}; there are {}", known.join(", "))
}

fn start(values: &Values<'_>) -> Result<ReadFrom, String> {
    let given = |name: &str| values.text(name).map(str::trim).filter(|text| !text.is_empty());
    match (given("citation"), given("path")) {
        (Some(_), Some(_)) => Err("give `citation` or `path`, not both".to_owned()),
        (None, None) => Err("give the `citation` of a passage, or the `path` of a document".to_owned()),
        (Some(text), None) => {
            let bare = text.trim_matches(['[', ']']);
            CitationId::parse(bare).map(ReadFrom::Citation).ok_or_else(|| {
                "a citation looks like `kb-` and ten characters, as a search shows it".to_owned()
            })
        }
        (None, Some(path)) => {
            let path = path.to_owned();
            Ok(match values.count("page") {
                Some(page) => ReadFrom::Page {
                    path,
                    page: u32::try_from(page).unwrap_or(u32::MAX),
                },
                None => ReadFrom::Document {
                    path,
                    ordinal: values.count("part").unwrap_or(1).saturating_sub(1) as u64,
                },
            })
        }
    }
}

fn found(answer: &SearchAnswer, is_settled: bool) -> String {
    let mut text = String::new();
    if answer.passages.is_empty() {
        text.push_str(
            "Nothing in the documents is about this. Say so, and do not answer as if it stood there.\n",
        );
    } else {
        text.push_str("Best first. After each statement name its source by the id in brackets.\n");
    }
    for passage in &answer.passages {
        add(
            &mut text,
            format_args!("\n[{}] {}\n", passage.citation, source(passage)),
        );
        text.push_str(passage.text.trim_end());
        text.push('\n');
    }
    if let Some(note) = &answer.words_only {
        // It says itself that only words were compared, and why.
        add(&mut text, format_args!("\n(Note: {note}.)\n"));
    }
    if !is_settled || answer.pending > 0 {
        add(
            &mut text,
            format_args!(
                "\n({} files are still being read; what they say may be missing.)\n",
                answer.pending.max(1)
            ),
        );
    }
    text
}

fn source(passage: &Passage) -> String {
    let mut text = passage.document.clone();
    add(
        &mut text,
        format_args!(", {}{}", passage.authority.name(), place(&passage.place)),
    );
    text
}

fn place(place: &Place) -> String {
    let mut text = String::new();
    if let Some(page) = place.page {
        add(&mut text, format_args!(", page {page}"));
    }
    if !place.headings.is_empty() {
        add(&mut text, format_args!(": {}", place.headings.join(" > ")));
    }
    text
}

fn page(text: &DocumentText) -> String {
    let document = &text.document;
    let mut shown = format!(
        "{} ({}, {})\n",
        document.path,
        document.title,
        document.authority.name()
    );
    for part in &text.parts {
        add(
            &mut shown,
            format_args!("\n[{}]{}\n", part.citation, place(&part.place)),
        );
        shown.push_str(part.text.trim_end());
        shown.push('\n');
    }
    if let Some(next) = text.next {
        let (part, parts) = (next + 1, text.chunks);
        add(
            &mut shown,
            format_args!(
                "\n(Not the end: go on with path `{}` and part {part} of {parts}.)\n",
                document.path
            ),
        );
    }
    shown
}

fn citations(text: &DocumentText) -> Vec<Citation> {
    let document = &text.document;
    let cite = |part: &tidegate_core::knowledge::DocumentPart| Citation {
        id: part.citation.clone(),
        document: document.path.clone(),
        title: document.title.clone(),
        place: part.place.clone(),
        authority: document.authority,
    };
    text.parts.iter().map(cite).collect()
}

fn listed(documents: &[Document], has_more: bool) -> String {
    if documents.is_empty() {
        return "There is no such document.".to_owned();
    }
    let mut text = String::new();
    for document in documents {
        let state = match &document.state {
            DocumentState::Indexed { chunks, .. } => format!("{chunks} parts"),
            DocumentState::Failed { reason, .. } => format!("not readable: {reason}"),
        };
        let (path, title) = (&document.path, &document.title);
        add(
            &mut text,
            format_args!(
                "{path} ({title}; {}, {}, {state})\n",
                document.format.name(),
                document.authority.name()
            ),
        );
    }
    if has_more && let Some(last) = documents.last() {
        add(
            &mut text,
            format_args!("\n(More follow: go on with after `{}`.)\n", last.path),
        );
    }
    text
}

#[cfg(test)]
mod tests;
