//! The house rules that neither Cargo nor clippy can hold.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Who may know whom: the table of ARCHITECTURE.md. A new arrow is a change to this test.
const FLOORS: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("gate", &["core"]),
    ("engine", &["core", "gate", "memory"]),
    ("io", &["core", "gate"]),
    ("tools", &["core", "gate", "io"]),
    ("llm", &["core", "io"]),
    ("store", &["core"]),
    ("kb", &["core", "io"]),
    ("memory", &["core", "gate"]),
    ("mcp", &["core", "gate", "io"]),
];

/// Third parties with one home each: package, and the crates (or `root`) that may name it.
const HOMES: &[(&str, &[&str])] = &[
    ("axum", &["root"]),
    ("tower", &["root"]),
    ("tower-http", &["root"]),
    ("hyper", &["io", "root"]),
    ("hyper-util", &["io", "root"]),
    ("utoipa", &["root"]),
    ("utoipa-axum", &["root"]),
    ("governor", &["root"]),
    ("clap", &["root"]),
    ("sqlx", &["store"]),
    ("rusqlite", &["store"]),
    ("reqwest", &["io"]),
    ("rmcp", &["mcp", "root"]),
    ("chromadb", &["kb"]),
    ("rustix", &["io", "store"]),
];

/// Source files that may be longer than 500 lines, each with its reason.
const LONG_FILES: &[(&str, &str)] = &[];

const LINES_MAX: usize = 500;

/// Front ends translate transport and do not know each other.
const FRONT_ENDS: &[&str] = &["http", "cli"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn manifest(path: &Path) -> toml::Table {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse()
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn dependencies(manifest: &toml::Table) -> BTreeSet<String> {
    manifest
        .get("dependencies")
        .and_then(toml::Value::as_table)
        .map(|table| table.keys().cloned().collect())
        .unwrap_or_default()
}

/// Every Rust source file of the product, without tests and build output.
fn sources() -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join("src"), &mut found);
    for (name, _) in FLOORS {
        walk(&root().join(format!("crates/tidegate-{name}/src")), &mut found);
    }
    assert!(found.len() > 100, "the walk found too little: {}", found.len());
    found
}

#[test]
fn imports_go_down_only() {
    let crates: BTreeSet<String> = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    let known: BTreeSet<String> = FLOORS
        .iter()
        .map(|(name, _)| format!("tidegate-{name}"))
        .collect();
    assert_eq!(crates, known, "a crate is missing in the floor table");
    for (name, allowed) in FLOORS {
        let ours: BTreeSet<String> = dependencies(&manifest(
            &root().join(format!("crates/tidegate-{name}/Cargo.toml")),
        ))
        .into_iter()
        .filter_map(|dependency| dependency.strip_prefix("tidegate-").map(str::to_owned))
        .collect();
        let allowed: BTreeSet<String> = allowed.iter().map(|name| (*name).to_owned()).collect();
        assert!(
            ours.is_subset(&allowed),
            "{name} depends on {ours:?}, allowed are {allowed:?}"
        );
    }
}

#[test]
fn each_third_party_has_its_home() {
    for (package, homes) in HOMES {
        for (name, _) in FLOORS {
            let named = dependencies(&manifest(
                &root().join(format!("crates/tidegate-{name}/Cargo.toml")),
            ))
            .contains(*package);
            assert!(
                !named || homes.contains(name),
                "{package} is named by {name}, its homes are {homes:?}"
            );
        }
        let named = dependencies(&manifest(&root().join("Cargo.toml"))).contains(*package);
        assert!(
            !named || homes.contains(&"root"),
            "{package} is named by the root, its homes are {homes:?}"
        );
    }
}

#[test]
fn front_ends_do_not_know_each_other() {
    for path in sources() {
        let relative = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        let Some(own) = FRONT_ENDS.iter().find(|name| {
            relative.starts_with(&format!("src/{name}/")) || relative == format!("src/{name}.rs")
        }) else {
            continue;
        };
        let text = fs::read_to_string(&path).unwrap();
        for other in FRONT_ENDS.iter().filter(|other| *other != own) {
            for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
                assert!(
                    !line.contains(&format!("crate::{other}::")) || line.contains("openapi_document"),
                    "{relative} knows {other}: {line}"
                );
            }
        }
    }
}

#[test]
fn files_are_short_or_say_why_not() {
    let mut long = Vec::new();
    for path in sources() {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        let relative = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        let excused = LONG_FILES
            .iter()
            .any(|(name, reason)| *name == relative && !reason.is_empty());
        if lines > LINES_MAX && !excused {
            long.push(format!("{relative}: {lines}"));
        }
    }
    assert!(
        long.is_empty(),
        "files over {LINES_MAX} lines without a reason: {long:#?}"
    );
}

#[test]
fn modules_open_with_what_they_are_for() {
    let silent: Vec<String> = sources()
        .into_iter()
        .filter(|path| {
            !path.ends_with("tests.rs") && !path.components().any(|part| part.as_os_str() == "tests")
        })
        .filter(|path| {
            let text = fs::read_to_string(path).unwrap();
            text.lines().count() > 60 && !text.trim_start().starts_with("//!")
        })
        .map(|path| path.display().to_string())
        .collect();
    assert!(
        silent.is_empty(),
        "modules of more than 60 lines without a `//!`: {silent:#?}"
    );
}

#[test]
fn only_one_place_reads_the_environment_and_nothing_is_ignored() {
    for path in sources() {
        let relative = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            !text.contains("#[ignore"),
            "{relative} ignores a test: assert today's behaviour instead"
        );
        if relative != "src/config/env.rs" {
            assert!(
                !text.contains("std::env::var"),
                "{relative} reads the environment"
            );
        }
    }
}

#[test]
fn json_bodies_are_read_by_our_own_extractor() {
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines() {
            let extracts =
                line.contains("Json(") && line.contains("): Json<") || line.contains("): axum::Json<");
            assert!(
                !extracts,
                "{} extracts with axum's Json, whose errors are not ours: {line}",
                path.display()
            );
        }
    }
}
