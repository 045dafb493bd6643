//! Reading documents and chunks.

use rusqlite::{Connection, OptionalExtension as _, Row, params, types::Type};
use tidegate_core::{
    clock::Timestamp,
    glob::{Glob, any_matches},
    knowledge::{Authority, CitationId, Document, DocumentState, Filter, Format},
    port::{ChunkKey, Counts, FileMark, KnownFile, StoredChunk},
};

use super::{vectors, words};
use crate::row::uncount;

/// The most rows in an answer, whatever is asked for.
const ROWS_MAX: usize = 10_000;

/// The columns of a chunk, in the order in which [`chunk`] takes them.
macro_rules! chunks {
    ($rest:literal) => {
        concat!(
            "SELECT chunks.key, chunks.citation, documents.path, documents.title, documents.format, \
             documents.authority, chunks.ordinal, chunks.place, chunks.text \
             FROM kb_chunks AS chunks JOIN kb_documents AS documents ON documents.id = chunks.document ",
            $rest
        )
    };
}

/// The columns of a document, in the order in which [`document_row`] takes them.
macro_rules! documents {
    ($rest:literal) => {
        concat!(
            "SELECT path, title, format, authority, bytes, modified_ns, indexed_at, chunks, generation, \
             failure_code, failure_reason, failure_hint FROM kb_documents ",
            $rest
        )
    };
}

/// A count that a signed column holds.
fn number(row: &Row<'_>, column: usize) -> Result<u64, rusqlite::Error> {
    Ok(uncount(row.get(column)?))
}

fn limited(limit: usize) -> i64 {
    i64::try_from(limit.min(ROWS_MAX)).unwrap_or(i64::MAX)
}

/// A value of a column that this program does not know.
fn unknown(column: usize, what: &'static str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, what.into())
}

fn format(row: &Row<'_>, column: usize) -> Result<Format, rusqlite::Error> {
    Format::named(row.get_ref(column)?.as_str()?).ok_or_else(|| unknown(column, "an unknown format"))
}

fn authority(row: &Row<'_>, column: usize) -> Result<Authority, rusqlite::Error> {
    let found = Authority::ALL
        .into_iter()
        .find(|authority| row.get(column) == Ok(rank(*authority)));
    found.ok_or_else(|| unknown(column, "an unknown authority"))
}

fn citation(row: &Row<'_>, column: usize) -> Result<CitationId, rusqlite::Error> {
    CitationId::parse(row.get_ref(column)?.as_str()?).ok_or_else(|| unknown(column, "no citation"))
}

fn chunk(row: &Row<'_>) -> Result<StoredChunk, rusqlite::Error> {
    let place = row.get_ref(7)?.as_str()?;
    Ok(StoredChunk {
        key: row.get(0)?,
        citation: citation(row, 1)?,
        path: row.get(2)?,
        title: row.get(3)?,
        format: format(row, 4)?,
        authority: authority(row, 5)?,
        ordinal: number(row, 6)?,
        place: serde_json::from_str(place)
            .map_err(|error| rusqlite::Error::FromSqlConversionFailure(7, Type::Text, Box::new(error)))?,
        text: row.get(8)?,
    })
}

fn time(row: &Row<'_>, column: usize, per_second: i64) -> Result<Timestamp, rusqlite::Error> {
    let value: i64 = row.get(column)?;
    let nanoseconds = i128::from(value) * i128::from(1_000_000_000 / per_second);
    Timestamp::from_nanosecond(nanoseconds)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Integer, Box::new(error)))
}

fn document_row(row: &Row<'_>) -> Result<Document, rusqlite::Error> {
    let state = match row.get::<_, Option<String>>(9)? {
        None => DocumentState::Indexed {
            chunks: number(row, 7)?,
            generation: number(row, 8)?,
        },
        Some(code) => DocumentState::Failed {
            code,
            reason: row.get(10)?,
            hint: row.get(11)?,
        },
    };
    Ok(Document {
        path: row.get(0)?,
        title: row.get(1)?,
        format: format(row, 2)?,
        authority: authority(row, 3)?,
        bytes: number(row, 4)?,
        modified_at: time(row, 5, 1_000_000_000)?,
        indexed_at: time(row, 6, 1_000_000)?,
        state,
    })
}

