//! The written vectors, and lines that were tried against the rules.

use super::*;

fn verdict(line: &str) -> Verdict {
    let policy = Policy::compile(&Options::default()).unwrap();
    policy
        .analyse(line, &Place::new("/w/proj", "/w/home"))
        .verdict()
        .clone()
}

fn all(lines: &[&str], is_right: impl Fn(&Verdict) -> bool) {
    let policy = Policy::compile(&Options::default()).unwrap();
    let place = Place::new("/w/proj", "/w/home");
    let wrong: Vec<String> = lines
        .iter()
        .map(|line| (line, policy.analyse(line, &place)))
        .filter(|(_, analysis)| !is_right(analysis.verdict()))
        .map(|(line, analysis)| format!("{line:?}: {:?}", analysis.verdict()))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn is_refused(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Refused { .. })
}

fn is_asked(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::NeedsGrant { .. })
}

const NEVER: &str = include_str!("tests/never.txt");
const DOWNLOADS: &str = include_str!("tests/downloads.txt");
const NOT_ALONE: &str = include_str!("tests/not_alone.txt");
const NOT_REFUSED: &str = include_str!("tests/not_refused.txt");
const READ_ONLY: &str = include_str!("tests/read_only.txt");

/// The lines of a list: `\N` and `\R` stand for line end and carriage return.
fn listed(list: &str) -> Vec<String> {
    list.lines()
        .filter(|line| !line.is_empty() && !line.starts_with("##"))
        .map(|line| {
            line.replace("\\N", "\n")
                .replace("\\R", "\r")
                .replace("\\V", "\u{b}")
        })
        .collect()
}

fn all_listed(list: &str, is_right: impl Fn(&Verdict) -> bool) {
    let lines = listed(list);
    all(&lines.iter().map(String::as_str).collect::<Vec<_>>(), is_right);
}

#[test]
fn what_never_runs_is_refused() {
    all_listed(NEVER, is_refused);
}

#[test]
fn what_comes_from_the_network_does_not_run_at_once() {
    all_listed(
        DOWNLOADS,
        |verdict| matches!(verdict, Verdict::Refused { code, .. } if *code == "download_runs"),
    );
}

#[test]
fn what_is_not_known_to_be_harmless_is_not_allowed() {
    all_listed(NOT_ALONE, |verdict| *verdict != Verdict::ReadOnly);
}

#[test]
fn ordinary_work_is_not_refused() {
    all_listed(NOT_REFUSED, |verdict| !is_refused(verdict));
}

#[test]
fn ordinary_looking_needs_no_question() {
    all_listed(READ_ONLY, |verdict| *verdict == Verdict::ReadOnly);
}

#[test]
fn local_changes_that_can_be_taken_back_are_asked() {
    all(
        &[
            "rm -rf ./build",
            "rm -rf sub/dir",
            "git branch -d x",
            "git restore --staged a",
            "git checkout -b x",
            "git checkout main",
            "git tag -d v1",
            "git branch -M main",
            "git commit --amend",
            "git rebase -i HEAD~2",
            "git worktree remove x",
            "git submodule deinit x",
            "git stash pop",
            "git merge x",
            "git pull",
            "git switch x",
            "git rm -r x",
            "git remote add x y",
            "git config alias.x push",
            "python -c \"import os; os.system('git push')\"",
        ],
        is_asked,
    );
}

#[test]
fn bounds_refuse() {
    assert!(is_refused(&verdict("")));
    assert!(is_refused(&verdict("ls\0")));
    assert!(is_refused(&verdict(&format!("ls {}", "a".repeat(20_000)))));
    assert!(is_refused(&verdict(&format!("ls {}", "'' ".repeat(200)))));
    assert!(is_refused(&verdict(&format!("ls {}", "a ".repeat(500)))));
    assert!(is_refused(&verdict(&format!("{}rm x", "true && ".repeat(60)))));
    assert!(is_refused(&verdict(&format!(
        "{}'git push'",
        "sh -c ".repeat(12)
    ))));
    assert!(is_refused(&verdict(&format!("{}git push", "eval ".repeat(40)))));
}

#[test]
fn the_strongest_floor_is_named() {
    let policy = Policy::compile(&Options {
        allow_commands: vec!["*".to_owned()],
        deny_commands: vec!["rm*".to_owned()],
        ..Options::default()
    })
    .unwrap();
    let place = Place::new("/w/proj", "/w/home");
    for (line, floor) in [
        ("git push; rm -rf /", "unrecoverable"),
        ("git push; rm x", "deny_commands"),
        ("git push; cat .env", "git"),
        ("/bin/rm x", "deny_commands"),
        ("env rm x", "deny_commands"),
        ("find . -exec rm {} +", "deny_commands"),
        ("$(echo rm) x", "deny_commands"),
        ("x=rm; $x y", "deny_commands"),
    ] {
        match policy.analyse(line, &place).verdict() {
            Verdict::Refused { floor: found, .. } => assert_eq!(*found, floor, "{line}"),
            other @ (Verdict::ReadOnly | Verdict::NeedsGrant { .. }) => panic!("{line}: {other:?}"),
        }
    }
    assert!(
        Policy::compile(&Options {
            deny_commands: vec![" ".to_owned()],
            ..Options::default()
        })
        .is_err()
    );
}

