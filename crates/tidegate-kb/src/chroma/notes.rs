//! What is noted at the collection: whose vectors it holds, and how far it has come. By it a restart goes on where the
//! last process stopped, and a collection of another database or model is not taken for ours.

use serde_json::{Map, Value};
use tidegate_core::port::ChunkKey;

const STORE: &str = "tidegate:store";
const MODEL: &str = "tidegate:model";
const VERSION: &str = "tidegate:version";
const AFTER: &str = "tidegate:after";
const ROWS: &str = "tidegate:rows";

/// How far a collection has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reached {
    /// The database that its vectors are from.
    pub(super) store: String,
    /// The model that made them.
    pub(super) model: String,
    /// The state of the database that it has. While it is being filled: the one at which that began.
    pub(super) version: u64,
    /// The last key that was copied, while it is being filled.
    pub(super) after: Option<ChunkKey>,
    /// How many rows it holds; `None` while changes are being written.
    pub(super) rows: Option<u64>,
}

impl Reached {
    pub(super) fn to_notes(&self) -> Map<String, Value> {
        let mut notes = Map::from_iter([
            (STORE.to_owned(), Value::from(self.store.as_str())),
            (MODEL.to_owned(), Value::from(self.model.as_str())),
            (VERSION.to_owned(), Value::from(self.version)),
        ]);
        if let Some(after) = self.after {
            notes.insert(AFTER.to_owned(), Value::from(after));
        }
        if let Some(rows) = self.rows {
            notes.insert(ROWS.to_owned(), Value::from(rows));
        }
        notes
    }

    pub(super) fn from_notes(notes: &Map<String, Value>) -> Option<Self> {
        let text = |name| Some(notes.get(name)?.as_str()?.to_owned());
        let number = |name| notes.get(name).and_then(Value::as_u64);
        Some(Self {
            store: text(STORE)?,
            model: text(MODEL)?,
            version: number(VERSION)?,
            after: notes.get(AFTER).and_then(Value::as_i64),
            rows: number(ROWS),
        })
    }
}

/// Whether the collection is one that was made by us.
pub(super) fn is_ours(notes: &Map<String, Value>) -> bool {
    notes.contains_key(STORE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_they_were_written() {
        let reached = Reached {
            store: "a1".to_owned(),
            model: "builtin/x".to_owned(),
            version: 7,
            after: Some(12),
            rows: Some(3),
        };
        for reached in [
            reached.clone(),
            Reached {
                after: None,
                ..reached.clone()
            },
            Reached {
                rows: None,
                ..reached
            },
        ] {
            let notes = reached.to_notes();
            assert!(is_ours(&notes));
            assert_eq!(Reached::from_notes(&notes), Some(reached));
        }
        let others = Map::from_iter([("hnsw:space".to_owned(), Value::from("cosine"))]);
        assert!(!is_ours(&others));
        assert_eq!(Reached::from_notes(&others), None);
    }
}
