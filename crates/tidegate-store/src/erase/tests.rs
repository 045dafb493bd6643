use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use rusqlite::{Connection, types::Value};
use serde_json::json;
use tidegate_core::{
    approval::{Approval, ApprovalBinding, ApprovalState},
    caller::Mode,
    id::{ApprovalId, CallId, KeyId, RunId},
    message::Message,
    port::{
        ApprovalStore as _, Capture, CaptureQueue as _, HeldTurn, HeldTurnStore as _, Ledger as _,
        MemoryStore as _, RunStore as _, Seen, Sight,
    },
    run::Stage,
};

use super::{RULES, Rule};
use crate::{
    Options, Store,
    conformance::{
        at, before, cost, line,
        memory::{new_note, said},
        run, user,
    },
    memory::sound,
    tests::{Opened, folder},
};

/// Tables without rows of people: each with all its columns, so that a new column is looked at, and the reason.
const IMPERSONAL: [(&str, &str, &str); 11] = [
    (
        "keys",
        "id hash previous_hash previous_valid_until created_at last_used_at name scopes enabled expires_at \
         requests_per_minute tokens_per_day models tools mode_ceiling on_disconnect metadata",
        "an operator's, about a key",
    ),
    (
        "quota_days",
        "key_id day settled_tokens estimated_tokens reserved_tokens",
        "sums of a key",
    ),
    ("memory_keys", "key_id learning recall", "switches of a key"),
    ("memory_models", "id name dimension", "embedding models"),
    (
        "kb_documents",
        "id path bytes modified_ns sha256 recipe title format authority generation chunks indexed_at \
         failure_code failure_reason failure_hint",
        "an operator's documents",
    ),
    (
        "kb_chunks",
        "key document ordinal citation sha256 place text heading words expires_at",
        "an operator's documents",
    ),
    ("kb_words", "heading text", "an operator's documents"),
    ("kb_terms", "term doc cnt", "an operator's documents"),
    (
        "kb_models",
        "id name dimension answers retired",
        "embedding models",
    ),
    ("kb_vectors", "id vector", "an operator's documents"),
    ("kb_changes", "version key", "numbers"),
];

/// Of tables whose rows stay without the name, the columns that stay: none of them holds text of a person.
const STAYS: [(&str, &str); 1] = [(
    "usage",
    "seq at day key_id user_id run_id provider model role input_tokens output_tokens cached_tokens \
     reasoning_tokens estimated",
)];

/// Tables of SQLite itself, of the migrations, and of one row.
const MACHINERY: [&str; 5] = [
    "_sqlx_migrations",
    "sqlite_sequence",
    "sqlite_stat1",
    "sqlite_stat4",
    "kb_state",
];

