//! Programs over their pipes: the ordinary life of a server.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tidegate_core::{
    caller::Mode,
    tool::{FailureCode, ToolMode, ToolResult},
};
use tidegate_gate::ToolBox;
use tidegate_mcp::{Event, Kind, Options, State};

use crate::desk::{Desk, entry, message, options, put, text};

#[tokio::test]
async fn connects_lists_and_calls_through_the_gate() {
    let desk = Desk::with(json!({"a": entry(&[])}), options()).await;
    let status = desk.ready("a").await;
    assert_eq!(status.protocol.as_deref(), Some("2025-11-25"));
    assert_eq!(status.software.as_deref(), Some("scripted 1"));
    assert!(status.tools.contains(&"mcp__a__echo".to_owned()), "{status:?}");
    let spec = desk.spec("mcp__a__echo").unwrap();
    assert_eq!(spec.mode, ToolMode::Mcp);
    assert_eq!(spec.parameters_schema()["properties"]["text"]["type"], "string");
    assert_eq!(text(&desk.call("mcp__a__echo", json!({"text": 7})).await), "7");
    let result = desk.call("mcp__a__fail", json!({})).await;
    assert_eq!(result, ToolResult::failed(FailureCode::Unsuccessful, "it broke"));
    let result = desk.call("mcp__a__refuse", json!({})).await;
    assert!(
        message(&result).contains("does not take these arguments: not like this"),
        "{result:?}"
    );
    // Its word that it only reads is not taken, so a key in readonly mode is asked about.
    let asked = desk
        .call_as("mcp__a__echo", json!({"text": "x"}), Mode::ReadOnly)
        .await;
    assert_eq!(asked.status(), "needs_approval");
    // And no secret leaves in its arguments, in no mode.
    let refused = desk
        .call("mcp__a__echo", json!({"text": "sk-very-secret-value-0123"}))
        .await;
    assert_eq!(refused.status(), "refused");
    desk.stop().await;
}

#[tokio::test]
async fn a_trusted_hint_lets_a_reader_through_and_secrets_still_stay() {
    let mut trusted = entry(&[]);
    trusted["trust_read_only"] = true.into();
    let desk = Desk::with(json!({"a": trusted}), options()).await;
    desk.ready("a").await;
    let result = desk
        .call_as("mcp__a__echo", json!({"text": "x"}), Mode::ReadOnly)
        .await;
    assert_eq!(text(&result), "x");
    let asked = desk
        .call_as("mcp__a__environment", json!({}), Mode::ReadOnly)
        .await;
    assert_eq!(asked.status(), "needs_approval");
    let arguments = json!({"text": "sk-very-secret-value-0123"});
    let refused = desk.call_as("mcp__a__echo", arguments, Mode::ReadOnly).await;
    assert_eq!(
        refused.status(),
        "refused",
        "a server that only reads is told all the same"
    );
    desk.stop().await;
}

#[tokio::test]
async fn addresses_in_arguments_pass_the_guard() {
    let desk = Desk::with(json!({"a": entry(&[])}), options()).await;
    desk.ready("a").await;
    for address in [
        "http://127.0.0.1:8080/",
        "http://169.254.169.254/latest",
        "https://[::1]/",
        "ftp://example.org/",
    ] {
        let result = desk.call("mcp__a__echo", json!({"text": address})).await;
        assert_eq!(result.status(), "refused", "{address}: {result:?}");
    }
    let result = desk
        .call("mcp__a__echo", json!({"text": "see http://127.0.0.1/ there"}))
        .await;
    assert_eq!(result.status(), "ok");
    desk.stop().await;
}

#[tokio::test]
async fn a_program_gets_its_own_variables_and_folder_and_no_others() {
    let mut server = entry(&[]);
    server["env"] = json!({"API_KEY": "env:API_KEY", "MINE": "1", "LANG": "de"});
    let desk = Desk::with(json!({"a": server}), options()).await;
    desk.ready("a").await;
    let result = desk.call("mcp__a__environment", json!({})).await;
    let folder = desk.folder.path().canonicalize().unwrap();
    let expected = format!(
        "API_KEY=k-1234567890\nLANG=de\nMINE=1\nPATH=/usr/bin:/bin\n{}",
        folder.display()
    );
    assert_eq!(text(&result), expected);
    desk.stop().await;
}

