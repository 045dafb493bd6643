//! What every store of what is remembered must do, whatever database stands behind it.

mod forgetting;
mod notes;
mod queue;

use jiff::civil::date;
use tidegate_core::{
    id::{FactId, KeyId, ObservationId, UserId},
    memory::{Observation, Stance, Voice},
    port::{
        CaptureQueue, MemoryStore, MemoryVersion, NewNote, Retention, RunStore, Switch, SwitchOwner, Switches,
    },
};

use super::{at, user};
pub(crate) use forgetting::{erased_is_erased, facts_are_forgotten, nothing_comes_back, old_evidence_goes};
pub(crate) use notes::{notes_are_found_by_their_words, notes_follow_facts, vectors_of_notes};
pub(crate) use queue::{
    a_turn_is_learned_from_once, failed_turns_are_tried_again, the_queue_is_bounded, turns_are_queued,
};

pub(crate) const MODEL: &str = "model-1";

/// All that memory needs of a store.
pub(crate) trait Everything: MemoryStore + CaptureQueue + RunStore {}
impl<S: MemoryStore + CaptureQueue + RunStore> Everything for S {}

/// An observation of the turn of that number.
pub(crate) fn said(turn: u32, kind: &str, value: &str) -> Observation {
    let mut digest = [0; 32];
    digest[..4].copy_from_slice(&turn.to_be_bytes());
    Observation {
        id: ObservationId::new(format!("obs_{turn}_{kind}_{value}")),
        kind: kind.to_owned(),
        value: value.to_owned(),
        quote: format!("my {kind} is {value}"),
        turn: digest,
        conversation: "c1".to_owned(),
        day: date(2027, 1, 15),
        at: at(i64::from(turn)),
        voice: Voice::Stated,
        stance: Stance::Affirmed,
        extractor: "rules".to_owned(),
        is_explicit: true,
        is_first_person: true,
    }
}

pub(crate) fn new_note(fact: &str, text: &str) -> NewNote {
    NewNote {
        fact: FactId::new(fact),
        kind: "note".to_owned(),
        value: fact.to_owned(),
        text: text.to_owned(),
    }
}

/// All observations, by pages of that length.
pub(crate) async fn all(store: &dyn MemoryStore, user: &UserId, page_length: usize) -> Vec<Observation> {
    let (mut all, mut from) = (Vec::new(), 0);
    loop {
        let page = store.observations(user, from, page_length).await.unwrap();
        assert!(page.observations.len() <= page_length);
        all.extend(page.observations);
        match page.next {
            Some(next) => from = next,
            None => return all,
        }
    }
}

/// Observations come back as they went in, in their order, and each once.
pub(crate) async fn observations_are_kept(store: &dyn MemoryStore) {
    let ann = user("k1", "ann");
    assert_eq!(store.version(&ann).await.unwrap(), MemoryVersion::default());
    assert!(all(store, &ann, 10).await.is_empty());
    let mut odd = said(2, "name", "Zoë \"Q\" \u{1F30A} '; DROP TABLE x; --");
    odd.quote = "line\nbreak\t\\ and \u{202e}marks\u{7f}".to_owned();
    odd.voice = Voice::Corrected;
    odd.stance = Stance::Retracted;
    odd.is_explicit = false;
    odd.is_first_person = false;
    odd.turn = [0xff; 32];
    odd.at = "2027-03-01T00:00:00.123456Z".parse().unwrap();
    odd.day = date(1999, 12, 31);
    let imported = Observation {
        voice: Voice::Imported,
        ..said(3, "", "")
    };
    let remembered = Observation {
        voice: Voice::Remembered,
        ..said(4, "grade", "4")
    };
    let first = vec![said(1, "grade", "4"), odd, imported, remembered];
    assert_eq!(store.append(&ann, first.clone()).await.unwrap(), 4);
    assert_eq!(all(store, &ann, 10).await, first);

    // The same turn again, with other words and ids; of another stance or value it is something else.
    let mut again = said(1, "grade", "4");
    again.id = ObservationId::new("obs_other");
    again.quote = "other words".to_owned();
    let mut retracted = said(1, "grade", "4");
    retracted.stance = Stance::Retracted;
    let more = vec![
        again,
        retracted.clone(),
        said(1, "grade", "5"),
        said(1, "grade", "5"),
    ];
    assert_eq!(store.append(&ann, more.clone()).await.unwrap(), 2);
    assert_eq!(store.append(&ann, more).await.unwrap(), 0);
    assert_eq!(store.append(&ann, Vec::new()).await.unwrap(), 0);
    let mut expected = first;
    expected.extend([retracted, said(1, "grade", "5")]);
    for page_length in [1, 2, 6, 100] {
        assert_eq!(all(store, &ann, page_length).await, expected);
    }

    // Many at once, as an import has them.
    let many: Vec<_> = (10..1_010).map(|turn| said(turn, "note", "x")).collect();
    assert_eq!(store.append(&ann, many.clone()).await.unwrap(), 1_000);
    expected.extend(many);
    assert_eq!(all(store, &ann, 400).await, expected);
}

