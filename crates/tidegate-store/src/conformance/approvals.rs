//! What every store of approvals must do.

use futures_util::future::join_all;
use tidegate_core::{
    approval::{Answer, Approval, ApprovalBinding, ApprovalQuery, ApprovalState, Decided},
    caller::Mode,
    id::{ApprovalId, KeyId, RunId},
    port::{ApprovalStore, RunStore},
    run::Stage,
};

use super::{at, line, run, user};

fn binding(key: &str, fingerprint: &str) -> ApprovalBinding {
    ApprovalBinding {
        key_id: KeyId::new(key),
        user: user(key, "ann"),
        conversation: "c1".to_owned(),
        mode: Mode::ReadOnly,
        tool: "write_file".to_owned(),
        fingerprint: fingerprint.to_owned(),
        policy: "p1".to_owned(),
    }
}

fn question(id: &str, key: &str, fingerprint: &str, second: i64) -> Approval {
    Approval {
        id: ApprovalId::new(id),
        run_id: RunId::new(format!("r_{key}")),
        binding: binding(key, fingerprint),
        summary: "writes a file".to_owned(),
        arguments: "{}".to_owned(),
        reasons: vec!["readonly".to_owned()],
        created_at: at(second),
        expires_at: at(second + 300),
        state: ApprovalState::Pending,
        decided_by: None,
        decided_at: None,
    }
}

/// The store with the runs that ask.
async fn opened(store: &(impl ApprovalStore + RunStore)) -> &dyn ApprovalStore {
    for key in ["k1", "k2"] {
        let first = line(0, Stage::BeforeModel { round: 1 }, None);
        store
            .open(&run(&format!("r_{key}"), key, "ann"), &first)
            .await
            .unwrap();
    }
    store
}

async fn decide(store: &dyn ApprovalStore, id: &str, answer: Answer, second: i64) -> Decided {
    let by = KeyId::new("boss");
    store
        .decide(&ApprovalId::new(id), answer, &by, at(second), at(second + 300))
        .await
        .unwrap()
}

/// One question is one row, an answer counts once, and of many who claim one gets it.
pub(crate) async fn approvals_are_spent_once(store: &(impl ApprovalStore + RunStore)) {
    let store = opened(store).await;
    let mut stray = question("a0", "k1", "f1", 0);
    for unknown in ["r_none", "r_k2"] {
        stray.run_id = RunId::new(unknown);
        assert!(
            store.ask(&stray).await.is_err(),
            "an unknown run, or another person's, asks nothing"
        );
    }
    assert_eq!(store.find(&stray.id, at(0)).await.unwrap(), None);
    let asked = store.ask(&question("a1", "k1", "f1", 0)).await.unwrap();
    assert_eq!(asked, question("a1", "k1", "f1", 0));
    let again = store.ask(&question("a2", "k1", "f1", 5)).await.unwrap();
    assert_eq!(again.id, asked.id, "the same question");
    let other = store.ask(&question("a3", "k1", "f2", 6)).await.unwrap();
    assert_eq!(other.id, ApprovalId::new("a3"));
    assert_eq!(
        store.claim(&binding("k1", "f1"), at(7)).await.unwrap(),
        None,
        "nobody has answered"
    );

    let Decided::Now(approved) = decide(store, "a1", Answer::Approve, 10).await else {
        panic!("it is pending");
    };
    assert_eq!(
        (approved.state, approved.expires_at),
        (ApprovalState::Approved, at(310))
    );
    assert_eq!(approved.decided_by, Some(KeyId::new("boss")));
    assert!(matches!(
        decide(store, "a1", Answer::Approve, 11).await,
        Decided::Before(_)
    ));
    assert!(matches!(
        decide(store, "a1", Answer::Deny, 11).await,
        Decided::TooLate(_)
    ));
    assert!(matches!(
        decide(store, "nothing", Answer::Deny, 11).await,
        Decided::Missing
    ));

    for other in [
        ApprovalBinding {
            policy: "p2".to_owned(),
            ..binding("k1", "f1")
        },
        ApprovalBinding {
            conversation: "c2".to_owned(),
            ..binding("k1", "f1")
        },
        ApprovalBinding {
            mode: Mode::PlanOnly,
            ..binding("k1", "f1")
        },
        ApprovalBinding {
            tool: "read".to_owned(),
            ..binding("k1", "f1")
        },
        ApprovalBinding {
            user: user("k1", "bob"),
            ..binding("k1", "f1")
        },
        binding("k2", "f1"),
        binding("k1", "f2"),
    ] {
        assert_eq!(store.claim(&other, at(12)).await.unwrap(), None, "{other:?}");
    }
    let wanted = binding("k1", "f1");
    let claims = join_all((0..16).map(|_| store.claim(&wanted, at(12)))).await;
    let won: Vec<_> = claims.into_iter().filter_map(Result::unwrap).collect();
    assert_eq!(won.len(), 1);
    assert_eq!(won[0].state, ApprovalState::Claimed);
    store.settle(&won[0].id, ApprovalState::Consumed).await.unwrap();
    store.settle(&won[0].id, ApprovalState::Expired).await.unwrap();
    let spent = store.find(&won[0].id, at(13)).await.unwrap().unwrap();
    assert_eq!(spent.state, ApprovalState::Consumed, "what is settled stays");
}

