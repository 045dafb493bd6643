//! `tidegate mcp`, as a person types it.

use serde_json::{Value, json};

use super::{SERVER, file, scripted};
use crate::support::Home;

fn home() -> Home {
    let home = Home::new("[discovery]\nollama = false\n");
    home.write("server.py", SERVER);
    home.write("words.txt", "Says the text.");
    home
}

#[test]
fn servers_are_added_listed_tested_and_removed() {
    let home = home();
    let (_, text, _) = home.run(&["mcp", "list"]);
    assert!(
        text.contains("No server stands in") && text.contains("mcp add"),
        "{text}"
    );
    let add = [
        "mcp",
        "add",
        "lab",
        "--env",
        "TOKEN=plain",
        "--trust-read-only",
        "--",
        "python3",
        "server.py",
    ];
    let (code, text, stderr) = home.run(&add);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(text.contains("mcp test lab"), "{text}");
    let (code, _, stderr) = home.run(&add);
    assert!(code == Some(1) && stderr.contains("already"), "{stderr}");
    let remote = [
        "mcp",
        "add",
        "far",
        "--url",
        "https://mcp.example.org/mcp",
        "--header",
        "X-Team=office",
        "--disabled",
    ];
    assert_eq!(home.run(&remote).0, Some(0));

    let (_, text, _) = home.run(&["mcp", "list"]);
    let lab = text.lines().find(|line| line.starts_with("lab")).unwrap();
    assert!(
        lab.contains("stdio") && lab.contains("read-only") && lab.contains("python3 server.py"),
        "{text}"
    );
    let (code, text, stderr) = home.run(&["mcp", "test", "lab"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        text.contains("scripted 1.0") && text.contains("mcp__lab__echo") && text.contains("Says the text"),
        "{text}"
    );
    let (_, text, _) = home.run(&["mcp", "list", "--json"]);
    let list: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(list["servers"][0]["name"], "far");
    assert_eq!(list["servers"][1]["tools_accepted"], 7, "{list}");
    let (_, text, _) = home.run(&["mcp", "test", "lab", "--json"]);
    let tested: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(tested["tools"][0]["name"], "mcp__lab__echo", "{tested}");

    home.write("words.txt", "Does something else.");
    let (code, text, _) = home.run(&["mcp", "test", "lab"]);
    assert!(
        code == Some(0) && text.contains("waits for `tidegate mcp approve lab`"),
        "{text}"
    );
    // Nobody types "yes".
    let (code, text, stderr) = home.run(&["mcp", "approve", "lab"]);
    assert!(
        code == Some(1) && text.contains("Does something else"),
        "{text}{stderr}"
    );
    assert_eq!(
        home.run(&["mcp", "approve", "lab", "mcp__lab__echo", "--yes"]).0,
        Some(0)
    );
    let (_, text, _) = home.run(&["mcp", "approve", "lab", "--yes"]);
    assert!(text.contains("Nothing has changed"), "{text}");

    assert_eq!(home.run(&["mcp", "remove", "lab"]).0, Some(0));
    let (code, _, stderr) = home.run(&["mcp", "remove", "lab"]);
    assert!(
        code == Some(1) && stderr.contains("there is no server `lab`"),
        "{stderr}"
    );
    let (_, text, _) = home.run(&["mcp", "list"]);
    assert!(!text.contains("lab") && text.contains("far"), "{text}");
}

#[test]
fn what_cannot_be_done_says_why() {
    let home = home();
    home.write(
        "mcp_servers.json",
        &file(&json!({
            "lab": scripted(json!({"env": {"TOKEN": "env:NO_SUCH_VARIABLE"}})),
            "gone": {"command": "no-such-program-of-ours"},
            "off": scripted(json!({"env": {}, "enabled": false})),
        })),
    );
    let (code, _, stderr) = home.run(&["mcp", "test", "lab"]);
    assert!(code == Some(1) && stderr.contains("NO_SUCH_VARIABLE"), "{stderr}");
    let (code, _, stderr) = home.run(&["mcp", "test", "gone"]);
    assert!(
        code == Some(1) && stderr.contains("no-such-program-of-ours"),
        "{stderr}"
    );
    let (code, _, stderr) = home.run(&["mcp", "test", "nobody"]);
    assert!(
        code == Some(1) && stderr.contains("has no server `nobody`"),
        "{stderr}"
    );
    let (code, _, stderr) = home.run(&["mcp", "login", "off"]);
    assert!(code == Some(1) && stderr.contains("oauth"), "{stderr}");
    let (code, text, _) = home.run(&["mcp", "logout", "off"]);
    assert!(code == Some(0) && text.contains("no login"), "{text}");
    let (code, _, stderr) = home.run(&["mcp", "add", "x"]);
    assert!(code == Some(2) && stderr.contains("PROGRAM"), "{stderr}");
    // One that is switched off can be tried all the same.
    assert_eq!(home.run(&["mcp", "test", "off"]).0, Some(0));
    let (_, text, _) = home.run(&["mcp", "list"]);
    assert!(text.contains("NO_SUCH_VARIABLE"), "{text}");
    home.configure("[discovery]\nollama = false\n[mcp]\nenabled = false\n");
    let (code, _, stderr) = home.run(&["mcp", "list"]);
    assert!(code == Some(1) && stderr.contains("mcp.enabled"), "{stderr}");
}