/// Every write is a new state, and a page says which it is of.
pub(crate) async fn states_never_come_back(store: &dyn MemoryStore) {
    let (ann, bob) = (user("k1", "ann"), user("k1", "bob"));
    let mut seen = vec![MemoryVersion::default()];
    for turn in 0..3 {
        store.append(&ann, vec![said(turn, "grade", "4")]).await.unwrap();
        seen.push(store.version(&ann).await.unwrap());
        let of_page = store.observations(&ann, 0, 1).await.unwrap().version;
        assert_eq!(seen.last(), Some(&of_page));
    }
    let before = store.version(&ann).await.unwrap();
    store.append(&bob, vec![said(1, "grade", "4")]).await.unwrap();
    assert_eq!(
        store.version(&ann).await.unwrap(),
        before,
        "another person's write"
    );
    let notes = vec![new_note("f1", "teaches the fourth grade")];
    let put = store.put_notes(&ann, before, notes, Vec::new()).await.unwrap();
    seen.push(put.unwrap());
    let key = store.notes(&ann, 0, 1).await.unwrap()[0].key;
    store
        .put_note_vectors(&ann, MODEL, vec![(key, None)])
        .await
        .unwrap();
    seen.push(store.version(&ann).await.unwrap());
    store.forget(&ann, "grade", "4").await.unwrap();
    seen.push(store.version(&ann).await.unwrap());
    store.erase(&ann).await.unwrap();
    assert_eq!(store.version(&ann).await.unwrap(), MemoryVersion::default());
    for turn in 0..8 {
        store.append(&ann, vec![said(turn, "grade", "4")]).await.unwrap();
        seen.push(store.version(&ann).await.unwrap());
    }
    let count = seen.len();
    seen.sort_by_key(|version| version.0);
    seen.dedup();
    assert_eq!(seen.len(), count);
}

/// Ids that look alike, or would be alike to a database that folds case, accents or width, or takes patterns.
pub(crate) fn confusable() -> Vec<UserId> {
    let keys = ["k1", "K1", "k10", "k", "k1 "];
    let names = [
        "ann",
        "Ann",
        "ANN",
        "a",
        "b",
        "a:b",
        "a:",
        ":a",
        "a;b",
        "%",
        "_",
        "a%",
        "*",
        "",
        "null",
        "NULL",
        "0",
        "00",
        "0.0",
        "1",
        "1e0",
        "café",
        "cafe\u{301}",
        "cafe",
        "аnn",
        "ann\u{200b}",
        "ａｎｎ",
        "ß",
        "ss",
        "İ",
        "i",
        "ı",
        "'",
        "\"",
        "' OR '1'='1",
        "k1",
        "k1:ann",
        "ann.",
        "ann/",
        "../ann",
        "ann\u{a0}x",
        "ann x",
    ];
    let mut ids: Vec<UserId> = Vec::new();
    for key in keys {
        ids.extend(names.map(|name| UserId::of(&KeyId::new(key), Some(name)).unwrap()));
    }
    ids
}

/// Nobody sees anything of another person, whatever the ids.
pub(crate) async fn people_do_not_mix(store: &dyn MemoryStore) {
    let people = confusable();
    for (number, person) in people.iter().enumerate() {
        let own = number.to_string();
        store.append(person, vec![said(1, "number", &own)]).await.unwrap();
        let version = store.version(person).await.unwrap();
        let notes = vec![new_note("f1", &format!("everybody has this and secret{own}"))];
        let put = store.put_notes(person, version, notes, Vec::new()).await.unwrap();
        assert!(put.is_some());
    }
    let words = ["everybody".to_owned()];
    let mut keys = Vec::new();
    for (number, person) in people.iter().enumerate() {
        let seen = all(store, person, 10).await;
        let values: Vec<_> = seen.iter().map(|one| one.value.as_str()).collect();
        assert_eq!(values, [number.to_string()], "{person}");
        let notes = store.notes(person, 0, 10).await.unwrap();
        assert_eq!(notes.len(), 1, "{person}");
        let found = store.match_notes(person, &words, 10).await.unwrap();
        assert_eq!(found.iter().map(|one| one.0).collect::<Vec<_>>(), [notes[0].key]);
        keys.push(notes[0].key);
    }
    for (number, person) in people.iter().enumerate() {
        let other = (number + 1) % people.len();
        let foreign = [format!("secret{other}")];
        assert!(store.match_notes(person, &foreign, 10).await.unwrap().is_empty());
        assert_eq!(store.notes_of(person, &keys).await.unwrap().len(), 1);
        // Keys are no way in either: not to read from, nor to write to.
        let from = keys[other];
        for page in [
            store.notes(person, from, 10).await.unwrap(),
            store.notes_of(person, &[from]).await.unwrap(),
        ] {
            assert!(page.iter().all(|note| note.key == keys[number]));
        }
        let page = store.observations(person, from, 10).await.unwrap();
        assert!(
            page.observations
                .iter()
                .all(|one| one.value == number.to_string())
        );
        let kept = store
            .put_note_vectors(person, MODEL, vec![(from, Some(vec![1.0]))])
            .await;
        assert_eq!(kept.unwrap(), 0);
        assert!(
            store
                .note_vectors(person, MODEL, 0, 10)
                .await
                .unwrap()
                .keys
                .is_empty()
        );
    }
    keys_list_their_people(store, &people).await;
    let (gone, rest) = people.split_first().unwrap();
    store.erase(gone).await.unwrap();
    assert!(all(store, gone, 10).await.is_empty());
    for person in rest {
        assert_eq!(all(store, person, 10).await.len(), 1, "{person}");
    }
}

