mod names;
mod unsaved;
mod world;

use std::{os::unix::fs::symlink, sync::atomic::Ordering};

use tidegate_core::{clock::Timestamp, knowledge::Authority, port::ChunkStore as _};
use tidegate_io::files::{Node, NodeKind, ReadFault, Roots};
use world::{Daemon, LIMIT, Letters, World, coded, owned};

use super::{
    file::{Job, Moves, Outcome},
    *,
};

#[tokio::test]
async fn a_folder_becomes_an_index_and_nothing_is_done_twice() {
    let (world, embedder) = (World::new(), Letters::new("letters", 4));
    world.write(
        "handbook/leave.md",
        "# Leave\n\nThirty days of leave a year.\n\n## Sick leave\n\nCall in.\n",
    );
    world.write("notes.txt", "The kettle is in the kitchen.");
    world.write(".hidden/secret.md", "# Secret\n\nkettle\n");
    world.write("draft.md~", "kettle");
    let daemon = world.daemon(&embedder).await;
    assert_eq!(
        daemon.state().await,
        (owned(&["handbook/leave.md", "notes.txt"]), vec![])
    );
    assert_eq!(daemon.found("kettle").await, ["notes.txt"]);
    assert_eq!(embedder.asked(), 3);
    let leave = daemon.store.document("handbook/leave.md").await.unwrap().unwrap();
    assert_eq!(
        (leave.title.as_str(), leave.authority),
        ("Leave", Authority::Secondary)
    );
    assert_eq!(
        daemon.store.document("notes.txt").await.unwrap().unwrap().title,
        "notes"
    );
    assert_eq!(
        daemon.store.serving_model().await.unwrap().as_deref(),
        Some("letters")
    );
    let before = daemon.chunks("handbook/leave.md").await;
    assert_eq!(before[1].place.headings, ["Leave", "Sick leave"]);

    // A part of it changes: the other part keeps its key, and only the new one is embedded.
    world.write(
        "handbook/leave.md",
        "# Leave\n\nThirty days of leave a year.\n\n## Sick leave\n\nWrite a letter.\n",
    );
    daemon.scan().await;
    let after = daemon.chunks("handbook/leave.md").await;
    assert_eq!(
        (after[0].key, after.len(), embedder.asked()),
        (before[0].key, 2, 1)
    );
    assert_eq!(
        (
            daemon.generation("handbook/leave.md").await,
            daemon.found("call").await
        ),
        (2, owned(&[]))
    );

    // The same bytes with another time, and a daemon that starts again: nothing is read anew.
    world.write("notes.txt", "The kettle is in the kitchen.");
    daemon.scan().await;
    daemon.close().await;
    let daemon = world.daemon(&embedder).await;
    assert_eq!((daemon.generation("notes.txt").await, embedder.asked()), (1, 0));
    std::fs::remove_file(world.path("notes.txt")).unwrap();
    daemon.scan().await;
    assert_eq!(daemon.state().await.0, ["handbook/leave.md"]);
    assert_eq!(daemon.found("kettle").await, owned(&[]));
    daemon.close().await;
}

#[tokio::test]
async fn a_file_that_moves_keeps_its_chunks_and_vectors() {
    let (world, embedder) = (World::new(), Letters::new("letters", 4));
    world.write("old/leave.md", "# Leave\n\nThirty days.\n");
    world.write("old/plain.txt", "Without a title of its own.");
    let daemon = world.daemon(&embedder).await;
    let before = daemon.chunks("old/leave.md").await;
    embedder.asked();
    std::fs::rename(world.path("old"), world.path("new")).unwrap();
    daemon.scan().await;
    assert_eq!(daemon.state().await.0, ["new/leave.md", "new/plain.txt"]);
    let after = daemon.chunks("new/leave.md").await;
    assert_eq!(
        (after[0].key, after[0].text.as_str()),
        (before[0].key, "Thirty days.")
    );
    assert_ne!(after[0].citation, before[0].citation);
    let fresh = chunk::citations_of("new/leave.md", [(&after[0].place, "Thirty days.")]);
    assert_eq!(after[0].citation, fresh[0], "as if it had always been there");
    // One whose title is its name is read again, and its words are not embedded again.
    std::fs::rename(world.path("new/plain.txt"), world.path("new/other.txt")).unwrap();
    daemon.scan().await;
    assert_eq!(
        daemon
            .store
            .document("new/other.txt")
            .await
            .unwrap()
            .unwrap()
            .title,
        "other"
    );
    assert_eq!(daemon.state().await.0, ["new/leave.md", "new/other.txt"]);
    assert_eq!(embedder.asked(), 0);
    // A copy is a document of its own.
    std::fs::copy(world.path("new/leave.md"), world.path("copy.md")).unwrap();
    daemon.scan().await;
    assert_eq!(
        (daemon.found("thirty").await, embedder.asked()),
        (owned(&["copy.md", "new/leave.md"]), 0)
    );
    daemon.close().await;
}

