//! The queue of turns to learn from.

use std::collections::BTreeSet;

use jiff::civil::date;
use tidegate_core::{
    id::{KeyId, RunId, UserId},
    memory::Observation,
    port::{
        CAPTURE_BYTES_MAX, Capture, CaptureCounts, ClaimedCapture, Enqueued, Seen, Sight, Switch, SwitchOwner,
    },
    run::Stage,
};

use super::{Everything, all, said};
use crate::conformance::{at, line, run, user};

fn seen(sight: Sight, text: &str) -> Seen {
    Seen {
        sight,
        text: text.to_owned(),
    }
}

/// A turn of a run of ann's that was said at that second.
pub(crate) fn capture(id: &str, second: i64) -> Capture {
    let mut turn = [7; 32];
    turn[..id.len()].copy_from_slice(id.as_bytes());
    Capture {
        run: RunId::new(id),
        turn,
        conversation: "c1".to_owned(),
        day: date(2027, 1, 15),
        at: at(second),
        said: format!("I teach \"grade\" {second}"),
        in_sight: vec![
            seen(Sight::Retrieved, "a document"),
            seen(Sight::Earlier, "a\nresult"),
        ],
    }
}

/// Opens the run and queues its turn.
pub(crate) async fn queue(store: &impl Everything, id: &str, name: &str, second: i64) -> Enqueued {
    let first = line(0, Stage::BeforeModel { round: 1 }, None);
    store.open(&run(id, "k1", name), &first).await.unwrap();
    store
        .enqueue(&user("k1", name), &capture(id, second))
        .await
        .unwrap()
}

pub(super) async fn claim_one(store: &impl Everything, second: i64) -> ClaimedCapture {
    let mut claimed = store.claim(at(second), at(second + 60), 1).await.unwrap();
    assert_eq!(claimed.len(), 1);
    claimed.remove(0)
}

async fn counts(store: &impl Everything) -> (u64, u64, u64) {
    let CaptureCounts {
        waiting,
        leased,
        dead,
        oldest_at: _,
    } = store.capture_counts().await.unwrap();
    (waiting, leased, dead)
}

fn learned(claimed: &ClaimedCapture, value: &str) -> Vec<Observation> {
    vec![Observation {
        turn: claimed.capture.turn,
        ..said(1, "grade", value)
    }]
}

