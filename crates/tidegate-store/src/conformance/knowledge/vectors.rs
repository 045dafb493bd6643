//! What every store of chunks does with vectors.

use tidegate_core::port::ChunkStore;

use super::{Follower, MODEL, digest, document, vector_of};

/// Vectors come and go on their own, are found by what they are of, and belong to one model each.
pub(crate) async fn vectors_are_kept(store: &dyn ChunkStore) {
    let mut bare = document("a.md", &["alpha", "beta", "gamma"]);
    for chunk in bare.content.as_mut().unwrap() {
        chunk.vector = None;
    }
    let mut follower = Follower::default();
    follower.follow(&store.put(bare, MODEL).await.unwrap());
    follower.agrees_with(store).await;
    let waiting = store.unembedded(MODEL, 0, 10).await.unwrap();
    assert_eq!(
        waiting
            .iter()
            .map(|chunk| chunk.text.as_str())
            .collect::<Vec<_>>(),
        ["alpha", "beta", "gamma"]
    );
    assert_eq!(
        store.unembedded(MODEL, waiting[1].key, 10).await.unwrap().len(),
        1
    );
    let given = vec![
        (waiting[0].key, Some(vec![1.0, -2.5])),
        (waiting[1].key, None),
        (999, Some(vec![1.0, 1.0])),
    ];
    follower.follow(&store.put_vectors(MODEL, given).await.unwrap());
    follower.agrees_with(store).await;
    assert_eq!(store.unembedded(MODEL, 0, 10).await.unwrap().len(), 1);
    let hashes = ["alpha", "beta", "gamma", "delta"].map(digest);
    let known = store.vectors_by_hash(MODEL, &hashes).await.unwrap();
    assert_eq!(known, [Some(Some(vec![1.0, -2.5])), Some(None), None, None]);
    let page = store
        .vectors_of(MODEL, &[waiting[1].key, waiting[0].key, 999])
        .await
        .unwrap();
    assert_eq!((page.keys, page.values), (vec![waiting[0].key], vec![1.0, -2.5]));
    let odd = store
        .put_vectors(MODEL, vec![(waiting[2].key, Some(vec![1.0]))])
        .await
        .unwrap_err()
        .to_string();
    assert!(odd.contains("another id"), "{odd}");
}

/// While the vectors of a new model are not complete the old one serves; then its own go.
pub(crate) async fn models_take_turns(store: &dyn ChunkStore) {
    store
        .put(document("a.md", &["alpha", "beta", "gamma"]), MODEL)
        .await
        .unwrap();
    store.serve(MODEL).await.unwrap();
    // An equal chunk elsewhere needs no second answer, from any model.
    let mut twin = document("b.md", &["alpha"]);
    twin.content.as_mut().unwrap()[0].vector = None;
    let changes = store.put(twin, "model-2").await.unwrap();
    let page = store.vectors_of(MODEL, &[changes.added[0].0]).await.unwrap();
    assert_eq!(
        (changes.added[0].1.as_ref(), page.values),
        (None, vector_of("alpha"))
    );

    // Another model may be of another dimension; while it is not complete the first one serves.
    let all = store.unembedded("model-2", 0, 10).await.unwrap();
    assert_eq!(all.len(), 4);
    let answers = all
        .iter()
        .map(|chunk| (chunk.key, Some(vec![0.5, 0.5, 0.5])))
        .collect();
    store.put_vectors("model-2", answers).await.unwrap();
    assert_eq!(store.serving_model().await.unwrap().as_deref(), Some(MODEL));
    let counted = |model| async move { store.counts(Some(model)).await.unwrap().embedded };
    assert_eq!((counted(MODEL).await, counted("model-2").await), (4, 4));
    let version = store.version().await.unwrap();
    store.serve("model-2").await.unwrap();
    assert_eq!(store.serving_model().await.unwrap().as_deref(), Some("model-2"));
    assert_eq!(
        store.changes_since("model-2", version).await.unwrap(),
        None,
        "another model serves"
    );
    assert_eq!((counted(MODEL).await, counted("model-2").await), (0, 4));
    assert_eq!(store.vectors(MODEL, 0, 10).await.unwrap().keys.len(), 0);
    let page = store.vectors("model-2", 0, 3).await.unwrap();
    let rest = store.vectors("model-2", page.keys[2], 3).await.unwrap();
    assert_eq!(
        (
            page.keys.len(),
            page.values.len(),
            rest.keys.len(),
            rest.values.len()
        ),
        (3, 9, 1, 3)
    );
    assert_eq!(store.unembedded(MODEL, 0, 10).await.unwrap().len(), 4);
}