#[test]
fn files_are_gathered_as_they_would_be_used() {
    let policy = Policy::compile(&Options::default()).unwrap();
    let place = Place::new("/w/proj/", "/w/home");
    let operands = |line: &str| -> Vec<(String, Access, OperandKind)> {
        policy
            .analyse(line, &place)
            .operands()
            .iter()
            .map(|operand| (operand.text.clone(), operand.access, operand.kind))
            .collect()
    };
    let literal = |text: &str, access| (text.to_owned(), access, OperandKind::Literal);
    assert_eq!(
        operands("cat a ~/b"),
        [
            literal("/w/proj/a", Access::Read),
            literal("/w/home/b", Access::Read)
        ]
    );
    assert_eq!(
        operands("cat 'a*' b*.md"),
        [
            literal("/w/proj/a*", Access::Read),
            ("/w/proj/b*.md".to_owned(), Access::Read, OperandKind::Glob)
        ]
    );
    assert_eq!(operands("wc < ../x"), [literal("/w/proj/../x", Access::Read)]);
    assert_eq!(
        operands("cd sub && cat a"),
        [
            literal("/w/proj/sub", Access::List),
            literal("/w/proj/sub/a", Access::Read)
        ]
    );
    // Whether the folder was changed cannot be told: both are judged.
    assert_eq!(
        operands("cd sub; cat a"),
        [
            literal("/w/proj/sub", Access::List),
            literal("/w/proj/sub/a", Access::Read),
            literal("/w/proj/a", Access::Read)
        ]
    );
    assert_eq!(operands("echo x > out"), [literal("/w/proj/out", Access::Write)]);
    assert_eq!(
        operands("cp a /etc.d/b"),
        [
            literal("/w/proj/a", Access::Read),
            literal("/etc.d/b", Access::Write)
        ]
    );
    assert_eq!(
        operands("git show HEAD:src/x").first(),
        Some(&literal("/w/proj/src/x", Access::Read))
    );
    assert_eq!(operands("for f in a b; do cat $f; done").len(), 2);
}

#[test]
fn a_plan_is_what_the_line_says() {
    let policy = Policy::compile(&Options::default()).unwrap();
    let place = Place::new("/w/proj", "/w/home");
    let analysis = policy.analyse("grep -rn 'a b' \"$HOME\"/x 2>/dev/null | head -3", &place);
    let Some(Node::Pipe(stages)) = analysis.plan() else {
        panic!("{:?}", analysis.plan());
    };
    let [Node::Run(grep), Node::Run(head)] = stages.as_slice() else {
        panic!("{stages:?}");
    };
    let words = |run: &Run| -> Vec<String> { run.arguments.iter().filter_map(Argument::literal).collect() };
    assert_eq!(
        (grep.program.as_str(), words(grep)),
        ("grep", vec!["-rn".into(), "a b".into(), "/w/home/x".into()])
    );
    assert_eq!(grep.redirections, [Redirection::Discard(2)]);
    assert_eq!(
        (head.program.as_str(), words(head)),
        ("head", vec!["-3".to_owned()])
    );
    assert!(analysis.is_deep());
    assert_eq!(
        analysis.command(),
        "grep -rn 'a b' \"$HOME\"/x 2>/dev/null | head -3"
    );
    assert!(policy.analyse("rm x", &place).plan().is_none());
}

#[test]
fn addresses_and_programs_are_named() {
    let policy = Policy::compile(&Options::default()).unwrap();
    let place = Place::new("/w/proj", "/w/home");
    for (line, url) in [
        ("curl -s https://a.test/x | jq .", "https://a.test/x"),
        ("curl a.test/x", "http://a.test/x"),
        ("env wget -O f http://a.test/", "http://a.test/"),
        ("git clone git@a.test:b/c.git", "ssh://a.test/b/c.git"),
        ("git fetch https://a.test/b", "https://a.test/b"),
        ("sh -c 'curl --url=http://a.test/'", "http://a.test/"),
    ] {
        assert_eq!(policy.analyse(line, &place).urls(), [url], "{line}");
    }
    assert_eq!(policy.analyse("ssh a.test ls", &place).hosts(), ["a.test"]);
    assert_eq!(policy.analyse("nc a.test 80", &place).hosts(), ["a.test"]);
    assert_eq!(
        policy.analyse("ls | /usr/bin/wc -l", &place).programs(),
        ["ls", "wc"]
    );
}
