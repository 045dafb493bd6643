//! `kb eval`: questions of the operator's own whose answers are known, scored through the very search that the
//! agent uses.

use std::path::Path;

use serde::Deserialize;
use serde_json::json;
use tidegate_core::{
    knowledge::{Filter, ReadFrom, SearchRequest},
    port::{KnowledgeBase, KnowledgeError, OperatorFiles},
};
use tidegate_io::operator_files::Disk;

use crate::cli::{
    args,
    error::Error,
    output::{self, Out},
};

/// The largest file of questions, in bytes.
const FILE_BYTES_MAX: usize = 16 << 20;
/// How deep the right document is looked for.
const DEPTH: usize = 10;
/// Misses that are shown.
const MISSES_MAX: usize = 20;

/// A question and where its answer stands.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    query: String,
    /// The document's path inside the knowledge bank.
    document: String,
    /// A heading above the answer, where only a part of the document has it.
    #[serde(default)]
    heading: Option<String>,
}

/// Scores a file.
pub(super) async fn run(base: &dyn KnowledgeBase, eval: &args::kb::Eval, out: Out<'_>) -> Result<(), Error> {
    let questions = read(&eval.file)?;
    let mut score = Score::default();
    let mut misses = Vec::new();
    for question in &questions {
        let request = SearchRequest {
            query: question.query.clone(),
            filter: Filter {
                paths: eval.path.iter().cloned().collect(),
                ..Filter::default()
            },
            k: DEPTH,
        };
        let answer = base.search(&request).await.map_err(super::failed)?;
        let rank = answer.passages.iter().position(|passage| {
            passage.document == question.document
                && question
                    .heading
                    .as_ref()
                    .is_none_or(|heading| passage.place.headings.contains(heading))
        });
        score.count(rank);
        if rank.is_none() {
            misses.push(question);
        }
    }
    score.show(questions.len(), eval.output.json, out)?;
    if !eval.output.json {
        for question in misses.iter().take(MISSES_MAX) {
            let (query, document) = (output::plain(&question.query), output::plain(&question.document));
            let is_there = is_there(base, &question.document).await?;
            let unknown = if is_there {
                ""
            } else {
                ", which is not in the index"
            };
            writeln!(out, "not among the first {DEPTH}: {query} ({document}{unknown})")?;
        }
    }
    Ok(())
}

/// Whether there is a document at this path: a typing mistake is no miss of the search.
async fn is_there(base: &dyn KnowledgeBase, path: &str) -> Result<bool, Error> {
    let from = ReadFrom::Document {
        path: path.to_owned(),
        ordinal: 0,
    };
    match base.read(&from, 1).await {
        Ok(_) => Ok(true),
        Err(KnowledgeError::NotFound(_)) => Ok(false),
        Err(error) => Err(super::failed(error)),
    }
}

fn read(file: &Path) -> Result<Vec<Question>, Error> {
    let text = Disk
        .read(file, FILE_BYTES_MAX)
        .map_err(|fault| Error::Usage(fault.to_string()))?;
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    let questions: Result<Vec<Question>, Error> = lines
        .map(|(at, line)| {
            serde_json::from_str(line).map_err(|error| {
                let (file, line, column) = (file.display(), at + 1, error.column());
                // It counts lines too, of the one line that it was given.
                let text = error.to_string();
                let own = format!(" at line {} column {column}", error.line());
                let problem = text.strip_suffix(&own).unwrap_or(&text);
                Error::Usage(format!(
                    "{file}, line {line}, column {column}: {problem}; write {{\"query\": \"…\", \"document\": \"path\"}}"
                ))
            })
        })
        .collect();
    let questions = questions?;
    if questions.is_empty() {
        return Err(Error::Usage(format!("{} holds no question", file.display())));
    }
    Ok(questions)
}

#[derive(Debug, Default)]
struct Score {
    first: usize,
    among_five: usize,
    found: usize,
    reciprocal_ranks: f64,
}

impl Score {
    fn count(&mut self, rank: Option<usize>) {
        let Some(rank) = rank else {
            return;
        };
        self.first += usize::from(rank == 0);
        self.among_five += usize::from(rank < 5);
        self.found += 1;
        #[expect(clippy::cast_precision_loss, reason = "a rank is a small number")]
        let reciprocal = 1.0 / (rank + 1) as f64;
        self.reciprocal_ranks += reciprocal;
    }

    fn show(&self, questions: usize, is_json: bool, out: Out<'_>) -> Result<(), Error> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a count of questions is a small number"
        )]
        let share = |count: f64| count / questions.max(1) as f64;
        #[expect(
            clippy::cast_precision_loss,
            reason = "a count of questions is a small number"
        )]
        let rows = [
            ("first", share(self.first as f64)),
            ("first_5", share(self.among_five as f64)),
            ("first_10", share(self.found as f64)),
            ("mrr_10", share(self.reciprocal_ranks)),
        ];
        if is_json {
            let scores: serde_json::Map<_, _> = rows
                .iter()
                .map(|(name, value)| ((*name).to_owned(), json!(value)))
                .collect();
            return Ok(output::json(
                out,
                &json!({"questions": questions, "scores": scores}),
            )?);
        }
        writeln!(out, "{questions} questions")?;
        for (name, value) in rows {
            writeln!(out, "{name:<9} {value:.3}")?;
        }
        Ok(())
    }
}
