use super::{remote::checked_branch, *};

#[test]
fn operands_revisions_and_branches_are_no_options() {
    for (text, is_good) in [
        ("src/lib.rs", true),
        ("./-odd", true),
        ("--output=/tmp/x", false),
        ("-O", false),
        (":(top)x", false),
        ("a\nb", false),
        ("", false),
        (".env", false),
        ("deep/.ssh/id_rsa", false),
    ] {
        assert_eq!(checked_operand("path", text).is_ok(), is_good, "{text}");
    }
    for (text, is_good) in [
        ("main", true),
        ("HEAD~2", true),
        ("v1..v2", true),
        ("stash@{0}", true),
        ("origin/main...HEAD", true),
        ("HEAD:.env", false),
        (":/text", false),
        ("--all", false),
        ("HEAD^{/x y}", false),
        ("a b", false),
    ] {
        assert_eq!(checked_revision(text).is_ok(), is_good, "{text}");
    }
    for (text, is_good) in [
        ("main", true),
        ("feature/new-thing_2", true),
        ("+main", false),
        ("main:other", false),
        ("--force", false),
        ("a/-b", false),
        ("a..b", false),
        ("a//b", false),
        ("x.lock", false),
        ("@{-1}", false),
        ("", false),
        ("refs/*", false),
    ] {
        assert_eq!(checked_branch(text).is_ok(), is_good, "{text}");
    }
}

#[test]
fn settings_are_counted_on() {
    let mut environment = environment(true);
    configure(&mut environment, &[("a.b", "c")]);
    let get = |name: &str| {
        environment
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    };
    assert_eq!(get("GIT_CONFIG_COUNT"), Some("7"));
    assert_eq!(
        (get("GIT_CONFIG_KEY_6"), get("GIT_CONFIG_VALUE_6")),
        (Some("a.b"), Some("c"))
    );
    assert_eq!(get("GIT_OPTIONAL_LOCKS"), Some("0"));
    assert_eq!(
        environment
            .iter()
            .filter(|(name, _)| name == "GIT_CONFIG_COUNT")
            .count(),
        1
    );
}

#[test]
fn a_diff_says_nothing_of_credentials() {
    let text = "commit 1\n    message\n\ndiff --git a/x.rs b/x.rs\n+one\ndiff --git a/deep/.env b/deep/.env\n+KEY=canary\n\
                diff --git a/y.rs b/y.rs\n+two\ndiff --cc .env\n++canary\ncommit 2\n    more\n";
    let mut said = text.as_bytes().to_vec();
    leave_out_credentials(&mut said);
    let said = String::from_utf8(said).expect("text");
    assert!(!said.contains("canary"), "{said}");
    assert_eq!(said.matches(LEFT_OUT).count(), 2);
    for kept in ["+one", "+two", "    more"] {
        assert!(said.contains(kept), "{kept}: {said}");
    }
    let mut plain = b"no parts here: .env\n".to_vec();
    leave_out_credentials(&mut plain);
    assert_eq!(plain, b"no parts here: .env\n");
}
