//! Notes: facts in words, for recall. The index follows them by triggers, whatever removes a row.

use std::borrow::Cow;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::Serialize;
use sqlx::SqliteConnection;
use tidegate_core::{
    error::StoreError,
    id::{FactId, UserId},
    port::{MemoryVersion, NewNote, Note, RowKey},
};

use super::{limited, named, people};
use crate::{error::failed, knowledge::words, row, store::Store, writer::Command};

/// Notes that one transaction puts or removes: some milliseconds of indexing.
const NOTES_MAX: usize = 64;

pub(super) fn note(row: &Row<'_>) -> Result<Note, rusqlite::Error> {
    Ok(Note {
        key: row.get(0)?,
        fact: named(row, 1)?,
        kind: row.get(2)?,
        value: row.get(3)?,
        text: row.get(4)?,
    })
}

pub(super) fn page(
    db: &Connection,
    user: &UserId,
    from: RowKey,
    limit: usize,
) -> Result<Vec<Note>, rusqlite::Error> {
    let Some(person) = people::number(db, user)? else {
        return Ok(Vec::new());
    };
    let keys = people::keys(person);
    db.prepare_cached(
        "SELECT key, fact, kind, value, text FROM memory_notes WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3",
    )?
    .query_map(
        params![from.max(*keys.start()), keys.end(), limited(limit)],
        note,
    )?
    .collect()
}

pub(super) fn of_keys(db: &Connection, user: &UserId, keys: &[RowKey]) -> Result<Vec<Note>, rusqlite::Error> {
    let Some(person) = people::number(db, user)? else {
        return Ok(Vec::new());
    };
    let mut statement = db.prepare_cached(
        "SELECT key, fact, kind, value, text FROM memory_notes WHERE key = ?1 AND person = ?2",
    )?;
    keys.iter()
        .take(super::ROWS_MAX)
        .filter_map(|key| statement.query_row([*key, person], note).optional().transpose())
        .collect()
}

impl Store {
    pub(super) async fn put_new_notes(
        &self,
        user: &UserId,
        derived_from: MemoryVersion,
        notes: Vec<NewNote>,
        gone: Vec<FactId>,
    ) -> Result<Option<MemoryVersion>, StoreError> {
        let (mut notes, mut gone, mut version) = (notes, gone, derived_from);
        let has_gone = !gone.is_empty();
        loop {
            let more_notes = notes.split_off(notes.len().min(NOTES_MAX));
            let more_gone = gone.split_off(gone.len().min(NOTES_MAX));
            let put = Put {
                user: user.clone(),
                derived_from: version,
                notes,
                gone,
            };
            let Some(next) = self.writer().run(put).await? else {
                return Ok(None);
            };
            version = next;
            if more_notes.is_empty() && more_gone.is_empty() {
                break;
            }
            (notes, gone) = (more_notes, more_gone);
        }
        if has_gone {
            self.note_erased();
        }
        Ok(Some(version))
    }
}

/// A note on its way into a statement that adds many.
#[derive(Serialize)]
struct Line<'n> {
    fact: &'n str,
    kind: &'n str,
    value: &'n str,
    text: &'n str,
    words: Option<String>,
    length: usize,
}

impl<'n> Line<'n> {
    fn of(note: &'n NewNote) -> Self {
        let words = words::spaced(&note.text);
        Self {
            fact: note.fact.as_str(),
            kind: &note.kind,
            value: &note.value,
            text: &note.text,
            length: words.split_whitespace().count(),
            words: match words {
                Cow::Borrowed(_) => None,
                Cow::Owned(words) => Some(words),
            },
        }
    }
}

const REMOVE: &str =
    "DELETE FROM memory_notes WHERE person = $1 AND fact IN (SELECT value FROM json_each($2))";

/// CROSS JOIN: from the few new ones to their rows, never through all of the person's.
const REMOVE_CHANGED: &str = "DELETE FROM memory_notes WHERE key IN (SELECT notes.key FROM json_each($2) AS new \
     CROSS JOIN memory_notes AS notes ON notes.person = $1 AND notes.fact = new.value ->> 'fact' \
     WHERE notes.text <> new.value ->> 'text' OR notes.kind <> new.value ->> 'kind' \
     OR notes.value <> new.value ->> 'value')";

const INSERT: &str = "INSERT INTO memory_notes (key, person, fact, kind, value, text, words, length) \
     SELECT $3 + new.key, $1, new.value ->> 'fact', new.value ->> 'kind', new.value ->> 'value', \
     new.value ->> 'text', new.value ->> 'words', new.value ->> 'length' FROM json_each($2) AS new WHERE true \
     ON CONFLICT (person, fact) DO NOTHING";

struct Put {
    user: UserId,
    derived_from: MemoryVersion,
    notes: Vec<NewNote>,
    gone: Vec<FactId>,
}

impl Put {
    async fn write(
        &self,
        connection: &mut SqliteConnection,
        begun: &people::Begun,
    ) -> Result<(), sqlx::Error> {
        if !self.gone.is_empty() {
            sqlx::query(REMOVE)
                .bind(begun.person)
                .bind(row::json(&self.gone))
                .execute(&mut *connection)
                .await?;
        }
        if !self.notes.is_empty() {
            let lines: Vec<Line<'_>> = self.notes.iter().map(Line::of).collect();
            let lines = row::json(&lines);
            for sql in [REMOVE_CHANGED, INSERT] {
                sqlx::query(sql)
                    .bind(begun.person)
                    .bind(lines.clone())
                    .bind(begun.first_note)
                    .execute(&mut *connection)
                    .await?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Command for Put {
    type Output = Option<MemoryVersion>;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<Option<MemoryVersion>, StoreError> {
        let found = people::find(connection, &self.user).await?;
        let is_as_it_was = found.is_some_and(|(_, version)| version == self.derived_from);
        if !is_as_it_was {
            // Of a person of whom nothing was ever kept there is nothing to put either.
            let is_nothing = self.notes.is_empty() && found.is_none();
            return Ok(
                (is_nothing && self.derived_from == MemoryVersion::default()).then_some(self.derived_from)
            );
        }
        if self.notes.is_empty() && self.gone.is_empty() {
            return Ok(Some(self.derived_from));
        }
        let begun = people::begin(connection, &self.user, 0, row::count(self.notes.len() as u64)).await?;
        self.write(connection, &begun)
            .await
            .map_err(failed("putting notes"))?;
        Ok(Some(begun.version))
    }
}
