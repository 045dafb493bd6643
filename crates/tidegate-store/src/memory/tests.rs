use std::path::Path;

use rusqlite::Connection;
use tidegate_core::port::{CaptureQueue as _, MemoryStore as _};

use crate::{
    conformance::{
        at,
        memory::{self as conformance, all, new_note, said},
        user,
    },
    files,
    tests::{Opened, folder},
};

macro_rules! conforms {
    ($($name:ident($($argument:expr),*);)*) => {$(
        #[tokio::test]
        async fn $name() {
            let (_folder, path) = folder();
            let opened = Opened::at(&path).await;
            opened.store.lock_daemon().unwrap();
            conformance::$name(&opened.store $(, $argument)*).await;
            sound(&path);
            opened.close().await;
        }
    )*};
}

conforms! {
    observations_are_kept();
    states_never_come_back();
    people_do_not_mix();
    people_write_at_once();
    switches_are_turned();
    notes_follow_facts();
    notes_are_found_by_their_words();
    vectors_of_notes();
    facts_are_forgotten();
    erased_is_erased();
    nothing_comes_back();
    old_evidence_goes();
    turns_are_queued();
    a_turn_is_learned_from_once();
    failed_turns_are_tried_again();
    the_queue_is_bounded(256);
}

/// Counters say what is there, and no row, word or vector is left of what is gone.
pub(crate) fn sound(path: &Path) {
    let db = Connection::open(path).unwrap();
    db.execute_batch("CREATE VIRTUAL TABLE temp.found USING fts5vocab (main, memory_words, instance)")
        .unwrap();
    for fault in [
        "SELECT count(*) FROM memory_people WHERE user_id IS NULL",
        "SELECT count(*) FROM memory_people WHERE observations <> \
         (SELECT count(*) FROM memory_observations WHERE person = number)",
        "SELECT count(*) FROM memory_people WHERE notes <> (SELECT count(*) FROM memory_notes WHERE person = number)",
        "SELECT count(*) FROM memory_people WHERE note_words <> \
         (SELECT coalesce(sum(length), 0) FROM memory_notes WHERE person = number)",
        "SELECT count(*) FROM memory_observations WHERE person NOT IN (SELECT number FROM memory_people)",
        "SELECT count(*) FROM memory_notes WHERE person NOT IN (SELECT number FROM memory_people)",
        "SELECT count(*) FROM memory_vectors WHERE note NOT IN (SELECT key FROM memory_notes)",
        "SELECT count(*) FROM temp.found WHERE doc NOT IN (SELECT key FROM memory_notes)",
    ] {
        let count: i64 = db.query_row(fault, [], |row| row.get(0)).unwrap();
        assert_eq!(count, 0, "{fault}");
    }
}

/// What one process writes another one sees at once, and neither sees half of it.
#[tokio::test]
async fn two_processes_share_memory() {
    let (_folder, path) = folder();
    let (daemon, cli) = (Opened::at(&path).await, Opened::at(&path).await);
    let ann = user("k1", "ann");
    cli.store.append(&ann, vec![said(1, "grade", "4")]).await.unwrap();
    assert_eq!(all(&daemon.store, &ann, 9).await.len(), 1);
    let version = daemon.store.version(&ann).await.unwrap();
    cli.store.append(&ann, vec![said(2, "grade", "4")]).await.unwrap();
    let late = daemon
        .store
        .put_notes(&ann, version, vec![new_note("f", "x")], Vec::new());
    assert_eq!(late.await.unwrap(), None);
    cli.store.erase(&ann).await.unwrap();
    assert!(all(&daemon.store, &ann, 9).await.is_empty());
    cli.close().await;
    daemon.close().await;
}

/// A process that dies while it erases leaves rows that nobody finds, and the next daemon removes them.
#[tokio::test]
async fn an_erasure_that_was_cut_off_is_finished() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    let ann = user("k1", "ann");
    let many = (0..700).map(|turn| said(turn, "v", "1")).collect();
    opened.store.append(&ann, many).await.unwrap();
    let mut connection = files::writer(opened.store.options()).await.unwrap();
    super::detach(&mut connection, &ann).await.unwrap();
    assert!(all(&opened.store, &ann, 9).await.is_empty());
    opened.close().await;
    let next = Opened::at(&path).await;
    assert!(
        next.store.recover_captures(at(0)).await.is_err(),
        "without the lock"
    );
    next.store.lock_daemon().unwrap();
    next.store.recover_captures(at(0)).await.unwrap();
    sound(&path);
    next.close().await;
}

/// Beyond the bound the first ones make room, and one person's rows never reach into the next one's keys.
#[tokio::test]
async fn one_person_has_so_many_rows() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    let (ann, bob) = (user("k1", "ann"), user("k1", "bob"));
    for person in [&ann, &bob] {
        opened
            .store
            .append(person, vec![said(0, "v", "first")])
            .await
            .unwrap();
    }
    let mut connection = files::writer(opened.store.options()).await.unwrap();
    sqlx::query("UPDATE memory_people SET observations = 50000 WHERE user_id = 'k1:ann'")
        .execute(&mut connection)
        .await
        .unwrap();
    opened
        .store
        .append(&ann, vec![said(1, "v", "second")])
        .await
        .unwrap();
    let values: Vec<_> = all(&opened.store, &ann, 9)
        .await
        .into_iter()
        .map(|one| one.value)
        .collect();
    assert_eq!(values, ["second"]);
    sqlx::query("UPDATE memory_people SET observations_ever = 16777214 WHERE user_id = 'k1:ann'")
        .execute(&mut connection)
        .await
        .unwrap();
    opened
        .store
        .append(&ann, vec![said(2, "v", "last")])
        .await
        .unwrap();
    opened
        .store
        .append(&ann, vec![said(3, "v", "beyond")])
        .await
        .unwrap_err();
    let values: Vec<_> = all(&opened.store, &bob, 9)
        .await
        .into_iter()
        .map(|one| one.value)
        .collect();
    assert_eq!(values, ["first"]);
    opened.close().await;
}

/// Opening another process's file, and one of the version before, changes nothing that is remembered.
#[tokio::test]
async fn memory_survives_the_process() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    let ann = user("k1", "ann");
    opened
        .store
        .append(&ann, vec![said(1, "grade", "4")])
        .await
        .unwrap();
    let version = opened.store.version(&ann).await.unwrap();
    opened.close().await;
    let again = Opened::at(&path).await;
    assert_eq!(all(&again.store, &ann, 9).await, [said(1, "grade", "4")]);
    assert_eq!(again.store.version(&ann).await.unwrap(), version);
    again.close().await;
}