pub(super) fn identity(connection: &Connection) -> Result<String, rusqlite::Error> {
    connection
        .prepare_cached("SELECT identity FROM kb_state")?
        .query_row([], |row| row.get(0))
}

pub(super) fn version(connection: &Connection) -> Result<u64, rusqlite::Error> {
    connection
        .prepare_cached("SELECT version FROM kb_state")?
        .query_row([], |row| number(row, 0))
}

pub(super) fn serving(connection: &Connection) -> Result<Option<String>, rusqlite::Error> {
    connection
        .prepare_cached(
            "SELECT models.name FROM kb_state JOIN kb_models AS models ON models.id = kb_state.serving",
        )?
        .query_row([], |row| row.get(0))
        .optional()
}

macro_rules! files {
    ($rest:literal) => {
        concat!(
            "SELECT path, bytes, modified_ns, sha256, recipe, failure_code IS NOT NULL FROM kb_documents ",
            $rest
        )
    };
}

fn file(row: &Row<'_>) -> Result<KnownFile, rusqlite::Error> {
    Ok(KnownFile {
        path: row.get(0)?,
        mark: FileMark {
            bytes: number(row, 1)?,
            modified_ns: row.get(2)?,
            sha256: row.get(3)?,
        },
        recipe: row.get(4)?,
        failed: row.get(5)?,
    })
}

pub(super) fn files(
    connection: &Connection,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<KnownFile>, rusqlite::Error> {
    connection
        .prepare_cached(files!("WHERE ?1 IS NULL OR path > ?1 ORDER BY path LIMIT ?2"))?
        .query_map(params![after, limited(limit)], file)?
        .collect()
}

pub(super) fn files_at(connection: &Connection, path: &str) -> Result<Vec<KnownFile>, rusqlite::Error> {
    // What begins with `path/` lies between it and `path0`, the digit being the character after the stroke.
    connection
        .prepare_cached(files!(
            "WHERE path = ?1 OR (path > ?2 AND path < ?3) ORDER BY path"
        ))?
        .query_map(params![path, format!("{path}/"), format!("{path}0")], file)?
        .collect()
}

pub(super) fn of_keys(
    connection: &Connection,
    keys: &[ChunkKey],
) -> Result<Vec<StoredChunk>, rusqlite::Error> {
    let mut statement = connection.prepare_cached(chunks!("WHERE chunks.key = ?1"))?;
    keys.iter()
        .take(ROWS_MAX)
        .filter_map(|key| statement.query_row([key], chunk).optional().transpose())
        .collect()
}

pub(super) fn cited(connection: &Connection, citation: &str) -> Result<Option<StoredChunk>, rusqlite::Error> {
    connection
        .prepare_cached(chunks!("WHERE chunks.citation = ?1 ORDER BY chunks.key LIMIT 1"))?
        .query_row([citation], chunk)
        .optional()
}

pub(super) fn of_document(
    connection: &Connection,
    path: &str,
    ordinal: u64,
    limit: usize,
) -> Result<Vec<StoredChunk>, rusqlite::Error> {
    connection
        .prepare_cached(chunks!(
            "WHERE documents.path = ?1 AND chunks.ordinal >= ?2 ORDER BY chunks.ordinal LIMIT ?3"
        ))?
        .query_map(params![path, crate::row::count(ordinal), limited(limit)], chunk)?
        .collect()
}

pub(super) fn unembedded(
    connection: &Connection,
    model: &str,
    after: ChunkKey,
    limit: usize,
) -> Result<Vec<StoredChunk>, rusqlite::Error> {
    // A model without a number has answered nothing: no row lies below its slots.
    let model = vectors::model_id(connection, model)?.unwrap_or(0);
    connection
        .prepare_cached(chunks!(
            "WHERE chunks.key > ?1 AND NOT EXISTS (SELECT 1 FROM kb_vectors WHERE id = ?2 + chunks.key) \
             ORDER BY chunks.key LIMIT ?3"
        ))?
        .query_map(params![after, vectors::slot(model, 0), limited(limit)], chunk)?
        .collect()
}

pub(super) fn document(connection: &Connection, path: &str) -> Result<Option<Document>, rusqlite::Error> {
    connection
        .prepare_cached(documents!("WHERE path = ?1"))?
        .query_row([path], document_row)
        .optional()
}

/// Whether a filter lets everything through.
fn is_open(filter: &Filter) -> bool {
    filter.paths.is_empty() && filter.formats.is_empty() && filter.authority_min.is_none()
}

/// A filter's patterns; one that is no pattern matches the path that is spelled like it.
struct Paths<'f> {
    globs: Vec<Glob>,
    literal: Vec<&'f str>,
}

