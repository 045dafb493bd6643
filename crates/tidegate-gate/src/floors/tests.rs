use serde_json::json;
use tidegate_core::tool::{Effect, ToolMode};

use super::*;
use crate::{
    Access, PathFault, PathKind,
    testing::{Resolution, call, fact, resolved, spec, write_fact},
};

fn zones() -> Zones {
    Zones {
        readable: vec!["/w".into()],
        writable: vec!["/w/out".into()],
        own: vec!["/w/out/own".into()],
        blocked: vec!["/w/out/closed".into()],
        ..Zones::default()
    }
}

fn with(resolution: Resolution, change: impl FnOnce(&mut crate::ResolvedPath)) -> Resolution {
    let mut resolved = resolution?;
    change(&mut resolved);
    Ok(resolved)
}

/// The floor that refuses reading, listing or writing `requested`.
fn floor(access: Access, requested: &str, resolution: Resolution) -> Option<&'static str> {
    let (mode, effect) = match access {
        Access::Read => (ToolMode::ReadText, Effect::Read),
        Access::List => (ToolMode::ListFiles, Effect::Read),
        Access::Write => (ToolMode::WriteText, Effect::Write),
    };
    let facts = Facts {
        paths: vec![fact("path", requested, access, resolution)],
        write_bytes: 1,
        ..Facts::default()
    };
    let call = call("tool", &json!({"path": requested, "content": "x"}));
    check(&call, &spec("tool", mode, effect), &facts, &zones()).map(|denial| denial.floor)
}

#[test]
fn each_floor_refuses_what_it_is_for() {
    use Access::{List, Read, Write};
    let special = || with(resolved("/w/pipe"), |path| path.kind = PathKind::Special);
    let missing = |real: &str| with(resolved(real), |path| path.kind = PathKind::Missing);
    let link = |real: &str| with(resolved(real), |path| path.is_link = true);
    let twin = with(resolved("/w/out/a"), |path| path.hard_links = 2);
    for (access, resolution, expected) in [
        (Read, resolved("/w/a"), None),
        (Write, resolved("/w/out/a"), None),
        (Write, missing("/w/out/new/er/a"), None),
        (Read, missing("/w/a"), None),
        (Read, Err(PathFault::Missing), None),
        (Write, twin, None),
        (Read, link("/w/a"), None),
        (Read, resolved("/w2/a"), Some("paths")),
        (List, resolved("/"), Some("paths")),
        (Write, resolved("/w/a"), Some("paths")),
        (Write, missing("/w/new"), Some("paths")),
        (Write, Err(PathFault::Missing), Some("paths")),
        (Read, Err(PathFault::Outside), Some("paths")),
        (
            Read,
            Err(PathFault::Malformed("it is empty".into())),
            Some("paths"),
        ),
        (
            Read,
            Err(PathFault::Unreadable("permission denied".into())),
            Some("paths"),
        ),
        (Read, resolved("/w/out/own/keys.db"), Some("own_files")),
        (List, resolved("/w/out/own"), Some("own_files")),
        (Write, missing("/w/out/own/tools.toml"), Some("own_files")),
        (Write, missing("/w/out/.tidegate-notes.tmp"), Some("own_files")),
        (Write, missing("/w/out/.tidegate-1-0.tmp/a"), Some("own_files")),
        (Write, missing("/w/out/.tidegate-notes"), None),
        (Read, resolved("/w/out/.tidegate-1-0.tmp"), None),
        (Read, special(), Some("special_file")),
        (Write, link("/w/out/a"), Some("links")),
        (Read, resolved("/w/.ssh/config"), Some("credentials")),
        (List, resolved("/w/.aws"), Some("credentials")),
        (Write, missing("/w/out/new.pem"), Some("credentials")),
        (Write, resolved("/w/out/.bashrc"), Some("startup_files")),
        (Read, resolved("/w/out/.bashrc"), None),
        (
            Write,
            missing("/w/out/.git/hooks/pre-commit"),
            Some("startup_files"),
        ),
    ] {
        assert_eq!(
            floor(access, "a", resolution.clone()),
            expected,
            "{access:?} {resolution:?}"
        );
    }
}

