//! What every store of chunks must do, whatever database stands behind it.

mod vectors;
mod words;

use std::collections::BTreeMap;

use tidegate_core::{
    knowledge::{Authority, CitationId, DocumentState, Filter, Format, Place},
    port::{ChunkChanges, ChunkKey, ChunkStore, Failure, FileMark, KnownFile, NewChunk, NewDocument},
};

use super::at;
pub(crate) use vectors::{models_take_turns, vectors_are_kept};
pub(crate) use words::{large_documents, words_are_words};

pub(crate) const MODEL: &str = "model-1";

fn digest(text: &str) -> [u8; 32] {
    let mut digest = [0_u8; 32];
    for (at, byte) in text.bytes().enumerate() {
        digest[at % 32] = digest[at % 32].rotate_left(3) ^ byte;
    }
    digest
}

fn vector_of(text: &str) -> Vec<f32> {
    digest(text)[..4].iter().map(|byte| f32::from(*byte)).collect()
}

pub(crate) fn citation(path: &str, text: &str) -> CitationId {
    CitationId::of_digest(&digest(&format!("{path}\n{text}")))
}

pub(crate) fn file(path: &str) -> KnownFile {
    KnownFile {
        path: path.to_owned(),
        mark: FileMark {
            bytes: 10,
            modified_ns: 5,
            sha256: digest(path),
        },
        recipe: "v1".to_owned(),
        failed: false,
    }
}

/// A document of these texts, each with a vector.
pub(crate) fn document(path: &str, texts: &[&str]) -> NewDocument {
    let chunk = |text: &&str| NewChunk {
        citation: citation(path, text),
        sha256: digest(text),
        place: Place {
            headings: vec!["Part".to_owned()],
            page: Some(2),
            bytes: 3..9,
        },
        text: (*text).to_owned(),
        vector: Some(Some(vector_of(text))),
    };
    NewDocument {
        file: file(path),
        title: format!("Title of {path}"),
        format: Format::Markdown,
        authority: Authority::Secondary,
        at: at(0),
        content: Ok(texts.iter().map(chunk).collect()),
    }
}

fn terms(terms: &[&str]) -> Vec<String> {
    terms.iter().map(|term| (*term).to_owned()).collect()
}

async fn texts(store: &dyn ChunkStore, keys: &[ChunkKey]) -> Vec<String> {
    store
        .chunks(keys)
        .await
        .unwrap()
        .into_iter()
        .map(|chunk| chunk.text)
        .collect()
}

async fn hits(store: &dyn ChunkStore, words: &[&str], within: &Filter) -> Vec<String> {
    let found = store.match_words(&terms(words), within, 10).await.unwrap();
    assert!(
        found.is_sorted_by(|(_, first), (_, second)| first >= second),
        "{found:?}"
    );
    let keys: Vec<ChunkKey> = found.into_iter().map(|(key, _)| key).collect();
    texts(store, &keys).await
}

/// What somebody would know who loaded everything at the start and followed every change.
#[derive(Default)]
pub(crate) struct Follower(BTreeMap<ChunkKey, Option<Vec<f32>>>, u64);

impl Follower {
    pub(crate) fn follow(&mut self, changes: &ChunkChanges) {
        assert!(changes.version >= self.1, "{changes:?}");
        self.1 = changes.version;
        for key in &changes.removed {
            self.0.remove(key);
        }
        for (key, vector) in &changes.added {
            self.0.insert(*key, vector.clone());
        }
    }

    pub(crate) async fn agrees_with(&self, store: &dyn ChunkStore) {
        assert_eq!(
            store.keys_within(&Filter::default()).await.unwrap(),
            self.0.keys().copied().collect::<Vec<_>>()
        );
        let page = store.vectors(MODEL, 0, 10_000).await.unwrap();
        let known: Vec<_> = self
            .0
            .iter()
            .filter(|(_, vector)| vector.is_some())
            .map(|(key, _)| *key)
            .collect();
        assert_eq!(page.keys, known);
        assert_eq!(
            page.values,
            self.0.values().flatten().flatten().copied().collect::<Vec<_>>()
        );
    }
}