/// Time ends questions and answers, a restart ends answers and keeps questions.
pub(crate) async fn approvals_end(store: &(impl ApprovalStore + RunStore)) {
    let store = opened(store).await;
    for (id, fingerprint) in [("b1", "f1"), ("b2", "f2"), ("b3", "f3"), ("b4", "f4")] {
        store.ask(&question(id, "k1", fingerprint, 0)).await.unwrap();
    }
    let seen = store
        .find(&ApprovalId::new("b1"), at(300))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        seen.state,
        ApprovalState::Expired,
        "its time is over, whoever has noted it"
    );
    assert!(matches!(
        decide(store, "b1", Answer::Approve, 300).await,
        Decided::TooLate(_)
    ));

    for (id, fingerprint) in [("c1", "f1"), ("c2", "f2"), ("c3", "f3")] {
        store.ask(&question(id, "k1", fingerprint, 400)).await.unwrap();
    }
    decide(store, "c1", Answer::Approve, 401).await;
    decide(store, "c2", Answer::Approve, 401).await;
    assert_eq!(
        store.claim(&binding("k1", "f1"), at(701)).await.unwrap(),
        None,
        "an answer ends too"
    );
    assert!(
        store
            .claim(&binding("k1", "f2"), at(701))
            .await
            .unwrap()
            .is_none(),
        "it had ended"
    );

    for (id, fingerprint) in [("d1", "f1"), ("d2", "f2"), ("d3", "f3")] {
        store.ask(&question(id, "k1", fingerprint, 800)).await.unwrap();
    }
    decide(store, "d1", Answer::Approve, 801).await;
    decide(store, "d2", Answer::Approve, 801).await;
    store.claim(&binding("k1", "f2"), at(802)).await.unwrap().unwrap();
    assert_eq!(store.recover_approvals(at(803)).await.unwrap(), (1, 1));
    let state = async |id: &str| {
        store
            .find(&ApprovalId::new(id), at(804))
            .await
            .unwrap()
            .unwrap()
            .state
    };
    assert_eq!(state("d1").await, ApprovalState::Expired);
    assert_eq!(state("d2").await, ApprovalState::Indeterminate);
    assert_eq!(state("d3").await, ApprovalState::Pending);

    let query = |limit, after: Option<&str>| ApprovalQuery {
        key_id: Some(KeyId::new("k1")),
        after: after.map(ApprovalId::new),
        limit,
        ..ApprovalQuery::default()
    };
    let first = store.list(&query(4, None), at(804)).await.unwrap();
    assert!(first.has_more);
    let last = first.approvals.last().unwrap().id.clone();
    let rest = store
        .list(&query(100, Some(last.as_str())), at(804))
        .await
        .unwrap();
    assert_eq!(first.approvals.len() + rest.approvals.len(), 10);
    let waiting = ApprovalQuery {
        state: Some(ApprovalState::Pending),
        ..query(100, None)
    };
    let waiting = store.list(&waiting, at(804)).await.unwrap().approvals;
    assert_eq!(waiting.len(), 1);
    assert_eq!(
        store.prune_approvals(at(900)).await.unwrap(),
        9,
        "what waits is not pruned"
    );
}