#[tokio::test]
async fn a_program_that_ends_is_started_again_and_says_why_it_ended() {
    let mut server = entry(&["dies-at-start"]);
    server["env"] = json!({"API_KEY": "env:API_KEY"});
    let desk = Desk::with(json!({"a": entry(&[]), "b": server}), options()).await;
    desk.ready("a").await;
    let down = desk
        .until("b", |status| matches!(status.state, State::Down { .. }))
        .await;
    let State::Down { reason, .. } = &down.state else {
        panic!();
    };
    assert!(
        reason.ends_with("it said: the key [secret] is not valid"),
        "{reason}"
    );
    let result = desk.call("mcp__a__crash", json!({})).await;
    assert!(
        message(&result).contains("Whether it did anything is not known"),
        "{result:?}"
    );
    desk.until("a", |status| status.state == State::Ready && status.restarts == 1)
        .await;
    assert_eq!(
        text(&desk.call("mcp__a__echo", json!({"text": "back"})).await),
        "back"
    );
    desk.until("b", |status| status.restarts > 1).await;
    desk.stop().await;
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_called_off_at_the_server() {
    let mut server = entry(&[]);
    server["timeout_ms"] = 200.into();
    let desk = Desk::with(json!({"a": server}), options()).await;
    desk.ready("a").await;
    let result = desk.call("mcp__a__sleep", json!({"ms": 60_000})).await;
    assert_eq!(result, ToolResult::TimedOut { after_ms: 200 });
    let dropped = tokio::time::timeout(
        Duration::from_millis(50),
        desk.call("mcp__a__sleep", json!({"ms": 60_000})),
    );
    assert!(dropped.await.is_err());
    let mut count = String::new();
    while count != "2" {
        count = text(&desk.call("mcp__a__cancelled", json!({})).await).to_owned();
    }
    desk.stop().await;
}

#[tokio::test]
async fn progress_becomes_events_of_the_call() {
    let desk = Desk::with(json!({"a": entry(&[])}), options()).await;
    desk.ready("a").await;
    let mut events = desk.hub.events();
    assert_eq!(text(&desk.call("mcp__a__progress", json!({})).await), "done");
    let mut steps = Vec::new();
    while let Ok(Event { server, kind }) = events.try_recv() {
        if let Kind::Progress {
            run,
            call,
            progress,
            total,
            message,
        } = kind
        {
            assert_eq!(
                (server.as_str(), run.as_str(), call.as_str(), total),
                ("a", "r1", "c1", Some(3.0))
            );
            steps.push((progress, message.unwrap()));
        }
    }
    assert_eq!(
        steps,
        [
            (1.0, "step 1".to_owned()),
            (2.0, "step 2".to_owned()),
            (3.0, "step 3".to_owned())
        ]
    );
    desk.stop().await;
}

#[tokio::test]
async fn what_a_server_asks_of_us_is_refused_with_words() {
    let desk = Desk::with(json!({"a": entry(&[])}), options()).await;
    desk.ready("a").await;
    let result = desk.call("mcp__a__ask", json!({})).await;
    let lines: Vec<&str> = text(&result).lines().collect();
    assert!(lines[0].contains("sampling is not allowed"), "{lines:?}");
    assert!(lines[1].contains("\"decline\""), "{lines:?}");
    assert!(
        lines[2].contains("a look at the file system is not allowed"),
        "{lines:?}"
    );
    desk.stop().await;
}

#[tokio::test]
async fn resources_and_prompts_are_listed_and_read() {
    let desk = Desk::with(json!({"a": entry(&[])}), options()).await;
    desk.ready("a").await;
    let result = desk.call("mcp_resources", json!({})).await;
    assert_eq!(text(&result), "Server `a`:\n- demo://one (one, text/plain)");
    let result = desk.call("mcp_resources", json!({"uri": "demo://one"})).await;
    assert_eq!(text(&result), "[resource demo://one]\nthe text of one");
    let result = desk.call("mcp_prompts", json!({"server": "a"})).await;
    assert_eq!(text(&result), "Server `a`:\n- greet (who)");
    let result = desk
        .call(
            "mcp_prompts",
            json!({"server": "a", "name": "greet", "arguments": {"who": "Ann"}}),
        )
        .await;
    assert_eq!(text(&result), "user: Greet Ann.");
    let result = desk.call("mcp_prompts", json!({"server": "z"})).await;
    assert!(message(&result).contains("there are a"), "{result:?}");
    desk.stop().await;
}

#[tokio::test]
async fn a_changed_file_takes_effect_and_calls_finish_on_the_old_connection() {
    let desk = Desk::with(json!({"a": entry(&[]), "b": entry(&[])}), options()).await;
    desk.ready("a").await;
    desk.ready("b").await;
    let mut changed = entry(&[]);
    changed["tools"] = json!({"deny": ["sleep"]});
    let replaced = json!({"a": changed, "c": entry(&["banner"]), "bad": {"command": "x", "env": {"K": "env:NOT_THERE"}}});
    let slow = desk.call("mcp__a__sleep", json!({"ms": 800}));
    let reload = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        desk.rewrite(&replaced);
        desk.hub.reload().await.unwrap()
    };
    let (result, reloaded) = tokio::join!(slow, reload);
    assert_eq!(text(&result), "slept");
    assert_eq!(reloaded.started, ["a", "c"]);
    assert_eq!(reloaded.stopped, ["a", "b"]);
    assert_eq!(reloaded.problems.len(), 1);
    assert_eq!(
        reloaded.problems[0].to_string(),
        "server `bad`, `env.K`: `env:NOT_THERE` is not set; set it"
    );
    desk.ready("a").await;
    desk.ready("c").await;
    assert!(desk.spec("mcp__a__sleep").is_none());
    assert!(desk.spec("mcp__b__echo").is_none());
    assert_eq!(
        text(&desk.call("mcp__c__echo", json!({"text": "hi"})).await),
        "hi"
    );
    let again = desk.hub.reload().await.unwrap();
    assert_eq!(
        (again.kept.len(), again.started.len(), again.stopped.len()),
        (2, 0, 0)
    );
    desk.stop().await;
}

