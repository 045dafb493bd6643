use std::{os::unix::fs::PermissionsExt as _, path::Path, sync::Arc};

use serde_json::json;
use sqlx::Connection as _;
use tempfile::TempDir;
use tidegate_core::{
    clock::{Clock, Timestamp},
    error::StoreError,
    id::{CallId, KeyId, RunId},
    port::{HeldTurn, HeldTurnStore, KeyRemoval, KeyStore, LastAdmin, Ledger, PolicyChange, RunStore},
    run::{RunState, Stage},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Error, Options, Store,
    conformance::{self, after, at, before, cost, end, key, line, run, user},
    inspect,
};

/// A clock that stands still in the morning of the day that the tests' usage counts towards, two hours before
/// their other times.
#[derive(Debug)]
pub(crate) struct Morning;

impl Clock for Morning {
    fn now(&self) -> Timestamp {
        "2027-01-15T06:00:00Z".parse().unwrap()
    }
}

/// A store and its worker.
pub(crate) struct Opened {
    pub(crate) store: Store,
    shutdown: CancellationToken,
    tracker: TaskTracker,
}

impl Opened {
    pub(crate) async fn at(path: &Path) -> Self {
        Self::with(Options {
            path: path.to_owned(),
            ..Options::default()
        })
        .await
    }

    pub(crate) async fn with(options: Options) -> Self {
        let (store, worker) = Store::open(options, Arc::new(Morning)).await.unwrap();
        let (shutdown, tracker) = (CancellationToken::new(), TaskTracker::new());
        tracker.spawn(worker.run(shutdown.clone()));
        tracker.close();
        Self {
            store,
            shutdown,
            tracker,
        }
    }

    pub(crate) async fn close(self) {
        self.shutdown.cancel();
        self.tracker.wait().await;
    }
}

pub(crate) fn folder() -> (TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data/tidegate.db");
    (folder, path)
}

macro_rules! conforms {
    ($($name:ident($($argument:expr),*);)*) => {$(
        #[tokio::test]
        async fn $name() {
            let (_folder, path) = folder();
            let opened = Opened::at(&path).await;
            opened.store.lock_daemon().unwrap();
            conformance::$name(&opened.store $(, $argument)*).await;
            opened.close().await;
        }
    )*};
}

conforms! {
    keys_round_trip();
    one_first_key();
    pages_meet();
    a_run_from_open_to_close();
    runs_are_recovered();
    turns_are_held(64);
    usage_is_booked();
    approvals_are_spent_once();
    approvals_end();
}

#[tokio::test]
async fn files_are_private_and_an_inspection_says_so() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    opened.store.insert(&key("a", 0)).await.unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let file = file.unwrap().path();
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    let inspected = async || inspect(&path).await.unwrap().unwrap();
    let check = inspected().await;
    assert_eq!(
        (
            check.faults.as_slice(),
            check.write_fault.as_deref(),
            check.is_exposed
        ),
        (&[][..], None, false)
    );
    assert!(check.schema_version >= 4 && check.schema_version == check.known_version);
    assert!(check.has_keys && check.free_bytes.is_some_and(|free| free > 0));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(inspected().await.is_exposed);
    opened.close().await;
}

#[tokio::test]
async fn a_key_holds_as_many_turns_as_are_set() {
    let (_folder, path) = folder();
    let opened = Opened::with(Options {
        path,
        held_turns_per_key_max: 3,
        ..Options::default()
    })
    .await;
    conformance::turns_are_held(&opened.store, 3).await;
    opened.close().await;
}

