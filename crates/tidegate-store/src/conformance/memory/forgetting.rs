//! Forgetting, erasing and pruning: that it goes, and that it stays away.

use tidegate_core::{
    id::{KeyId, RunId, UserId},
    memory::{Observation, Stance},
    port::{Enqueued, Erased, Forgotten, MemoryStore, MemoryVersion, NewNote, Retention},
};

use super::{
    Everything, all, new_note, prune,
    queue::{capture, claim_one, queue},
    said,
};
use crate::conformance::{at, user};

fn note_of(kind: &str, value: &str) -> NewNote {
    NewNote {
        kind: kind.to_owned(),
        value: value.to_owned(),
        ..new_note(&format!("{kind}={value}"), &format!("the {kind} is {value}"))
    }
}

async fn put(store: &dyn MemoryStore, user: &UserId, notes: Vec<NewNote>) {
    let version = store.version(user).await.unwrap();
    let put = store.put_notes(user, version, notes, Vec::new()).await.unwrap();
    assert!(put.is_some());
}

fn values(observations: &[Observation]) -> Vec<&str> {
    observations.iter().map(|one| one.value.as_str()).collect()
}

/// One fact goes with all that says it, and nothing else does.
pub(crate) async fn facts_are_forgotten(store: &impl Everything) {
    let (ann, bob) = (user("k1", "ann"), user("k1", "bob"));
    for (person, name) in [(&ann, "ann"), (&bob, "bob")] {
        let mut retracted = said(4, "grade", "4");
        retracted.stance = Stance::Retracted;
        let observations = vec![
            said(1, "grade", "4"),
            said(2, "grade", "4"),
            said(3, "grade", "5"),
            retracted,
            said(5, "room", "4"),
            said(6, "Grade", "4"),
        ];
        store.append(person, observations).await.unwrap();
        put(store, person, vec![note_of("grade", "4"), note_of("grade", "5")]).await;
        queue(store, name, name, 1).await;
    }
    let forgotten = store.forget(&ann, "grade", "4").await.unwrap();
    let expected = Forgotten {
        observations: 3,
        notes: 1,
        captures: 1,
    };
    assert_eq!(forgotten, expected);
    assert_eq!(values(&all(store, &ann, 9).await), ["5", "4", "4"]);
    assert_eq!(store.notes(&ann, 0, 9).await.unwrap().len(), 1);
    let grade = ["grade".to_owned()];
    assert_eq!(store.match_notes(&ann, &grade, 9).await.unwrap().len(), 1);
    assert_eq!(
        store.forget(&ann, "grade", "4").await.unwrap(),
        Forgotten::default()
    );
    assert_eq!(
        store.forget(&user("k1", "nobody"), "grade", "4").await.unwrap(),
        Forgotten::default()
    );
    assert_eq!(all(store, &bob, 9).await.len(), 6);
    assert_eq!(store.match_notes(&bob, &grade, 9).await.unwrap().len(), 2);
    assert_eq!(claim_one(store, 9).await.lease.user, bob);
    // It may be said again.
    assert_eq!(store.append(&ann, vec![said(1, "grade", "4")]).await.unwrap(), 1);
}

/// A person is gone, with every row, and can begin anew.
pub(crate) async fn erased_is_erased(store: &impl Everything) {
    let (ann, bob) = (user("k1", "ann"), user("k1", "bob"));
    for (person, name) in [(&ann, "ann"), (&bob, "bob")] {
        let many = (0..1_200)
            .map(|turn| said(turn, "v", &turn.to_string()))
            .collect();
        store.append(person, many).await.unwrap();
        put(
            store,
            person,
            (0..200).map(|n| note_of("v", &n.to_string())).collect(),
        )
        .await;
        queue(store, name, name, 1).await;
    }
    let erased = store.erase(&ann).await.unwrap();
    let expected = Erased {
        runs: 1,
        captures: 1,
        observations: 1_200,
        notes: 200,
        is_out_of_files: true,
        ..Erased::default()
    };
    assert_eq!(erased, expected);
    let nothing = Erased {
        is_out_of_files: true,
        ..Erased::default()
    };
    assert_eq!(store.erase(&ann).await.unwrap(), nothing);
    assert_eq!(store.version(&ann).await.unwrap(), MemoryVersion::default());
    assert!(all(store, &ann, 9).await.is_empty());
    assert!(store.notes(&ann, 0, 9).await.unwrap().is_empty());
    assert!(
        store
            .match_notes(&ann, &["the".to_owned()], 9)
            .await
            .unwrap()
            .is_empty()
    );
    let listed = store.users(&ann.key_id(), None, 9).await.unwrap();
    assert_eq!(listed.iter().map(|one| &one.user).collect::<Vec<_>>(), [&bob]);
    assert_eq!((listed[0].observations, listed[0].notes), (1_200, 200));
    assert_eq!(all(store, &bob, 500).await.len(), 1_200);
    store.append(&ann, vec![said(1, "v", "new")]).await.unwrap();
    assert_eq!(values(&all(store, &ann, 9).await), ["new"]);
}

