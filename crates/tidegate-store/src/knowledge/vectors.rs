//! Vectors as rows: where they lie, and how they become numbers.

use std::collections::{HashMap, hash_map::Entry};

use rusqlite::{Connection, OptionalExtension as _, params, types::ValueRef};
use tidegate_core::port::{ChunkChanges, ChunkKey, VectorPage};

/// Bits of a vector's id that are the chunk's key; the rest is the model's number.
pub(super) const KEY_BITS: u32 = 40;

/// The most rows in a page, whatever is asked for: 32 MiB of vectors of 512 numbers.
const PAGE_MAX: usize = 16_384;

/// A vector as it is kept: its numbers as little-endian 32-bit floats.
pub(crate) fn to_blob(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

pub(crate) fn numbers(blob: &[u8]) -> impl Iterator<Item = f32> + '_ {
    blob.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes))
}

/// The id under which a model's vector of a chunk lies.
pub(super) fn slot(model: i64, key: ChunkKey) -> i64 {
    (model << KEY_BITS) | key
}

/// The number of a model, where it has one.
pub(super) fn model_id(connection: &Connection, model: &str) -> Result<Option<i64>, rusqlite::Error> {
    connection
        .prepare_cached("SELECT id FROM kb_models WHERE name = ?1 AND retired = 0")?
        .query_row([model], |row| row.get(0))
        .optional()
}

/// A page in the order of the keys. What has no vector or no document is left out.
pub(super) fn page(
    connection: &Connection,
    model: &str,
    after: ChunkKey,
    limit: usize,
) -> Result<VectorPage, rusqlite::Error> {
    let mut page = VectorPage::default();
    let Some(model) = model_id(connection, model)? else {
        return Ok(page);
    };
    let unseen = unseen(connection)?;
    let limit = limit.clamp(1, PAGE_MAX);
    let mut statement = connection.prepare_cached(
        "SELECT id, vector FROM kb_vectors WHERE id > ?1 AND id < ?2 AND vector IS NOT NULL ORDER BY id",
    )?;
    let mut rows = statement.query(params![slot(model, after.max(0)), slot(model + 1, 0)])?;
    while let Some(row) = rows.next()? {
        let key = row.get::<_, i64>(0)? - slot(model, 0);
        if unseen.binary_search(&key).is_ok() {
            continue;
        }
        page.keys.push(key);
        page.values.extend(numbers(row.get_ref(1)?.as_blob()?));
        if page.keys.len() == limit {
            break;
        }
    }
    Ok(page)
}

/// The keys of chunks that nobody sees, in their order.
pub(super) fn unseen(connection: &Connection) -> Result<Vec<ChunkKey>, rusqlite::Error> {
    let mut keys: Vec<ChunkKey> = connection
        .prepare_cached("SELECT key FROM kb_chunks WHERE document IS NULL")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    keys.sort_unstable();
    Ok(keys)
}

/// The vectors of these keys, in their order; a key without one is left out.
pub(super) fn of_keys(
    connection: &Connection,
    model: &str,
    keys: &[ChunkKey],
) -> Result<VectorPage, rusqlite::Error> {
    let mut page = VectorPage::default();
    let Some(model) = model_id(connection, model)? else {
        return Ok(page);
    };
    for key in keys {
        if let Answer::Vector(vector) = answer(connection, slot(model, *key))? {
            page.keys.push(*key);
            page.values.extend(vector);
        }
    }
    Ok(page)
}

/// Each of these keys with its vector, if it has one.
pub(super) fn of_each(
    connection: &Connection,
    model: &str,
    keys: &[ChunkKey],
) -> Result<Vec<(ChunkKey, Known)>, rusqlite::Error> {
    let Some(model) = model_id(connection, model)? else {
        return Ok(keys.iter().map(|key| (*key, None)).collect());
    };
    keys.iter()
        .map(|key| {
            let vector = match answer(connection, slot(model, *key))? {
                Answer::Unasked | Answer::Nothing => None,
                Answer::Vector(vector) => Some(vector),
            };
            Ok((*key, vector))
        })
        .collect()
}

