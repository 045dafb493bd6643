//! What does not end by itself is ended.

use std::time::{Duration, Instant};

use super::*;

/// Whether any process of this machine has this text in its command line.
fn is_running(mark: &str) -> bool {
    fs::read_dir("/proc").expect("/proc").flatten().any(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let own = entry.file_name().to_string_lossy() == std::process::id().to_string();
        !own && String::from_utf8_lossy(&line).contains(mark)
    })
}

/// Waits for the kernel to bury what was killed.
async fn is_gone(mark: &str) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    while is_running(mark) {
        if Instant::now() > deadline {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    true
}

fn limited(change: impl Fn(&mut Limits)) -> Policy {
    let mut policy = Policy::default();
    policy.limits.timeout_ms = 20_000;
    change(&mut policy.limits);
    policy
}

#[tokio::test]
async fn the_deadline_ends_it_and_keeps_what_was_said() {
    for sandbox in sandboxes().await {
        let policy = limited(|limits| limits.timeout_ms = 1000);
        let outcome = sandbox
            .run(
                bash("echo before; (trap '' TERM HUP INT; exec sleep 8861) & sleep 8861"),
                &policy,
            )
            .await
            .expect("a run");
        assert!(outcome.timed_out(), "{outcome:?}");
        assert_eq!(text(&outcome.stdout), "before\n");
        assert!(is_gone("sleep\u{0}8861").await, "{:?}", sandbox.level());
    }
}

#[tokio::test]
async fn nothing_outlives_the_run() {
    for sandbox in sandboxes().await {
        for script in [
            "sleep 8862 & disown; echo done",
            "setsid sleep 8862 & echo done",
            "setsid -f setsid -f sleep 8862; echo done",
            "nohup setsid bash -c 'sleep 8862 & sleep 8862' > /dev/null 2>&1 & echo done",
        ] {
            let started = Instant::now();
            let outcome = sandbox.run(bash(script), &limited(|_| {})).await.expect("a run");
            assert_eq!(text(&outcome.stdout), "done\n", "{}", text(&outcome.stderr));
            assert_eq!(outcome.killed_by, None);
            assert!(
                started.elapsed() < Duration::from_secs(10),
                "it waited for what it should kill"
            );
            assert!(
                is_gone("sleep\u{0}8862").await,
                "{script} at {:?}",
                sandbox.level()
            );
        }
    }
}

#[tokio::test]
async fn dropping_the_future_ends_it() {
    for sandbox in sandboxes().await {
        let policy = limited(|_| {});
        let run = sandbox.run(bash("setsid sleep 8863 & sleep 8863"), &policy);
        tokio::select! {
            outcome = run => panic!("it ended: {outcome:?}"),
            () = async { while !is_running("sleep\u{0}8863") { tokio::time::sleep(Duration::from_millis(5)).await } } => {}
        }
        assert!(is_gone("sleep\u{0}8863").await, "{:?}", sandbox.level());
    }
}

#[tokio::test]
async fn a_fork_bomb_is_bounded() {
    for sandbox in sandboxes().await {
        let policy = limited(|limits| limits.processes = 60);
        let outcome = sandbox
            // More than it may and no more than a machine can bear, should the bound not hold.
            .run(bash("for i in $(seq 400); do sleep 8864 & done; wait"), &policy)
            .await
            .expect("a run");
        // The kernel refuses the next process, or everything was counted and killed.
        assert!(
            outcome.killed_by == Some(Bound::Processes) || outcome.exit != Exit::Code(0),
            "{outcome:?}"
        );
        assert!(is_gone("sleep\u{0}8864").await, "{:?}", sandbox.level());
    }
}

#[tokio::test]
async fn memory_processor_and_file_size_are_bounded() {
    for sandbox in sandboxes().await {
        let policy = limited(|limits| {
            limits.memory_bytes = 200 << 20;
            limits.cpu_s = 1;
            limits.file_bytes = 1 << 20;
        });
        // One process asks for too much.
        let one = "x=$(head -c 900000000 /dev/zero | tr '\\0' x); echo grown";
        // None asks for too much, all of them together do.
        let many = "for i in 1 2 3 4 5; do (x=$(head -c 90000000 /dev/zero | tr '\\0' x); sleep 60) & done; wait; echo grown";
        for script in [one, many] {
            let outcome = sandbox.run(bash(script), &policy).await.expect("a run");
            assert!(!text(&outcome.stdout).contains("grown"), "{script} {outcome:?}");
            assert!(!outcome.timed_out(), "{script} {outcome:?}");
        }
        let outcome = sandbox
            .run(bash("while :; do :; done"), &policy)
            .await
            .expect("a run");
        assert_eq!(outcome.killed_by, Some(Bound::Cpu), "{outcome:?}");
        let outcome = sandbox
            .run(
                Task::program("/bin/dd", ["if=/dev/zero", "of=/tmp/big", "bs=1M", "count=9"]),
                &policy,
            )
            .await
            .expect("a run");
        assert_ne!(outcome.exit, Exit::Code(0), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_flood_is_cut_and_ended() {
    for sandbox in sandboxes().await {
        let policy = limited(|limits| limits.output_bytes = 10_000);
        let outcome = sandbox.run(bash("yes"), &policy).await.expect("a run");
        assert_eq!(outcome.killed_by, Some(Bound::Output), "{:?}", outcome.exit);
        assert!(outcome.stdout.is_cut && outcome.stdout.bytes.len() == 10_000);
        // A little more than is kept is no flood.
        let outcome = sandbox
            .run(bash("yes | head -c 20000; yes | head -c 20000 >&2"), &policy)
            .await
            .expect("a run");
        assert_eq!((outcome.killed_by, outcome.exit), (None, Exit::Code(0)));
        assert!(outcome.is_cut() && outcome.stderr.bytes.len() == 10_000);
    }
}
