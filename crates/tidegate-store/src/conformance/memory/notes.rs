//! Notes: how they follow facts, and how they are found.

use tidegate_core::{
    id::{FactId, UserId},
    port::{MemoryStore, MemoryVersion, NewNote, Note, RowKey},
};

use super::{MODEL, new_note, said};
use crate::conformance::user;

async fn put(store: &dyn MemoryStore, user: &UserId, notes: Vec<NewNote>, gone: &[&str]) -> MemoryVersion {
    let version = store.version(user).await.unwrap();
    let gone = gone.iter().map(|fact| FactId::new(*fact)).collect();
    store
        .put_notes(user, version, notes, gone)
        .await
        .unwrap()
        .unwrap()
}

async fn found(store: &dyn MemoryStore, user: &UserId, words: &[&str]) -> Vec<String> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let keys: Vec<RowKey> = store
        .match_notes(user, &words, 100)
        .await
        .unwrap()
        .into_iter()
        .map(|(key, score)| {
            assert!(score > 0.0);
            key
        })
        .collect();
    let notes = store.notes_of(user, &keys).await.unwrap();
    notes
        .into_iter()
        .map(|note| note.fact.as_str().to_owned())
        .collect()
}

fn texts(notes: &[Note]) -> Vec<(&str, &str)> {
    notes
        .iter()
        .map(|note| (note.fact.as_str(), note.text.as_str()))
        .collect()
}

/// What is unchanged keeps its key and vector; what is changed is another row; what is put on an old state is not put.
pub(crate) async fn notes_follow_facts(store: &dyn MemoryStore) {
    let ann = user("k1", "ann");
    let nothing = store.put_notes(&ann, MemoryVersion::default(), Vec::new(), Vec::new());
    assert_eq!(nothing.await.unwrap(), Some(MemoryVersion::default()));
    let refused = store.put_notes(
        &ann,
        MemoryVersion::default(),
        vec![new_note("f1", "x")],
        Vec::new(),
    );
    assert_eq!(refused.await.unwrap(), None, "of nobody there are no facts");

    store.append(&ann, vec![said(1, "grade", "4")]).await.unwrap();
    let old = store.version(&ann).await.unwrap();
    put(
        store,
        &ann,
        vec![new_note("f1", "teaches fractions"), new_note("f2", "likes maps")],
        &[],
    )
    .await;
    let before = store.notes(&ann, 0, 10).await.unwrap();
    assert_eq!(
        texts(&before),
        [("f1", "teaches fractions"), ("f2", "likes maps")]
    );
    let vectors = before
        .iter()
        .map(|note| (note.key, Some(vec![1.0, 2.0])))
        .collect();
    assert_eq!(store.put_note_vectors(&ann, MODEL, vectors).await.unwrap(), 2);

    let changed = vec![
        new_note("f1", "teaches fractions"),
        new_note("f2", "likes globes"),
        new_note("f3", "has a cat"),
    ];
    put(store, &ann, changed.clone(), &[]).await;
    let after = store.notes(&ann, 0, 10).await.unwrap();
    assert_eq!(
        texts(&after),
        [
            ("f1", "teaches fractions"),
            ("f2", "likes globes"),
            ("f3", "has a cat")
        ]
    );
    assert_eq!(after[0].key, before[0].key);
    assert_ne!(after[1].key, before[1].key);
    assert_eq!(
        store.note_vectors(&ann, MODEL, 0, 10).await.unwrap().keys,
        [before[0].key]
    );
    assert_eq!(found(store, &ann, &["maps"]).await, [""; 0]);
    assert_eq!(found(store, &ann, &["globes"]).await, ["f2"]);
    assert_eq!(store.notes(&ann, after[1].key, 1).await.unwrap(), after[1..2]);

    let late = store.put_notes(&ann, old, vec![new_note("f9", "late")], vec![FactId::new("f1")]);
    assert_eq!(late.await.unwrap(), None);
    assert_eq!(store.notes(&ann, 0, 10).await.unwrap(), after);

    put(store, &ann, Vec::new(), &["f1", "f3", "f7"]).await;
    assert_eq!(
        texts(&store.notes(&ann, 0, 10).await.unwrap()),
        [("f2", "likes globes")]
    );
    assert_eq!(found(store, &ann, &["fractions", "cat"]).await, [""; 0]);

    let many: Vec<_> = (0..300)
        .map(|n| new_note(&format!("m{n}"), &format!("thing number{n}")))
        .collect();
    put(store, &ann, many, &["f2"]).await;
    assert_eq!(store.notes(&ann, 0, 1_000).await.unwrap().len(), 300);
    assert_eq!(found(store, &ann, &["number299"]).await, ["m299"]);
}

