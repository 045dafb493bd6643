//! `[embeddings]`: who makes vectors, and how it is asked. The server is a scripted one.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate_testkit::{Embeddings, Received};

use super::printed;
use crate::support::{Daemon, Home, Setup};

/// How long something in the background may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// The lines for an OpenAI-compatible server, with more of the section.
fn lines(server: &Embeddings, more: &str) -> String {
    format!(
        "[discovery]\nollama = false\n[embeddings]\nprovider = \"openai\"\nmodel = \"some-model\"\n\
         base_url = \"{}\"\n{more}\n",
        server.base_url()
    )
}

/// A home with one document.
fn home() -> Home {
    let home = Home::new("");
    home.write(
        "knowledge-bank/fees.md",
        "# Fees\n\nA library card costs four euros a year.\n",
    );
    home
}

/// Indexes the home's document with these lines; what was asked of the server.
fn indexing(home: &Home, server: &Embeddings, more: &str) -> (Value, Vec<Received>) {
    home.configure(&lines(server, more));
    (printed(home, &["kb", "index", "--json"]), server.requests())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_provider_decides_who_is_asked_and_how() {
    for (provider, model, path, expected) in [
        (
            "openai",
            "model = \"my-model\"\n",
            "/v1/embeddings",
            "openai/my-model",
        ),
        (
            "ollama",
            "model = \"my-model\"\n",
            "/api/embed",
            "ollama/my-model",
        ),
        ("ollama", "", "/api/embed", "ollama/nomic-embed-text/p"),
    ] {
        let (home, server) = (home(), Embeddings::start(768).await.unwrap());
        let url = if provider == "ollama" {
            server.root_url()
        } else {
            server.base_url()
        };
        home.configure(&format!(
            "[discovery]\nollama = false\n[embeddings]\nprovider = \"{provider}\"\nbase_url = \"{url}\"\n{model}"
        ));
        let index = printed(&home, &["kb", "index", "--json"]);
        let configured = index["status"]["configured_model"].as_str().unwrap();
        assert!(configured.starts_with(expected), "{index}");
        let asked = server.requests();
        let vectors: Vec<_> = asked.iter().filter(|request| request.path == path).collect();
        assert!(!vectors.is_empty(), "{provider}: {asked:?}");
        let name = if model.is_empty() {
            "nomic-embed-text"
        } else {
            "my-model"
        };
        assert_eq!(vectors[0].body["model"], name);
    }
    let home = home();
    for (provider, model) in [("builtin", json!("static-minilm-256-v1")), ("none", Value::Null)] {
        home.configure(&format!(
            "[discovery]\nollama = false\n[embeddings]\nprovider = \"{provider}\"\n"
        ));
        let status = printed(&home, &["kb", "status", "--json"]);
        assert_eq!(
            status["status"]["configured_model"], model,
            "{provider}: {status}"
        );
    }
}

#[test]
fn a_local_model_is_looked_for_in_its_folder() {
    let home = Home::new("[embeddings]\nprovider = \"local\"\nfolder = \"my/model\"\n");
    let (code, _, stderr) = home.run(&["kb", "status"]);
    assert_eq!(code, Some(1));
    let words = if cfg!(feature = "local-embedder") {
        "my/model"
    } else {
        "local-embedder"
    };
    assert!(stderr.contains(words), "{stderr}");
    let (code, _, stderr) = home.run(&["config", "--check"]);
    if cfg!(feature = "local-embedder") {
        assert_eq!(code, Some(0), "{stderr}");
    } else {
        assert_eq!(code, Some(1), "{stderr}");
        assert!(
            stderr.contains("`embeddings.provider`") && stderr.contains("--features local-embedder"),
            "{stderr}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_the_length_and_the_prefixes_go_with_every_request() {
    let (home, server) = (home(), Embeddings::start(48).await.unwrap());
    let more = "api_key = \"env:EMBEDDINGS_KEY\"\ndimensions = 24\nquery_prefix = \"ask: \"\n\
                document_prefix = \"tell: \"\n";
    let home = home.env("EMBEDDINGS_KEY", "ek-1234567890");
    indexing(&home, &server, more);
    printed(&home, &["kb", "search", "what does a card cost", "--json"]);
    for request in server.requests() {
        assert_eq!(
            request.headers.get("authorization").map(String::as_str),
            Some("Bearer ek-1234567890")
        );
        assert_eq!(request.body["dimensions"], 24, "{request:?}");
    }
    let batches = server.batches();
    assert!(batches[0][0].starts_with("tell: "), "{batches:?}");
    assert_eq!(batches.last().unwrap(), &["ask: what does a card cost"]);
}

/// A document of so many parts, each too long to share a chunk.
fn parts(count: usize) -> String {
    let part = |at: usize| format!("## Part {at}\n\n{}\n\n", format!("word{at} ").repeat(60));
    (0..count).fold("# Parts\n\n".to_owned(), |text, at| text + &part(at))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_and_chunks_are_as_large_as_is_set() {
    let mut counts = Vec::new();
    for (more, batch, widest) in [
        ("batch_texts_max = 3\n", 3, None),
        ("batch_texts_max = 1\nconcurrency_max = 1\n", 1, Some(1)),
        ("batch_texts_max = 1\nconcurrency_max = 4\n", 1, Some(4)),
        ("tokens_max = 64\n", 32, None),
    ] {
        let (home, server) = (home(), Embeddings::start(16).await.unwrap());
        server.slow("", Duration::from_millis(200));
        home.write("knowledge-bank/parts.md", &parts(8));
        let (index, _) = indexing(&home, &server, &format!("{more}[kb]\nworkers_max = 1\n"));
        let largest = server.batches().iter().map(Vec::len).max().unwrap();
        assert!(
            largest <= batch && (batch == 32 || largest == batch),
            "{more}: {largest}"
        );
        if let Some(widest) = widest {
            assert_eq!(server.widest(), widest, "{more}");
        }
        counts.push(index["status"]["chunks"].as_u64().unwrap());
    }
    // A model that reads less gets more and shorter chunks.
    assert!(counts[3] > counts[0] && counts[0] == counts[1], "{counts:?}");
}

/// Searches over HTTP; why only words were compared, if so.
async fn words_only(daemon: &Daemon, query: &str) -> Option<String> {
    let (status, body) = daemon
        .admin("POST", "/v1/admin/kb/search", json!({"query": query}))
        .await;
    assert_eq!(status, 200, "{body}");
    body["words_only"].as_str().map(str::to_owned)
}

/// A daemon on the server, its document in the index with a vector.
async fn daemon(server: &Embeddings, more: &str) -> Daemon {
    // Questions are sorted by rules alone here: the second tier would ask the server as well.
    let daemon = Setup::default()
        .config(&lines(server, &format!("{more}[routing]\nenabled = false")))
        .start()
        .await;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (_, body) = daemon.get("/v1/admin/kb").await;
        if body["embedded"].as_u64() >= Some(1) && body["pending"] == 0 {
            return daemon;
        }
        assert!(Instant::now() < deadline, "not embedded: {body}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// How often a query was asked for.
fn asked(server: &Embeddings, query: &str) -> usize {
    let batches = server.batches();
    batches
        .iter()
        .flatten()
        .filter(|text| text.contains(query))
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recent_queries_are_kept_as_many_as_are_set() {
    for (entries, times) in [(0, 3), (16, 1)] {
        let server = Embeddings::start(16).await.unwrap();
        let daemon = daemon(&server, &format!("cache_entries_max = {entries}\n")).await;
        for _search in 0..3 {
            assert_eq!(words_only(&daemon, "alpha letters").await, None);
        }
        assert_eq!(asked(&server, "alpha letters"), times, "{entries}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_waits_as_long_as_is_set_and_a_failed_server_rests_as_long_as_is_set() {
    let server = Embeddings::start(16).await.unwrap();
    server.slow("tardy", Duration::from_millis(1_500));
    let patient = daemon(&server, "query_timeout_ms = 30000\n").await;
    assert_eq!(words_only(&patient, "tardy alpha").await, None);
    let hasty = daemon(&server, "query_timeout_ms = 150\nrest_s = 3600\n").await;
    let said = words_only(&hasty, "tardy alpha").await.unwrap();
    assert!(said.contains("no answer within 150 ms"), "{said}");
    let said = words_only(&hasty, "zeta").await.unwrap();
    assert!(said.contains("rests until"), "{said}");
    assert_eq!(asked(&server, "zeta"), 0);
    for (daemon, is_told) in [(&hasty, true), (&patient, false)] {
        let (_, ready) = daemon.get("/health/ready").await;
        assert_eq!(ready["status"], "ready", "{ready}");
        assert_eq!(ready.to_string().contains("by words alone"), is_told, "{ready}");
    }
    // After a second it is asked again.
    let short = daemon(&server, "query_timeout_ms = 150\nrest_s = 1\n").await;
    assert!(words_only(&short, "tardy alpha").await.is_some());
    let deadline = Instant::now() + PATIENCE;
    while let Some(said) = words_only(&short, "gamma").await {
        assert!(Instant::now() < deadline, "{said}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_wait_as_long_as_is_set() {
    for (limit, embedded) in [(1_000, 0), (60_000, 1)] {
        let (home, server) = (home(), Embeddings::start(16).await.unwrap());
        server.slow("library", Duration::from_millis(2_500));
        let (index, _) = indexing(&home, &server, &format!("document_timeout_ms = {limit}\n"));
        assert_eq!(index["status"]["chunks"], 1, "{index}");
        assert_eq!(index["status"]["embedded"], embedded, "{limit}: {index}");
    }
}

#[test]
fn what_cannot_work_is_refused_with_the_remedy() {
    let server = "[embeddings]\nprovider = \"openai\"\n";
    for (config, key, words) in [
        (server, "embeddings.base_url", "http://127.0.0.1:8081/v1"),
        (server, "embeddings.model", "text-embedding-3-small"),
        (
            "[embeddings]\nbase_url = \"localhost:1\"",
            "embeddings.base_url",
            "http://",
        ),
        (
            "[embeddings]\npull_url = \"models\"",
            "embeddings.pull_url",
            "http://",
        ),
        (
            "[embeddings]\nprovider = \"magic\"",
            "embeddings.provider",
            "`builtin`",
        ),
        (
            "[embeddings]\nquery_timeout_ms = 1",
            "embeddings.query_timeout_ms",
            "100 to 60000",
        ),
        (
            "[embeddings]\ndocument_timeout_ms = 5",
            "embeddings.document_timeout_ms",
            "1000 to",
        ),
        (
            "[embeddings]\nconcurrency_max = 0",
            "embeddings.concurrency_max",
            "1 to",
        ),
        (
            "[embeddings]\nbatch_texts_max = 999",
            "embeddings.batch_texts_max",
            "1 to 256",
        ),
        (
            "[embeddings]\ncache_entries_max = 99999",
            "embeddings.cache_entries_max",
            "0 to 10000",
        ),
        ("[embeddings]\nrest_s = 0", "embeddings.rest_s", "1 to"),
        (
            "[embeddings]\ntokens_max = 1",
            "embeddings.tokens_max",
            "16 to 8192",
        ),
        (
            "[embeddings]\ndimensions = 9999",
            "embeddings.dimensions",
            "1 to 8192",
        ),
        (
            "[embeddings]\napi_key = \"env:NOT_THERE\"",
            "embeddings.api_key",
            "NOT_THERE",
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
}