#[tokio::test]
async fn what_a_tool_wrote_is_there_when_a_search_waits_for_it() {
    let (world, embedder) = (World::new(), Letters::new("letters", 4));
    for number in 0..40 {
        world.write(
            &format!("bulk/{number}.md"),
            format!("# Title {number}\n\nwords\n"),
        );
    }
    let daemon = world.daemon(&embedder).await;
    world.write("new.md", "# New\n\nA wombat.\n");
    daemon
        .ingest
        .written(&std::fs::canonicalize(world.path("new.md")).unwrap());
    assert!(daemon.ingest.settled(LIMIT).await);
    assert_eq!(daemon.found("wombat").await, ["new.md"]);
    std::fs::remove_file(world.path("new.md")).unwrap();
    std::fs::remove_dir_all(world.path("bulk")).unwrap();
    for gone in ["new.md", "bulk"] {
        daemon
            .ingest
            .written(&std::fs::canonicalize(world.path("")).unwrap().join(gone));
    }
    daemon.ingest.written(std::path::Path::new("/elsewhere/a.md"));
    assert!(daemon.ingest.settled(LIMIT).await);
    assert_eq!(daemon.state().await.0, owned(&[]));
    assert_eq!(daemon.ingest.pending(), 0);
    daemon.close().await;
}

#[tokio::test]
async fn the_watcher_sees_what_people_do() {
    let (world, embedder) = (World::new(), Letters::new("letters", 4));
    let watching = |parts: &mut Parts| {
        parts.options.watch = true;
        parts.options.debounce_ms = 20;
    };
    let daemon = world.daemon_with(&embedder, watching).await;
    let is = async |paths: &[&str]| {
        let paths = owned(paths);
        daemon
            .until(&format!("{paths:?}"), async |_| daemon.state().await.0 == paths)
            .await;
    };
    world.write("a.md", "# A\n\nalpha\n");
    is(&["a.md"]).await;
    // A folder that is made while it is watched, with a file in it at once.
    world.write("deep/down/b.md", "# B\n\nbeta\n");
    is(&["a.md", "deep/down/b.md"]).await;
    std::fs::rename(world.path("deep"), world.path("moved")).unwrap();
    is(&["a.md", "moved/down/b.md"]).await;
    world.write("a.md", "# A\n\nnew words\n");
    daemon
        .until("the change", async |_| daemon.found("alpha").await.is_empty())
        .await;
    std::fs::remove_dir_all(world.path("moved")).unwrap();
    is(&["a.md"]).await;
    assert_eq!(daemon.ingest.problems(), owned(&[]));
    daemon.close().await;
}

#[tokio::test]
async fn files_that_cannot_be_read_are_listed_and_cost_nobody_else() {
    let (world, embedder) = (World::new(), Letters::new("letters", 4));
    world.write("good.md", "# Good\n\nwords\n");
    world.write("empty.md", "");
    world.write("huge.txt", "x ".repeat(600));
    world.write("binary.dat", [0, 159, 146, 150, 0, 1, 2, 255]);
    world.write("same.md", "# Same\n\nfirst\n");
    world.write("Same.md", "# Same\n\nsecond\n");
    symlink("/etc/passwd", world.path("passwd.txt")).unwrap();
    symlink("good.md", world.path("alias.md")).unwrap();
    symlink("gone", world.path("dangling.md")).unwrap();
    let pipe = world.path("pipe");
    let made = std::os::unix::net::UnixListener::bind(&pipe).unwrap();
    let small = |parts: &mut Parts| parts.options.file_bytes_max = 1_000;
    let daemon = world.daemon_with(&embedder, small).await;
    let expected = coded(&[
        ("binary.dat", "binary"),
        ("dangling.md", "link_broken"),
        ("empty.md", "empty"),
        ("huge.txt", "too_large"),
        ("passwd.txt", "link_outside"),
        ("pipe", "not_a_file"),
        ("same.md", "name_collision"),
    ]);
    let (indexed, failed) = daemon.state().await;
    assert_eq!(indexed, ["Same.md", "good.md"]);
    let without_binary = |mut files: Vec<(String, String)>| {
        // Whether these bytes are called binary or unsupported is the parser's business.
        files.retain(|(path, _)| path != "binary.dat");
        files
    };
    assert_eq!(without_binary(failed), without_binary(expected));
    // A second look changes nothing.
    let version = daemon.store.version().await.unwrap();
    daemon.scan().await;
    assert_eq!(daemon.store.version().await.unwrap(), version);
    // What is put right is a document.
    drop(made);
    for name in ["passwd.txt", "dangling.md", "pipe", "Same.md"] {
        std::fs::remove_file(world.path(name)).unwrap();
    }
    for name in ["passwd.txt", "dangling.md", "empty.md", "huge.txt", "pipe"] {
        world.write(name, format!("now fine {name}"));
    }
    daemon.scan().await;
    let (indexed, _) = daemon.state().await;
    assert_eq!(
        indexed,
        [
            "dangling.md",
            "empty.md",
            "good.md",
            "huge.txt",
            "passwd.txt",
            "pipe",
            "same.md"
        ]
    );
    daemon.close().await;
}

