//! How much is kept, where and for how long.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::tz::TimeZone;
use serde_json::json;
use tidegate::{
    audit::{self, Trail},
    clock::SystemClock,
};
use tidegate_core::{
    caller::{Mode, Origin},
    clock::{Clock as _, Timestamp},
    id::{CallId, KeyId, RequestId, RunId, UserId},
    port::{
        AuditDecision, AuditEntry, AuditEvent, AuditTrail as _, HeldTurnStore, LineLog as _, RunStore as _,
    },
    run::{Checkpoint, RunEnd, RunRecord, RunState, Stage},
    usage::Usage,
};
use tidegate_store::Store;
use tidegate_testkit::Reply;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::printed;
use crate::{
    http::keys::id_of,
    support::{Chat, Home, Setup, http_client},
};

const SOON: Duration = Duration::from_secs(20);

/// The database of a daemon that has ended.
struct Database {
    store: Store,
    shutdown: CancellationToken,
    tracker: TaskTracker,
}

impl Database {
    async fn open(path: PathBuf) -> Self {
        let options = tidegate_store::Options {
            path,
            ..tidegate_store::Options::default()
        };
        let clock = Arc::new(SystemClock::new(TimeZone::UTC));
        let (store, worker) = Store::open(options, clock).await.unwrap();
        let (shutdown, tracker) = (CancellationToken::new(), TaskTracker::new());
        tracker.spawn(worker.run(shutdown.clone()));
        tracker.close();
        Self {
            store,
            shutdown,
            tracker,
        }
    }

    async fn close(self) {
        self.shutdown.cancel();
        self.tracker.wait().await;
    }
}

/// Puts a run into the database that ended long ago, as an earlier daemon would have left it.
async fn with_an_old_run(home: &Home, key: &str, run: &str) {
    let database = Database::open(home.folder().join("data/tidegate.db")).await;
    let at: Timestamp = "2020-01-15T06:00:00Z".parse().unwrap();
    let record = RunRecord {
        id: RunId::new(run),
        request_id: RequestId::new("req_1"),
        key_id: KeyId::new(key),
        user: UserId::of(&KeyId::new(key), None).unwrap(),
        origin: Origin::Http,
        model: "tidegate".to_owned(),
        created_at: at,
    };
    let first = Checkpoint {
        at,
        stage: Stage::BeforeModel { round: 1 },
        state: None,
    };
    let end = RunEnd {
        at,
        state: RunState::Completed,
        outcome: "answered".to_owned(),
        usage: Usage::default(),
    };
    database.store.open(&record, &first).await.unwrap();
    database.store.close(&record.id, &end).await.unwrap();
    database.close().await;
}

#[tokio::test]
async fn ended_runs_are_kept_for_as_many_days_as_are_set() {
    let run = "run_00000000000000000000000000";
    for (days, status) in [(30, 404), (0, 200)] {
        let home = Home::new(&format!(
            "[discovery]\nollama = false\n[retention]\nruns_days = {days}\n"
        ));
        let key = printed(&home, &["keys", "create", "--name", "x", "--json"]);
        with_an_old_run(&home, key["id"].as_str().unwrap(), run).await;
        let served = home.serve().await;
        let found = async || {
            let request = http_client().get(home.url(&format!("/v1/runs/{run}")));
            let answer = request.bearer_auth(key["key"].as_str().unwrap()).send().await;
            answer.unwrap().status().as_u16()
        };
        let deadline = Instant::now() + SOON;
        while found().await != status {
            assert!(Instant::now() < deadline, "{days} days: {}", served.stderr());
        }
    }
}

