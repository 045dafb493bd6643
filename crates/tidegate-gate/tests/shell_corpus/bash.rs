//! The verdicts against a real bash: what is called reading changes nothing, and the plan is what bash would run.

#![expect(
    clippy::disallowed_methods,
    reason = "bash and git are what is compared with, in a folder made for it"
)]

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use super::world::{World, command, corpus};
use tempfile::TempDir;
use tidegate_gate::shell::{Node, Options, Place, Policy, Verdict};

/// How long the search for lines that change something goes on.
const BUDGET: Duration = Duration::from_secs(15);
/// How many generated lines are run at most.
const MAX_RUNS: usize = 400;

/// A copy of the corpus's world on disk.
struct Copy {
    folder: TempDir,
}

impl Copy {
    fn new() -> Self {
        let copy = Self {
            folder: TempDir::new().unwrap(),
        };
        for (path, content) in World::contents() {
            let path = copy.path(&path);
            match content {
                Some(content) => {
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(path, content).unwrap();
                }
                None => fs::create_dir_all(path).unwrap(),
            }
        }
        for arguments in [
            vec!["init", "-q", "-b", "main"],
            vec![
                "-c",
                "user.name=x",
                "-c",
                "user.email=x@x.test",
                "commit",
                "-q",
                "--allow-empty",
                "-m",
                "x",
            ],
            vec!["add", "notes.txt", "README.md"],
        ] {
            copy.command("git").args(arguments).status().unwrap();
        }
        copy
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    fn place(&self) -> Place {
        let text = |path| self.path(path).to_string_lossy().into_owned();
        Place::new(text("/w/proj"), text("/w/home"))
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LC_ALL", "C.UTF-8")
            .env("HOME", self.path("/w/home"))
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .current_dir(self.path("/w/proj"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn run(&self, line: &str) {
        self.command("timeout")
            .args(["-k", "1", "2", "bash", "-c", line])
            .status()
            .unwrap();
    }

    /// Every file with its content, but for git's own.
    fn state(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut state = BTreeMap::new();
        let mut waiting = vec![self.folder.path().to_path_buf()];
        while let Some(folder) = waiting.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let entry = entry.unwrap();
                let path = entry.path();
                if entry.file_type().unwrap().is_dir() {
                    state.insert(path.clone(), Vec::new());
                    if entry.file_name() != ".git" {
                        waiting.push(path);
                    }
                } else {
                    state.insert(path.clone(), fs::read(path).unwrap_or_default());
                }
            }
        }
        state
    }
}

/// Lines of the corpus with words of others put in, replaced and left out.
fn mutations(lines: &[String]) -> impl Iterator<Item = String> {
    const WORDS: [&str; 40] = [
        "-o",
        "pwn",
        "-opwn",
        "--output=pwn",
        ">pwn",
        "> pwn",
        "2>pwn",
        ";touch pwn",
        "&&",
        "||",
        "|",
        "tee",
        "-i",
        "-w",
        "touch",
        "$(touch pwn)",
        "`touch pwn`",
        "<(touch pwn)",
        "'",
        "\"",
        "\\",
        "*",
        "{a,pwn}",
        "-exec",
        "rm",
        "{}",
        "+",
        "-delete",
        "notes.txt",
        "--",
        "-",
        "$HOME",
        "~",
        "x=1",
        "sh",
        "-c",
        "'touch pwn'",
        "w",
        "pwn;",
        "\n",
    ];
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed >> 33).unwrap() % below.max(1)
    };
    let lines = lines.to_vec();
    std::iter::repeat_with(move || {
        let mut words: Vec<String> = lines[next(lines.len())].split(' ').map(str::to_owned).collect();
        for _ in 0..=next(3) {
            let at = next(words.len() + 1);
            let word = WORDS[next(WORDS.len())];
            match next(4) {
                0 if at < words.len() => word.clone_into(&mut words[at]),
                1 if at < words.len() => words[at].push_str(word),
                2 => {
                    let other = &lines[next(lines.len())];
                    words.push(other.clone());
                }
                _ => words.insert(at.min(words.len()), word.to_owned()),
            }
        }
        words.join(" ")
    })
}

