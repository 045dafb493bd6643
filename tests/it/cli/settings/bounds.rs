//! Bounds that show only under load, over time or after a crash.

use std::{
    collections::HashSet,
    sync::Mutex,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tidegate_testkit::Reply;

use crate::{
    http::keys::id_of,
    support::{Chat, Daemon, Setup},
};

const SOON: Duration = Duration::from_secs(20);

/// A hook that waits until `$2` of it have met in the folder `$1`, stays a moment longer, so that one more would
/// be seen, and notes how many are there.
const MEET: &str = "cat > /dev/null; cd \"$1\"; mkdir -p here; touch here/$$; tries=0
while [ ! -e met ] && [ $(ls here | wc -l) -lt $2 ] && [ $tries -lt 100 ]; do sleep 0.05; tries=$((tries+1)); done
touch met; sleep 0.2; ls here | wc -l >> counts; rm here/$$; echo '{\"decision\":\"allow\"}'\n";

#[tokio::test]
async fn as_many_reads_run_side_by_side_as_are_set() {
    for width in [1, 2, 4] {
        let folder = tempfile::tempdir().unwrap();
        let daemon = Setup::default()
            .file("meet.sh", MEET)
            .config(&format!(
                "[engine]\nparallel_reads_max = {width}\n[[hooks]]\nname = \"meet\"\nwhen = \"before_tool\"\n\
                 timeout_ms = 20000\ncommand = [\"/bin/sh\", \"meet.sh\", {:?}, \"{width}\"]",
                folder.path().display()
            ))
            .start()
            .await;
        let calls = (0..4).fold(Reply::text(""), |reply, n| {
            reply.call(
                format!("c{n}"),
                "calculate",
                json!({"expression": format!("40+{n}")}),
            )
        });
        daemon.upstream.push(calls);
        daemon.upstream.push(Reply::text("four sums"));
        assert_eq!(Chat::new(&daemon, "sums").send().await.content(), "four sums");
        let counts = std::fs::read_to_string(folder.path().join("counts")).unwrap();
        let counts: Vec<usize> = counts.lines().map(|line| line.trim().parse().unwrap()).collect();
        assert_eq!(
            (counts.len(), counts.iter().max()),
            (4, Some(&width)),
            "{counts:?}"
        );
    }
}

#[tokio::test]
async fn a_checkpoint_that_is_larger_than_is_set_is_kept_without_its_state() {
    for (bytes, has_state) in [(1 << 20, true), (64, false)] {
        let mut daemon = Setup::default()
            .config(&format!("[engine]\ncheckpoint_bytes_max = {bytes}"))
            .start()
            .await;
        daemon.upstream.push(Reply::endless(100));
        let question = "how high is the water ".repeat(20);
        let open = Chat::new(&daemon, &question).stream().open().await;
        let run = open.headers()["x-run-id"].to_str().unwrap().to_owned();
        assert!(daemon.upstream.wait_open(1, SOON).await);
        daemon.kill();
        drop(open);
        daemon.launch().await;
        let (_, run) = daemon.get(&format!("/v1/runs/{run}")).await;
        assert_eq!(run["status"], "interrupted");
        // What the call that was cut has read is known from the state alone.
        let prompt = run["usage"]["prompt_tokens"].as_u64().unwrap();
        assert_eq!(prompt > 0, has_state, "{bytes}: {run}");
    }
}

/// How long 16 questions take whose first try fails.
async fn retried(daemon: &Daemon) -> Vec<Duration> {
    let asks = (0..16).map(|n| async move {
        let began = Instant::now();
        let answer = Chat::new(daemon, &format!("question {n}")).send().await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        began.elapsed()
    });
    join_all(asks).await
}

#[tokio::test]
async fn retries_wait_as_unevenly_as_is_set() {
    const WAIT: Duration = Duration::from_secs(1);
    for ratio in ["0.0", "1.0"] {
        let daemon = Setup::default()
            .config(&format!(
                "[models]\nretry_initial_delay_ms = 1000\nretries_max = 1\nbreaker_failures = 0\n\
                 retry_jitter_ratio = {ratio}"
            ))
            .start()
            .await;
        let mut fastest = Duration::MAX;
        for _round in 0..4 {
            let seen = Mutex::new(HashSet::new());
            daemon.upstream.respond_with(move |body| {
                let question = body["messages"].to_string();
                if seen.lock().unwrap().insert(question) {
                    Reply::status(503, json!({"error": {"message": "busy"}}))
                } else {
                    Reply::text("now")
                }
            });
            fastest = retried(&daemon).await.into_iter().fold(fastest, Duration::min);
            if fastest < WAIT.mul_f64(0.8) {
                break;
            }
        }
        // With the usual ratio no wait is shorter than nine tenths, and some are shorter than the whole.
        assert_eq!(fastest >= WAIT, ratio == "0.0", "{ratio}: {fastest:?}");
        assert_eq!(
            fastest < WAIT.mul_f64(0.8),
            ratio == "1.0",
            "{ratio}: {fastest:?}"
        );
    }
}

/// How many handles the daemon has of its database's file.
fn handles(daemon: &Daemon) -> usize {
    let files = std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap();
    files
        .filter_map(|file| std::fs::read_link(file.ok()?.path()).ok())
        .filter(|path| path.ends_with("data/tidegate.db"))
        .count()
}

/// As many handles as there are after many reads side by side, time after time, until they are `enough`.
async fn handles_under_load(readers: usize, enough: impl Fn(usize, usize) -> bool) -> usize {
    let daemon = Setup::default()
        .config(&format!(
            "[store]\nreaders_max = {readers}\n[kb]\nenabled = false"
        ))
        .start()
        .await;
    let deadline = Instant::now() + SOON;
    for round in 1.. {
        let reads = (0..32).map(|_| daemon.get("/v1/admin/keys?limit=100"));
        assert!(join_all(reads).await.iter().all(|(status, _)| *status == 200));
        let count = handles(&daemon);
        if enough(round, count) {
            return count;
        }
        assert!(Instant::now() < deadline, "{readers}: {count}");
    }
    unreachable!("the rounds have no end")
}

#[tokio::test]
async fn the_database_is_read_over_as_many_connections_as_are_set() {
    let one = handles_under_load(1, |round, _| round == 5).await;
    handles_under_load(3, |_, count| count == one + 2).await;
    let three = handles_under_load(3, |round, _| round == 5).await;
    assert!(three <= one + 2, "{three}, and with one reader {one}");
}

/// What a crash after one small call counts as spent.
async fn estimated(block: u64) -> u64 {
    let mut daemon = Setup::default()
        .config(&format!(
            "[store]\nquota_block_tokens = {block}\nflush_interval_ms = 3600000"
        ))
        .start()
        .await;
    let key = daemon
        .make_key(json!({"name": "q", "scopes": ["chat"], "tokens_per_day": 1_000_000}))
        .await;
    let chat = Chat::new(&daemon, "hello there").key(&key);
    assert_eq!(chat.with("max_tokens", json!(7)).send().await.status, 200);
    daemon.kill();
    daemon.launch().await;
    let (status, usage) = daemon.get(&format!("/v1/admin/keys/{}/usage", id_of(&key))).await;
    assert_eq!(status, 200, "{usage}");
    let days = usage["data"].as_array().unwrap();
    days.iter()
        .map(|day| day["estimated_tokens"].as_u64().unwrap())
        .sum()
}

#[tokio::test]
async fn a_crash_counts_what_was_reserved_a_block_at_a_time() {
    let (small, large) = (estimated(100).await, estimated(30_000).await);
    assert!((100..2_000).contains(&small), "{small}");
    assert!((30_000..32_000).contains(&large), "{large}");
}

#[tokio::test]
async fn an_answer_that_nothing_bounds_is_bounded_where_there_is_a_quota() {
    let daemon = Setup::default()
        .config("[engine]\nquota_answer_tokens_max = 321")
        .start()
        .await;
    let key = daemon
        .make_key(json!({"name": "q", "scopes": ["chat"], "tokens_per_day": 100_000}))
        .await;
    for (key, expected) in [(&key, json!(321)), (&daemon.key, Value::Null)] {
        Chat::new(&daemon, "hello there").key(key).send().await.content();
        let asked = daemon.upstream.chats().pop().unwrap();
        assert_eq!(asked["max_tokens"], expected, "{asked}");
    }
}