/// Who may queue what.
pub(crate) async fn turns_are_queued(store: &impl Everything) {
    assert_eq!(store.next_due().await.unwrap(), None);
    assert!(store.claim(at(9), at(10), 5).await.unwrap().is_empty());
    assert_eq!(queue(store, "r1", "ann", 5).await, Enqueued::Queued);
    let (ann, bob) = (user("k1", "ann"), user("k1", "bob"));
    assert_eq!(
        store.enqueue(&ann, &capture("r1", 5)).await.unwrap(),
        Enqueued::Known
    );
    assert_eq!(
        store.enqueue(&ann, &capture("r0", 5)).await.unwrap(),
        Enqueued::RunGone
    );
    assert_eq!(
        store.enqueue(&bob, &capture("r1", 5)).await.unwrap(),
        Enqueued::RunGone,
        "another's run"
    );
    let large = Capture {
        in_sight: vec![seen(Sight::Tool, &"x".repeat(CAPTURE_BYTES_MAX))],
        ..capture("r1", 5)
    };
    assert_eq!(store.enqueue(&ann, &large).await.unwrap(), Enqueued::TooLarge);
    assert_eq!(store.next_due().await.unwrap(), Some(at(5)));
    assert_eq!(store.pending_of(&ann).await.unwrap(), 1);
    assert_eq!(store.pending_of(&bob).await.unwrap(), 0);
    assert_eq!(store.capture_counts().await.unwrap().oldest_at, Some(at(5)));

    // Turned off, nothing is queued, and what was queued is dropped, of that person or key alone.
    assert_eq!(queue(store, "r2", "bob", 4).await, Enqueued::Queued);
    let of_ann = SwitchOwner::User(ann.clone());
    store.set_switch(&of_ann, Switch::Recall, false).await.unwrap();
    assert_eq!(counts(store).await, (2, 0, 0));
    store.set_switch(&of_ann, Switch::Learning, false).await.unwrap();
    assert_eq!(counts(store).await, (1, 0, 0));
    assert_eq!(queue(store, "r3", "ann", 6).await, Enqueued::LearningOff);
    store.set_switch(&of_ann, Switch::Learning, true).await.unwrap();
    assert_eq!(
        store.enqueue(&ann, &capture("r3", 6)).await.unwrap(),
        Enqueued::Queued
    );
    let of_key = SwitchOwner::Key(KeyId::new("k1"));
    store.set_switch(&of_key, Switch::Learning, false).await.unwrap();
    assert_eq!(counts(store).await, (0, 0, 0));
    assert_eq!(queue(store, "r4", "bob", 6).await, Enqueued::LearningOff);
    store.set_switch(&of_key, Switch::Learning, true).await.unwrap();

    for (id, second) in [("r5", 8), ("r6", 6), ("r7", 7)] {
        assert_eq!(queue(store, id, "ann", second).await, Enqueued::Queued);
    }
    assert!(store.claim(at(5), at(10), 5).await.unwrap().is_empty(), "not due");
    let claimed = store.claim(at(9), at(10), 2).await.unwrap();
    let captures: Vec<_> = claimed.iter().map(|one| one.capture.clone()).collect();
    assert_eq!(
        captures,
        [capture("r6", 6), capture("r7", 7)],
        "oldest first, as they were queued"
    );
    assert!(
        claimed
            .iter()
            .all(|one| one.lease.user == ann && one.attempts == 1)
    );
}

/// A turn goes with what was learned from it, in one step, for the one who holds it.
pub(crate) async fn a_turn_is_learned_from_once(store: &impl Everything) {
    let ann = user("k1", "ann");
    queue(store, "r1", "ann", 0).await;
    let slow = claim_one(store, 0).await;
    assert!(
        store.claim(at(59), at(90), 9).await.unwrap().is_empty(),
        "it is leased"
    );
    assert_eq!(counts(store).await, (0, 1, 0));
    // The slow one is taken for dead, and comes back.
    let quick = claim_one(store, 60).await;
    assert_eq!((quick.capture.clone(), quick.attempts), (slow.capture.clone(), 2));
    assert_eq!(
        store.complete(&slow.lease, learned(&slow, "slow")).await.unwrap(),
        None
    );
    assert!(!store.retry(&slow.lease, at(0), "late").await.unwrap());
    assert!(!store.bury(&slow.lease, "late").await.unwrap());
    assert!(!store.release(&slow.lease, at(0)).await.unwrap());
    let mut of_bob = quick.lease.clone();
    of_bob.user = user("k1", "bob");
    assert_eq!(
        store.complete(&of_bob, learned(&quick, "bob")).await.unwrap(),
        None
    );
    assert_eq!(
        store
            .complete(&quick.lease, learned(&quick, "quick"))
            .await
            .unwrap(),
        Some(1)
    );
    assert_eq!(
        store
            .complete(&quick.lease, learned(&quick, "again"))
            .await
            .unwrap(),
        None
    );
    let values: Vec<_> = all(store, &ann, 9)
        .await
        .into_iter()
        .map(|one| one.value)
        .collect();
    assert_eq!(values, ["quick"]);
    assert_eq!(counts(store).await, (0, 0, 0));

    // Two workers never get the same turn.
    for number in 0..40 {
        queue(store, &format!("p{number}"), "ann", number).await;
    }
    let workers = (0..4).map(|_| async {
        let mut places = Vec::new();
        loop {
            let claimed = store.claim(at(100), at(200), 3).await.unwrap();
            if claimed.is_empty() {
                return places;
            }
            for one in claimed {
                places.push(one.lease.place);
                assert_eq!(store.complete(&one.lease, Vec::new()).await.unwrap(), Some(0));
            }
        }
    });
    let places: Vec<i64> = futures_util::future::join_all(workers).await.concat();
    assert_eq!(
        (places.len(), places.into_iter().collect::<BTreeSet<_>>().len()),
        (40, 40)
    );
}