#[tokio::test]
async fn the_file_is_followed_and_a_broken_one_changes_nothing() {
    let watching = Options {
        watch_ms: 20,
        ..options()
    };
    let desk = Desk::with(json!({"a": entry(&[])}), watching).await;
    desk.ready("a").await;
    put(&desk.folder.path().join("mcp_servers.json"), "{\"mcpServers\": {");
    assert!(desk.hub.reload().await.is_err());
    assert_eq!(desk.status("a").state, State::Ready);
    desk.rewrite(&json!({"b": entry(&[])}));
    let mut specs = desk.tools.specs();
    while !specs.iter().any(|spec| spec.name == "mcp__b__echo") {
        tokio::time::sleep(Duration::from_millis(5)).await;
        specs = desk.tools.specs();
    }
    assert!(desk.spec("mcp__a__echo").is_none());
    desk.stop().await;
}

#[tokio::test]
async fn programs_end_with_the_client() {
    let desk = Desk::with(json!({"a": entry(&[])}), options()).await;
    desk.ready("a").await;
    let folder = desk.folder.path().to_owned();
    let running = || {
        std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .any(|process| std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == folder))
    };
    assert!(running());
    let kept = desk.stop().await;
    assert!(!running(), "{}", kept.path().display());
}

#[tokio::test]
async fn sixteen_calls_run_at_once() {
    let desk = Arc::new(Desk::with(json!({"a": entry(&[])}), options()).await);
    desk.ready("a").await;
    let began = std::time::Instant::now();
    let calls: Vec<_> = (0..16)
        .map(|_| desk.call("mcp__a__sleep", json!({"ms": 500})))
        .collect();
    for result in futures_util::future::join_all(calls).await {
        assert_eq!(text(&result), "slept");
    }
    // One after the other they would take eight seconds.
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    Arc::into_inner(desk).unwrap().stop().await;
}