#[tokio::test]
async fn another_process_revokes_and_the_next_look_up_sees_it() {
    let (_folder, path) = folder();
    let (daemon, cli) = (Opened::at(&path).await, Opened::at(&path).await);
    let record = key("a", 0);
    daemon.store.insert(&record).await.unwrap();
    for enabled in [false, true, false, true] {
        let known = KeyStore::find(&cli.store, &record.id).await.unwrap().unwrap();
        let mut policy = known.policy.clone();
        policy.enabled = enabled;
        let set = cli
            .store
            .set_policy(&record.id, &known.policy, &policy, LastAdmin::MayGo)
            .await;
        assert!(matches!(set, Ok(PolicyChange::Changed(_))), "{set:?}");
        for _reader in 0..6 {
            let found = KeyStore::find(&daemon.store, &record.id).await.unwrap().unwrap();
            assert_eq!(found.policy.enabled, enabled);
        }
    }
    let gone = cli.store.delete(&record.id, LastAdmin::MayGo).await;
    assert_eq!(gone.unwrap(), KeyRemoval::Removed);
    assert_eq!(KeyStore::find(&daemon.store, &record.id).await.unwrap(), None);
    cli.close().await;
    daemon.close().await;
}

#[tokio::test]
async fn two_daemons_cannot_share_a_file_and_recovery_needs_the_lock() {
    let (_folder, path) = folder();
    let (first, second) = (Opened::at(&path).await, Opened::at(&path).await);
    first.store.lock_daemon().unwrap();
    first.store.lock_daemon().unwrap();
    let refused = second.store.lock_daemon().unwrap_err();
    assert!(matches!(refused, Error::DaemonRunning { .. }), "{refused}");
    assert!(second.store.recover(at(0)).await.is_err());
    first.store.recover(at(0)).await.unwrap();
    first.close().await;
    second.store.lock_daemon().unwrap();
    second.close().await;
}

#[tokio::test]
async fn many_processes_may_meet_at_a_new_file() {
    let (_folder, path) = folder();
    let mut opening = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let options = Options {
            path: path.clone(),
            ..Options::default()
        };
        opening.spawn(async { Store::open(options, Arc::new(Morning)).await.map(drop) });
    }
    while let Some(opened) = opening.join_next().await {
        opened.unwrap().unwrap();
    }
}