impl<'f> Paths<'f> {
    fn of(filter: &'f Filter) -> Self {
        let (mut globs, mut literal) = (Vec::new(), Vec::new());
        for path in &filter.paths {
            match Glob::new(path) {
                Ok(glob) => globs.push(glob),
                Err(_) => literal.push(path.as_str()),
            }
        }
        Self { globs, literal }
    }

    fn let_through(&self, path: &str) -> bool {
        (self.globs.is_empty() && self.literal.is_empty())
            || any_matches(&self.globs, path)
            || self.literal.contains(&path)
    }
}

/// A condition on a row of `kb_documents`, but for the paths: `?1` holds names of formats as JSON, `?2` a rank.
const WITHIN: &str = "(?1 IS NULL OR format IN (SELECT value FROM json_each(?1))) AND authority >= ?2";

fn formats(filter: &Filter) -> Option<String> {
    let names: Vec<&str> = filter.formats.iter().map(|format| format.name()).collect();
    (!names.is_empty()).then(|| crate::row::json(&names))
}

/// The rank of an authority, as the column has it.
pub(super) fn rank(authority: Authority) -> i64 {
    match authority {
        Authority::Secondary => 0,
        Authority::Interpretation => 1,
        Authority::Primary => 2,
    }
}

/// The ids of the documents that pass a filter, in their order; `None` where all do.
fn ids_within(connection: &Connection, filter: &Filter) -> Result<Option<Vec<i64>>, rusqlite::Error> {
    if is_open(filter) {
        return Ok(None);
    }
    let paths = Paths::of(filter);
    let mut ids: Vec<i64> = Vec::new();
    let sql = format!("SELECT id, path FROM kb_documents WHERE {WITHIN} ORDER BY id");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![formats(filter), filter.authority_min.map_or(0, rank)])?;
    while let Some(row) = rows.next()? {
        if paths.let_through(row.get_ref(1)?.as_str()?) {
            ids.push(row.get(0)?);
        }
    }
    Ok(Some(ids))
}

pub(super) fn keys_within(
    connection: &Connection,
    filter: &Filter,
) -> Result<Vec<ChunkKey>, rusqlite::Error> {
    keys_of(connection, ids_within(connection, filter)?.as_deref())
}

