//! Every denial is proven from inside, at each level that the machine has.

mod denied;
mod killed;
mod plans;
mod tools;

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use tidegate_io::{
    process::{Captured, Exit},
    sandbox::{Bound, Error, Level, Limits, Options, Plan, Policy, Programs, Sandbox, Task, WorkingFolder},
};

/// The program that confines itself: the product.
fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_tidegate"))
}

/// A small world: a workspace with something in it that must not be seen, and something beside it.
struct World {
    folder: TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self {
            folder: tempfile::tempdir().expect("a folder"),
        };
        for (name, text) in [
            ("work/readme.md", "hello"),
            ("work/deep/notes.md", "notes"),
            ("work/deep/.env", "KEY=canary"),
            ("work/server/data/tidegate.db", "canary"),
            ("outside/secret", "canary"),
            ("library/text", "library"),
        ] {
            let path = world.path(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::io::Write::write_all(&mut fs::File::create_new(path).expect("a file"), text.as_bytes())
                .expect("its text");
        }
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder
            .path()
            .canonicalize()
            .expect("its real path")
            .join(name)
    }

    fn policy(&self) -> Policy {
        Policy {
            readable: vec![self.path("library")],
            writable: vec![self.path("work")],
            hidden: vec![self.path("work/server/data")],
            masked: vec![self.path("work/deep/.env")],
            working_folder: WorkingFolder::Folder(self.path("work")),
            limits: Limits {
                timeout_ms: 20_000,
                ..Limits::default()
            },
            ..Policy::default()
        }
    }

    /// Everything there is, with what is in it.
    fn snapshot(&self) -> Vec<(PathBuf, u32, Vec<u8>)> {
        use std::os::unix::fs::PermissionsExt;
        let mut found = Vec::new();
        let mut left = vec![self.path("")];
        while let Some(folder) = left.pop() {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                let metadata = fs::symlink_metadata(&path).expect("metadata");
                let bytes = if metadata.is_file() {
                    fs::read(&path).expect("bytes")
                } else {
                    Vec::new()
                };
                if metadata.is_dir() {
                    left.push(path.clone());
                }
                found.push((path, metadata.permissions().mode(), bytes));
            }
        }
        found.sort();
        found
    }
}

/// The sandbox at each level that the machine has. A machine without bubblewrap says so.
async fn sandboxes() -> Vec<Sandbox> {
    let mut sandboxes = Vec::new();
    for level in [Level::BwrapLandlock, Level::Landlock] {
        let sandbox = Sandbox::open_with(Options::default(), &program(), &[level]).await;
        if sandbox.level() == Some(level) {
            sandboxes.push(sandbox);
        } else {
            eprintln!("left out here: {}", sandbox.probe().sentence());
        }
    }
    assert!(!sandboxes.is_empty(), "no level works on this machine");
    sandboxes
}

fn bash(script: &str) -> Task {
    Task::program("/bin/bash", ["-c", script])
}

fn text(captured: &Captured) -> String {
    String::from_utf8_lossy(&captured.bytes).into_owned()
}

#[tokio::test]
async fn the_probe_holds_and_says_so() {
    for sandbox in sandboxes().await {
        let sentence = sandbox.probe().sentence();
        assert!(sentence.contains("its self-test held"), "{sentence}");
        let tried = sandbox.probe().tried();
        let canaries = tried[0].outcome.as_ref().expect("canaries");
        assert_eq!(canaries.len(), 8, "{canaries:?}");
        assert!(tried[0].is_good());
    }
}

#[tokio::test]
async fn too_little_is_refused_and_none_is_never_silent() {
    let nothing = Sandbox::open_with(Options::default(), Path::new("/bin/false"), &Level::ALL).await;
    assert_eq!(nothing.level(), None);
    let error = nothing
        .run(bash("true"), &Policy::default())
        .await
        .expect_err("a refusal");
    let text = error.to_string();
    assert!(
        text.contains("sandbox.level_min") && text.contains("Install bubblewrap"),
        "{text}"
    );

    let accepted = Options {
        level_min: Level::None,
        ..Options::default()
    };
    let none = Sandbox::open_with(accepted.clone(), Path::new("/bin/false"), &Level::ALL).await;
    assert_eq!(none.level(), Some(Level::None));
    assert!(
        none.probe().sentence().contains("NOT in a sandbox"),
        "{}",
        none.probe().sentence()
    );
    // What is stronger and works is taken all the same.
    let best = Sandbox::open(accepted, &program()).await;
    assert!(best.level() < Some(Level::None), "{:?}", best.level());
}

