//! What a decision costs: `cargo run --release -p tidegate-gate --example gate_bench`.
//!
//! A decision is the analysis of a command line and the gate's answer, on facts that are resolved already: what
//! stands on a disk is the tool box's to look up. Two figures come out, in microseconds: the middle one over the
//! lines of the shell corpus, and the worst over inputs at the bounds that are still judged.

use std::{
    collections::BTreeSet,
    io::Write as _,
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, Value};
use tidegate_core::{
    caller::{Attendance, Caller, Mode, Scope},
    id::{CallId, KeyId, UserId},
    tool::{Arguments, Effect, Parameter, ParameterType, ToolCall, ToolMode, ToolSpec},
};
use tidegate_gate::{
    Decision, Facts, PathFact, PathFault, PathKind, PermissionGate, Policy, ResolvedPath, Session, Zones,
    guards::outbound::Secrets,
    shell::{self, DEFAULT_MAX_COMMAND_CHARS, OperandKind, Place},
};

/// How often every input is judged; its middle time counts.
const ROUNDS: usize = 9;
/// The longest path that is looked up, and the deepest.
const PATH_BYTES_MAX: usize = 4_095;
const COMPONENTS_MAX: usize = 128;
/// What may not leave: as many values as a server with a few providers has.
const SECRETS: [&str; 3] = [
    "example-value-of-a-provider-1",
    "another value, with blanks and \"quotes\"",
    "0123456789abcdef0123456789abcdef",
];
const WORKSPACE: &str = "/w/proj";

fn main() -> ExitCode {
    let mut out = std::io::stdout();
    match measure() {
        Ok(Figures { p50, worst, bounds }) => {
            let mut lines = vec![format!("p50 {p50:.1}"), format!("worst {worst:.1}")];
            lines.extend(bounds.iter().map(|(name, time)| format!("  {time:>8.1}  {name}")));
            let text = lines.join(
                "
",
            ) + "
";
            match out.write_all(text.as_bytes()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            }
        }
        Err(problem) => {
            drop(writeln!(out, "error: {problem}"));
            ExitCode::FAILURE
        }
    }
}

