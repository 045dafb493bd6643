use std::os::unix::{fs::symlink, net::UnixListener};

use tempfile::TempDir;

use super::*;
use crate::files::write_private;

/// A world with a workspace, a home and an elsewhere, all below a temporary root.
fn world() -> (TempDir, View) {
    let base = tempfile::tempdir().expect("a folder");
    for folder in ["w/src/deep", "w/empty", "home/.ssh", "else"] {
        std::fs::create_dir_all(base.path().join(folder)).expect("a folder");
    }
    for file in [
        "w/a.md",
        "w/b.md",
        "w/.env",
        "w/src/a.rs",
        "w/src/deep/a.rs",
        "home/.ssh/id_rsa",
        "else/x",
    ] {
        write_private(&base.path().join(file), b"x").expect("a file");
    }
    let links = [
        ("w/absolute", "/w/.env"),
        ("w/relative", "../else/x"),
        ("w/out", "/else"),
        ("w/past", "../../../../else/x"),
        ("w/round", "round"),
        ("w/dangling", "/else/new"),
        ("w/ok", "a.md"),
    ];
    for (name, target) in links {
        symlink(target, base.path().join(name)).expect("a link");
    }
    let view = View::open(base.path()).expect("a view");
    (base, view)
}

fn reals(text: &str, kind: OperandKind, view: &View) -> Vec<Result<String, PathFault>> {
    resolve_operand(text, Access::Read, kind, view)
        .into_iter()
        .map(|fact| {
            fact.resolution
                .map(|resolved| resolved.real.display().to_string())
        })
        .collect()
}

#[test]
fn links_are_followed_inside_the_view() {
    let (_base, view) = world();
    for (text, real) in [
        ("/w/a.md", "/w/a.md"),
        ("/w//./src/../a.md", "/w/a.md"),
        ("/w/absolute", "/w/.env"),
        ("/w/relative", "/else/x"),
        ("/w/past", "/else/x"),
        ("/w/out/x", "/else/x"),
        ("/w/out/../w/a.md", "/w/a.md"),
        ("/w/dangling", "/else/new"),
        ("/w/new/er", "/w/new/er"),
        ("/w/out/new", "/else/new"),
        ("/../../w/a.md", "/w/a.md"),
        ("/", "/"),
        ("/w/a b*", "/w/a b*"),
    ] {
        assert_eq!(
            reals(text, OperandKind::Literal, &view),
            [Ok(real.to_owned())],
            "{text}"
        );
    }
    for text in [
        "/w/round",
        "/w/round/x",
        "w/a.md",
        "",
        "/w/a\0",
        &format!("/{}", "a/".repeat(200)),
    ] {
        let found = reals(text, OperandKind::Literal, &view);
        assert!(matches!(found.as_slice(), [Err(_)]), "{text}: {found:?}");
    }
    for text in ["/w/a.md/x", "/w/new/../a.md"] {
        assert_eq!(
            reals(text, OperandKind::Literal, &view),
            [Err(PathFault::Missing)],
            "{text}"
        );
    }
    assert!(reals("/dev/null", OperandKind::Literal, &view).is_empty());
}

#[test]
fn what_stands_there_is_told() {
    let (base, view) = world();
    let _socket = UnixListener::bind(base.path().join("w/socket")).expect("a socket");
    std::fs::hard_link(base.path().join("w/.env"), base.path().join("w/twin")).expect("a link");
    for (text, kind, hard_links, is_link) in [
        ("/w/a.md", PathKind::File, 1, false),
        ("/w/twin", PathKind::File, 2, false),
        ("/w/src", PathKind::Folder, 1, false),
        ("/w/ok", PathKind::File, 1, true),
        ("/w/out/x", PathKind::File, 1, false),
        ("/w/socket", PathKind::Special, 1, false),
        ("/w/dangling", PathKind::Missing, 1, true),
    ] {
        let facts = resolve_operand(text, Access::Read, OperandKind::Literal, &view);
        let resolved = facts[0].resolution.as_ref().expect("it leads somewhere");
        assert_eq!(
            (resolved.kind, resolved.hard_links, resolved.is_link),
            (kind, hard_links, is_link),
            "{text}"
        );
    }
}

#[test]
fn links_of_proc_lead_nowhere() {
    let view = View::open(Path::new("/")).expect("a view");
    for text in [
        "/proc/self/cwd",
        "/proc/self/root/etc",
        "/proc/self/fd/0",
        "/dev/fd/0",
    ] {
        let found = reals(text, OperandKind::Literal, &view);
        assert!(matches!(found.as_slice(), [Err(_)]), "{text}: {found:?}");
    }
}

#[test]
fn patterns_stand_for_what_a_shell_would_make_of_them() {
    let (_base, view) = world();
    for (text, expected) in [
        ("/w/*.md", &["/w/a.md", "/w/b.md"][..]),
        ("/w/?.md", &["/w/a.md", "/w/b.md"]),
        ("/w/[!a].md", &["/w/b.md"]),
        ("/w/[a-b].m[[:alpha:]]", &["/w/a.md", "/w/b.md"]),
        ("/w/.e*", &["/w/.env"]),
        ("/w/.e?v", &["/w/.env"]),
        ("/w/.[e]nv", &["/w/.env"]),
        ("/w/*/a.rs", &["/w/src/a.rs"]),
        ("/*/*/*/a.rs", &["/w/src/deep/a.rs"]),
        ("/w/ou[t]/*", &["/else/x"]),
        ("/w/abs*", &["/w/.env"]),
        ("/w/*.none", &["/w/*.none"]),
        ("/w/\\*.md", &["/w/*.md"]),
        ("/w/empty/*", &["/w/empty/*"]),
        ("/w/s*/", &["/w/src"]),
        ("/w/[", &["/w/["]),
    ] {
        let found: Vec<String> = reals(text, OperandKind::Glob, &view)
            .into_iter()
            .flatten()
            .collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn a_pattern_that_stands_for_too_much_is_a_fault() {
    let (base, view) = world();
    for number in 0..1_001 {
        write_private(&base.path().join(format!("w/empty/{number}")), b"").expect("a file");
    }
    for text in ["/w/empty/*", &format!("/{}", "*/".repeat(9))] {
        let found = reals(text, OperandKind::Glob, &view);
        assert!(
            matches!(found.as_slice(), [Err(PathFault::Unreadable(_))]),
            "{text}"
        );
    }
}

#[test]
fn names_match_as_in_a_shell() {
    for (part, name, is_match) in [
        ("*", "a", true),
        ("*", ".a", false),
        ("?a", ".a", false),
        ("[.]a", ".a", false),
        (".*", ".a", true),
        ("a*b*c", "aXbXbXc", true),
        ("a*b*c", "aXbX", false),
        ("[]]", "]", true),
        ("[!]]", "]", false),
        ("[a-]", "-", true),
        ("[^a-c]", "d", true),
        ("\\?", "?", true),
        ("\\?", "a", false),
        ("**", "abc", true),
        ("", "", true),
    ] {
        assert_eq!(glob::matches(part, name), is_match, "{part} {name}");
    }
}