fn strings(db: &Connection, sql: &str, name: &str) -> Vec<String> {
    let mut statement = db.prepare(sql).unwrap();
    let parameters: &[&dyn rusqlite::ToSql] = if name.is_empty() { &[] } else { &[&name] };
    statement
        .query_map(parameters, |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

/// Tables with their columns, without those in which a virtual table keeps its own data.
fn tables(db: &Connection) -> BTreeMap<String, String> {
    let names = strings(
        db,
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')",
        "",
    );
    names
        .into_iter()
        .filter(|name| name != "sqlite_schema" && !MACHINERY.contains(&name.as_str()))
        .map(|name| {
            let columns = strings(db, "SELECT name FROM pragma_table_info(?1)", &name).join(" ");
            (name, columns)
        })
        .collect()
}

/// Every table is either known to hold nothing of people, column by column, or has a rule.
#[tokio::test]
async fn every_table_is_erased_from_or_has_nothing_of_people() {
    let (_folder, path) = folder();
    Opened::at(&path).await.close().await;
    let db = Connection::open(&path).unwrap();
    let rules: BTreeMap<&str, Rule> = RULES.into_iter().collect();
    let impersonal: BTreeMap<&str, &str> = IMPERSONAL
        .iter()
        .map(|(name, columns, _)| (*name, *columns))
        .collect();
    let tables = tables(&db);
    for (table, columns) in &tables {
        let Some(rule) = rules.get(table.as_str()) else {
            let known = impersonal.get(table.as_str()).copied();
            assert_eq!(
                known,
                Some(columns.as_str()),
                "the table {table} is new or has new columns: give it a rule in erase.rs, or say here why not"
            );
            let has_person = columns
                .split(' ')
                .any(|column| column == "user_id" || column == "person");
            assert!(!has_person, "{table} names people");
            continue;
        };
        match rule {
            Rule::Statement { sql, .. } if sql.starts_with("DELETE") => {
                assert!(sql.contains(&format!(" {table} ")));
            }
            Rule::Statement { .. } => assert!(
                STAYS.contains(&(table.as_str(), columns.as_str())),
                "{table}: {columns}"
            ),
            Rule::With(other) => assert!(tables.contains_key(*other), "{table}"),
        }
    }
    for table in rules.keys().chain(impersonal.keys()) {
        assert!(tables.contains_key(*table), "there is no table {table}");
    }
    for name in MACHINERY {
        assert!(!rules.contains_key(name));
    }
    let virtual_tables = strings(
        &db,
        "SELECT name FROM pragma_table_list WHERE type = 'virtual'",
        "",
    );
    let shadows = strings(
        &db,
        "SELECT name FROM pragma_table_list WHERE type = 'shadow'",
        "",
    );
    for shadow in shadows {
        let owner = virtual_tables
            .iter()
            .find(|owner| shadow.starts_with(owner.as_str()));
        assert!(owner.is_some(), "{shadow}");
    }
}

/// Whether a value holds a text, as text or as bytes.
fn holds(value: &Value, text: &str) -> bool {
    let bytes = match value {
        Value::Text(found) => found.as_bytes(),
        Value::Blob(found) => found.as_slice(),
        Value::Null | Value::Integer(_) | Value::Real(_) => return false,
    };
    contains(bytes, text)
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// All tables, those of the machinery and the shadows too, that have a text in any column of any row.
fn tables_with(path: &Path, text: &str) -> BTreeSet<String> {
    let db = Connection::open(path).unwrap();
    // What has no content of its own gives its words by its shadows.
    let names = strings(
        &db,
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'shadow')",
        "",
    );
    names
        .into_iter()
        .filter(|name| {
            let mut statement = db.prepare(&format!("SELECT * FROM \"{name}\"")).unwrap();
            let columns = statement.column_count();
            let mut rows = statement.query([]).unwrap();
            while let Some(row) = rows.next().unwrap() {
                if (0..columns).any(|column| holds(&row.get(column).unwrap(), text)) {
                    return true;
                }
            }
            false
        })
        .collect()
}

/// The files of the folder that have a text in them.
fn files_with(path: &Path, text: &str) -> Vec<String> {
    let files = std::fs::read_dir(path.parent().unwrap()).unwrap();
    files
        .map(|file| file.unwrap().path())
        .filter(|file| contains(&std::fs::read(file).unwrap(), text))
        .map(|file| file.display().to_string())
        .collect()
}

/// A vector whose bytes are the text, so that it is found like any other.
fn vector_of(text: &str) -> Vec<f32> {
    let mut numbers = vec![0.0; 4];
    for (number, bytes) in numbers.iter_mut().zip(text.as_bytes().as_chunks().0) {
        *number = f32::from_le_bytes(*bytes);
    }
    numbers
}

/// Puts a text of a person into every table that has a rule.
async fn fill(store: &Store, name: &str, text: &str) {
    let person = user("k1", name);
    let state = |text: &str| Some(json!({ "text": text }));
    for (id, closed) in [("a", false), ("b", true)] {
        let record = run(&format!("run_{name}_{id}"), "k1", name);
        let first = line(0, Stage::BeforeModel { round: 1 }, state(text));
        store.open(&record, &first).await.unwrap();
        store
            .checkpoint(&record.id, &line(1, before("c"), None))
            .await
            .unwrap();
        if !closed {
            let second = line(2, Stage::BeforeModel { round: 2 }, state(text));
            store.checkpoint(&record.id, &second).await.unwrap();
        }
    }
    store.record(cost("k1", name, 1, 1));
    let under_way = RunId::new(format!("run_{name}_a"));
    store.hold(&under_way, &held(name, text), at(0)).await.unwrap();
    store.ask(&approval(name, text)).await.unwrap();
    let capture = Capture {
        run: RunId::new(format!("run_{name}_a")),
        turn: [1; 32],
        conversation: text.to_owned(),
        day: jiff::civil::date(2027, 1, 15),
        at: at(0),
        said: text.to_owned(),
        in_sight: vec![Seen {
            sight: Sight::Tool,
            text: text.to_owned(),
        }],
    };
    store.enqueue(&person, &capture).await.unwrap();
    let many = (0..300).map(|turn| said(turn, "note", &format!("{text}{turn}")));
    store.append(&person, many.collect()).await.unwrap();
    let version = store.version(&person).await.unwrap();
    let notes = (0..200).map(|n| new_note(&format!("f{n}"), &format!("{text} and word{n}")));
    let put = store
        .put_notes(&person, version, notes.collect(), Vec::new())
        .await;
    assert!(put.unwrap().is_some());
    let notes = store.notes(&person, 0, 1_000).await.unwrap();
    let vectors = notes.iter().map(|note| (note.key, Some(vector_of(text))));
    store
        .put_note_vectors(&person, "m", vectors.collect())
        .await
        .unwrap();
}

fn held(name: &str, text: &str) -> HeldTurn {
    HeldTurn {
        key_id: KeyId::new("k1"),
        user: user("k1", name),
        client_call_ids: vec![CallId::new("c")],
        messages: vec![Message::human(text)],
        citations: Vec::new(),
        expires_at: at(9_999),
    }
}

fn approval(name: &str, text: &str) -> Approval {
    Approval {
        id: ApprovalId::new(format!("appr_{name}")),
        run_id: RunId::new(format!("run_{name}_a")),
        binding: ApprovalBinding {
            key_id: KeyId::new("k1"),
            user: user("k1", name),
            conversation: "c".to_owned(),
            mode: Mode::ReadOnly,
            tool: "write_file".to_owned(),
            fingerprint: text.to_owned(),
            policy: "p".to_owned(),
        },
        summary: text.to_owned(),
        arguments: text.to_owned(),
        reasons: Vec::new(),
        created_at: at(0),
        expires_at: at(9_999),
        state: ApprovalState::Pending,
        decided_by: None,
        decided_at: None,
    }
}

const ANN: &str = "wombatquartz4711";
const BOB: &str = "kestrelonyx08150";

/// Where something of a person must be, so that a table with a rule cannot stay out of this test.
fn personal() -> BTreeSet<String> {
    RULES
        .iter()
        .map(|(table, _)| match *table {
            // The words of contentless tables are in their shadows.
            "memory_words" => "memory_words_data".to_owned(),
            table => table.to_owned(),
        })
        .collect()
}

async fn filled(path: &Path, busy_timeout_ms: u64) -> Opened {
    let opened = Opened::with(Options {
        path: path.to_owned(),
        busy_timeout_ms,
        ..Options::default()
    })
    .await;
    fill(&opened.store, "ann", ANN).await;
    fill(&opened.store, "bob", BOB).await;
    opened.store.flush_rows().await.unwrap();
    // What the planner samples are values of indexes.
    Connection::open(path).unwrap().execute_batch("ANALYZE").unwrap();
    opened
}

/// The tables that hold a person's text or name.
fn of_person(path: &Path, text: &str, id: &str) -> BTreeSet<String> {
    let mut tables = tables_with(path, text);
    tables.extend(tables_with(path, id));
    tables
}

#[tokio::test]
async fn erased_text_is_in_no_table_and_no_file() {
    let (_folder, path) = folder();
    let opened = filled(&path, 5_000).await;
    for (text, id) in [(ANN, "k1:ann"), (BOB, "k1:bob")] {
        let found = of_person(&path, text, id);
        for table in personal() {
            assert!(found.contains(&table), "{table} is not filled: {found:?}");
        }
    }
    // The samples hold either one's, by chance.
    assert!(
        tables_with(&path, ANN).contains("sqlite_stat4") || tables_with(&path, BOB).contains("sqlite_stat4")
    );

    let ann = user("k1", "ann");
    let erased = opened.store.erase(&ann).await.unwrap();
    assert_eq!(
        (
            erased.runs,
            erased.held_turns,
            erased.approvals,
            erased.usage_rows
        ),
        (2, 1, 1, 1)
    );
    assert_eq!(
        (erased.captures, erased.observations, erased.notes),
        (1, 300, 200)
    );
    assert!(erased.is_out_of_files);
    // Also a part of a word, as the index shares the beginnings of words that follow each other.
    for text in [ANN, &ANN[4..], "k1:ann", "run_ann"] {
        assert_eq!(tables_with(&path, text), BTreeSet::new(), "{text}");
        // The row of usage, without a name, still says which run it was; ids are no text.
        if text != "run_ann" {
            assert_eq!(files_with(&path, text), [""; 0], "{text}");
        }
    }
    let found = of_person(&path, BOB, "k1:bob");
    for table in personal() {
        assert!(found.contains(&table), "{table} lost what is another person's");
    }
    sound(&path);
    assert_eq!(
        opened
            .store
            .match_notes(&user("k1", "bob"), &[BOB.to_owned()], 500)
            .await
            .unwrap()
            .len(),
        200
    );
    opened.close().await;
    assert_eq!(files_with(&path, ANN), [""; 0]);
}

/// A turn that is under way when its person is erased cannot put their words back.
#[tokio::test]
async fn a_turn_under_way_brings_nothing_back() {
    let (_folder, path) = folder();
    let opened = filled(&path, 5_000).await;
    let store = &opened.store;
    store.erase(&user("k1", "ann")).await.unwrap();
    // What the turn still does: it asks a person, and it ends with calls for the client.
    assert!(store.ask(&approval("ann", ANN)).await.is_err());
    let under_way = RunId::new("run_ann_a");
    store.hold(&under_way, &held("ann", ANN), at(0)).await.unwrap();
    for text in [ANN, "k1:ann"] {
        assert_eq!(tables_with(&path, text), BTreeSet::new(), "{text}");
        assert_eq!(files_with(&path, text), [""; 0], "{text}");
    }
    // Whoever comes back later is a person like any other.
    let first = line(9, Stage::BeforeModel { round: 1 }, None);
    store.open(&run("run_ann_a", "k1", "ann"), &first).await.unwrap();
    store.hold(&under_way, &held("ann", ANN), at(0)).await.unwrap();
    store.ask(&approval("ann", ANN)).await.unwrap();
    let back = tables_with(&path, ANN);
    assert!(
        back.contains("held_turns") && back.contains("approvals"),
        "{back:?}"
    );
    opened.close().await;
}

#[tokio::test]
async fn a_forgotten_fact_is_in_no_table_and_no_file() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    let ann = user("k1", "ann");
    let store = &opened.store;
    store
        .append(&ann, vec![said(1, "note", ANN), said(2, "note", BOB)])
        .await
        .unwrap();
    let version = store.version(&ann).await.unwrap();
    let notes = [ANN, BOB].map(|text| new_note(text, &format!("likes {text}")));
    store
        .put_notes(&ann, version, notes.to_vec(), Vec::new())
        .await
        .unwrap()
        .unwrap();
    Connection::open(&path).unwrap().execute_batch("ANALYZE").unwrap();
    assert!(!files_with(&path, ANN).is_empty());
    store.forget(&ann, "note", ANN).await.unwrap();
    for text in [ANN, &ANN[4..]] {
        assert_eq!(tables_with(&path, text), BTreeSet::new());
        assert_eq!(files_with(&path, text), [""; 0]);
    }
    assert!(!files_with(&path, BOB).is_empty());
    opened.close().await;
}

/// While somebody reads an older state the log cannot be emptied; that is said, and made up for.
#[tokio::test]
async fn a_reader_delays_the_files_and_not_the_erasure() {
    let (_folder, path) = folder();
    let opened = filled(&path, 20).await;
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM memory_notes").unwrap();
    let ann = user("k1", "ann");
    let erased = opened.store.erase(&ann).await.unwrap();
    assert!(!erased.is_out_of_files);
    assert_eq!(tables_with(&path, ANN), BTreeSet::new());
    reader.execute_batch("COMMIT").unwrap();
    assert!(opened.store.erase(&ann).await.unwrap().is_out_of_files);
    assert_eq!(files_with(&path, ANN), [""; 0]);
    opened.close().await;
}

mod key;