/// What a model says of a chunk.
enum Answer {
    /// Nobody has asked it.
    Unasked,
    /// It knows nothing in it.
    Nothing,
    /// This.
    Vector(Vec<f32>),
}

fn answer(connection: &Connection, slot: i64) -> Result<Answer, rusqlite::Error> {
    let found = connection
        .prepare_cached("SELECT vector FROM kb_vectors WHERE id = ?1")?
        .query_row([slot], |row| {
            Ok(match row.get_ref(0)? {
                ValueRef::Null => Answer::Nothing,
                value
                @ (ValueRef::Blob(_) | ValueRef::Text(_) | ValueRef::Integer(_) | ValueRef::Real(_)) => {
                    Answer::Vector(numbers(value.as_blob()?).collect())
                }
            })
        })
        .optional()?;
    Ok(found.unwrap_or(Answer::Unasked))
}

/// What a model says of a chunk that it was asked about.
type Known = Option<Vec<f32>>;

/// The answers of `model` for chunks with these hashes, wherever they stand. A hash is looked up once, however often
/// it is among them.
pub(super) fn by_hash(
    connection: &Connection,
    model: &str,
    hashes: &[[u8; 32]],
) -> Result<Vec<Option<Known>>, rusqlite::Error> {
    let Some(model) = model_id(connection, model)? else {
        return Ok(vec![None; hashes.len()]);
    };
    let mut found = connection.prepare_cached(
        "SELECT vectors.id FROM kb_chunks AS chunks JOIN kb_vectors AS vectors ON vectors.id = ?2 + chunks.key \
         WHERE chunks.sha256 = ?1 LIMIT 1",
    )?;
    let mut slots: HashMap<[u8; 32], Option<i64>> = HashMap::new();
    hashes
        .iter()
        .map(|hash| {
            let slot = match slots.entry(*hash) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => *unknown.insert(
                    found
                        .query_row(params![hash, slot(model, 0)], |row| row.get(0))
                        .optional()?,
                ),
            };
            let Some(slot) = slot else { return Ok(None) };
            Ok(match answer(connection, slot)? {
                Answer::Unasked => None,
                Answer::Nothing => Some(None),
                Answer::Vector(vector) => Some(Some(vector)),
            })
        })
        .collect()
}

/// What changed after a version; `None` where that is no longer known.
pub(super) fn changes_since(
    connection: &Connection,
    model: &str,
    version: i64,
) -> Result<Option<ChunkChanges>, rusqlite::Error> {
    let (now, reset): (i64, i64) = connection
        .prepare_cached("SELECT version, reset_version FROM kb_state")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if version < reset || version > now || now - version >= super::write::VERSIONS_KEPT {
        return Ok(None);
    }
    let model = model_id(connection, model)?;
    let mut changes = ChunkChanges {
        version: now.unsigned_abs(),
        ..ChunkChanges::default()
    };
    let mut touched = connection.prepare_cached(
        "SELECT DISTINCT changes.key, chunks.document IS NOT NULL FROM kb_changes AS changes \
         LEFT JOIN kb_chunks AS chunks ON chunks.key = changes.key WHERE changes.version > ?1 ORDER BY changes.key",
    )?;
    let mut rows = touched.query([version])?;
    while let Some(row) = rows.next()? {
        let key = row.get(0)?;
        if !row.get::<_, bool>(1)? {
            changes.removed.push(key);
            continue;
        }
        let vector = match model {
            Some(model) => match answer(connection, slot(model, key))? {
                Answer::Unasked | Answer::Nothing => None,
                Answer::Vector(vector) => Some(vector),
            },
            None => None,
        };
        changes.added.push((key, vector));
    }
    Ok(Some(changes))
}
