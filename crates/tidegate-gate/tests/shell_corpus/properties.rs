//! What holds for every line, however it is spelled.

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use super::world::{World, command, corpus};
use proptest::prelude::*;
use tidegate_gate::shell::{Options, Place, Policy, Verdict};

/// How long one line may take. A build without optimisation on a busy machine gets more.
const LIMIT: Duration = Duration::from_millis(if cfg!(debug_assertions) { 2_000 } else { 50 });

static POLICY: LazyLock<Policy> = LazyLock::new(|| Policy::compile(&Options::default()).unwrap());

/// Lines of the corpus without options of their own, by what they are.
struct Lines {
    allowed: Vec<String>,
    asked: Vec<String>,
    refused: Vec<String>,
}

static LINES: LazyLock<Lines> = LazyLock::new(|| {
    let mut lines = Lines {
        allowed: Vec::new(),
        asked: Vec::new(),
        refused: Vec::new(),
    };
    for line in corpus() {
        let line = command(&line["input"]);
        if line.len() > 200 {
            continue;
        }
        match POLICY.analyse(&line, &place()).verdict() {
            Verdict::ReadOnly => lines.allowed.push(line),
            Verdict::NeedsGrant { .. } => lines.asked.push(line),
            Verdict::Refused { floor, .. } if *floor != "unanalysable" => lines.refused.push(line),
            Verdict::Refused { .. } => {}
        }
    }
    lines
});

fn place() -> Place {
    World::read().place().clone()
}

/// Judges a line in time. A busy machine gets two more tries: only the line itself may be slow.
fn judge(line: &str) -> Verdict {
    let place = Place::new("/w/proj", "/w/home");
    let mut quickest = Duration::MAX;
    for _ in 0..3 {
        let started = Instant::now();
        let verdict = POLICY.analyse(line, &place).verdict().clone();
        quickest = quickest.min(started.elapsed());
        if quickest < LIMIT {
            return verdict;
        }
    }
    panic!("{quickest:?} for {:?}", line.chars().take(60).collect::<String>());
}

/// A word that is spelled otherwise and means the same.
fn respelled(word: &str, how: u8, at: usize) -> String {
    if word.is_empty()
        || !word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte))
    {
        return word.to_owned();
    }
    let at = at % word.len();
    let (before, after) = word.split_at(at);
    match how % 6 {
        0 => format!("{before}''{after}"),
        1 => format!("{before}\"\"{after}"),
        2 => format!("{before}\\{after}"),
        3 => format!("'{word}'"),
        4 => format!("\"{word}\""),
        _ => format!("{before}\\\n{after}"),
    }
}

/// The whole line inside something that runs it.
fn wrapped(line: &str, how: u8) -> String {
    let quoted = line.replace('\'', "'\\''");
    match how % 7 {
        0 => format!("({line}\n)"),
        1 => format!("{{ {line}\n}}"),
        2 => format!("sh -c '{quoted}'"),
        3 => format!("bash -lc '{quoted}'"),
        4 => format!("ls; {line}"),
        5 => format!("if true; then {line}\nfi"),
        _ => format!("eval '{quoted}'"),
    }
}