#[test]
fn the_kernels_trees_are_no_files_even_inside_a_root() {
    let zones = Zones {
        readable: vec!["/".into()],
        ..Zones::default()
    };
    let spec = spec("tool", ToolMode::ReadText, Effect::Read);
    let call = call("tool", &json!({"path": "a"}));
    for real in ["/proc/self/environ", "/proc/1/mem", "/dev/sda", "/sys/kernel"] {
        let facts = Facts {
            paths: vec![fact("path", "a", Access::Read, resolved(real))],
            ..Facts::default()
        };
        let denial = check(&call, &spec, &facts, &zones).expect("a refusal");
        assert_eq!(denial.floor, "special_file");
    }
}

#[test]
fn a_write_is_these_bytes_to_that_file_or_nothing() {
    let target = || write_fact("a", resolved("/w/out/a"));
    let good = json!({"path": "a", "content": "x"});
    let write = spec("tool", ToolMode::WriteText, Effect::Write);
    let refused = |spec: &ToolSpec, arguments: &serde_json::Value, paths: Vec<crate::PathFact>| {
        let facts = Facts {
            paths,
            write_bytes: 1,
            ..Facts::default()
        };
        check(&call("tool", arguments), spec, &facts, &zones()).map(|denial| denial.floor)
    };
    assert_eq!(refused(&write, &good, vec![target()]), None);
    let read = fact("path", "a", Access::Read, resolved("/w/out/a"));
    for paths in [vec![], vec![target(), target()], vec![read]] {
        assert_eq!(refused(&write, &good, paths), Some("write_shape"));
    }
    for arguments in [
        json!({}),
        json!({"path": "a"}),
        json!({"content": "x"}),
        json!({"path": "", "content": "x"}),
        json!({"path": ["a"], "content": "x"}),
        json!({"path": "a", "content": null}),
        json!({"path": "a", "content": {"x": 1}}),
        json!({"path": "a", "content": "x", "mode": "append"}),
        json!([]),
    ] {
        assert_eq!(
            refused(&write, &arguments, vec![target()]),
            Some("write_shape"),
            "{arguments}"
        );
    }
    let other = spec("tool", ToolMode::Calculate, Effect::Write);
    assert_eq!(refused(&other, &good, vec![]), Some("write_shape"));
    let reader = spec("tool", ToolMode::ReadText, Effect::Read);
    assert_eq!(refused(&reader, &good, vec![target()]), Some("write_shape"));
    let wild = spec("tool", ToolMode::WriteText, Effect::External);
    assert_eq!(refused(&wild, &good, vec![]), Some("write_shape"));
}

#[test]
fn every_path_of_a_call_counts() {
    let spec = spec("tool", ToolMode::ReadText, Effect::Read);
    let call = call("tool", &json!({"path": "a"}));
    let facts = Facts {
        paths: vec![
            fact("path", "a", Access::Read, resolved("/w/a")),
            fact("second", "b", Access::Read, resolved("/w/.env")),
        ],
        ..Facts::default()
    };
    assert_eq!(
        check(&call, &spec, &facts, &zones()).map(|denial| denial.floor),
        Some("credentials")
    );
}

#[test]
fn a_reason_repeats_a_bounded_clean_part_of_what_was_asked() {
    let path = fact(
        "path",
        &format!("`\u{1b}[31m{}", "x".repeat(5000)),
        Access::Read,
        Err(PathFault::Outside),
    );
    let shown = paths::shown(&path);
    assert!(
        shown.chars().count() < 210 && !shown.contains('\u{1b}') && shown.matches('`').count() == 2,
        "{shown}"
    );
}
