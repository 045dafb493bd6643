//! What the gate is told by its settings, asked of `tidegate explain`.

use serde_json::{Value, json};
use tidegate_testkit::Reply;

use super::result;
use crate::support::{Home, Setup};

const ALLOWED: i32 = 0;
const ASKED: i32 = 3;
const REFUSED: i32 = 4;

/// A call, the mode, what is decided about it usually, lines of the section `[gate]`, and what is decided then.
type Row = (&'static str, Value, &'static str, i32, &'static str, i32);

fn files() -> Vec<Row> {
    let read = json!({"path": "notes.txt"});
    let write = |path: &str| json!({"path": path, "content": "hello"});
    let shut = "read_paths = [\"public\"]";
    let drafts = "no_prompt_paths = [\"drafts\"]";
    let letters = "no_prompt_paths = [\"drafts\"]\nprompt_paths = [\"drafts/letters\"]";
    let (draft, letter) = (write("drafts/a.md"), write("drafts/letters/a.md"));
    let small = "max_write_bytes = 4";
    vec![
        ("read_text", read, "readonly", ALLOWED, shut, ASKED),
        ("write_file", draft, "readonly", ASKED, letters, ALLOWED),
        ("write_file", letter.clone(), "readonly", ASKED, drafts, ALLOWED),
        ("write_file", letter, "readonly", ASKED, letters, ASKED),
        ("write_file", write("a.md"), "full-auto", ALLOWED, small, REFUSED),
    ]
}

fn programs_and_addresses() -> Vec<Row> {
    let run = |command: &str| json!({"command": command});
    let page = |url: &str| json!({"url": url});
    let (wc, ls, own) = (run("wc notes.txt"), run("ls notes.txt"), run("tidetable bergen"));
    let (inside, outside) = (page("http://192.168.7.9/"), page("http://93.184.215.14/"));
    let (only_ls, short) = ("allow_commands = [\"ls*\"]", "max_command_chars = 5");
    let (file, private) = ("programs_file = \"own.toml\"", "ssrf_allow_private = true");
    let docs = "allowed_domains = [\"docs.example\"]";
    vec![
        ("execute_shell", wc, "readonly", ALLOWED, only_ls, REFUSED),
        ("execute_shell", ls.clone(), "readonly", ALLOWED, only_ls, ALLOWED),
        ("execute_shell", ls, "readonly", ALLOWED, short, REFUSED),
        ("execute_shell", own, "readonly", ASKED, file, ALLOWED),
        ("get_page_title", inside, "full-auto", REFUSED, private, ALLOWED),
        ("get_page_title", outside, "full-auto", ALLOWED, docs, REFUSED),
    ]
}

#[test]
fn the_gate_decides_by_what_it_is_told() {
    let home = Home::new("");
    home.write("knowledge-bank/notes.txt", "alpha\n");
    home.write("knowledge-bank/public/notes.txt", "alpha\n");
    home.write("knowledge-bank/drafts/letters/a.md", "dear\n");
    home.write(
        "own.toml",
        "[[program]]\nname = \"tidetable\"\noperands = [\"text\"]\naccept = [\"tidetable bergen\"]\n\
         refuse = [\"tidetable -x\"]\n",
    );
    for (tool, arguments, mode, usual, lines, then) in files().into_iter().chain(programs_and_addresses()) {
        let arguments = arguments.to_string();
        let command = ["explain", "--tool", tool, "--args", &arguments, "--mode", mode];
        for (lines, expected) in [("", usual), (lines, then)] {
            home.configure(&format!("[discovery]\nollama = false\n[gate]\n{lines}"));
            let (code, stdout, stderr) = home.run(&command);
            assert_eq!(code, Some(expected), "{command:?} {lines}: {stdout}{stderr}");
        }
    }
}

#[tokio::test]
async fn programs_read_the_folders_that_are_set() {
    let shared = tempfile::tempdir().unwrap();
    let file = shared.path().canonicalize().unwrap().join("table.txt");
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/LICENSE"), &file).unwrap();
    let code = format!("print(open({:?}).read())", file.display().to_string());
    for (lines, is_read) in [
        (String::new(), false),
        (
            format!("readable = [{:?}]", file.parent().unwrap().display()),
            true,
        ),
    ] {
        let daemon = Setup::default()
            .config(&format!("[sandbox]\n{lines}"))
            .start()
            .await;
        let key = daemon.writer_key().await;
        daemon.upstream.always(Reply::text("done"));
        let text = result(&daemon, &key, "run_sandboxed", json!({"code": code})).await;
        assert_eq!(text.contains("Apache License"), is_read, "{text}");
    }
}