/// Failure, giving up, shutting down and starting again.
pub(crate) async fn failed_turns_are_tried_again(store: &impl Everything) {
    queue(store, "r1", "ann", 0).await;
    let first = claim_one(store, 0).await;
    assert!(
        store
            .retry(&first.lease, at(30), "the model did not answer")
            .await
            .unwrap()
    );
    assert_eq!(
        (counts(store).await, store.next_due().await.unwrap()),
        ((1, 0, 0), Some(at(30)))
    );
    assert!(store.claim(at(29), at(90), 9).await.unwrap().is_empty());
    assert_eq!(
        store.complete(&first.lease, learned(&first, "x")).await.unwrap(),
        None,
        "it was given back"
    );
    let second = claim_one(store, 30).await;
    assert_eq!(second.attempts, 2);
    // A shutdown is no failed attempt.
    assert!(store.release(&second.lease, at(31)).await.unwrap());
    let third = claim_one(store, 31).await;
    assert_eq!(third.attempts, 2);
    assert!(store.bury(&third.lease, &"long ".repeat(1_000)).await.unwrap());
    assert_eq!(
        (counts(store).await, store.next_due().await.unwrap()),
        ((0, 0, 1), None)
    );
    assert!(store.claim(at(999), at(1_000), 9).await.unwrap().is_empty());
    assert_eq!(store.revive(at(50)).await.unwrap(), 1);
    let fourth = claim_one(store, 50).await;
    assert_eq!((fourth.attempts, fourth.capture), (1, capture("r1", 0)));
    // The process ends; the next one takes up what it left.
    assert_eq!(store.recover_captures(at(55)).await.unwrap(), 1);
    assert_eq!(store.recover_captures(at(55)).await.unwrap(), 0);
    let fifth = claim_one(store, 55).await;
    assert_eq!(fifth.attempts, 2, "an attempt that ended with the process counts");
    assert_eq!(store.complete(&fourth.lease, Vec::new()).await.unwrap(), None);
    assert!(store.bury(&fifth.lease, "hopeless").await.unwrap());
    assert_eq!(store.prune_captures(at(0)).await.unwrap(), 0);
    assert_eq!(store.prune_captures(at(1)).await.unwrap(), 1);
    assert_eq!(counts(store).await, (0, 0, 0));
}

/// One person fills no more than their part of the queue, and the dead do not take the room of the living.
pub(crate) async fn the_queue_is_bounded(store: &impl Everything, per_user: i64) {
    for number in 0..per_user {
        assert_eq!(
            queue(store, &format!("r{number}"), "ann", number).await,
            Enqueued::Queued
        );
    }
    assert_eq!(queue(store, "more", "ann", 0).await, Enqueued::Full);
    assert_eq!(queue(store, "bob", "bob", per_user).await, Enqueued::Queued);
    let claimed = claim_one(store, 0).await;
    let more = async || {
        store
            .enqueue(&user("k1", "ann"), &capture("more", per_user))
            .await
            .unwrap()
    };
    assert_eq!(more().await, Enqueued::Full);
    assert!(store.bury(&claimed.lease, "hopeless").await.unwrap());
    assert_eq!(more().await, Enqueued::Queued);
    let everybody: BTreeSet<UserId> = store
        .claim(at(per_user), at(per_user), 1_000)
        .await
        .unwrap()
        .into_iter()
        .map(|one| one.lease.user)
        .collect();
    assert!(everybody.contains(&user("k1", "ann")));
}