/// Whether bash may be asked to run the line here: it only reads by the verdict, and stays in the copy.
fn may_run(policy: &Policy, copy: &Copy, line: &str) -> bool {
    let analysis = policy.analyse(line, &copy.place());
    *analysis.verdict() == Verdict::ReadOnly
        && analysis.operands().iter().all(|operand| {
            operand.text.starts_with(&*copy.folder.path().to_string_lossy()) && !operand.text.contains("..")
        })
}

#[test]
fn what_is_called_reading_changes_no_file() {
    let policy = Policy::compile(&Options::default()).unwrap();
    let copy = Copy::new();
    let before = copy.state();
    let lines: Vec<String> = corpus()
        .iter()
        .map(|line| command(&line["input"]))
        .filter(|line| line.len() < 200 && !line.contains('\0'))
        .collect();
    let started = Instant::now();
    let mut runs = 0;
    for line in lines.iter().filter(|line| may_run(&policy, &copy, line)) {
        copy.run(line);
        runs += 1;
        assert_eq!(copy.state(), before, "{line:?}");
    }
    let allowed = runs;
    let mut tried = 0;
    for line in mutations(&lines) {
        if started.elapsed() > BUDGET || runs >= allowed + MAX_RUNS {
            break;
        }
        tried += 1;
        if may_run(&policy, &copy, &line) {
            copy.run(&line);
            runs += 1;
            assert_eq!(copy.state(), before, "{line:?}");
        }
    }
    println!(
        "{allowed} lines of the corpus and {} of {tried} generated ones were run",
        runs - allowed
    );
    assert!(allowed > 100);
}

/// What a plan runs if every program succeeds. `None` where that depends on what the world holds.
fn planned(node: &Node, is_success: &mut bool, all: &mut Vec<Vec<String>>) -> Option<()> {
    match node {
        Node::Run(run) => {
            let mut words = vec![run.program.clone()];
            for argument in &run.arguments {
                words.push(argument.literal()?);
            }
            all.push(words);
            *is_success = true;
        }
        Node::Pipe(nodes) | Node::Sequence(nodes) => {
            for node in nodes {
                planned(node, is_success, all)?;
            }
        }
        Node::And(first, second) => {
            planned(first, is_success, all)?;
            if *is_success {
                planned(second, is_success, all)?;
            }
        }
        Node::Or(first, second) => {
            planned(first, is_success, all)?;
            if !*is_success {
                planned(second, is_success, all)?;
            }
        }
        Node::Not(body) => {
            planned(body, is_success, all)?;
            *is_success = !*is_success;
        }
        Node::Subshell(body) | Node::Redirected { body, .. } => planned(body, is_success, all)?,
        Node::If { branches, otherwise } => {
            for (condition, body) in branches {
                planned(condition, is_success, all)?;
                if *is_success {
                    return planned(body, is_success, all);
                }
            }
            if let Some(otherwise) = otherwise {
                planned(otherwise, is_success, all)?;
            }
        }
        // Stubs print nothing and change no folder.
        Node::Each { .. } | Node::Lines { .. } | Node::ChangeFolder(_) | Node::Timeout { .. } => return None,
    }
    Some(())
}