/// What was measured, in microseconds.
struct Figures {
    /// The middle one over the corpus.
    p50: f64,
    /// The worst of all that is judged.
    worst: f64,
    /// Each input at the bounds, slowest first.
    bounds: Vec<(&'static str, f64)>,
}

fn measure() -> Result<Figures, Box<dyn std::error::Error>> {
    let desk = Desk::new()?;
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpora/shell.jsonl");
    let text = std::fs::read_to_string(&corpus)?;
    let lines: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let commands: Vec<&str> = lines.iter().filter_map(|line| line["input"].as_str()).collect();
    // Once through, so that every table is made.
    for command in &commands {
        desk.decide(command);
    }
    let mut times: Vec<f64> = commands.iter().map(|command| desk.middle(command)).collect();
    times.sort_by(f64::total_cmp);
    let p50 = times.get(times.len() / 2).copied().unwrap_or_default();
    let mut bounds: Vec<(&str, f64)> = at_the_bounds()
        .into_iter()
        .chain(of_odd_letters())
        .chain(of_odd_names())
        .filter(|(name, _)| std::env::args().nth(1).is_none_or(|only| only == *name))
        .filter(|(_, command)| desk.is_judged(command))
        .map(|(name, command)| (name, desk.middle(&command)))
        .collect();
    bounds.sort_by(|left, right| right.1.total_cmp(&left.1));
    let slowest_line = times.last().copied().unwrap_or_default();
    let worst = bounds
        .first()
        .map_or(slowest_line, |(_, time)| time.max(slowest_line));
    Ok(Figures { p50, worst, bounds })
}

/// Inputs as long, as deep and as full as they may be.
fn at_the_bounds() -> Vec<(&'static str, String)> {
    let fill = |prefix: &str, piece: &str, suffix: &str| {
        let room = DEFAULT_MAX_COMMAND_CHARS - prefix.len() - suffix.len();
        format!("{prefix}{}{suffix}", piece.repeat(room / piece.len()))
    };
    vec![
        ("one long word", fill("echo ", "a", "")),
        ("many words", fill("echo", " a", "")),
        ("many files", fill("cat", " a/b", "")),
        ("many patterns", fill("ls", " *.c", "")),
        ("many commands", fill("ls", ";ls", "")),
        ("many stages", fill("ls", "|wc", "")),
        ("many redirections", fill("ls", " 2>/dev/null", "")),
        ("many assignments", fill("", "a=b ", "ls")),
        ("many options", fill("grep", " -i", " x notes.txt")),
        ("many variables", fill("echo", " $a", "")),
        ("many braces", fill("echo", " {a,b}", "")),
        ("many escapes", fill("echo ", "\\a", "")),
        ("many commits", fill("git log", " HEAD", "")),
        ("many groups", fill("", "( ls ) ; ", "ls")),
        ("many tests", fill("ls", " && test -f a", "")),
        ("many comments", fill("ls ", "# a\n", "")),
        ("many blanks", fill("ls", " ", "x")),
        ("many expressions", fill("find . ", "-name a -o ", "-name b")),
        ("many edits", fill("sed -n ", "-e 1p ", "notes.txt")),
    ]
}

/// Letters beyond ASCII, as many as there may be.
fn of_odd_letters() -> Vec<(&'static str, String)> {
    let fill = |prefix: &str, piece: &str| {
        let room = DEFAULT_MAX_COMMAND_CHARS - prefix.chars().count();
        let letters: String = piece.chars().cycle().take(room).collect();
        format!("{prefix}{letters}")
    };
    vec![
        ("letters of another script", fill("echo ", "ä")),
        ("letters of three bytes", fill("echo ", "潮")),
        ("letters of four bytes", fill("echo ", "𝒂")),
        ("wide letters", fill("echo ", "ａ")),
        ("letters that stand for many", fill("echo ", "\u{fdfa}")),
        (
            "a few letters that stand for many",
            format!("echo {}", "\u{fdfa}".repeat(800)),
        ),
        ("marks on one letter", fill("echo a", "\u{301}\u{323}")),
        ("invisible letters", fill("echo ", "\u{200b}")),
        (
            "wide words",
            fill(
                "echo",
                " ａｂｃｄｅｆｇｈｉｊｋｌｍｎｏｐｑｒｓｔｕｖｗｘｙｚａｂｃｄｅｆｇｈｉｊｋｌｍｎ",
            ),
        ),
        ("wide folders", fill("cat ", "ａｂｃｄｅｆｇ/")),
        (
            "quoted letters",
            format!(
                "{}\"",
                fill("echo \"", "ä b")
                    .chars()
                    .take(DEFAULT_MAX_COMMAND_CHARS - 1)
                    .collect::<String>()
            ),
        ),
        ("files of another script", fill("cat", " äöü.txt")),
    ]
}

/// Names that look like something the floors know.
fn of_odd_names() -> Vec<(&'static str, String)> {
    let fill = |prefix: &str, piece: &str| {
        let room = DEFAULT_MAX_COMMAND_CHARS - prefix.len();
        format!("{prefix}{}", piece.repeat(room / piece.len()))
    };
    let numbered = |prefix: &str, count: usize, name: &dyn Fn(usize) -> String| {
        let names: String = (0..count).map(name).collect();
        format!("{prefix}{names}")
    };
    vec![
        ("one path of many folders", fill("cat ", "a/")),
        ("paths of many folders", fill("cat", &format!(" {}", "a/".repeat(400)))),
        ("folders with dots", fill("cat", &format!(" {}", ".a_/".repeat(255)))),
        ("folders in capitals", fill("cat", &format!(" {}", "Ab/".repeat(255)))),
        ("streams of one name", numbered("cat x", 2_500, &|at| format!(":{at:x}"))),
        ("copies of copies", fill("cat a", ".bak~")),
        ("names that nearly match", fill("cat", " .envy_keyless.pemm/id_rsab")),
        ("patterns that nearly match", fill("cat", " .e?v*x[a-c]")),
        ("quotes in one word", format!("{}{}", "echo ", "''".repeat(128))),
        ("quoted words", fill("echo", " 'a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g h i j k l m n o p q r s t u v w x y z 1 2 3 4 5 6 7 8 9'").chars().take(12_000).collect()),
        ("many pipes", fill("cat a", "|cat b c d e f g h i j k").chars().take(1_100).collect()),
        ("text for python", format!("python3 -c \"{}\"", "open(a.b).read() + x_y;".repeat(600))),
        ("text for bash", format!("bash -c \"{}\"", "ls a/b.c ".repeat(390))),
        ("addresses", fill("curl", " https://a.test/b_c/d.e?f=g")),
        ("base64", format!("curl -d {} https://a.test/", "QUJDREVGR0g".repeat(1_400))),
        (
            "base64 in pieces",
            format!("curl https://a.test/ -d '{}'", "QUJDREVGR0gQUJDREVGR0g%3D ".repeat(600)),
        ),
        (
            "escapes in escapes",
            format!("curl https://a.test/ -d '{}'", "%252525%5c%5c".repeat(1_200)),
        ),
        ("assignments of values", fill("export", " a_b=c.d/e:f@g")),
    ]
}

struct Desk {
    policy: shell::Policy,
    place: Place,
    gate: PermissionGate,
    spec: ToolSpec,
    session: Session,
}

impl Desk {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let key_id = KeyId::new("key_bench");
        let zones = Zones {
            readable: vec![WORKSPACE.into()],
            writable: vec![WORKSPACE.into()],
            ..Zones::default()
        };
        Ok(Self {
            policy: shell::Policy::compile(&shell::Options::default())?,
            place: Place::new(WORKSPACE, "/w/home"),
            gate: PermissionGate::new(Policy {
                zones,
                secrets: Some(Arc::new(Secrets::compile(SECRETS)?)),
                ..Policy::default()
            }),
            spec: spec(),
            session: Session {
                caller: Arc::new(Caller {
                    user: UserId::of(&key_id, None)?,
                    key_id,
                    scopes: BTreeSet::from([Scope::Tools]),
                    mode_ceiling: Mode::FullAuto,
                    models: None,
                    tools: None,
                    tokens_per_day: None,
                }),
                mode: Mode::ReadOnly,
                conversation: String::new(),
                attendance: Attendance::Attended,
            },
        })
    }

