//! `tidegate embed`: fetching a model from a file server, and trying the configured one.

use std::{
    path::PathBuf,
    process::Stdio,
    time::{Duration, Instant},
};

use tidegate_testkit::{Embeddings, Files, Served};

use crate::support::{Home, outcome, signal};

/// Two of the pinned files are small enough to stand here: settings of all-MiniLM-L6-v2 (Apache-2.0).
const CONFIG: &str = r#"{
  "_name_or_path": "nreimers/MiniLM-L6-H384-uncased",
  "architectures": [
    "BertModel"
  ],
  "attention_probs_dropout_prob": 0.1,
  "gradient_checkpointing": false,
  "hidden_act": "gelu",
  "hidden_dropout_prob": 0.1,
  "hidden_size": 384,
  "initializer_range": 0.02,
  "intermediate_size": 1536,
  "layer_norm_eps": 1e-12,
  "max_position_embeddings": 512,
  "model_type": "bert",
  "num_attention_heads": 12,
  "num_hidden_layers": 6,
  "pad_token_id": 0,
  "position_embedding_type": "absolute",
  "transformers_version": "4.8.2",
  "type_vocab_size": 2,
  "use_cache": true,
  "vocab_size": 30522
}
"#;
/// The length of the pinned `tokenizer.json`.
const TOKENIZER_BYTES: usize = 466_247;
/// How long a program may take to do what is waited for.
const PATIENCE: Duration = Duration::from_mins(1);

/// A server with the first file as it is pinned, and the second as given.
async fn server(tokenizer: Served) -> Files {
    let config = Served::Whole(CONFIG.into());
    Files::start([("/m/config.json", config), ("/m/tokenizer.json", tokenizer)])
        .await
        .unwrap()
}

/// A home that fetches from there into `models/m`.
fn home(files: &Files) -> Home {
    Home::new(&format!(
        "[discovery]\nollama = false\n[embeddings]\npull_url = \"{}/m\"\nfolder = \"models/m\"\n",
        files.url()
    ))
}

/// What lies in the folder of the model.
fn names(home: &Home) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(home.folder().join("models/m")) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pull_without_an_address_says_which_setting_is_missing() {
    let home = Home::new("[discovery]\nollama = false\n");
    let (code, stdout, stderr) = home.run(&["embed", "pull"]);
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert!(
        stderr.contains("embeddings.pull_url") && stderr.contains("--from"),
        "{stderr}"
    );
    for (address, words) in [("ftp://127.0.0.1/m", "is not HTTP"), ("127.0.0.1", "no address")] {
        let (code, _, stderr) = home.run(&["embed", "pull", "--from", address]);
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stderr.contains(words) && stderr.contains("http"), "{stderr}");
    }
    assert!(!home.folder().join("models").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_not_the_pinned_one_is_refused_and_leaves_nothing_behind() {
    for (tokenizer, words) in [
        (Served::Whole(vec![b'x'; TOKENIZER_BYTES]), "its SHA-256 is"),
        (Served::Whole(vec![b'x'; TOKENIZER_BYTES + 1]), "longer than"),
        (Served::Whole(b"{}".to_vec()), "it has 2 bytes of 466247"),
        (
            Served::Cut(vec![b'x'; 70_000], TOKENIZER_BYTES),
            "cannot be fetched",
        ),
    ] {
        let files = server(tokenizer).await;
        let home = home(&files);
        let (code, stdout, stderr) = home.run(&["embed", "pull"]);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
        assert!(
            stderr.contains("`tokenizer.json`") && stderr.contains(words),
            "{stderr}"
        );
        assert_eq!(names(&home), ["config.json"], "{words}");
        // What was right is kept, and not fetched again.
        assert_eq!(home.run(&["embed", "pull"]).0, Some(1));
        assert_eq!(
            files.asked(),
            ["/m/config.json", "/m/tokenizer.json", "/m/tokenizer.json"]
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_flag_goes_before_the_setting_and_a_server_without_the_file_is_named() {
    let files = server(Served::Whole(Vec::new())).await;
    let home = home(&files);
    let other = Files::start([]).await.unwrap();
    let from = format!("{}/elsewhere/", other.url());
    let (code, _, stderr) = home.run(&["embed", "pull", "--from", &from]);
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("`config.json`") && stderr.contains("status 404"),
        "{stderr}"
    );
    assert_eq!(other.asked(), ["/elsewhere/config.json"]);
    assert!(files.asked().is_empty());
}

/// Waits for the half file of a pull under way.
async fn half(home: &Home) -> PathBuf {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let is_half = |name: &&String| name.starts_with("tokenizer.json.");
        if let Some(name) = names(home).iter().find(is_half) {
            return home.folder().join("models/m").join(name);
        }
        assert!(Instant::now() < deadline, "nothing came: {:?}", names(home));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pull_that_is_broken_off_takes_its_half_file_away() {
    let files = server(Served::Stuck(vec![b'x'; 70_000], TOKENIZER_BYTES)).await;
    let home = home(&files);
    for name in ["INT", "TERM"] {
        let mut command = home.command(&["embed", "pull"]);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        half(&home).await;
        signal(child.id(), name);
        let (code, _, stderr) = outcome(&child.wait_with_output().unwrap());
        assert_eq!(code, Some(1), "{stderr}");
        assert!(
            stderr.contains(name) && stderr.contains("goes on from there"),
            "{stderr}"
        );
        assert_eq!(names(&home), ["config.json"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_pull_left_is_taken_away_by_the_next_one() {
    let files = server(Served::Stuck(vec![b'x'; 70_000], TOKENIZER_BYTES)).await;
    let home = home(&files);
    let mut child = home.command(&["embed", "pull"]).spawn().unwrap();
    let left = half(&home).await;
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(left.exists(), "the kill leaves the half file");
    let short = server(Served::Whole(b"{}".to_vec())).await;
    let from = format!("{}/m", short.url());
    assert_eq!(home.run(&["embed", "pull", "--from", &from]).0, Some(1));
    assert_eq!(names(&home), ["config.json"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_vector_shows_model_dimensions_and_time() {
    let home = Home::new("[discovery]\nollama = false\n");
    let (code, stdout, stderr) = home.run(&["embed", "test", "When is high water?", "--json"]);
    assert_eq!(code, Some(0), "{stderr}");
    let tried: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        (&tried["model"], &tried["dimensions"]),
        (&"static-minilm-256-v1".into(), &256.into())
    );
    assert!(
        tried["tokens"].as_u64() >= Some(4) && tried["micros"].is_u64(),
        "{tried}"
    );

    let server = Embeddings::start(24).await.unwrap();
    home.configure(&format!(
        "[discovery]\nollama = false\n[embeddings]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{}\"\n",
        server.base_url()
    ));
    let (code, stdout, stderr) = home.run(&["embed", "test", "When is high water?"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("openai/m") && stdout.contains("24"), "{stdout}");
    server.stop().await;
    let (code, _, stderr) = home.run(&["embed", "test", "When is high water?"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("`openai/m` made no vector"), "{stderr}");

    home.configure("[embeddings]\nprovider = \"none\"\n");
    let (code, _, stderr) = home.run(&["embed", "test", "x"]);
    assert_eq!(
        (code, stderr.contains("embeddings.provider")),
        (Some(1), true),
        "{stderr}"
    );
}