#[tokio::test]
async fn as_many_daily_logs_are_kept_as_are_set() {
    for (days, kept) in [(2, 2), (14, 4)] {
        let mut setup = Setup::default().config(&format!("[logs]\ndays_kept = {days}"));
        for day in 1..=3 {
            setup = setup.file(&format!("logs/tidegate.2020-01-0{day}.log"), "{}\n");
        }
        let daemon = setup.start().await;
        let names = std::fs::read_dir(daemon.path("logs")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let count = names.filter(|name| name.starts_with("tidegate.")).count();
        assert_eq!(count, kept, "{days}");
    }
}

#[tokio::test]
async fn a_mixed_turn_is_held_for_as_long_as_is_set() {
    for seconds in [60, 7_200] {
        let mut daemon = Setup::default()
            .config(&format!("[engine]\nheld_turn_s = {seconds}"))
            .start()
            .await;
        let tools = json!([{"type": "function", "function": {"name": "get_weather"}}]);
        daemon.upstream.push(
            Reply::text("")
                .call("srv", "calculate", json!({"expression": "6*7"}))
                .call("cli", "get_weather", json!({})),
        );
        let clock = SystemClock::new(TimeZone::UTC);
        let began = clock.now();
        let answer = Chat::new(&daemon, "weather and sum")
            .with("tools", tools)
            .send()
            .await;
        let ended = clock.now();
        let call = CallId::new(answer.calls().remove(0).0);
        assert!(daemon.terminate(SOON).await);
        let database = Database::open(daemon.path("data/tidegate.db")).await;
        let key = KeyId::new(id_of(&daemon.key));
        let user = UserId::of(&key, None).unwrap();
        for (at, is_held) in [
            (began + Duration::from_secs(seconds - 1), true),
            (ended + Duration::from_secs(seconds + 1), false),
        ] {
            let found =
                HeldTurnStore::find(&database.store, &key, &user, std::slice::from_ref(&call), at).await;
            assert_eq!(found.unwrap().is_some(), is_held, "{seconds} {at}");
        }
        database.close().await;
    }
}

/// A pipe where a file would be.
#[expect(
    clippy::disallowed_methods,
    reason = "a test sets the scene as a person would"
)]
fn make_pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[tokio::test]
async fn as_many_log_lines_wait_for_the_disk_as_are_set() {
    const CALLS: usize = 12;
    for (lines, most) in [(2, 5), (64, CALLS)] {
        let mut daemon = Setup::default()
            .config(&format!("[logs]\nqueue_lines = {lines}"))
            .file("logs/.gitkeep", "")
            .start()
            .await;
        // A disk that takes nothing until somebody reads.
        let path = daemon.path("logs/models.jsonl");
        make_pipe(&path);
        for _call in 0..CALLS {
            Chat::new(&daemon, "hello there").send().await.content();
        }
        let reading = tokio::task::spawn_blocking(move || fs::read_to_string(path).unwrap().lines().count());
        assert!(daemon.terminate(SOON).await);
        let written = reading.await.unwrap();
        // Those that were taken together while the pipe was opened, and as many again.
        assert!((2..=most).contains(&written), "{lines}: {written}");
        assert_eq!(written == CALLS, most == CALLS, "{lines}: {written}");
    }
}

#[tokio::test]
async fn the_trail_lies_where_it_is_said_to_and_is_put_aside_by_size() {
    let mut daemon = Setup::default()
        .config("[audit]\nfile = \"kept.jsonl\"\nrotate_bytes = 64\nrotated_kept = 1")
        .start()
        .await;
    for _call in 0..4 {
        let call = Reply::text("").call("a", "calculate", json!({"expression": "1+1"}));
        daemon.upstream.push(call);
        Chat::new(&daemon, "please compute").send().await.content();
    }
    assert!(daemon.terminate(SOON).await);
    let names = fs::read_dir(daemon.path("logs")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let trail: Vec<String> = names
        .filter(|name| ["kept.jsonl", "kept.jsonl.1", "kept.jsonl.2"].contains(&name.as_str()))
        .collect();
    assert_eq!(trail.len(), 2, "the newest and one that was put aside: {trail:?}");
    assert!(!daemon.path("logs/audit.jsonl").exists());
}

#[tokio::test]
async fn nothing_is_recorded_where_the_trail_is_switched_off() {
    for is_on in [true, false] {
        let mut daemon = Setup::default()
            .config(&format!("[audit]\nenabled = {is_on}"))
            .start()
            .await;
        let call = Reply::text("").call("a", "calculate", json!({"expression": "1+1"}));
        daemon.upstream.push(call);
        Chat::new(&daemon, "please compute").send().await.content();
        assert!(daemon.terminate(SOON).await);
        assert_eq!(daemon.path("logs/audit.jsonl").exists(), is_on);
    }
}

#[tokio::test]
async fn as_many_lines_of_the_trail_wait_as_are_set() {
    let folder = tempfile::tempdir().unwrap();
    for queue_lines in [1, 3] {
        let options = audit::Options {
            queue_lines,
            ..audit::Options::default()
        };
        // Nobody writes them.
        let (trail, _worker) = Trail::open(&options, folder.path());
        for _line in 0..5 {
            trail.record(&entry()).await.unwrap();
        }
        assert_eq!(trail.dropped(), 5 - queue_lines as u64);
    }
}

fn entry() -> AuditEntry {
    AuditEntry {
        at: "2030-01-15T06:00:00Z".parse().unwrap(),
        event: AuditEvent::ToolCall,
        request_id: None,
        run_id: RunId::new("run_1"),
        call_id: None,
        key_id: KeyId::new("a"),
        user: UserId::of(&KeyId::new("a"), None).unwrap(),
        origin: None,
        tool: "calculate".to_owned(),
        mode: Mode::ReadOnly,
        decision: AuditDecision::Allowed,
        layer: "read".to_owned(),
        code: "read".to_owned(),
        detail: String::new(),
        approval_id: None,
        approver: None,
    }
}
