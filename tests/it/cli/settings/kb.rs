//! `[kb]`: what is indexed, how it is read, and how searches come out.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate_testkit::Embeddings;

use super::printed;
use crate::support::{Chat, Daemon, Home, Setup};

/// How long something in the background may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Indexes with these lines: `kb index --json`.
fn indexed(home: &Home, config: &str) -> Value {
    home.configure(&format!("[discovery]\nollama = false\n{config}"));
    printed(home, &["kb", "index", "--json"])
}

/// The codes of what could not be read.
fn failures(index: &Value) -> Vec<&str> {
    let failed = index["failed"].as_array().unwrap().iter();
    failed
        .map(|document| document["code"].as_str().unwrap_or_default())
        .collect()
}

/// A search laid open, with these lines, over an index as it is.
fn explained(home: &Home, config: &str, query: &str) -> Value {
    home.configure(&format!("[discovery]\nollama = false\n{config}"));
    printed(home, &["kb", "explain", query, "--json"])
}

/// The documents of the answer, best first.
fn documents(explained: &Value) -> Vec<&str> {
    let relevant = usize::try_from(explained["relevant"].as_u64().unwrap()).unwrap();
    let passages = explained["passages"].as_array().unwrap().iter();
    passages
        .take(relevant)
        .map(|passage| passage["passage"]["document"].as_str().unwrap())
        .collect()
}

