//! What `kb` prints.

use std::path::Path;

use serde_json::{Value, json};
use tidegate_core::knowledge::{
    Document, DocumentState, KnowledgeStatus, Leg, Passage, PassageExplained, SearchAnswer, SearchExplained,
};

use crate::cli::{
    error::Error,
    output::{self, Out},
};

/// Characters of a passage that are shown in a list.
const EXCERPT_CHARS: usize = 240;
/// Documents that could not be read that are shown to a person; the JSON has them all.
const FAILED_MAX: usize = 50;

/// How the knowledge base does, and what could not be read. `waiting` is how many files the index has yet to follow,
/// where that is known.
pub(super) fn status(
    status: &KnowledgeStatus,
    waiting: Option<u64>,
    failed: &[Document],
    folder: &Path,
    is_json: bool,
    out: Out<'_>,
) -> Result<(), Error> {
    if is_json {
        let mut view = json!({"status": status, "failed": failed});
        if let Some(pending) = view.pointer_mut("/status/pending") {
            *pending = json!(waiting);
        }
        return Ok(output::json(out, &view)?);
    }
    let none = || "none".to_owned();
    for (name, text) in [
        ("Documents", status.documents.to_string()),
        ("Chunks", status.chunks.to_string()),
        ("Failed", status.failed.to_string()),
        (
            "Waiting",
            waiting.map_or_else(
                || "not known: the folder cannot be looked at".to_owned(),
                |files| files.to_string(),
            ),
        ),
        ("Serving", status.serving_model.clone().unwrap_or_else(none)),
        ("Configured", status.configured_model.clone().unwrap_or_else(none)),
        ("Embedded", format!("{} of {}", status.embedded, status.chunks)),
        ("Vectors in", status.vectors_in.to_owned()),
    ] {
        writeln!(out, "{name:<11} {}", output::plain(&text))?;
    }
    for problem in &status.problems {
        writeln!(out, "Problem     {}", output::plain(problem))?;
    }
    if status.documents + status.failed == 0 {
        writeln!(out)?;
        nothing_yet(folder, out)?;
    }
    failures(failed, out)
}

/// What to do where there is no document.
fn nothing_yet(folder: &Path, out: Out<'_>) -> Result<(), Error> {
    let folder = output::plain(&folder.display().to_string());
    writeln!(
        out,
        "No document is indexed. Put some into {folder}; a running daemon reads them by itself, and `tidegate kb index` reads them now."
    )?;
    Ok(())
}

/// Documents that could not be read, each with what would help.
fn failures(failed: &[Document], out: Out<'_>) -> Result<(), Error> {
    for document in failed.iter().take(FAILED_MAX) {
        if let DocumentState::Failed { code, reason, hint } = &document.state {
            writeln!(
                out,
                "\n{} ({code})\n  {}\n  {}",
                output::plain(&document.path),
                output::plain(reason),
                output::plain(hint)
            )?;
        }
    }
    if failed.len() > FAILED_MAX {
        writeln!(
            out,
            "\nand {} more; --json lists them all",
            failed.len() - FAILED_MAX
        )?;
    }
    Ok(())
}

/// What a search found. `has_documents` says that there is anything to find, in the folder otherwise.
pub(super) fn answer(
    answer: &SearchAnswer,
    has_documents: bool,
    folder: &Path,
    is_json: bool,
    out: Out<'_>,
) -> Result<(), Error> {
    if is_json {
        let view =
            json!({"passages": answer.passages, "words_only": answer.words_only, "pending": answer.pending});
        return Ok(output::json(out, &view)?);
    }
    if answer.passages.is_empty() {
        if has_documents {
            writeln!(out, "Nothing in the documents is about this.")?;
        } else {
            nothing_yet(folder, out)?;
        }
    }
    for (at, passage) in answer.passages.iter().enumerate() {
        writeln!(out, "{}. {}", at + 1, heading(passage))?;
        writeln!(out, "   {}", excerpt(&passage.text))?;
    }
    if let Some(note) = &answer.words_only {
        writeln!(out, "{}", sentence(note))?;
    }
    if answer.pending > 0 {
        writeln!(out, "{} files wait to be read.", answer.pending)?;
    }
    Ok(())
}

/// Every rank of a search, and at most `below_max` of what is below the floor.
pub(super) fn explained(
    explained: &SearchExplained,
    below_max: usize,
    is_json: bool,
    out: Out<'_>,
) -> Result<(), Error> {
    if is_json {
        let view: Value = json!(explained);
        return Ok(output::json(out, &view)?);
    }
    writeln!(out, "Words      {}", output::plain(&explained.terms.join(" ")))?;
    if !explained.dropped_terms.is_empty() {
        writeln!(
            out,
            "Left out   {}",
            output::plain(&explained.dropped_terms.join(" "))
        )?;
    }
    let model = explained.model.as_deref().unwrap_or("none");
    writeln!(out, "Embedder   {}", output::plain(model))?;
    writeln!(out, "Joined by  {}", output::plain(&explained.fusion))?;
    if let Some(note) = &explained.words_only {
        writeln!(out, "{}", sentence(note))?;
    }
    let shown = explained.relevant.saturating_add(below_max);
    for (at, passage) in explained.passages.iter().take(shown).enumerate() {
        if at == explained.relevant {
            writeln!(out, "--- below the floor: an answer ends here ---")?;
        }
        ranks(at, passage, out)?;
    }
    let more = explained.passages.len().saturating_sub(shown);
    if more > 0 {
        writeln!(out, "and {more} more below the floor; --json lists them all")?;
    }
    if explained.passages.len() == explained.relevant {
        writeln!(out, "{} passages.", explained.relevant)?;
    }
    Ok(())
}

fn ranks(at: usize, explained: &PassageExplained, out: Out<'_>) -> Result<(), Error> {
    let leg = |leg: Option<Leg>| {
        leg.map_or_else(
            || "-".to_owned(),
            |leg| format!("rank {} ({:.3})", leg.rank, leg.score),
        )
    };
    writeln!(out, "{}. {}", at + 1, heading(&explained.passage))?;
    writeln!(
        out,
        "   words {}, vectors {}, joined {}",
        leg(explained.words),
        leg(explained.vectors),
        leg(Some(explained.fused))
    )?;
    for change in &explained.authority_moves {
        writeln!(out, "   authority: {}", output::plain(change))?;
    }
    Ok(())
}

/// A note as a sentence of its own.
fn sentence(note: &str) -> String {
    let mut characters = note.chars();
    let first = characters.next().into_iter().flat_map(char::to_uppercase);
    let text: String = first.chain(characters).chain(['.']).collect();
    output::plain(&text)
}

fn heading(passage: &Passage) -> String {
    let page = passage
        .place
        .page
        .map_or_else(String::new, |page| format!(", page {page}"));
    let headings = passage.place.headings.join(" > ");
    let headings = if headings.is_empty() {
        headings
    } else {
        format!(": {headings}")
    };
    let text = format!(
        "[{}] {} ({}{page}){headings}",
        passage.citation,
        passage.document,
        passage.authority.name()
    );
    output::plain(&text)
}

fn excerpt(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    let mut cut: String = text.chars().take(EXCERPT_CHARS).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    output::plain(&cut)
}
