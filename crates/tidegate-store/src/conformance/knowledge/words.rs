//! What every store of chunks does with words.

use tidegate_core::{knowledge::Filter, port::ChunkStore};

use super::{Follower, MODEL, document, hits, terms};

/// Whatever a document or a query holds, it is words and nothing else.
pub(crate) async fn words_are_words(store: &dyn ChunkStore) {
    let texts = [
        "alpha \0 beta",
        "'; DROP TABLE kb_chunks; --",
        "東京都の規則です",
        "naïve Ωmega 🌊",
        "regulations and regulating",
    ];
    let mut hostile = document("quote \" and \0 nul.md", &texts);
    hostile.title = "Ti\0tle \"x\"".to_owned();
    store.put(hostile, MODEL).await.unwrap();
    let found = store
        .document_chunks("quote \" and \0 nul.md", 0, 10)
        .await
        .unwrap();
    assert_eq!(
        found.iter().map(|chunk| chunk.text.as_str()).collect::<Vec<_>>(),
        texts
    );
    let table: [(&[&str], &[&str]); 11] = [
        (&["alpha"], &texts[..1]),
        (&["beta"], &texts[..1]),
        (&["drop"], &texts[1..2]),
        (&["規則"], &texts[2..3]),
        (&["東京都の規則です"], &texts[2..3]),
        (&["NAIVE", "ωμεγα"], &texts[3..4]),
        (&["regulate"], &texts[4..]),
        (&["\"", "*", "^alpha:", "\0"], &texts[..1]),
        (&["NEAR(", "a b c"], &[]),
        (&[], &[]),
        (&["🌊", "--"], &[]),
    ];
    for (words, expected) in table {
        assert_eq!(
            hits(store, words, &Filter::default()).await,
            expected,
            "{words:?}"
        );
    }
    let huge = "y".repeat(1 << 20);
    assert_eq!(
        hits(store, &[&huge, "alpha"], &Filter::default()).await,
        texts[..1]
    );
    let counted = store
        .frequencies(&terms(&["regulating", "alpha", "nowhere", "\"", &huge]))
        .await
        .unwrap();
    assert_eq!(counted, [1, 1, 0, 0, 0]);
    assert_eq!(
        hits(store, &["Part"], &Filter::default()).await.len(),
        texts.len(),
        "headings are words, too"
    );
    store.remove(terms(&["quote \" and \0 nul.md"])).await.unwrap();
    assert_eq!(
        hits(store, &["part"], &Filter::default()).await,
        Vec::<String>::new()
    );
}

/// A document of many chunks is there whole or not at all, and goes without a trace.
pub(crate) async fn large_documents(store: &dyn ChunkStore) {
    let texts: Vec<String> = (0..300)
        .map(|number| format!("common words of number{number}"))
        .collect();
    let borrowed: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut follower = Follower::default();
    follower.follow(&store.put(document("large.md", &borrowed), MODEL).await.unwrap());
    follower.agrees_with(store).await;
    let chunks = store.document_chunks("large.md", 0, 1_000).await.unwrap();
    assert_eq!(
        chunks.iter().map(|chunk| &chunk.text).collect::<Vec<_>>(),
        texts.iter().collect::<Vec<_>>()
    );
    let shorter: Vec<&str> = borrowed
        .iter()
        .rev()
        .copied()
        .filter(|text| !text.contains('7'))
        .collect();
    let changes = store.put(document("large.md", &shorter), MODEL).await.unwrap();
    assert_eq!(
        (changes.added.len(), changes.removed.len()),
        (0, texts.len() - shorter.len())
    );
    follower.follow(&changes);
    follower.agrees_with(store).await;
    assert_eq!(
        hits(store, &["number17"], &Filter::default()).await,
        Vec::<String>::new()
    );
    assert_eq!(
        store
            .match_words(&terms(&["common"]), &Filter::default(), 10_000)
            .await
            .unwrap()
            .len(),
        shorter.len()
    );
    follower.follow(&store.remove(terms(&["large.md"])).await.unwrap());
    follower.agrees_with(store).await;
    assert_eq!(store.frequencies(&terms(&["common"])).await.unwrap(), [0]);
    let counts = store.counts(Some(MODEL)).await.unwrap();
    assert_eq!((counts.chunks, counts.embedded), (0, 0));
}