#[tokio::test]
async fn without_walls_the_limits_still_hold() {
    let accepted = Options {
        level_min: Level::None,
        ..Options::default()
    };
    let sandbox = Sandbox::open_with(accepted, &program(), &[Level::None]).await;
    let world = World::new();
    let mut policy = world.policy();
    policy.limits.file_bytes = 1000;
    let outcome = sandbox
        .run(bash("env; head -c 5000 /dev/zero > big; echo $?"), &policy)
        .await
        .expect("a run");
    let said = text(&outcome.stdout);
    assert!(said.contains("HOME=") && !said.contains("CARGO"), "{said}");
    assert!(fs::metadata(world.path("work/big")).expect("a file").len() <= 1000);
}

#[tokio::test]
async fn what_is_open_works() {
    for sandbox in sandboxes().await {
        let world = World::new();
        let script = format!(
            "set -e; cat readme.md {library}/text; echo new > deep2.md || echo new > deep/sub.md; \
             mkdir -p deep/sub 2>/dev/null || true; ls deep; echo $HOME; cd; echo x > y; cat y; \
             cat <(echo process) | tr a-z A-Z; python3 -c 'print(6*7)'; timeout 5 setsid -w echo own session",
            library = world.path("library").display()
        );
        let mut policy = world.policy();
        // Nothing hidden in the way of new files.
        policy.hidden.clear();
        policy.masked.clear();
        let outcome = sandbox.run(bash(&script), &policy).await.expect("a run");
        let (said, errors) = (text(&outcome.stdout), text(&outcome.stderr));
        assert_eq!(
            outcome.exit,
            Exit::Code(0),
            "{:?} {said} {errors}",
            sandbox.level()
        );
        for part in [
            "hello",
            "library",
            "notes.md",
            "\nx\n",
            "PROCESS",
            "42",
            "own session",
        ] {
            assert!(said.contains(part), "{part}: {said} {errors}");
        }
        assert_eq!(
            fs::read(world.path("work/deep2.md")).expect("the new file"),
            b"new\n"
        );
        assert_eq!(
            (outcome.killed_by, outcome.is_cut(), outcome.timed_out()),
            (None, false, false)
        );
    }
}

#[tokio::test]
async fn input_exit_code_and_environment_are_the_runs_own() {
    for sandbox in sandboxes().await {
        let mut policy = Policy {
            environment: vec![("ONLY".to_owned(), "this".to_owned())],
            ..Policy::default()
        };
        policy.limits.timeout_ms = 20_000;
        for size in [5, 4096, 300_000] {
            let mut task = Task::program("/bin/bash", ["-c", "cat | wc -c; pwd; exit 7"]);
            task.stdin = vec![b'x'; size];
            let outcome = sandbox.run(task, &policy).await.expect("a run");
            assert_eq!(outcome.exit, Exit::Code(7));
            assert!(
                text(&outcome.stdout).starts_with(&format!("{size}\n/tmp")),
                "{}",
                text(&outcome.stdout)
            );
        }
        let outcome = sandbox
            .run(Task::program("/usr/bin/env", [""; 0]), &policy)
            .await
            .expect("a run");
        let mut names: Vec<_> = text(&outcome.stdout)
            .lines()
            .filter_map(|line| Some(line.split_once('=')?.0.to_owned()))
            .collect();
        names.sort();
        assert_eq!(names, ["HOME", "LANG", "ONLY", "PATH", "TMPDIR"]);
        let missing = sandbox
            .run(Task::program("/usr/bin/no-such", [""; 0]), &policy)
            .await
            .expect("a run");
        assert_eq!(missing.exit, Exit::Code(127));
    }
}

#[tokio::test]
async fn a_policy_for_everything_is_refused() {
    for sandbox in sandboxes().await {
        for path in ["/", "work"] {
            let policy = Policy {
                readable: vec![path.into()],
                ..Policy::default()
            };
            let error = sandbox.run(bash("true"), &policy).await.expect_err("a refusal");
            assert!(matches!(error, Error::Root(_)), "{error}");
        }
    }
}