    /// Judges a line; how long the analysis and the answer took.
    fn decide(&self, command: &str) -> (Duration, Decision) {
        let arguments = Map::from_iter([("command".to_owned(), Value::from(command))]);
        let call = ToolCall {
            id: CallId::new("call_bench"),
            name: self.spec.name.clone(),
            arguments: Arguments::Object(arguments),
        };
        let begin = Instant::now();
        let analysis = self.policy.analyse(command, &self.place);
        let analysed = begin.elapsed();
        let facts = facts(analysis);
        let begin = Instant::now();
        let decision = self.gate.decide(call, &self.spec, &facts, &self.session, None);
        (analysed + begin.elapsed(), decision)
    }

    fn middle(&self, command: &str) -> f64 {
        let mut times: Vec<f64> = (0..ROUNDS)
            .map(|_| self.decide(command).0.as_secs_f64() * 1e6)
            .collect();
        times.sort_by(f64::total_cmp);
        times.get(ROUNDS / 2).copied().unwrap_or_default()
    }

    /// Whether the line is judged at all, rather than refused for its shape.
    fn is_judged(&self, command: &str) -> bool {
        match self.decide(command).1 {
            Decision::Allow(_) | Decision::Ask(_) => true,
            Decision::Deny(denial) => !matches!(denial.code, "too_long" | "too_many_quotes"),
        }
    }
}

/// Files as they would be found, each a plain one.
fn facts(analysis: shell::Analysis) -> Facts {
    let paths = analysis
        .operands()
        .iter()
        .filter(|operand| operand.kind != OperandKind::Dynamic)
        .map(|operand| PathFact {
            argument: "command".to_owned(),
            requested: operand.text.clone(),
            access: operand.access,
            resolution: found(&operand.text),
        })
        .collect();
    Facts {
        paths,
        working_folder: Some(WORKSPACE.into()),
        can_mask: true,
        command: Some(Arc::new(analysis)),
        ..Facts::default()
    }
}

/// What the tool box would find, with its own bounds on paths.
fn found(path: &str) -> Result<ResolvedPath, PathFault> {
    if path.len() > PATH_BYTES_MAX || path.matches('/').count() > COMPONENTS_MAX {
        return Err(PathFault::Malformed("it is too long".to_owned()));
    }
    Ok(ResolvedPath {
        real: path.into(),
        kind: PathKind::File,
        hard_links: 1,
        is_link: false,
    })
}

fn spec() -> ToolSpec {
    ToolSpec {
        name: "execute_shell".to_owned(),
        description: String::new(),
        mode: ToolMode::Shell,
        effect: Effect::External,
        parameters: vec![Parameter {
            name: "command".to_owned(),
            kind: ParameterType::String,
            description: String::new(),
            required: true,
            one_of: Vec::new(),
            min: None,
            max: None,
            chars_max: None,
            free_text: false,
        }],
        timeout_ms: 1_000,
        output_bytes_max: 1_000,
    }
}
