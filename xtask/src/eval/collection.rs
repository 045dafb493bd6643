//! A test collection on disk: documents, queries, and which answers which.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tidegate_core::knowledge::Authority;

/// A document, a line of `corpus.jsonl`.
#[derive(Deserialize)]
pub(super) struct Document {
    #[serde(rename = "_id")]
    pub(super) id: String,
    #[serde(default)]
    pub(super) title: String,
    pub(super) text: String,
    pub(super) authority: Option<Authority>,
}

/// A question, a line of `queries.jsonl`.
#[derive(Deserialize)]
pub(super) struct Query {
    #[serde(rename = "_id")]
    pub(super) id: String,
    pub(super) text: String,
    /// What is to be shown with it, in collections about authority: `A`, `B` or `C`.
    pub(super) class: Option<String>,
}

/// A collection.
pub(super) struct Collection {
    pub(super) name: String,
    pub(super) documents: Vec<Document>,
    pub(super) queries: Vec<Query>,
    /// How much a document is worth as an answer, by query.
    pub(super) grades: HashMap<String, HashMap<String, u32>>,
}

impl Collection {
    /// Reads the files of a folder; its name is the collection's.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let name = folder
            .file_name()
            .map_or_else(|| "collection".into(), |name| name.to_string_lossy());
        let collection = Self {
            name: name.into_owned(),
            documents: lines(&folder.join("corpus.jsonl"))?,
            queries: lines(&folder.join("queries.jsonl"))?,
            grades: grades(&folder.join("qrels.tsv"))?,
        };
        ensure!(
            !collection.documents.is_empty() && !collection.queries.is_empty(),
            "{} holds no documents or no queries",
            folder.display()
        );
        Ok(collection)
    }

    /// Whether it is about authority: its queries have classes and its documents authorities.
    pub(super) fn has_classes(&self) -> bool {
        self.queries.iter().all(|query| query.class.is_some())
            && self.documents.iter().any(|document| document.authority.is_some())
    }

    /// The queries that anything answers, with the grades of their answers.
    pub(super) fn judged(&self) -> impl Iterator<Item = (&Query, &HashMap<String, u32>)> {
        self.queries
            .iter()
            .filter_map(|query| Some((query, self.grades.get(&query.id)?)))
    }
}

/// One JSON object a line.
pub(super) fn lines<T: DeserializeOwned>(file: &Path) -> Result<Vec<T>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{}", file.display()))?;
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| {
            serde_json::from_str(line).with_context(|| format!("{}, line {number}", file.display()))
        })
        .collect()
}

/// After a head, a query, a document and a grade a line.
fn grades(file: &Path) -> Result<HashMap<String, HashMap<String, u32>>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{}", file.display()))?;
    let mut grades: HashMap<String, HashMap<String, u32>> = HashMap::new();
    for (number, line) in (1..)
        .zip(text.lines())
        .skip(1)
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let context = || format!("{}, line {number}: query, document, grade", file.display());
        let mut fields = line.split_whitespace();
        let (query, document) = fields.next().zip(fields.next()).with_context(context)?;
        let grade: u32 = fields
            .next()
            .with_context(context)?
            .parse()
            .with_context(context)?;
        if grade > 0 {
            grades
                .entry(query.to_owned())
                .or_default()
                .insert(document.to_owned(), grade);
        }
    }
    Ok(grades)
}