#[tokio::test]
async fn what_cannot_be_opened_says_why() {
    let (_folder, path) = folder();
    Opened::at(&path).await.close().await;
    let open = |path: &Path| {
        let options = Options {
            path: path.to_owned(),
            ..Options::default()
        };
        async {
            Store::open(options, Arc::new(Morning))
                .await
                .map(drop)
                .unwrap_err()
        }
    };
    let text = path.with_file_name("notes.txt");
    std::fs::copy("Cargo.toml", &text).unwrap();
    let error = open(&text).await;
    assert!(matches!(error, Error::NotADatabase { .. }), "{error}");
    let below_a_file = text.join("tidegate.db");
    let error = open(&below_a_file).await;
    assert!(matches!(error, Error::File { .. }), "{error}");

    let options = Options {
        path: path.clone(),
        ..Options::default()
    };
    let mut connection = crate::files::writer(&options).await.unwrap();
    sqlx::query("INSERT INTO _sqlx_migrations VALUES (9999, 'later', 0, true, x'00', 0)")
        .execute(&mut connection)
        .await
        .unwrap();
    let error = open(&path).await;
    assert!(
        matches!(error, Error::NewerSchema { version: 9_999, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_failing_command_does_not_sink_its_neighbours() {
    let (_folder, path) = folder();
    let options = Options {
        path,
        ..Options::default()
    };
    let (store, worker) = Store::open(options, Arc::new(Morning)).await.unwrap();
    let mut writes = tokio::task::JoinSet::new();
    for n in 0..20 {
        let store = store.clone();
        // Each odd one takes the id of the even one before it.
        writes.spawn(async move { store.insert(&key(&format!("k{}", n / 2), n)).await });
    }
    // All of them are in the queue before the worker starts, so that they share a batch.
    while store.writer().waiting() < 20 {
        tokio::task::yield_now().await;
    }
    let (shutdown, tracker) = (CancellationToken::new(), TaskTracker::new());
    tracker.spawn(worker.run(shutdown.clone()));
    let (mut added, mut refused) = (0, 0);
    while let Some(write) = writes.join_next().await {
        match write.unwrap() {
            Ok(()) => added += 1,
            Err(StoreError::Duplicate(_)) => refused += 1,
            Err(error @ StoreError::Internal(_)) => panic!("{error}"),
        }
    }
    assert_eq!((added, refused), (10, 10));
    shutdown.cancel();
    tracker.close();
    tracker.wait().await;
    assert!(
        store.insert(&key("late", 0)).await.is_err(),
        "nobody writes any more"
    );
}

#[tokio::test]
async fn last_use_reaches_the_disk_and_never_goes_back() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    opened.store.insert(&key("a", 0)).await.unwrap();
    for second in [5, 9, 7] {
        opened.store.touch(&KeyId::new("a"), at(second));
    }
    opened.store.touch(&KeyId::new("gone"), at(5));
    opened.store.flush_uses().await.unwrap();
    opened.store.touch(&KeyId::new("a"), at(8));
    opened.close().await;
    let again = Opened::at(&path).await;
    let found = KeyStore::find(&again.store, &KeyId::new("a"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.last_used_at, Some(at(9)));
    again.close().await;
}

#[tokio::test]
async fn a_person_is_erased_and_others_are_not() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    let store = &opened.store;
    let secret = "the-words-of-ann-4711";
    for (id, name) in [("r1", "ann"), ("r2", "ann"), ("r3", "bob")] {
        let first = line(0, Stage::BeforeModel { round: 1 }, Some(json!({"text": secret})));
        store.open(&run(id, "k1", name), &first).await.unwrap();
        store.record(cost("k1", name, 1, 1));
        let turn = HeldTurn {
            key_id: KeyId::new("k1"),
            user: user("k1", name),
            client_call_ids: vec![],
            messages: vec![],
            citations: Vec::new(),
            expires_at: at(9),
        };
        store.hold(&RunId::new(id), &turn, at(0)).await.unwrap();
    }
    store
        .close(&RunId::new("r3"), &end(1, RunState::Completed))
        .await
        .unwrap();
    let erased = store
        .erase_user(&KeyId::new("k1"), &user("k1", "ann"))
        .await
        .unwrap();
    assert_eq!((erased.runs, erased.held_turns, erased.usage_rows), (2, 2, 2));
    let nothing = store
        .erase_user(&KeyId::new("k1"), &user("k1", "ann"))
        .await
        .unwrap();
    assert_eq!((nothing.runs, nothing.held_turns, nothing.usage_rows), (0, 0, 0));
    assert!(
        RunStore::find(store, &KeyId::new("k1"), &RunId::new("r3"))
            .await
            .unwrap()
            .is_some()
    );
    opened.close().await;
    for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        let found = bytes
            .windows(secret.len())
            .any(|window| window == secret.as_bytes());
        assert!(!found, "erased and ended texts are overwritten");
    }
}

#[tokio::test]
async fn an_interrupted_effect_is_seen_by_the_next_daemon() {
    let (_folder, path) = folder();
    let dead = Opened::at(&path).await;
    for (id, stages) in [("r1", vec![before("c")]), ("r2", vec![before("c"), after("c")])] {
        dead.store
            .open(
                &run(id, "k1", "ann"),
                &line(0, Stage::BeforeModel { round: 1 }, None),
            )
            .await
            .unwrap();
        for stage in stages {
            dead.store
                .checkpoint(&RunId::new(id), &line(1, stage, None))
                .await
                .unwrap();
        }
    }
    dead.close().await;
    let next = Opened::at(&path).await;
    next.store.lock_daemon().unwrap();
    assert_eq!(next.store.recover(at(2)).await.unwrap(), (1, 1));
    next.close().await;
}

#[tokio::test]
async fn expired_turns_leave_the_disk_by_themselves() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    let now = Morning.now();
    let turn = HeldTurn {
        key_id: KeyId::new("k1"),
        user: user("k1", "ann"),
        client_call_ids: vec![CallId::new("c")],
        messages: vec![],
        citations: Vec::new(),
        expires_at: now,
    };
    let earlier = now - jiff::SignedDuration::from_secs(1);
    let (record, first) = (
        run("r1", "k1", "ann"),
        line(0, Stage::BeforeModel { round: 1 }, None),
    );
    opened.store.open(&record, &first).await.unwrap();
    opened.store.hold(&record.id, &turn, earlier).await.unwrap();
    let find = || {
        HeldTurnStore::find(
            &opened.store,
            &turn.key_id,
            &turn.user,
            &turn.client_call_ids,
            earlier,
        )
    };
    opened.store.flush_tick().await.unwrap();
    assert_eq!(find().await.unwrap(), None);
    opened.close().await;
}

#[tokio::test]
async fn a_write_does_not_wait_for_ever_for_another_process() {
    let (_folder, path) = folder();
    let options = Options {
        path,
        busy_timeout_ms: 30,
        ..Options::default()
    };
    let opened = Opened::with(options.clone()).await;
    let mut other = crate::files::writer(&options).await.unwrap();
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let first = line(0, Stage::BeforeModel { round: 1 }, None);
    let errors = [
        opened.store.insert(&key("a", 0)).await.unwrap_err().to_string(),
        opened
            .store
            .open(&run("r1", "k1", "ann"), &first)
            .await
            .unwrap_err()
            .to_string(),
    ];
    for error in errors {
        assert!(error.contains("another process holds the database"), "{error}");
    }
    assert_eq!(
        KeyStore::find(&opened.store, &KeyId::new("a")).await.unwrap(),
        None,
        "reads go on"
    );
    lock.rollback().await.unwrap();
    opened.store.insert(&key("a", 0)).await.unwrap();
    opened.store.open(&run("r1", "k1", "ann"), &first).await.unwrap();
    opened.close().await;
}

/// The caller of a write that takes longer than its time limit is told what became of it, not that it failed.
#[tokio::test]
async fn a_run_is_open_or_refused_and_never_opens_later() {
    let (_folder, path) = folder();
    let options = Options {
        path,
        write_timeout_ms: 5,
        write_queue_max: 1,
        ..Options::default()
    };
    let (store, worker) = Store::open(options, Arc::new(Morning)).await.unwrap();
    let first = line(0, Stage::BeforeModel { round: 1 }, None);
    let (slow, late) = (run("slow", "k1", "ann"), run("late", "k1", "ann"));
    let mut opening = store.open(&slow, &first);
    let waited = tokio::time::timeout(std::time::Duration::from_millis(50), &mut opening).await;
    assert!(waited.is_err(), "nobody writes yet: {waited:?}");
    let refused = store.open(&late, &first).await.unwrap_err().to_string();
    assert!(refused.contains("in time"), "{refused}");

    let (shutdown, tracker) = (CancellationToken::new(), TaskTracker::new());
    tracker.spawn(worker.run(shutdown.clone()));
    tracker.close();
    opening.await.unwrap();
    for (run, is_there) in [(slow, true), (late, false)] {
        let found = RunStore::find(&store, &run.key_id, &run.id).await.unwrap();
        assert_eq!(found.is_some(), is_there, "{run:?}");
    }
    shutdown.cancel();
    tracker.wait().await;
}

/// What an operator's command changes while a request is deciding is not undone by it.
#[tokio::test]
async fn two_processes_change_a_key_and_neither_undoes_the_other() {
    let (_folder, path) = folder();
    let (daemon, cli) = (Opened::at(&path).await, Opened::at(&path).await);
    let record = key("a", 0);
    daemon.store.insert(&record).await.unwrap();
    let read = KeyStore::find(&daemon.store, &record.id).await.unwrap().unwrap();
    let mut disabled = read.policy.clone();
    disabled.enabled = false;
    let set = cli
        .store
        .set_policy(&record.id, &read.policy, &disabled, LastAdmin::MayGo)
        .await;
    assert!(matches!(set, Ok(PolicyChange::Changed(_))), "{set:?}");

    let mut renamed = read.policy.clone();
    renamed.name = "new name".to_owned();
    let set = daemon
        .store
        .set_policy(&record.id, &read.policy, &renamed, LastAdmin::MayGo)
        .await
        .unwrap();
    let PolicyChange::Conflict(now) = set else {
        panic!("{set:?}")
    };
    assert_eq!(now.policy, disabled);
    let found = KeyStore::find(&daemon.store, &record.id).await.unwrap().unwrap();
    assert_eq!(found.policy, disabled);
    cli.close().await;
    daemon.close().await;
}