#[tokio::test]
async fn without_an_embedder_words_are_found_and_vectors_follow() {
    let (world, embedder) = (World::new(), Letters::new("letters", 4));
    embedder.is_away.store(true, Ordering::SeqCst);
    world.write("a.md", "# A\n\nalpha\n");
    let daemon = world.daemon(&embedder).await;
    assert_eq!(daemon.found("alpha").await, ["a.md"]);
    assert_eq!(daemon.store.counts(Some("letters")).await.unwrap().embedded, 0);
    assert!(
        daemon.ingest.problems()[0].contains("it is away"),
        "{:?}",
        daemon.ingest.problems()
    );
    embedder.is_away.store(false, Ordering::SeqCst);
    daemon
        .until("the vector", async |store| {
            store.counts(Some("letters")).await.unwrap().embedded == 1
        })
        .await;
    daemon
        .until("no problem", async |_| daemon.ingest.problems().is_empty())
        .await;
    assert_eq!(daemon.generation("a.md").await, 1);
    daemon.close().await;
}

#[tokio::test]
async fn the_old_model_serves_until_the_new_one_is_complete() {
    let (world, old) = (World::new(), Letters::new("old", 4));
    for number in 0..10 {
        world.write(
            &format!("{number}.md"),
            format!("# Title\n\n{}\n", "word ".repeat(35 + number)),
        );
    }
    let daemon = world.daemon(&old).await;
    let chunks = daemon.store.counts(Some("old")).await.unwrap();
    assert_eq!(chunks.chunks, chunks.embedded);
    daemon.close().await;

    let mut new = Letters::new("new", 6);
    // It reads less: what is too long for it is cut anew.
    Arc::get_mut(&mut new).unwrap().model.tokens_max = 38;
    new.is_away.store(true, Ordering::SeqCst);
    let daemon = world.daemon(&new).await;
    assert_eq!(
        daemon.store.serving_model().await.unwrap().as_deref(),
        Some("old")
    );
    assert!(daemon.store.counts(Some("old")).await.unwrap().embedded > 0);
    new.is_away.store(false, Ordering::SeqCst);
    daemon
        .until("the new model", async |store| {
            store.serving_model().await.unwrap().as_deref() == Some("new")
        })
        .await;
    daemon
        .until("every vector", async |store| {
            let counts = store.counts(Some("new")).await.unwrap();
            counts.chunks == counts.embedded
        })
        .await;
    assert_eq!(daemon.store.vectors("old", 0, 10).await.unwrap().keys.len(), 0);
    assert_eq!(daemon.state().await.0.len(), 10);
    daemon.close().await;
}

#[tokio::test]
async fn authority_comes_from_the_table_then_the_document() {
    let (world, embedder) = (World::new(), Letters::new("letters", 4));
    let head = "---\nauthority: primary\n---\n# Title\n\nwords\n";
    world.write("said.md", head);
    world.write("inbox/said.md", head);
    world.write("law/silent.md", "# Title\n\nwords\n");
    let daemon = world.daemon(&embedder).await;
    let authorities = async |daemon: &Daemon| {
        let documents = daemon.documents().await;
        documents
            .into_iter()
            .map(|document| (document.path, document.authority))
            .collect::<Vec<_>>()
    };
    let expect = |rows: [(&str, Authority); 3]| {
        rows.map(|(path, authority)| (path.to_owned(), authority))
            .to_vec()
    };
    assert_eq!(
        authorities(&daemon).await,
        expect([
            ("inbox/said.md", Authority::Primary),
            ("law/silent.md", Authority::Secondary),
            ("said.md", Authority::Primary)
        ])
    );
    daemon.close().await;
    embedder.asked();
    // Another table: everything is read anew, and nothing embedded.
    let rows = [("inbox/**", Authority::Secondary), ("law/**", Authority::Primary)];
    let table = |parts: &mut Parts| parts.authority = Table::new(rows).unwrap();
    let daemon = world.daemon_with(&embedder, table).await;
    assert_eq!(
        authorities(&daemon).await,
        expect([
            ("inbox/said.md", Authority::Secondary),
            ("law/silent.md", Authority::Primary),
            ("said.md", Authority::Primary)
        ])
    );
    assert_eq!(embedder.asked(), 0);
    // A document that leaves the inbox is what it says of itself again.
    std::fs::rename(world.path("inbox/said.md"), world.path("left.md")).unwrap();
    daemon.scan().await;
    assert_eq!(
        daemon.store.document("left.md").await.unwrap().unwrap().authority,
        Authority::Primary
    );
    daemon.close().await;
}