fn fragment() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "git",
        "push",
        "ls",
        "rm",
        "-rf",
        "/",
        "$(",
        ")",
        "`",
        "'",
        "\"",
        "${",
        "}",
        "<<E",
        "\nE\n",
        "|",
        "&&",
        ";",
        "&",
        ">",
        "<(",
        "((",
        "))",
        "[[",
        "]]",
        "case",
        "esac",
        "in",
        "if",
        "then",
        "fi",
        "for",
        "do",
        "done",
        "{",
        "}",
        "*",
        "?",
        "[a]",
        "$x",
        "\\",
        "~",
        "eval",
        "sh -c",
        "xargs",
        "env",
        "find . -exec",
        "\n",
        " ",
        "\t",
        "=",
        "x=",
        "$'",
        "\\x41",
        ".env",
        "-o",
        "--output",
        "é",
        "\u{202e}",
        "\r",
        "{a,b}",
        "{1..9}",
        "#",
        "!",
        "time",
        "$((",
        "1+1",
    ])
    .prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_judged_in_time(line in "\\PC{0,200}|[ -~\\n\\t]{0,400}") {
        judge(&line);
    }

    #[test]
    fn any_mixture_of_the_shells_words_is_judged_in_time(parts in prop::collection::vec(fragment(), 0..120), blank in prop::bool::ANY) {
        judge(&parts.join(if blank { " " } else { "" }));
    }

    #[test]
    fn a_part_that_changes_something_is_never_allowed(
        at in 0_usize..1000,
        joint in prop::sample::select(vec!["; ", " && ", " || ", " | ", "\n", " & ", " |& ", ";", "|"]),
        change in prop::sample::select(vec!["touch pwn", "rm victim.txt", "tee pwn", "cp notes.txt pwn", "sh script.sh", "> pwn", "x() { rm y; }; x"]),
        is_first in prop::bool::ANY,
    ) {
        let line = &LINES.allowed[at % LINES.allowed.len()];
        prop_assume!(!line.contains('#'));
        let line = if is_first { format!("{change}{joint}{line}") } else { format!("{line}{joint}{change}") };
        prop_assert_ne!(judge(&line), Verdict::ReadOnly, "{}", line);
    }

    #[test]
    fn no_spelling_turns_a_floor_off(at in 0_usize..1000, how in any::<u8>(), position in 0_usize..20, word in 0_usize..8, wrap in any::<u8>()) {
        let line = &LINES.refused[at % LINES.refused.len()];
        // Words of the line; lines with quotes and the like are only wrapped.
        let is_simple = line.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" -._/:=@~".contains(&byte));
        let line = if is_simple {
            let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let count = words.len();
            let word = &mut words[word % count];
            if !word.starts_with('~') && !word.contains('=') {
                *word = respelled(word, how, position);
            }
            words.join(" ")
        } else {
            line.clone()
        };
        let is_refused = |line: &str| matches!(judge(line), Verdict::Refused { .. });
        prop_assert!(is_refused(&line), "{}", line);
        let line = wrapped(&line, wrap);
        prop_assert!(is_refused(&line), "{}", line);
    }

    #[test]
    fn no_spelling_makes_a_change_harmless(at in 0_usize..1000, how in any::<u8>(), position in 0_usize..20, word in 0_usize..8, wrap in any::<u8>()) {
        let line = &LINES.asked[at % LINES.asked.len()];
        let is_simple = line.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" -._/".contains(&byte));
        let line = if is_simple {
            let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let count = words.len();
            let word = &mut words[word % count];
            *word = respelled(word, how, position);
            words.join(" ")
        } else {
            line.clone()
        };
        prop_assert_ne!(judge(&line), Verdict::ReadOnly, "{}", line);
        let line = wrapped(&line, wrap);
        prop_assert_ne!(judge(&line), Verdict::ReadOnly, "{}", line);
    }
}

#[test]
fn the_worst_lines_are_judged_in_time() {
    for (unit, count) in [
        ("(", 16_000),
        ("$(", 8_000),
        ("${x:-", 3_000),
        ("$((", 5_000),
        ("`", 256),
        ("{a,b}", 3_000),
        ("<<E ", 4_000),
        ("a=$(", 4_000),
        ("[[ ", 5_000),
        ("* ", 390),
        ("eval ", 390),
        ("env ", 390),
        ("xargs ", 390),
        ("env -Z ", 190),
        ("sudo -Q ", 190),
        ("sh -c ", 190),
        ("git ", 390),
        ("{", 16_000),
        ("x=y;", 390),
        ("case x in ", 1_600),
        ("$x", 8_000),
        ("\\\n", 8_000),
        (".e*", 5_000),
        ("a|", 390),
        (".env.", 3_000),
        ("a_b.c/", 2_500),
    ] {
        let started = Instant::now();
        judge(&unit.repeat(count));
        judge(&format!("echo {}", unit.repeat(count)));
        judge(&format!("cat \"{}\"", unit.repeat(count)));
        judge(&format!("sh -c '{}'", unit.repeat(count)));
        println!("{unit:?} {:?}", started.elapsed());
    }
}