/// Words are found by stem, in any script, never as a language; rare ones count more, and only among one's own notes.
pub(crate) async fn notes_are_found_by_their_words(store: &dyn MemoryStore) {
    let (ann, bob) = (user("k1", "ann"), user("k1", "bob"));
    assert_eq!(found(store, &ann, &["anything"]).await, [""; 0]);
    for person in [&ann, &bob] {
        store.append(person, vec![said(1, "grade", "4")]).await.unwrap();
    }
    let notes = vec![
        new_note("common1", "teaches a class of children"),
        new_note("common2", "teaches a class in the evening"),
        new_note("rare", "teaches fractions"),
        new_note(
            "long",
            "fractions and very many other things that are of no concern to anybody who reads this",
        ),
        new_note("accents", "Sie mag Café und Übungen"),
        new_note("han", "我教四年级数学"),
        new_note("odd", "c++ AND \"quoted\" OR NEAR(x) * ^ : - 100%"),
    ];
    put(store, &ann, notes, &[]).await;
    assert_eq!(found(store, &ann, &["teaching", "fraction"]).await[0], "rare");
    assert_eq!(
        found(store, &ann, &["fractions"]).await,
        ["rare", "long"],
        "the shorter first"
    );
    assert_eq!(found(store, &ann, &["class"]).await.len(), 2);
    assert_eq!(found(store, &ann, &["CAFE"]).await, ["accents"]);
    assert_eq!(found(store, &ann, &["年级"]).await, ["han"]);
    for odd in ["quoted", "near", "and"] {
        assert!(
            found(store, &ann, &[odd]).await.contains(&"odd".to_owned()),
            "{odd}"
        );
    }
    for harmless in [
        "\"", "*", "text:", "-", "AND", "NEAR(", "^a", "a\0b", "", "' OR 1=1", "{text}:x",
    ] {
        found(store, &ann, &[harmless]).await;
    }
    // Of equal ones the newer; a word that is given twice counts twice.
    put(
        store,
        &ann,
        vec![
            new_note("older", "feeds walrus"),
            new_note("newer", "feeds walrus"),
        ],
        &[],
    )
    .await;
    assert_eq!(found(store, &ann, &["walrus"]).await, ["newer", "older"]);
    put(
        store,
        &ann,
        vec![new_note("x", "ibex grazes"), new_note("y", "okapi grazes")],
        &[],
    )
    .await;
    assert_eq!(found(store, &ann, &["ibex", "okapi", "ibex"]).await, ["x", "y"]);

    // What another person writes changes no rank and no score.
    let words = ["teaches".to_owned(), "fractions".to_owned()];
    let scores = store.match_notes(&ann, &words, 10).await.unwrap();
    let flood: Vec<_> = (0..300)
        .map(|n| new_note(&format!("b{n}"), "fractions fractions fractions"))
        .collect();
    put(store, &bob, flood, &[]).await;
    assert_eq!(store.match_notes(&ann, &words, 10).await.unwrap(), scores);
    assert_eq!(store.match_notes(&ann, &words, 1).await.unwrap(), scores[..1]);

    // Words that stand in most of many notes are left out while others are found, and found where they are all there is.
    let flood: Vec<_> = (0..600)
        .map(|n| new_note(&format!("c{n}"), &format!("usual thing n{n}")))
        .collect();
    put(store, &ann, flood, &[]).await;
    assert_eq!(found(store, &ann, &["usual", "n17"]).await, ["c17"]);
    assert_eq!(found(store, &ann, &["usual"]).await.len(), 100);
}

/// A note has what the last model said of it, and asks for the one in force.
pub(crate) async fn vectors_of_notes(store: &dyn MemoryStore) {
    let (ann, bob) = (user("k1", "ann"), user("k1", "bob"));
    for person in [&ann, &bob] {
        store.append(person, vec![said(1, "grade", "4")]).await.unwrap();
        put(
            store,
            person,
            vec![
                new_note("f1", "one"),
                new_note("f2", "two"),
                new_note("f3", "three"),
            ],
            &[],
        )
        .await;
    }
    let both = store.users_with_unembedded_notes(MODEL, 10).await.unwrap();
    assert_eq!(both.len(), 2);
    assert_eq!(
        store.users_with_unembedded_notes(MODEL, 1).await.unwrap().len(),
        1
    );
    let notes = store.unembedded_notes(&ann, MODEL, 10).await.unwrap();
    assert_eq!(notes, store.notes(&ann, 0, 10).await.unwrap());
    assert_eq!(store.unembedded_notes(&ann, MODEL, 1).await.unwrap(), notes[..1]);
    let keys: Vec<_> = notes.iter().map(|note| note.key).collect();
    let vectors = vec![
        (keys[0], Some(vec![1.0, 2.0])),
        (keys[1], None),
        (keys[2], Some(vec![3.0, -4.5])),
        (keys[2] + 1, Some(vec![9.0, 9.0])),
    ];
    assert_eq!(store.put_note_vectors(&ann, MODEL, vectors).await.unwrap(), 3);
    let page = store.note_vectors(&ann, MODEL, 0, 10).await.unwrap();
    assert_eq!(
        (page.keys, page.values),
        (vec![keys[0], keys[2]], vec![1.0, 2.0, 3.0, -4.5])
    );
    let page = store.note_vectors(&ann, MODEL, keys[0] + 1, 10).await.unwrap();
    assert_eq!(page.keys, [keys[2]]);
    assert_eq!(
        store.note_vectors(&ann, MODEL, 0, 1).await.unwrap().keys,
        [keys[0]]
    );
    assert!(store.unembedded_notes(&ann, MODEL, 10).await.unwrap().is_empty());
    assert_eq!(
        store.users_with_unembedded_notes(MODEL, 10).await.unwrap(),
        std::slice::from_ref(&bob)
    );
    assert!(
        store
            .note_vectors(&bob, MODEL, 0, 10)
            .await
            .unwrap()
            .keys
            .is_empty()
    );

    let wrong = store
        .put_note_vectors(&ann, MODEL, vec![(keys[0], Some(vec![1.0]))])
        .await;
    assert!(wrong.unwrap_err().to_string().contains("another id"));
    let other = "model-2";
    assert_eq!(store.unembedded_notes(&ann, other, 10).await.unwrap(), notes);
    let moved = vec![(keys[0], Some(vec![7.0; 3]))];
    assert_eq!(store.put_note_vectors(&ann, other, moved).await.unwrap(), 1);
    assert_eq!(
        store.note_vectors(&ann, other, 0, 10).await.unwrap().values,
        [7.0; 3]
    );
    assert_eq!(
        store.note_vectors(&ann, MODEL, 0, 10).await.unwrap().keys,
        [keys[2]]
    );
}
