//! A line that was judged runs as a shell would run it, and what it says is all that runs.

use tidegate_gate::shell;

use super::*;

/// Every line is one that the analyser calls read-only; bash itself says what it should print.
const LINES: &[&str] = &[
    "cat readme.md",
    "printf 'b\\na\\nb\\n' | sort | uniq -c",
    "echo '$HOME `id` *' && echo \"a  b\" c",
    "false || echo failed; true && echo worked; false && echo never",
    "! true || echo turned",
    "ls no-such 2>/dev/null || echo missing",
    "ls no-such 2>&1 | wc -l",
    "cat < readme.md",
    "wc -c <<< text",
    "ls *.md deep/*",
    "echo *.none",
    "for f in *.md deep/*.md; do wc -c \"$f\"; done",
    "cd deep && ls && pwd",
    "(cd deep && ls); ls",
    "if grep -q hello readme.md; then echo found; else echo lost; fi",
    "echo $(cat readme.md) \"$(printf 'x\\ny\\n')\"",
    "printf 'one\\ntwo three\\n' | while read -r line; do echo \"<$line>\"; done",
    "diff <(sort readme.md) <(sort deep/notes.md) | head -n 1",
    "yes | head -n 2",
    "timeout 1 sleep 20; echo $?",
    "find . -name '*.md' | sort | head -n 5",
    "grep -rn notes deep | cut -d: -f1",
    "cat readme.md | tr a-z A-Z | rev",
    "test -f readme.md && [ -d deep ] && echo both",
    "no-such-program || echo $?",
    "ls -1 | sort -r | sed -n 1p",
    "git --version | cut -d' ' -f1",
];

fn world() -> World {
    let world = World::new();
    for name in ["work/server", "work/deep/.env"] {
        let path = world.path(name);
        drop(if path.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        });
    }
    world
}

fn policy(world: &World) -> Policy {
    let mut policy = world.policy();
    policy.readable.append(&mut policy.writable);
    policy.hidden.clear();
    policy.masked.clear();
    policy
}

/// The plan of a line, where the analyser has one.
fn plan(sandbox: &Sandbox, world: &World, line: &str) -> Option<Plan> {
    let rules = shell::Policy::compile(&shell::Options::default()).expect("rules");
    let place = shell::Place::new(world.path("work").display().to_string(), "/nowhere");
    let analysis = rules.analyse(line, &place);
    Some(Plan {
        node: analysis.plan()?.clone(),
        programs: analysis
            .programs()
            .iter()
            .filter_map(|name| Some((name.clone(), sandbox.programs().get(name)?.to_owned())))
            .collect(),
    })
}

#[tokio::test]
async fn a_plan_prints_what_bash_prints() {
    for sandbox in sandboxes().await {
        let world = world();
        let policy = policy(&world);
        let mut planned = 0;
        for line in LINES {
            let Some(plan) = plan(&sandbox, &world, line) else {
                eprintln!("has no plan: {line}");
                continue;
            };
            planned += 1;
            let ours = sandbox.run(Task::plan(plan), &policy).await.expect("a run");
            let theirs = sandbox.run(bash(line), &policy).await.expect("a run");
            let said = text(&ours.stderr);
            assert_eq!(
                (text(&ours.stdout), ours.exit),
                (text(&theirs.stdout), theirs.exit),
                "{line}: {said}"
            );
        }
        assert!(planned >= 20, "only {planned} lines have a plan");
    }
}

#[tokio::test]
async fn a_plan_can_write_nothing_and_reads_nothing_hidden() {
    for sandbox in sandboxes().await {
        let world = World::new();
        let before = world.snapshot();
        let mut policy = world.policy();
        policy.readable.append(&mut policy.writable);
        let run = |program: &str, arguments: &[&str]| {
            shell::Node::Run(shell::Run {
                program: program.to_owned(),
                arguments: arguments
                    .iter()
                    .map(|&word| shell::Argument {
                        parts: vec![shell::Part::Text(word.to_owned())],
                    })
                    .collect(),
                redirections: Vec::new(),
            })
        };
        // Not what the analyser lets pass: the walls hold whatever it says.
        for node in [
            run("touch", &["readme.md"]),
            run("tee", &["new"]),
            run("rm", &["-rf", "deep"]),
            run("cat", &["deep/.env"]),
            run("grep", &["-r", "canary", "."]),
            run("cat", &["server/data/tidegate.db"]),
        ] {
            let programs = ["touch", "tee", "rm", "cat", "grep"]
                .into_iter()
                .filter_map(|name| Some((name.to_owned(), sandbox.programs().get(name)?.to_owned())))
                .collect();
            let plan = Plan {
                node: node.clone(),
                programs,
            };
            let outcome = sandbox.run(Task::plan(plan), &policy).await.expect("a run");
            let said = text(&outcome.stdout) + &text(&outcome.stderr);
            assert!(
                outcome.exit != Exit::Code(0) || said.is_empty(),
                "{node:?}: {said}"
            );
            assert!(!said.contains("canary"), "{node:?}: {said}");
            assert_eq!(world.snapshot(), before, "{node:?}: {said}");
        }
        let missing = Plan {
            node: run("cat", &["readme.md"]),
            programs: std::collections::BTreeMap::new(),
        };
        let outcome = sandbox.run(Task::plan(missing), &policy).await.expect("a run");
        assert_eq!(
            (outcome.exit, text(&outcome.stderr).as_str()),
            (Exit::Code(127), "cat: command not found\n")
        );
    }
}