#[test]
fn a_plan_runs_what_bash_would_run() {
    let policy = Policy::compile(&Options::default()).unwrap();
    let copy = Copy::new();
    let stubs = TempDir::new().unwrap();
    let log = stubs.path().join("log");
    let lines: Vec<String> = corpus()
        .iter()
        .map(|line| command(&line["input"]))
        .chain(more())
        .collect();
    let mut compared = 0;
    for line in lines {
        // A program by its path cannot be replaced; what only the shell itself can do is not a program.
        let is_left_out = [
            "/bin/", "env ", "command ", "type ", "time ", "[[", "sh -c", "bash -", "nice ", ":", "!",
        ];
        let analysis = policy.analyse(&line, &copy.place());
        if *analysis.verdict() != Verdict::ReadOnly || is_left_out.iter().any(|text| line.contains(text)) {
            continue;
        }
        let mut expected = Vec::new();
        if planned(analysis.plan().unwrap(), &mut true, &mut expected).is_none() {
            continue;
        }
        for words in &expected {
            let stub = stubs.path().join(&words[0]);
            if !stub.exists() {
                // One write a program: the programs of a pipeline run at once and share the log.
                let text = "#!/bin/bash\nline=${0##*/}\nfor word in \"$@\"; do line+=$'\\1'$word; done\nprintf '%s\\2' \"$line\" >> \"$LOG\"\n";
                fs::write(&stub, text).unwrap();
                fs::set_permissions(&stub, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        fs::write(&log, "").unwrap();
        let whole = format!("enable -n echo printf test [ pwd true false kill\n{line}");
        copy.command("/bin/bash")
            .env("PATH", stubs.path())
            .env("LOG", &log)
            .args(["-c", &whole])
            .status()
            .unwrap();
        let mut ran: Vec<Vec<String>> = String::from_utf8(fs::read(&log).unwrap())
            .unwrap()
            .split_terminator('\u{2}')
            .map(|words| {
                words
                    .trim_end_matches('\u{1}')
                    .split('\u{1}')
                    .map(str::to_owned)
                    .collect()
            })
            .collect();
        for words in &mut expected {
            while words.last().is_some_and(String::is_empty) {
                words.pop();
            }
        }
        for words in &mut ran {
            while words.last().is_some_and(String::is_empty) {
                words.pop();
            }
        }
        expected.sort();
        ran.sort();
        assert_eq!(ran, expected, "{line:?}");
        compared += 1;
    }
    println!("{compared} lines compared");
    assert!(compared > 100, "{compared}");
}

/// Lines whose words are written in every way there is.
fn more() -> Vec<String> {
    [
        "ls 'a b' \"c  d\" e\\ f",
        "echo \"a\\$b\" 'c\\d' e\\\\f \"g\\h\" \"i\\\"j\" \"\\`k\\`\"",
        "echo $'a\\tb\\x41\\101\\u00e9' $'\\'' a''b \"\"",
        "echo {a,b}{1,2} {1..3} {c..a} x{,y} {single} {a,{b,c}} \\{a,b\\} '{a,b}' {1..10..3}",
        "echo ~ ~/x a~ '~' \"~\" x=~",
        "echo $HOME \"$HOME\" '$HOME' $PWD/x ${HOME}y",
        "echo $((1+2*3)) $(( (4-1) % 2 )) \"$((10/3))\"",
        "ls -l -- -x; pwd && echo a || echo b",
        "ls | wc -l | sort -n\necho x",
        "if test -f a; then echo b; elif ls; then pwd; else echo c; fi",
        "for f in a 'b c' d; do echo \"$f\" x$f; done",
        "{ ls; pwd; } | wc; (ls; pwd)",
        "ls a \\\n b # c\nwc 'a\nb'",
        "echo a#b '#' \\# c;# d",
        "x=5; y='a'; echo \"$x\" $y$x ${y}z",
        "grep -c '' <<< 'a > b'; cat <<'E'\nfoo $x\nE",
        "echo \"a\nb\" 2>&1 >/dev/null; ls 2>/dev/null 1>&2",
        "echo [a] [ ] a[b] ] } { ,",
        "echo a\\\nb 'c\\\nd' \"e\\\nf\"",
    ]
    .into_iter()
    .map(str::to_owned)
    .collect()
}

#[test]
fn the_copy_is_the_world() {
    let copy = Copy::new();
    assert!(Path::new(&copy.path("/w/proj/notes.txt")).exists());
    assert!(copy.path("/w/home/.bashrc").exists());
}
