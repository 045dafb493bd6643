//! Everybody behind a deleted key.

use std::{collections::BTreeSet, path::Path};

use rusqlite::Connection;
use tidegate_core::{
    id::KeyId,
    port::{
        KeyRemoval, KeyStore as _, LastAdmin, MemoryStore as _, MemoryVersion, Switch, SwitchOwner, Switches,
    },
};

use super::{ANN, BOB, RULES, Rule, files_with, filled, tables_with};
use crate::{
    conformance::{key, memory::said, user},
    erase::key::KEY_RULES,
    memory::sound,
    tests::{Opened, folder},
};

#[test]
fn a_deleted_key_has_a_rule_for_every_table() {
    let own: BTreeSet<&str> = KEY_RULES.iter().map(|(table, ..)| *table).collect();
    for (table, rule) in RULES {
        match rule {
            Rule::Statement { .. } => assert!(own.contains(table), "{table}"),
            Rule::With(other) => assert!(own.contains(other) || other == "memory_notes", "{table}"),
        }
    }
    for (table, sql, rows_max) in KEY_RULES {
        assert!(
            sql.contains(table) && sql.contains("LIMIT $2") && rows_max > 0,
            "{sql}"
        );
    }
}

/// A store with a key, its people, and a person of another key whose id begins alike.
async fn with_key(path: &Path) -> Opened {
    let opened = filled(path, 5_000).await;
    for id in ["k1", "k11"] {
        opened.store.insert(&key(id, 0)).await.unwrap();
    }
    let key_one = SwitchOwner::Key(KeyId::new("k1"));
    let off = opened.store.set_switch(&key_one, Switch::Recall, false);
    off.await.unwrap();
    let other = user("k11", "ann");
    opened
        .store
        .append(&other, vec![said(1, "note", OTHER)])
        .await
        .unwrap();
    opened
}

const OTHER: &str = "heronbasalt20931";

#[tokio::test]
async fn a_deleted_key_takes_all_of_its_people_along() {
    let (_folder, path) = folder();
    let opened = with_key(&path).await;
    let removal = opened.store.delete(&KeyId::new("k1"), LastAdmin::MayGo).await;
    assert_eq!(removal.unwrap(), KeyRemoval::Removed);
    for text in [ANN, BOB, "k1:ann", "k1:bob"] {
        assert_eq!(tables_with(&path, text), BTreeSet::new(), "{text}");
        assert_eq!(files_with(&path, text), [""; 0], "{text}");
    }
    assert!(tables_with(&path, OTHER).contains("memory_observations"));
    assert_eq!(
        opened.store.switches(&user("k1", "new")).await.unwrap().1,
        Switches::default()
    );
    let usage = Connection::open(&path).unwrap();
    let rows: u32 = usage
        .query_row("SELECT count(*) FROM usage WHERE key_id = 'k1'", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(rows, 2, "the books stay");
    sound(&path);
    opened.close().await;
}

/// What a process has left that ended in the middle, and what nobody waits for any more.
#[tokio::test]
async fn what_a_deleted_key_has_left_goes_later() {
    let (_folder, path) = folder();
    let opened = with_key(&path).await;
    Connection::open(&path)
        .unwrap()
        .execute("DELETE FROM keys WHERE id = 'k1'", [])
        .unwrap();
    assert_eq!(opened.store.sweep_deleted_keys().await.unwrap(), 1);
    assert_eq!(opened.store.sweep_deleted_keys().await.unwrap(), 0);
    assert_eq!(files_with(&path, ANN), [""; 0]);
    assert!(tables_with(&path, OTHER).contains("memory_observations"));

    opened.store.abandon(KeyId::new("k11"));
    while opened.store.version(&user("k11", "ann")).await.unwrap() != MemoryVersion::default() {
        tokio::task::yield_now().await;
    }
    opened.close().await;
    assert_eq!(files_with(&path, OTHER), [""; 0]);
}