/// The keys of the chunks of these documents, or of all, in their order.
fn keys_of(connection: &Connection, ids: Option<&[i64]>) -> Result<Vec<ChunkKey>, rusqlite::Error> {
    let mut keys: Vec<ChunkKey> = connection
        .prepare_cached(
            "SELECT key FROM kb_chunks WHERE document IS NOT NULL \
             AND (?1 IS NULL OR document IN (SELECT value FROM json_each(?1)))",
        )?
        .query_map([ids.map(|ids| crate::row::json(&ids))], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    keys.sort_unstable();
    Ok(keys)
}

pub(super) fn documents(
    connection: &Connection,
    filter: &Filter,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<Document>, rusqlite::Error> {
    let paths = Paths::of(filter);
    let sql = format!(
        "{} {WITHIN} AND (?3 IS NULL OR path > ?3) ORDER BY path",
        documents!("WHERE")
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![
        formats(filter),
        filter.authority_min.map_or(0, rank),
        after
    ])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        if found.len() == limit.min(ROWS_MAX) {
            break;
        }
        if paths.let_through(row.get_ref(0)?.as_str()?) {
            found.push(document_row(row)?);
        }
    }
    Ok(found)
}

/// Which of the chunks that hold a word are wanted.
enum Wanted {
    /// All that are seen.
    Any,
    /// Those of these keys: where a filter leaves little.
    Keys(Vec<ChunkKey>),
    /// Those of these documents, looked up one by one: where a filter leaves much, the first ones will do.
    Documents(Vec<i64>),
}

impl Wanted {
    fn by(connection: &Connection, filter: &Filter) -> Result<Self, rusqlite::Error> {
        let Some(ids) = ids_within(connection, filter)? else {
            return Ok(Self::Any);
        };
        let documents: i64 = connection
            .prepare_cached("SELECT count(*) FROM kb_documents")?
            .query_row([], |row| row.get(0))?;
        if uncount(documents) > 2 * ids.len() as u64 {
            Ok(Self::Keys(keys_of(connection, Some(&ids))?))
        } else {
            Ok(Self::Documents(ids))
        }
    }

    fn has(&self, connection: &Connection, key: ChunkKey) -> Result<bool, rusqlite::Error> {
        match self {
            Self::Any => Ok(true),
            Self::Keys(keys) => Ok(keys.binary_search(&key).is_ok()),
            Self::Documents(ids) => {
                let document: Option<i64> = connection
                    .prepare_cached("SELECT document FROM kb_chunks WHERE key = ?1")?
                    .query_row([key], |row| row.get(0))
                    .optional()?
                    .flatten();
                Ok(document.is_some_and(|document| ids.binary_search(&document).is_ok()))
            }
        }
    }
}

/// Chunks with any of the terms, best first. All matches are ranked by the index, and read from the best on until
/// there are enough: looking up each one's document would take longer than finding it.
pub(super) fn match_words(
    connection: &Connection,
    terms: &[String],
    filter: &Filter,
    limit: usize,
) -> Result<Vec<(ChunkKey, f32)>, rusqlite::Error> {
    let mut found = Vec::new();
    let Some(expression) = words::expression(terms) else {
        return Ok(found);
    };
    let (wanted, unseen) = (Wanted::by(connection, filter)?, vectors::unseen(connection)?);
    let mut statement = connection.prepare_cached(
        "SELECT rowid, rank FROM kb_words WHERE kb_words MATCH ?1 AND rank MATCH ?2 ORDER BY rank",
    )?;
    let mut rows = statement.query(params![expression, words::rank()])?;
    while found.len() < limit.min(ROWS_MAX) {
        let Some(row) = rows.next()? else { break };
        let key = row.get(0)?;
        if unseen.binary_search(&key).is_err() && wanted.has(connection, key)? {
            // SQLite's score is the less the better.
            found.push((key, -row.get::<_, f32>(1)?));
        }
    }
    Ok(found)
}

pub(super) fn counts(connection: &Connection, model: Option<&str>) -> Result<Counts, rusqlite::Error> {
    let count = |sql: &str| -> Result<i64, rusqlite::Error> {
        connection.prepare_cached(sql)?.query_row([], |row| row.get(0))
    };
    let files = count("SELECT count(*) FROM kb_documents")?;
    let failed = count("SELECT count(*) FROM kb_documents WHERE failure_code IS NOT NULL")?;
    let chunks = count("SELECT count(*) FROM kb_chunks WHERE document IS NOT NULL")?;
    let model = match model {
        Some(model) => vectors::model_id(connection, model)?,
        None => None,
    };
    let embedded = match model {
        Some(model) => connection
            .prepare_cached(
                "SELECT answers - (SELECT count(*) FROM kb_chunks AS chunks JOIN kb_vectors AS vectors \
                 ON vectors.id = ?2 + chunks.key WHERE chunks.document IS NULL) FROM kb_models WHERE id = ?1",
            )?
            .query_row([model, vectors::slot(model, 0)], |row| row.get(0))?,
        None => 0,
    };
    Ok(Counts {
        documents: uncount(files - failed),
        failed: uncount(failed),
        chunks: uncount(chunks),
        embedded: uncount(embedded),
        version: version(connection)?,
    })
}
