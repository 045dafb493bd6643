//! `tidegate audit verify`: a removed or altered line shows, an honest crash does not look like one.

use serde_json::json;
use tidegate_testkit::Reply;

use crate::support::{Chat, Daemon, Home, outcome};

/// A daemon that has ended, with some lines in its trail.
async fn with_lines(count: usize) -> Daemon {
    let mut daemon = Daemon::start().await;
    for number in 0..count {
        let arguments = json!({"expression": format!("{number}*2")});
        daemon
            .upstream
            .push(Reply::text("").call("c", "calculate", arguments));
        daemon.upstream.push(Reply::text("done"));
        Chat::new(&daemon, "compute").send().await.content();
    }
    assert!(daemon.terminate(std::time::Duration::from_secs(30)).await);
    daemon
}

fn verify(daemon: &Daemon) -> (Option<i32>, String) {
    let (code, stdout, stderr) = outcome(&daemon.run(&["audit", "verify"]));
    (code, format!("{stdout}{stderr}"))
}

#[tokio::test]
async fn every_way_of_tampering_shows() {
    let daemon = with_lines(5).await;
    let whole = daemon.read("logs/audit.jsonl");
    let lines: Vec<&str> = whole.lines().collect();
    assert_eq!(lines.len(), 5, "{whole}");
    let (code, said) = verify(&daemon);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("whole: 5 lines"), "{said}");
    let joined = |lines: &[&str]| lines.iter().flat_map(|line| [*line, "\n"]).collect::<String>();
    let altered = whole.replacen("\"allowed\"", "\"denied\"", 1);
    let mut moved = lines.clone();
    moved.swap(1, 2);
    let mut doubled = lines.clone();
    doubled.insert(2, lines[1]);
    for (what, text) in [
        ("a word was altered", altered),
        (
            "a line inside was removed",
            joined(&[&lines[..2], &lines[3..]].concat()),
        ),
        ("the last line was removed", joined(&lines[..4])),
        ("the first line was removed", joined(&lines[1..])),
        ("lines were moved", joined(&moved)),
        ("a line was doubled", joined(&doubled)),
        ("everything was removed", String::new()),
    ] {
        daemon.write("logs/audit.jsonl", &text);
        let (code, said) = verify(&daemon);
        assert_eq!(code, Some(1), "{what}: {said}");
        assert!(said.contains("broken:"), "{what}: {said}");
    }
    daemon.write("logs/audit.jsonl", &whole);
    assert_eq!(verify(&daemon).0, Some(0), "as it was");
}

#[tokio::test]
async fn the_trail_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let daemon = with_lines(1).await;
    for name in ["logs/audit.jsonl", "logs/models.jsonl", "logs/tools.jsonl"] {
        let mode = daemon.path(name).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_trail_that_has_no_lines_yet_is_whole() {
    let home = Home::bare();
    let (code, stdout, stderr) = home.run(&["audit", "verify"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("no lines yet"), "{stdout}");
}
