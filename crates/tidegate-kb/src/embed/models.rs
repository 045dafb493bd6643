//! What is known of embedding models by their names: prefixes, limits, and what was measured.

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tidegate_core::embedding::{Calibration, Fusion, Purpose};

use super::Error;

static TABLE: &str = include_str!("models.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    unknown: Profile,
    model: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    names: Vec<String>,
    #[serde(flatten)]
    profile: Profile,
}

/// A model, as far as one must know it to ask for its vectors and to use them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Profile {
    /// What comes before a query.
    #[serde(default)]
    pub query_prefix: String,
    /// What comes before a document.
    #[serde(default)]
    pub document_prefix: String,
    /// The name to ask for when a query is embedded, where it is another one.
    #[serde(default)]
    query_model: Option<String>,
    /// The name to ask for when a document is embedded, where it is another one.
    #[serde(default)]
    document_model: Option<String>,
    /// The longest text in its own tokens, its marks included.
    pub tokens_max: usize,
    /// The length of its vectors, where that is known.
    #[serde(default)]
    pub dimensions: Option<usize>,
    /// What cuts its texts.
    pub tokenizer: Tokenizer,
    vector_weight: f32,
    pair_cosine_min: f32,
    relevant_cosine_min: f32,
}

/// What cuts a text into a model's tokens, as far as they can be counted here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Tokenizer {
    /// BERT's word pieces in lower case.
    BertUncased,
    /// Another one, which is not at hand.
    Other,
}

impl Profile {
    /// What the table says of a model, or of all that it does not name.
    pub(super) fn of(model: &str) -> Result<Self, Error> {
        let table: Table = toml::from_str(TABLE).map_err(|problem| Error::Asset {
            name: "models.toml",
            problem: problem.to_string(),
        })?;
        let name = plain(model);
        let known = table.model.into_iter().find(|row| row.names.contains(&name));
        Ok(known.map_or(table.unknown, |row| row.profile))
    }

    /// What was measured. A threshold of the routing gate belongs to a model and to one version of the example lists;
    /// with the lists that are shipped none was measured on these models, so the gate leaves their questions alone until
    /// the operator calibrates it.
    pub(super) fn calibration(&self) -> Calibration {
        Calibration {
            fusion: Fusion::Convex {
                vector_weight: self.vector_weight,
            },
            pair_cosine_min: self.pair_cosine_min,
            relevant_cosine_min: self.relevant_cosine_min,
            routing_threshold: None,
        }
    }

    /// What comes before a text.
    pub(super) fn prefix(&self, purpose: Purpose) -> &str {
        match purpose {
            Purpose::Query => &self.query_prefix,
            Purpose::Document => &self.document_prefix,
        }
    }

    /// The name to ask for.
    pub(super) fn asked<'a>(&'a self, model: &'a str, purpose: Purpose) -> &'a str {
        match purpose {
            Purpose::Query => self.query_model.as_deref(),
            Purpose::Document => self.document_model.as_deref(),
        }
        .unwrap_or(model)
    }

    /// The id that stands beside vectors: whose model, which, and whatever else changes them.
    pub(super) fn id(&self, provider: &str, model: &str, dimensions: Option<usize>) -> String {
        let mut id = format!("{provider}/{model}");
        if let Some(dimensions) = dimensions {
            id = format!("{id}/{dimensions}");
        }
        if !(self.query_prefix.is_empty() && self.document_prefix.is_empty()) {
            let digest = Sha256::digest(format!("{}\0{}", self.query_prefix, self.document_prefix));
            id = digest
                .iter()
                .take(4)
                .fold(format!("{id}/p"), |id, byte| format!("{id}{byte:02x}"));
        }
        id
    }
}

fn plain(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model).to_lowercase();
    name.strip_suffix(":latest").map_or(name.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_whole_and_others_are_unknown() {
        let nomic = Profile::of("nomic-embed-text").unwrap();
        assert_eq!(nomic.prefix(Purpose::Query), "search_query: ");
        assert_eq!(nomic.prefix(Purpose::Document), "search_document: ");
        assert_eq!((nomic.tokens_max, nomic.dimensions), (2048, Some(768)));
        assert_eq!(nomic.calibration().routing_threshold, None);
        for name in [
            "nomic-embed-text:latest",
            "nomic-ai/nomic-embed-text-v1.5",
            "NOMIC-EMBED-TEXT",
        ] {
            assert_eq!(Profile::of(name).unwrap(), nomic, "{name}");
        }
        let unknown = Profile::of("nomic-embed-text-v9").unwrap();
        assert_eq!((unknown.tokens_max, unknown.prefix(Purpose::Query)), (512, ""));
        assert_eq!(unknown.calibration().routing_threshold, None);
        let minilm = Profile::of("sentence-transformers/all-MiniLM-L6-v2").unwrap();
        assert_eq!(minilm.calibration().routing_threshold, None);
        let e5 = Profile::of("e5-query").unwrap();
        assert_eq!(e5.asked("e5-query", Purpose::Document), "e5-passage");
        assert_eq!(minilm.asked("x", Purpose::Document), "x");
    }

    #[test]
    fn every_row_is_within_its_bounds_and_no_name_stands_twice() {
        let table: Table = toml::from_str(TABLE).unwrap();
        let mut names = std::collections::HashSet::new();
        for row in &table.model {
            let profile = &row.profile;
            assert!((128..=8192).contains(&profile.tokens_max), "{row:?}");
            assert!(
                profile.dimensions.is_some_and(|length| length % 64 == 0),
                "{row:?}"
            );
            for value in [
                profile.vector_weight,
                profile.pair_cosine_min,
                profile.relevant_cosine_min,
            ] {
                assert!(value > 0.0 && value < 1.0, "{row:?}");
            }
            assert!(profile.relevant_cosine_min < profile.pair_cosine_min, "{row:?}");
            for name in &row.names {
                assert_eq!(*name, plain(name));
                assert!(names.insert(name.clone()), "{name} stands twice");
            }
        }
    }

    #[test]
    fn an_id_changes_with_whatever_changes_the_vectors() {
        let mut profile = Profile::of("nomic-embed-text").unwrap();
        let id = profile.id("ollama", "nomic-embed-text", None);
        assert!(id.starts_with("ollama/nomic-embed-text/p"), "{id}");
        assert_ne!(id, profile.id("openai", "nomic-embed-text", None));
        assert_ne!(id, profile.id("ollama", "nomic-embed-text", Some(256)));
        profile.document_prefix.push(' ');
        assert_ne!(id, profile.id("ollama", "nomic-embed-text", None));
        let plain = Profile::of("all-minilm").unwrap();
        assert_eq!(plain.id("ollama", "all-minilm", None), "ollama/all-minilm");
    }
}