async fn keys_list_their_people(store: &dyn MemoryStore, people: &[UserId]) {
    let mut listed = Vec::new();
    for key in ["k1", "K1", "k10", "k", "k1 "] {
        let key = KeyId::new(key);
        let mut after: Option<UserId> = None;
        loop {
            let page = store.users(&key, after.as_ref(), 7).await.unwrap();
            assert!(page.len() <= 7);
            let Some(last) = page.last() else { break };
            after = Some(last.user.clone());
            for one in page {
                assert_eq!((one.observations, one.notes, one.last_at), (1, 1, Some(at(1))));
                assert_eq!(one.user.key_id(), key);
                listed.push(one.user);
            }
        }
    }
    let mut expected = people.to_vec();
    expected.sort();
    listed.sort();
    assert_eq!(listed, expected);
}

/// Two people who write at once keep to themselves.
pub(crate) async fn people_write_at_once(store: &dyn MemoryStore) {
    let people: Vec<_> = (0..8).map(|number| user("k1", &format!("p{number}"))).collect();
    let writing = people.iter().enumerate().map(|(number, person)| async move {
        for turn in 0..20 {
            let value = format!("{number}.{turn}");
            store.append(person, vec![said(turn, "v", &value)]).await.unwrap();
            let version = store.version(person).await.unwrap();
            let notes = vec![new_note(&format!("f{turn}"), &format!("note of p{number}"))];
            assert!(
                store
                    .put_notes(person, version, notes, Vec::new())
                    .await
                    .unwrap()
                    .is_some()
            );
        }
    });
    futures_util::future::join_all(writing).await;
    for (number, person) in people.iter().enumerate() {
        let values: Vec<_> = all(store, person, 7)
            .await
            .into_iter()
            .map(|one| one.value)
            .collect();
        let expected: Vec<_> = (0..20).map(|turn| format!("{number}.{turn}")).collect();
        assert_eq!(values, expected);
        let notes = store.notes(person, 0, 100).await.unwrap();
        assert_eq!(notes.len(), 20);
        assert!(notes.iter().all(|note| note.text == format!("note of p{number}")));
    }
}

/// What either the person or the key turns off is off, and it outlives an erasure.
pub(crate) async fn switches_are_turned(store: &dyn MemoryStore) {
    let (ann, bob, eve) = (user("k1", "ann"), user("k1", "bob"), user("k2", "ann"));
    let on = Switches::default();
    assert_eq!(store.switches(&ann).await.unwrap(), (on, on));
    let of_ann = SwitchOwner::User(ann.clone());
    store.set_switch(&of_ann, Switch::Learning, false).await.unwrap();
    let not_learning = Switches {
        learning: false,
        recall: true,
    };
    assert_eq!(store.switches(&ann).await.unwrap(), (not_learning, on));
    assert!(store.users(&KeyId::new("k1"), None, 9).await.unwrap().is_empty());
    let of_key = SwitchOwner::Key(KeyId::new("k1"));
    store.set_switch(&of_key, Switch::Recall, false).await.unwrap();
    let not_recalling = Switches {
        learning: true,
        recall: false,
    };
    assert_eq!(store.switches(&bob).await.unwrap(), (on, not_recalling));
    assert_eq!(store.switches(&eve).await.unwrap(), (on, on));
    let (person, key) = store.switches(&ann).await.unwrap();
    assert_eq!((person.and(key).learning, person.and(key).recall), (false, false));

    store.append(&ann, vec![said(1, "grade", "4")]).await.unwrap();
    store.erase(&ann).await.unwrap();
    assert!(all(store, &ann, 9).await.is_empty());
    assert_eq!(store.switches(&ann).await.unwrap().0, not_learning);
    store.set_switch(&of_ann, Switch::Learning, true).await.unwrap();
    store.set_switch(&of_key, Switch::Recall, true).await.unwrap();
    assert_eq!(store.switches(&ann).await.unwrap(), (on, on));
}

/// Prunes to the end.
pub(super) async fn prune(store: &dyn MemoryStore, retention: &Retention) -> (u64, Vec<UserId>) {
    let (mut count, mut users, mut from) = (0, Vec::new(), 0);
    loop {
        let pruned = store.prune_observations(retention, from).await.unwrap();
        count += pruned.observations;
        users.extend(pruned.users);
        match pruned.next {
            Some(next) => from = next,
            None => break,
        }
    }
    users.sort();
    users.dedup();
    (count, users)
}
