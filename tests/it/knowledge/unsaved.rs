//! What the database does not take.

use tidegate_testkit::Embeddings;

use crate::support::Home;

fn settings(server: &Embeddings) -> String {
    format!(
        "[discovery]\nollama = false\n[embeddings]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{}\"\n",
        server.base_url()
    )
}

/// The database takes no vector that is longer than the model's others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_not_stored_is_listed_and_fails_the_command() {
    let home = Home::new("");
    let (short, long) = (
        Embeddings::start(24).await.unwrap(),
        Embeddings::start(32).await.unwrap(),
    );
    home.configure(&settings(&short));
    home.write("knowledge-bank/early.md", "# Early\n\nThe kettle whistles.\n");
    let (code, _, stderr) = home.run(&["kb", "index"]);
    assert_eq!(code, Some(0), "{stderr}");

    home.configure(&settings(&long));
    home.write("knowledge-bank/late.md", "# Late\n\nThe teapot is chipped.\n");
    for _ in 0..2 {
        let (code, text, stderr) = home.run(&["kb", "index"]);
        assert_eq!(code, Some(1), "{text}");
        assert!(
            stderr.contains("`late.md` is not in the index") && stderr.contains("a vector of 32 numbers"),
            "{stderr}"
        );
        for part in ["Documents   1", "Failed      1", "late.md (not_stored)"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    home.configure(&settings(&short));
    let (code, text, stderr) = home.run(&["kb", "index"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        text.contains("Documents   2") && text.contains("Failed      0"),
        "{text}"
    );
    short.stop().await;
    long.stop().await;
}