/// Everything that authority did, in one text.
fn moves(explained: &Value) -> String {
    let passages = explained["passages"].as_array().unwrap().iter();
    passages
        .map(|passage| passage["authority_moves"].to_string())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bank_that_is_switched_off_is_neither_searched_nor_offered() {
    for (config, offered) in [("", true), ("[kb]\nenabled = false", false)] {
        let daemon = Setup::default().config(config).start().await;
        Chat::new(&daemon, "please look up the fees")
            .send()
            .await
            .content();
        let tools = daemon.upstream.chats().pop().unwrap()["tools"].to_string();
        assert_eq!(
            tools.contains("search_knowledge_base"),
            offered,
            "{config}: {tools}"
        );
    }
    let home = Home::new("[kb]\nenabled = false\n");
    let (code, _, stderr) = home.run(&["kb", "status"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("kb.enabled"), "{stderr}");
}

#[test]
fn what_is_indexed_follows_patterns_and_bounds() {
    for (config, count, failed, problem) in [
        ("", 3, &[][..], ""),
        ("[kb]\nignore = [\"drafts/**\"]\n", 2, &[], ""),
        ("[kb]\nfile_bytes_max = 60\n", 2, &["too_large"], ""),
        ("[kb]\nfiles_max = 1\n", 1, &[], "kb.files_max"),
    ] {
        let home = Home::new("");
        home.write("knowledge-bank/fees.md", "# Fees\n\nA card costs four euros.\n");
        home.write("knowledge-bank/drafts/plan.md", "# Plan\n\nMore chairs.\n");
        let long = format!("# Hours\n\n{}\n", "Open from eight to four. ".repeat(8));
        home.write("knowledge-bank/hours.md", &long);
        let index = indexed(&home, config);
        assert_eq!(failures(&index), failed, "{config}: {index}");
        assert_eq!(index["status"]["documents"], count, "{config}: {index}");
        let problems = index["status"]["problems"].to_string();
        assert_eq!(
            problems.contains("kb.files_max"),
            !problem.is_empty(),
            "{config}: {index}"
        );
    }
}

#[test]
fn the_process_that_reads_a_file_has_the_time_and_the_memory_that_are_set() {
    // Little text, in more bytes than the last process may have.
    let page = format!(
        "<!doctype html><html><body><h1>Fees</h1><p>A card costs four euros.</p><!--{}--></body></html>",
        "x".repeat(8 << 20)
    );
    for (config, failed) in [
        ("", &[][..]),
        ("[kb]\nparse_timeout_ms = 1\n", &["parser_too_slow"]),
        ("[kb]\nparse_memory_mb = 4\n", &["parser_out_of_memory"]),
    ] {
        let home = Home::new("");
        home.write("knowledge-bank/fees.html", &page);
        let index = indexed(&home, config);
        assert_eq!(failures(&index), failed, "{config}: {index}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_many_files_are_worked_on_at_once_as_are_set() {
    for (workers, widest) in [(1, 1), (3, 3)] {
        let server = Embeddings::start(16).await.unwrap();
        server.slow("", Duration::from_millis(400));
        let home = Home::new("");
        for name in ["a", "b", "c", "d", "e", "f"] {
            home.write(
                &format!("knowledge-bank/{name}.md"),
                &format!("# {name}\n\nText of {name}.\n"),
            );
        }
        let index = indexed(
            &home,
            &format!(
                "[kb]\nworkers_max = {workers}\n[embeddings]\nprovider = \"openai\"\nmodel = \"m\"\n\
                 base_url = \"{}\"\nconcurrency_max = 8\n",
                server.base_url()
            ),
        );
        assert_eq!(index["status"]["embedded"], 6, "{index}");
        assert_eq!(server.widest(), widest, "workers {workers}");
    }
}

/// The paths in the index of a daemon.
async fn paths(daemon: &Daemon) -> Vec<String> {
    let (status, list) = daemon.get("/v1/admin/kb/documents").await;
    assert_eq!(status, 200, "{list}");
    let documents = list["data"].as_array().unwrap().iter();
    documents
        .map(|document| document["path"].as_str().unwrap().to_owned())
        .collect()
}

/// Waits until a path is in the index.
async fn appears(daemon: &Daemon, path: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !paths(daemon).await.iter().any(|known| known == path) {
        assert!(Instant::now() < deadline, "{path} is not indexed");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Whether a file that another program writes is in the index by the time that three uploads after it are.
async fn is_noticed_at_once(config: &str) -> bool {
    let daemon = Setup::default().config(config).start().await;
    appears(&daemon, "notes.txt").await;
    daemon.write(
        "knowledge-bank/beside.md",
        "# Beside\n\nWritten by another program.\n",
    );
    for at in 0..12 {
        let path = format!("upload-{at}.md");
        let put = daemon
            .ask("PUT", &format!("/v1/admin/kb/documents/{path}"))
            .bearer_auth(&daemon.key)
            .body(format!("# Upload {at}\n\nText of upload {at}.\n"));
        assert_eq!(put.send().await.unwrap().status(), 201);
        appears(&daemon, &path).await;
    }
    paths(&daemon).await.iter().any(|path| path == "beside.md")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_noticed_by_watching_or_by_comparing_anew() {
    let hour = "rescan_interval_s = 3600\n";
    for (config, noticed) in [
        (format!("[kb]\n{hour}debounce_ms = 1\n"), true),
        (format!("[kb]\n{hour}debounce_ms = 600000\n"), false),
        (format!("[kb]\n{hour}debounce_ms = 1\nwatch = false\n"), false),
    ] {
        assert_eq!(is_noticed_at_once(&config).await, noticed, "{config}");
    }
    let daemon = Setup::default()
        .config("[kb]\nwatch = false\nrescan_interval_s = 1")
        .start()
        .await;
    appears(&daemon, "notes.txt").await;
    daemon.write(
        "knowledge-bank/beside.md",
        "# Beside\n\nWritten by another program.\n",
    );
    appears(&daemon, "beside.md").await;
}

#[test]
fn words_and_vectors_are_joined_as_is_set() {
    let home = Home::new("");
    home.write(
        "knowledge-bank/fees.md",
        "# Fees\n\nA library card costs four euros a year.\n",
    );
    home.write(
        "knowledge-bank/hours.md",
        "# Hours\n\nThe library is open from eight to four.\n",
    );
    indexed(&home, "");
    let joined = |config: &str| {
        let found = explained(&home, &format!("[kb]\n{config}"), "what does a library card cost");
        found["fusion"].as_str().unwrap().to_owned()
    };
    let usual = joined("");
    for (config, words) in [
        ("fusion = \"convex\"\n", "0.60 words, 0.40 vectors"),
        (
            "fusion = \"convex\"\nvector_weight = 0.25\n",
            "0.75 words, 0.25 vectors",
        ),
        ("vector_weight = 0.8\n", "0.20 words, 0.80 vectors"),
        ("fusion = \"rrf\"\n", "1/(20 + rank)"),
        ("fusion = \"auto\"\n", usual.as_str()),
    ] {
        let found = joined(config);
        assert!(found.contains(words), "{config}: {found}");
    }
}

/// A law and a comment on it that answers the same question in nearly the same words, the comment a little better.
fn law() -> Home {
    let home = Home::new("");
    home.write(
        "knowledge-bank/law/leave.md",
        "# Leave\n\nAn employee may take fourteen weeks of parental leave after a birth, on written request.\n",
    );
    home.write(
        "knowledge-bank/blog/leave.md",
        "# Parental leave\n\nHow many weeks of parental leave may an employee take after a birth? Fourteen weeks of \
         parental leave.\n",
    );
    home.write(
        "knowledge-bank/blog/stew.md",
        "# Stew\n\nLentils, carrots and smoked paprika simmer for an hour. An employee of the canteen stirs.\n",
    );
    for at in 1..=6 {
        let text = format!("# Note {at}\n\nThe canteen has {at} tables near window {at}.\n");
        home.write(&format!("knowledge-bank/blog/note-{at}.md"), &text);
    }
    home
}

const QUESTION: &str = "how many weeks of parental leave may an employee take after a birth";
const TABLE: &str = "[[kb.authority]]\npattern = \"law/**\"\nlevel = \"primary\"\n";

#[test]
fn the_table_of_authorities_puts_the_source_first_where_both_are_on_the_same_matter() {
    let home = law();
    indexed(&home, TABLE);
    let find = |config: &str| explained(&home, &format!("[kb]\n{config}{TABLE}"), QUESTION);
    let quiet = "authority_nudge = 0\n";
    let usual = find(&format!("{quiet}pair_cosine_min = 0.3\n"));
    assert_eq!(
        documents(&usual)[..2],
        ["law/leave.md", "blog/leave.md"],
        "{usual}"
    );
    assert_eq!(usual["passages"][0]["passage"]["authority"], "primary");
    assert!(moves(&usual).contains("on the same matter"), "{usual}");
    for config in [
        "authority_pairs = false\npair_cosine_min = 0.3\n",
        "pair_cosine_min = 1.0\n",
    ] {
        let found = find(&format!("{quiet}{config}"));
        assert_eq!(
            documents(&found)[..2],
            ["blog/leave.md", "law/leave.md"],
            "{config}{found}"
        );
        assert!(!moves(&found).contains("same matter"), "{config}{found}");
    }
    // The nudge is a share of the range of scores, and is told.
    let nudged = |nudge: &str| {
        let config = format!("authority_pairs = false\nauthority_nudge = {nudge}\n");
        moves(&find(&config))
    };
    assert!(!nudged("0").contains("added"));
    assert_ne!(nudged("0.01"), nudged("0.1"));
    assert!(nudged("0.1").contains("added 0."));
}

#[test]
fn the_pattern_and_the_level_of_a_row_decide_a_document_s_authority() {
    for (pattern, level, expected) in [
        ("law/**", "primary", "primary"),
        ("law/**", "interpretation", "interpretation"),
        ("blog/**", "primary", "secondary"),
    ] {
        let home = law();
        let table = format!("[[kb.authority]]\npattern = \"{pattern}\"\nlevel = \"{level}\"\n");
        indexed(&home, &table);
        let found = printed(&home, &["kb", "search", QUESTION, "--path", "law/**", "--json"]);
        assert_eq!(found["passages"][0]["authority"], expected, "{table}{found}");
    }
}

#[test]
fn what_is_far_from_the_query_is_no_answer() {
    let home = law();
    indexed(&home, "");
    let found = |cosine: &str| {
        let config = format!("[kb]\nrelevant_cosine_min = {cosine}\n");
        documents(&explained(&home, &config, "zebra migration across the Serengeti")).len()
    };
    assert_eq!((found("0"), found("1.0")), (5, 0), "of at most five");
}

#[test]
fn what_has_no_effect_is_a_warning() {
    for (config, key, words) in [
        (
            "[[kb.authority]]\npattern = \"knowledge-bank/law/**\"\nlevel = \"primary\"",
            "kb.authority[0].pattern",
            "write `law/**`",
        ),
        (
            "[kb]\nignore = [\"papers/old/**\"]\n[tools]\nknowledge_bank = \"my/papers\"",
            "kb.ignore[0]",
            "write `old/**`",
        ),
        (
            "[embeddings]\nmodel = \"nomic-embed-text\"",
            "embeddings.model",
            "no effect",
        ),
        (
            "[embeddings]\nbase_url = \"http://127.0.0.1:9/v1\"",
            "embeddings.base_url",
            "no effect",
        ),
    ] {
        let home = Home::new(config);
        let (code, stdout, stderr) = home.run(&["config", "--check"]);
        let said = format!("{stdout}{stderr}");
        assert_eq!(code, Some(0), "{config}: {said}");
        let warning = said.lines().find(|line| line.contains(&format!("`{key}`")));
        assert!(
            warning.is_some_and(|line| line.contains("warning") && line.contains(words)),
            "{config}: {said}"
        );
    }
    for config in [
        "[[kb.authority]]\npattern = \"law/**\"\nlevel = \"primary\"",
        "[embeddings]\nprovider = \"ollama\"\nmodel = \"nomic-embed-text\"",
        "[embeddings]\nprovider = \"none\"\nmodel = \"nomic-embed-text\"",
    ] {
        let (_, stdout, stderr) = Home::new(config).run(&["config", "--check"]);
        let said = format!("{stdout}{stderr}");
        assert!(
            !said.contains("kb.authority") && !said.contains("embeddings."),
            "{said}"
        );
    }
}

#[test]
fn what_cannot_work_is_refused_with_the_remedy() {
    for (config, key, words) in [
        ("[kb]\nfile_bytes_max = 0", "kb.file_bytes_max", "1 to"),
        ("[kb]\nfiles_max = 0", "kb.files_max", "1 to"),
        ("[kb]\nrescan_interval_s = 0", "kb.rescan_interval_s", "1 to"),
        ("[kb]\nparse_timeout_ms = 0", "kb.parse_timeout_ms", "1 to"),
        ("[kb]\nparse_memory_mb = 0", "kb.parse_memory_mb", "1 to"),
        ("[kb]\nworkers_max = 1000", "kb.workers_max", "at most 64"),
        ("[kb]\nignore = [\"a[\"]", "kb.ignore[0]", "`a[`"),
        (
            "[kb]\nignore = [\"/drafts/**\"]",
            "kb.ignore[0]",
            "write `drafts/**`",
        ),
        (
            "[kb]\nauthority_nudge = 0.5",
            "kb.authority_nudge",
            "from 0 to 0.1",
        ),
        ("[kb]\nvector_weight = 1.5", "kb.vector_weight", "from 0 to 1"),
        (
            "[[kb.authority]]\nlevel = \"primary\"",
            "kb.authority[0].pattern",
            "such as",
        ),
        (
            "[[kb.authority]]\npattern = \"a\"\nlevel = \"holy\"",
            "kb.authority[0].level",
            "`primary`",
        ),
    ] {
        let home = Home::new(config);
        let (code, _, stderr) = home.run(&["config", "--check"]);
        assert_eq!(code, Some(1), "{config}: {stderr}");
        assert!(
            stderr.contains(&format!("`{key}`")) && stderr.contains(words),
            "{config}: {stderr}"
        );
    }
    let home = Home::new("[kb]\nworkers_max = 64\nauthority_nudge = 0.1\n");
    assert_eq!(
        home.run(&["config", "--check"]).0,
        Some(0),
        "{}",
        json!(home.run(&["config", "--check"]).2)
    );
}