/// What was under way when a person was erased, or a fact forgotten, brings nothing back.
pub(crate) async fn nothing_comes_back(store: &impl Everything) {
    let ann = user("k1", "ann");
    for is_erasure in [true, false] {
        let id = if is_erasure { "r1" } else { "r2" };
        store.append(&ann, vec![said(1, "grade", "4")]).await.unwrap();
        assert_eq!(queue(store, id, "ann", 0).await, Enqueued::Queued);
        let (claimed, version) = (claim_one(store, 0).await, store.version(&ann).await.unwrap());
        if is_erasure {
            store.erase(&ann).await.unwrap();
            // The answer comes after all, and the turn is to be queued.
            assert_eq!(
                store.enqueue(&ann, &capture(id, 0)).await.unwrap(),
                Enqueued::RunGone
            );
        } else {
            store.forget(&ann, "grade", "4").await.unwrap();
        }
        let learned = vec![said(2, "grade", "4")];
        assert_eq!(store.complete(&claimed.lease, learned).await.unwrap(), None);
        assert!(!store.retry(&claimed.lease, at(0), "late").await.unwrap());
        let late = store.put_notes(&ann, version, vec![note_of("grade", "4")], Vec::new());
        assert_eq!(late.await.unwrap(), None);
        assert!(all(store, &ann, 9).await.is_empty());
        assert!(store.notes(&ann, 0, 9).await.unwrap().is_empty());
        assert_eq!(store.next_due().await.unwrap(), None);
    }
    let found = store.find(&KeyId::new("k1"), &RunId::new("r1")).await.unwrap();
    assert!(found.is_none(), "the run itself is erased");
}

/// By age and by number, of a kind or of all, of one or of everybody.
pub(crate) async fn old_evidence_goes(store: &dyn MemoryStore) {
    let people: Vec<UserId> = (0..3).map(|number| user("k1", &format!("p{number}"))).collect();
    for person in &people {
        let mut observations: Vec<_> = (0..150)
            .map(|turn| said(turn, "a", &(turn % 50).to_string()))
            .collect();
        observations.extend((0..10).map(|turn| said(turn, "b", "1")));
        store.append(person, observations).await.unwrap();
        let notes = (0..50)
            .map(|n| note_of("a", &n.to_string()))
            .chain([note_of("b", "1")]);
        put(store, person, notes.collect()).await;
    }
    let of = |kind: &str| Retention {
        kind: Some(kind.to_owned()),
        ..Retention::default()
    };
    assert_eq!(
        prune(store, &Retention::default()).await,
        (0, Vec::new()),
        "no bound"
    );
    assert_eq!(prune(store, &of("a")).await, (0, Vec::new()));

    // Of one person and one kind, by age: values that are still said later keep their notes.
    let old = Retention {
        user: Some(people[0].clone()),
        before: Some(at(120)),
        ..of("a")
    };
    let version = store.version(&people[0]).await.unwrap();
    assert_eq!(prune(store, &old).await, (120, vec![people[0].clone()]));
    assert_ne!(store.version(&people[0]).await.unwrap(), version);
    assert_eq!(all(store, &people[0], 99).await.len(), 40);
    assert_eq!(store.notes(&people[0], 0, 99).await.unwrap().len(), 31);
    assert!(
        store
            .match_notes(&people[0], &["19".to_owned()], 9)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(prune(store, &old).await, (0, Vec::new()));
    assert_eq!(all(store, &people[1], 99).await.len(), 160);

    // Of everybody, the newest of each.
    let newest = Retention {
        newest_max: Some(4),
        ..of("b")
    };
    assert_eq!(prune(store, &newest).await, (18, people.clone()));
    let newest = Retention {
        newest_max: Some(20),
        ..Retention::default()
    };
    assert_eq!(prune(store, &newest).await, (14 + 134 + 134, people.clone()));
    for person in &people {
        let left = all(store, person, 99).await;
        assert!(left.len() == 20 && left.iter().all(|one| one.at >= at(130)));
        // Without evidence, no note.
        assert_eq!(store.notes(person, 0, 99).await.unwrap().len(), 20);
    }
    let none = Retention {
        newest_max: Some(0),
        ..Retention::default()
    };
    assert_eq!(prune(store, &none).await.0, 60);
}
