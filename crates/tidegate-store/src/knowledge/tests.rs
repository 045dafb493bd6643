use std::path::Path;

use tidegate_core::{
    knowledge::Filter,
    port::{ChunkStore, NewDocument},
};

use crate::{
    conformance::knowledge::{self as conformance, Follower, MODEL, document},
    tests::{Opened, folder},
};

macro_rules! conforms {
    ($($name:ident;)*) => {$(
        #[tokio::test]
        async fn $name() {
            let (_folder, path) = folder();
            let opened = Opened::at(&path).await;
            conformance::$name(&opened.store).await;
            sound(&opened).await;
            opened.close().await;
        }
    )*};
}

conforms! {
    documents_change;
    documents_fail;
    documents_move;
    vectors_are_kept;
    models_take_turns;
    changes_are_remembered;
    filters_narrow;
    words_are_words;
    large_documents;
}

/// No rows without a chunk or a document are left, and counters say what is there.
async fn sound(opened: &Opened) {
    let faults: Vec<i64> = opened
        .store
        .read("looking for faults", |db| {
            [
                "SELECT count(*) FROM kb_chunks WHERE document IS NULL",
                "SELECT count(*) FROM kb_vectors WHERE (id & ((1 << 40) - 1)) NOT IN (SELECT key FROM kb_chunks)",
                "SELECT count(*) FROM kb_models WHERE answers <> \
                 (SELECT count(*) FROM kb_vectors WHERE kb_vectors.id >> 40 = kb_models.id)",
                "SELECT (SELECT count(*) FROM kb_chunks) <> (SELECT count(*) FROM kb_words_docsize)",
                "SELECT count(*) FROM kb_documents WHERE chunks <> \
                 (SELECT count(*) FROM kb_chunks WHERE document = kb_documents.id)",
                "SELECT count(*) FROM kb_models WHERE retired",
            ]
            .into_iter()
            .map(|sql| db.query_row(sql, [], |row| row.get(0)))
            .collect()
        })
        .await
        .unwrap();
    assert_eq!(faults, [0; 6]);
}

/// What one process writes another one sees, and follows.
#[tokio::test]
async fn two_processes_share_documents() {
    let (_folder, path) = folder();
    let (daemon, cli) = (Opened::at(&path).await, Opened::at(&path).await);
    let mut follower = Follower::default();
    follower.follow(
        &daemon
            .store
            .put(document("a.md", &["alpha"]), MODEL)
            .await
            .unwrap(),
    );
    let seen = daemon.store.version().await.unwrap();
    let many: Vec<String> = (0..100).map(|number| format!("word{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    cli.store.put(document("b.md", &many), MODEL).await.unwrap();
    assert_ne!(daemon.store.version().await.unwrap(), seen);
    follower.follow(&daemon.store.changes_since(MODEL, seen).await.unwrap().unwrap());
    follower.agrees_with(&daemon.store).await;
    cli.close().await;
    daemon.close().await;
}

/// Chunks that a process left behind before their document was complete are not seen, and go.
#[tokio::test]
async fn what_was_left_behind_is_not_seen_and_goes() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    opened
        .store
        .put(document("a.md", &["alpha"]), MODEL)
        .await
        .unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other
        .execute_batch(
            "INSERT INTO kb_chunks (document, expires_at, ordinal, citation, sha256, place, text, heading) \
             SELECT NULL, 1, 0, 'kb-0000000000', zeroblob(32), '{\"bytes\":{\"start\":0,\"end\":1}}', 'alpha', ''; \
             INSERT INTO kb_words (rowid, heading, text) SELECT key, heading, text FROM kb_chunks WHERE document IS NULL; \
             INSERT INTO kb_vectors (id, vector) SELECT (1 << 40) | key, zeroblob(16) FROM kb_chunks WHERE document IS NULL",
        )
        .unwrap();
    let alpha = ["alpha".to_owned()];
    let store = &opened.store;
    assert_eq!(
        store
            .match_words(&alpha, &Filter::default(), 1)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(store.vectors(MODEL, 0, 10).await.unwrap().keys.len(), 1);
    let counts = store.counts(Some(MODEL)).await.unwrap();
    assert_eq!((counts.chunks, counts.embedded), (1, 1));
    assert_eq!(store.keys_within(&Filter::default()).await.unwrap().len(), 1);
    store.put(document("b.md", &["beta"]), MODEL).await.unwrap();
    sound(&opened).await;
    opened.close().await;
}

/// Of a document that was removed no word is left in any file of the database.
#[tokio::test]
async fn a_removed_document_leaves_no_bytes() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    let secret = ["zebrafinch colibri", "zebrafinch quetzal"];
    opened
        .store
        .put(document("a.md", &["common words", "other words"]), MODEL)
        .await
        .unwrap();
    let renamed = NewDocument {
        title: "Wallcreeper".to_owned(),
        ..document("secret.md", &secret)
    };
    opened.store.put(renamed, MODEL).await.unwrap();
    opened
        .store
        .put(document("b.md", &["more words"]), MODEL)
        .await
        .unwrap();
    opened.store.remove(vec!["secret.md".to_owned()]).await.unwrap();
    opened.close().await;
    let file = std::fs::read(&path).unwrap();
    let holds = |word: &str| {
        file.windows(word.len())
            .any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
    };
    assert!(holds("common"));
    for word in ["zebrafinch", "ebrafinch", "colibri", "quetzal", "wallcreeper"] {
        assert!(!holds(word), "{word}");
    }
    assert!(!Path::new(&format!("{}-wal", path.display())).exists());
}

/// While documents are indexed, a request's short write does not wait for long, nor does a read.
#[tokio::test]
async fn a_version_is_one_moment_for_readers() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    let store = opened.store.clone();
    let even: Vec<String> = (0..200).map(|number| format!("shared even{number}")).collect();
    let odd: Vec<String> = (0..100).map(|number| format!("shared odd{number}")).collect();
    let writing = async {
        for round in 0..4 {
            let texts = if round % 2 == 0 { &even } else { &odd };
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            store.put(document("a.md", &texts), MODEL).await.unwrap();
        }
    };
    let shared = ["shared".to_owned()];
    let reading = async {
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let found = store
                .match_words(&shared, &Filter::default(), 1_000)
                .await
                .unwrap()
                .len();
            assert!([0, 100, 200].contains(&found), "{found}");
            seen.insert(found);
            let chunks = store.document_chunks("a.md", 0, 1_000).await.unwrap().len();
            assert!([0, 100, 200].contains(&chunks), "{chunks}");
        }
        seen
    };
    let ((), seen) = tokio::join!(writing, reading);
    assert!(!seen.is_empty());
    sound(&opened).await;
    opened.close().await;
}