/// A document from its first version to its removal: what stays the same keeps its key, and every view agrees.
#[expect(clippy::too_many_lines, reason = "one document's life, step by step")]
pub(crate) async fn documents_change(store: &dyn ChunkStore) {
    let mut follower = Follower::default();
    follower.follow(
        &store
            .put(document("a.md", &["alpha", "beta", "gamma"]), MODEL)
            .await
            .unwrap(),
    );
    follower.agrees_with(store).await;
    let before = store.document_chunks("a.md", 0, 10).await.unwrap();
    assert_eq!(
        before.iter().map(|chunk| chunk.ordinal).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    let first = &before[0];
    assert_eq!(
        (first.path.as_str(), first.title.as_str(), first.format),
        ("a.md", "Title of a.md", Format::Markdown)
    );
    assert_eq!(
        first.place,
        Place {
            headings: vec!["Part".to_owned()],
            page: Some(2),
            bytes: 3..9
        }
    );
    assert_eq!(
        store.cited(&citation("a.md", "beta")).await.unwrap().as_ref(),
        Some(&before[1])
    );

    let changes = store
        .put(document("a.md", &["new", "gamma", "alpha"]), MODEL)
        .await
        .unwrap();
    follower.follow(&changes);
    assert_eq!(
        (changes.added.len(), changes.removed.as_slice()),
        (1, &[before[1].key][..]),
        "{changes:?}"
    );
    let after = store.document_chunks("a.md", 0, 10).await.unwrap();
    let keys: Vec<_> = after
        .iter()
        .map(|chunk| (chunk.text.as_str(), chunk.ordinal, chunk.key))
        .collect();
    assert_eq!(
        keys,
        [
            ("new", 0, changes.added[0].0),
            ("gamma", 1, before[2].key),
            ("alpha", 2, before[0].key)
        ]
    );
    assert!(changes.added[0].0 > before[2].key, "keys are not used twice");
    assert_eq!(store.cited(&citation("a.md", "beta")).await.unwrap(), None);
    assert_eq!(
        hits(store, &["beta"], &Filter::default()).await,
        Vec::<String>::new()
    );
    assert_eq!(hits(store, &["alpha"], &Filter::default()).await, ["alpha"]);
    let DocumentState::Indexed { chunks, generation } = store.document("a.md").await.unwrap().unwrap().state
    else {
        panic!("it is indexed");
    };
    assert_eq!((chunks, generation), (3, 2));
    follower.agrees_with(store).await;

    let unchanged = store
        .put(document("a.md", &["new", "gamma", "alpha"]), MODEL)
        .await
        .unwrap();
    assert_eq!((unchanged.added.len(), unchanged.removed.len()), (0, 0));
    follower.follow(&store.put(document("b.md", &["delta"]), MODEL).await.unwrap());
    follower.follow(&store.remove(terms(&["a.md", "nowhere.md"])).await.unwrap());
    follower.agrees_with(store).await;
    assert_eq!(store.document("a.md").await.unwrap(), None);
    assert_eq!(
        hits(store, &["alpha", "new"], &Filter::default()).await,
        Vec::<String>::new()
    );
    let counts = store.counts(Some(MODEL)).await.unwrap();
    assert_eq!(
        (counts.documents, counts.failed, counts.chunks, counts.embedded),
        (1, 0, 1, 1)
    );
    assert_eq!(counts.version, store.version().await.unwrap());
}

/// A failed document says so, has no chunks, and becomes one again.
pub(crate) async fn documents_fail(store: &dyn ChunkStore) {
    let failure = Failure {
        code: "locked".to_owned(),
        reason: "a password".to_owned(),
        hint: "take it off".to_owned(),
    };
    let failed = NewDocument {
        content: Err(failure),
        ..document("a.pdf", &[])
    };
    store.put(document("a.pdf", &["alpha"]), MODEL).await.unwrap();
    let changes = store.put(failed, MODEL).await.unwrap();
    assert_eq!((changes.added.len(), changes.removed.len()), (0, 1));
    assert_eq!(
        hits(store, &["alpha"], &Filter::default()).await,
        Vec::<String>::new()
    );
    let counts = store.counts(None).await.unwrap();
    assert_eq!(
        (counts.documents, counts.failed, counts.chunks, counts.embedded),
        (0, 1, 0, 0)
    );
    let state = store.document("a.pdf").await.unwrap().unwrap().state;
    assert!(
        matches!(&state, DocumentState::Failed { code, .. } if code == "locked"),
        "{state:?}"
    );
    let known = store.files(None, 10).await.unwrap();
    assert_eq!(
        known,
        [KnownFile {
            failed: true,
            ..file("a.pdf")
        }]
    );
    store.put(document("a.pdf", &["alpha"]), MODEL).await.unwrap();
    assert_eq!(hits(store, &["alpha"], &Filter::default()).await, ["alpha"]);

    let marked = KnownFile {
        mark: FileMark {
            bytes: 11,
            modified_ns: -6,
            sha256: [9; 32],
        },
        recipe: "v2".to_owned(),
        ..file("a.pdf")
    };
    store.mark(&marked).await.unwrap();
    store.mark(&file("unknown")).await.unwrap();
    assert_eq!(store.files(None, 10).await.unwrap(), [marked]);
    assert_eq!(store.files(Some("a.pdf"), 10).await.unwrap(), []);
}

/// A renamed document keeps its keys, words and vectors, and is cited by its new citations.
pub(crate) async fn documents_move(store: &dyn ChunkStore) {
    let mut follower = Follower::default();
    follower.follow(
        &store
            .put(document("old.md", &["alpha", "beta"]), MODEL)
            .await
            .unwrap(),
    );
    follower.follow(&store.put(document("there.md", &["gamma"]), MODEL).await.unwrap());
    let before = store.document_chunks("old.md", 0, 10).await.unwrap();
    let cited = vec![citation("there.md", "alpha"), citation("there.md", "beta")];
    follower.follow(&store.rename("old.md", "there.md", cited.clone()).await.unwrap());
    follower.agrees_with(store).await;
    let after = store.document_chunks("there.md", 0, 10).await.unwrap();
    for (index, chunk) in after.iter().enumerate() {
        assert_eq!(
            (chunk.key, chunk.text.as_str()),
            (before[index].key, before[index].text.as_str())
        );
        assert_eq!(
            (&chunk.citation, chunk.path.as_str()),
            (&cited[index], "there.md")
        );
    }
    assert_eq!(store.document("old.md").await.unwrap(), None);
    assert_eq!(store.cited(&before[0].citation).await.unwrap(), None);
    assert_eq!(
        hits(store, &["alpha", "gamma"], &Filter::default()).await,
        ["alpha"]
    );
    follower.follow(&store.rename("nowhere", "there.md", cited).await.unwrap());
    follower.agrees_with(store).await;
}

/// Somebody who was away catches up, or is told to begin again.
pub(crate) async fn changes_are_remembered(store: &dyn ChunkStore) {
    let mut follower = Follower::default();
    follower.follow(
        &store
            .put(document("a.md", &["alpha", "beta"]), MODEL)
            .await
            .unwrap(),
    );
    let seen = store.version().await.unwrap();
    assert_eq!(store.changes_since(MODEL, seen).await.unwrap().unwrap().added, []);
    store
        .put(document("b.md", &["gamma", "delta"]), MODEL)
        .await
        .unwrap();
    store
        .put(document("a.md", &["beta", "epsilon"]), MODEL)
        .await
        .unwrap();
    store.remove(terms(&["b.md"])).await.unwrap();
    let changes = store.changes_since(MODEL, seen).await.unwrap().unwrap();
    assert_eq!(
        (changes.added.len(), changes.removed.len()),
        (1, 3),
        "{changes:?}"
    );
    follower.follow(&changes);
    follower.agrees_with(store).await;
    assert_eq!(
        store.changes_since(MODEL, seen + 1_000).await.unwrap(),
        None,
        "from the future"
    );
}

/// Filters stand before scores, everywhere the same.
pub(crate) async fn filters_narrow(store: &dyn ChunkStore) {
    for (path, format, authority) in [
        ("handbook/leave.md", Format::Markdown, Authority::Primary),
        ("handbook/pay.pdf", Format::Pdf, Authority::Interpretation),
        ("notes/leave.md", Format::Markdown, Authority::Secondary),
    ] {
        let text = format!("leave {path}");
        let document = NewDocument {
            format,
            authority,
            ..document(path, &[&text])
        };
        store.put(document, MODEL).await.unwrap();
    }
    let paths = |globs: &[&str]| Filter {
        paths: terms(globs),
        ..Filter::default()
    };
    let table = [
        (Filter::default(), 3),
        (paths(&["handbook/**"]), 2),
        (paths(&["*.pdf", "notes"]), 2),
        (paths(&["nowhere"]), 0),
        (paths(&["[handbook/leave.md"]), 0),
        (
            Filter {
                formats: vec![Format::Markdown, Format::Csv],
                ..Filter::default()
            },
            2,
        ),
        (
            Filter {
                authority_min: Some(Authority::Interpretation),
                ..Filter::default()
            },
            2,
        ),
        (
            Filter {
                authority_min: Some(Authority::Primary),
                ..paths(&["notes"])
            },
            0,
        ),
    ];
    for (filter, expected) in table {
        assert_eq!(
            hits(store, &["leave"], &filter).await.len(),
            expected,
            "{filter:?}"
        );
        assert_eq!(
            store.keys_within(&filter).await.unwrap().len(),
            expected,
            "{filter:?}"
        );
        assert_eq!(
            store.documents(&filter, None, 10).await.unwrap().len(),
            expected,
            "{filter:?}"
        );
    }
    for (path, expected) in [
        ("handbook", 2),
        ("handbook/leave.md", 1),
        ("hand", 0),
        ("handbook/", 0),
    ] {
        assert_eq!(store.files_at(path).await.unwrap().len(), expected, "{path}");
    }
    let page = store
        .documents(&Filter::default(), Some("handbook/leave.md"), 1)
        .await
        .unwrap();
    assert_eq!(page[0].path, "handbook/pay.pdf");
    assert_eq!(store.document_chunks("notes/leave.md", 1, 10).await.unwrap(), []);
}