#[tokio::test]
async fn a_folder_that_is_away_takes_nothing_with_it() {
    let (world, embedder) = (World::new(), Letters::new("letters", 4));
    world.write("a.md", "# A\n\nalpha\n");
    let daemon = world.daemon(&embedder).await;
    let away = world.folder.path().join("away");
    std::fs::rename(world.path(""), &away).unwrap();
    daemon.scan().await;
    assert_eq!(daemon.found("alpha").await, ["a.md"]);
    assert!(
        daemon.ingest.problems()[0].contains("cannot be opened"),
        "{:?}",
        daemon.ingest.problems()
    );
    // Another one in its place, with the same file moved and one more.
    std::fs::create_dir(world.path("")).unwrap();
    world.write("b.md", "# A\n\nalpha\n");
    daemon.scan().await;
    assert_eq!(
        (daemon.state().await.0, daemon.ingest.problems()),
        (owned(&["b.md"]), owned(&[]))
    );
    daemon.close().await;
}

/// A file that was changed a moment before it was read has no mark that a later change could share.
#[tokio::test]
async fn a_file_of_this_very_moment_is_looked_at_again() {
    #[derive(Debug)]
    struct At(Timestamp);
    impl Clock for At {
        fn now(&self) -> Timestamp {
            self.0
        }
    }
    let (world, embedder) = (World::new(), Letters::new("letters", 4));
    world.write("a.md", "# A\n\nalpha\n");
    let modified = std::fs::metadata(world.path("a.md")).unwrap().modified().unwrap();
    let clock = Arc::new(At(Timestamp::try_from(modified).unwrap()));
    let daemon = world.daemon_with(&embedder, |parts| parts.clock = clock).await;
    world.write("a.md", "# A\n\nomega\n");
    let file = std::fs::File::options()
        .write(true)
        .open(world.path("a.md"))
        .unwrap();
    file.set_modified(modified).unwrap();
    daemon.scan().await;
    assert_eq!(daemon.found("omega").await, ["a.md"]);
    daemon.close().await;
}

/// What happens to a file between being seen and being read.
#[tokio::test]
async fn a_file_may_vanish_or_be_locked_before_it_is_read() {
    let (world, embedder) = (World::new(), Letters::new("letters", 4));
    world.write("a.md", "# A\n\nalpha\n");
    let daemon = world.daemon(&embedder).await;
    let shared = &daemon.ingest.shared;
    let known = daemon.store.files_at("a.md").await.unwrap().pop();
    let job = Job {
        node: Node {
            path: "gone.md".to_owned(),
            kind: NodeKind::File,
            bytes: 1,
            modified_ns: 1,
        },
        known: known.clone(),
        is_urgent: false,
        is_forced: false,
    };
    let roots = Roots::open(&[world.path("")]).unwrap();
    let outcome = shared.index(roots, &job, &Moves::default()).await;
    assert!(matches!(outcome, Outcome::Gone), "{outcome:?}");
    // Locked: it is listed, and looked at again at every scan.
    let node = Node {
        path: "a.md".to_owned(),
        ..job.node.clone()
    };
    let locked = Job { node, ..job };
    let outcome = shared.unreadable(&locked, &ReadFault::Denied).await.unwrap();
    assert!(matches!(outcome, Outcome::Failed), "{outcome:?}");
    assert_eq!(
        daemon.state().await,
        (owned(&[]), coded(&[("a.md", "unreadable")]))
    );
    assert_eq!(daemon.found("alpha").await, owned(&[]));
    daemon.scan().await;
    assert_eq!(daemon.found("alpha").await, ["a.md"]);
    daemon.close().await;
}

/// A part that the embedder will not have costs the others nothing.
#[tokio::test]
async fn a_refused_part_has_no_vector_and_the_others_do() {
    let (world, embedder) = (World::new(), Letters::new("letters", 4));
    for number in 0..5 {
        world.write(&format!("{number}.md"), format!("# Title\n\nwords {number}\n"));
    }
    world.write("bad.md", "# Title\n\nthe word unspeakable\n");
    embedder.is_away.store(true, Ordering::SeqCst);
    let daemon = world.daemon(&embedder).await;
    embedder.is_away.store(false, Ordering::SeqCst);
    daemon
        .until("every answer", async |store| {
            store.counts(Some("letters")).await.unwrap().embedded == 6
        })
        .await;
    assert_eq!(
        daemon.store.vectors("letters", 0, 10).await.unwrap().keys.len(),
        5
    );
    assert_eq!(daemon.found("unspeakable").await, ["bad.md"]);
    daemon.close().await;
}
