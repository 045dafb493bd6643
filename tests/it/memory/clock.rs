//! The clock that tests turn is in no ordinary build.
#![cfg(not(feature = "testing"))]

use tidegate::clock::SystemClock;
use tidegate_core::clock::Clock as _;
use tidegate_testkit::Reply;

use crate::support::{Chat, Home, Setup, outcome};

/// The variable of the other build, and a file that it would follow.
const VARIABLE: &str = "TIDEGATE_TESTING_CLOCK";
const FILE: &str = "clock";
const SOME_DAY: &str = "2031-01-01T00:00:00Z";

#[test]
fn an_ordinary_build_takes_its_variable_for_an_unknown_setting() {
    let home = Home::new("[discovery]\nollama = false\n");
    home.write(FILE, SOME_DAY);
    let plain = home.run(&["config"]);
    assert_eq!((plain.0, plain.2.as_str()), (Some(0), ""));
    let home = home.env(VARIABLE, FILE);
    let (code, stdout, stderr) = home.run(&["config"]);
    assert_eq!((code, stdout), (Some(0), plain.1));
    assert!(
        stderr.contains(VARIABLE) && stderr.contains("no such setting"),
        "{stderr}"
    );
}

#[tokio::test]
async fn an_ordinary_daemon_keeps_its_own_time() {
    let daemon = Setup::default()
        .file(FILE, SOME_DAY)
        .env(VARIABLE, FILE)
        .start()
        .await;
    daemon.upstream.always(Reply::text("hello"));
    let clock = SystemClock::new(jiff::tz::TimeZone::UTC);
    let before = clock.now().as_second();
    let answer = Chat::new(&daemon, "hello there").send().await.json();
    let created = answer["created"].as_i64().unwrap();
    assert!(
        (before..=clock.now().as_second()).contains(&created),
        "{created} is not between {before} and {}",
        clock.now()
    );
    let (code, stdout, _) = outcome(&daemon.run(&["keys", "list", "--json"]));
    assert!(code == Some(0) && !stdout.contains("2031-01-01"), "{stdout}");
}
