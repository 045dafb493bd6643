//! Interpreters: where the code that they run comes from. Code of other languages is not read here; what
//! matters is whether it came over the network.

use super::{Floor, Walk, wipe};
use crate::shell::shape::{Output, Shape, UNKNOWN};

/// What the first operand of an interpreter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operand {
    /// A file with code; without it, the code flows in.
    Script,
    /// The code itself.
    Code,
    /// Neither.
    Data,
}

/// How the command line of an interpreter is read.
#[derive(Debug)]
struct Language {
    names: &'static [&'static str],
    /// Short options whose value is code or a module: no script is read then.
    code: &'static str,
    /// Short options whose value is a file with code.
    files: &'static str,
    /// Short options with a value.
    values: &'static str,
    /// Short options whose value, if any, is joined to them.
    joined: &'static str,
    /// Short options after which what flows in runs too.
    interactive: &'static str,
    operand: Operand,
}

const fn language(names: &'static [&'static str], code: &'static str) -> Language {
    Language {
        names,
        code,
        files: "",
        values: "",
        joined: "",
        interactive: "",
        operand: Operand::Script,
    }
}

const LANGUAGES: &[Language] = &[
    Language {
        values: "WX",
        interactive: "i",
        ..language(&["python", "pypy", "ipython"], "cm")
    },
    Language {
        values: "I",
        joined: "iFMmDVdC",
        ..language(&["perl"], "eE")
    },
    Language {
        values: "rICE",
        joined: "iFKTW",
        ..language(&["ruby", "jruby"], "e")
    },
    Language {
        values: "rC",
        interactive: "i",
        ..language(&["node", "nodejs", "deno", "bun"], "ep")
    },
    Language {
        files: "fF",
        values: "dcSz",
        interactive: "a",
        ..language(&["php"], "rBRE")
    },
    Language {
        values: "l",
        interactive: "i",
        ..language(&["lua", "luajit"], "e")
    },
    Language {
        files: "fL",
        values: "l",
        interactive: "i",
        ..language(&["r", "rscript", "julia", "guile", "osascript"], "eEc")
    },
    Language {
        files: "f",
        values: "dhpUvPFRTLo",
        ..language(&["psql"], "c")
    },
    language(&["tclsh", "wish", "expect"], "c"),
    Language {
        files: "f",
        values: "vF",
        operand: Operand::Code,
        ..language(&["awk", "gawk", "mawk", "nawk"], "e")
    },
    Language {
        files: "f",
        values: "l",
        joined: "iE",
        operand: Operand::Code,
        ..language(&["sed", "gsed"], "e")
    },
    Language {
        files: "f",
        values: "CIoW",
        joined: "jl",
        operand: Operand::Data,
        ..language(&["make", "gmake"], "E")
    },
];

/// Long options whose value is code.
const CODE_OPTIONS: [&str; 7] = [
    "--eval",
    "--print",
    "--command",
    "--execute",
    "--run",
    "--expression",
    "--source",
];
/// Long options whose value is a file with code.
const FILE_OPTIONS: [&str; 3] = ["--file", "--makefile", "--load"];
/// Long options with a value in the next word.
const VALUE_OPTIONS: [&str; 9] = [
    "--require",
    "--import",
    "--loader",
    "--experimental-loader",
    "--check-hash-based-pycs",
    "--assign",
    "--field-separator",
    "--directory",
    "--config",
];
/// Options after which nothing runs.
const SHOWS: [&str; 3] = ["--version", "--help", "-V"];
/// Modules of Python that run what flows in.
const READING_MODULES: [&str; 3] = ["code", "asyncio", "IPython"];
/// Words of code that turn text into code.
const EVALUATORS: [&str; 7] = [
    "exec",
    "eval",
    "execfile",
    "loadstring",
    "instance_eval",
    "runInThisContext",
    "system",
];

fn find(name: &str) -> Option<&'static Language> {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    LANGUAGES
        .iter()
        .find(|language| language.names.contains(&name) || language.names.contains(&stem))
}

/// Programs that run code from their input when they are given none.
pub(super) fn is_interpreter(name: &str) -> bool {
    find(name).is_some_and(|language| language.operand == Operand::Script)
}

/// What the command line of an interpreter has shown so far.
#[derive(Debug, Default)]
struct Found {
    has_code: bool,
    /// What flows in runs, whatever else does.
    reads_input: bool,
    /// The code can turn text into code.
    evaluates: bool,
}

impl Walk<'_> {
    /// Judges where the code of an interpreter comes from, and says what it would print.
    pub(super) fn interprets(&mut self, name: &str, words: &[Shape], stdin: &Output) -> Output {
        let Some(language) = find(name) else {
            return Output::Other;
        };
        let mut found = Found::default();
        let mut words_left = words;
        while let Some((word, rest)) = words_left.split_first() {
            words_left = rest;
            let text = word.text.as_str();
            if SHOWS.contains(&text) {
                return Output::Other;
            }
            let is_option = text.starts_with('-') && text.len() > 1;
            if is_option && text != "--" {
                words_left = self.option(language, word, rest, &mut found, stdin);
            } else if matches!(text, "run" | "inspect") && matches!(name, "deno" | "bun" | "node")
                || text == "--"
            {
                // The operand comes behind it.
            } else {
                self.operand(language, word, rest, &mut found, stdin);
                break;
            }
        }
        let has_operand = found.has_code || language.operand != Operand::Script;
        if found.reads_input || !has_operand {
            self.code_from(stdin);
        }
        let is_fed = *stdin == Output::Download || words.iter().any(is_downloaded);
        if found.has_code && found.evaluates && is_fed {
            self.downloads_run();
        }
        if is_fed { Output::Download } else { Output::Other }
    }

    fn operand(
        &mut self,
        language: &Language,
        word: &Shape,
        rest: &[Shape],
        found: &mut Found,
        stdin: &Output,
    ) {
        match language.operand {
            Operand::Script if found.has_code => {
                // Code on the line can run its parameters.
                if rest.iter().chain([word]).any(is_downloaded) {
                    self.downloads_run();
                }
            }
            Operand::Script => {
                found.has_code = true;
                self.code_file(word, stdin);
            }
            Operand::Code if !found.has_code => self.inline(word, found),
            Operand::Code | Operand::Data => {}
        }
    }

    /// Reads an option, and gives the words behind it and its value.
    fn option<'w>(
        &mut self,
        language: &Language,
        word: &Shape,
        rest: &'w [Shape],
        found: &mut Found,
        stdin: &Output,
    ) -> &'w [Shape] {
        let text = word.text.as_str();
        let after = rest.get(1..).unwrap_or_default();
        if text.starts_with("--") {
            let (option, joined) = match text.split_once('=') {
                Some((option, value)) => (option, Some(value)),
                None => (text, None),
            };
            let value = joined.map(|value| part(word, value));
            let value = value.as_ref().or(rest.first());
            match value {
                Some(value) if CODE_OPTIONS.contains(&option) => self.inline(value, found),
                Some(value) if FILE_OPTIONS.contains(&option) => {
                    found.has_code = true;
                    self.code_file(value, stdin);
                }
                Some(_) if VALUE_OPTIONS.contains(&option) => {}
                Some(_) | None => {
                    found.reads_input |= option == "--interactive" && !language.interactive.is_empty();
                    return rest;
                }
            }
            return if joined.is_some() { rest } else { after };
        }
        for (at, letter) in text.char_indices().skip(1) {
            let joined = text.get(at + letter.len_utf8()..).unwrap_or_default();
            if language.joined.contains(letter) {
                return rest;
            }
            found.reads_input |= language.interactive.contains(letter);
            let is_code = language.code.contains(letter);
            let is_file = language.files.contains(letter);
            if letter == 'p' && is_code && joined == "e" {
                // `-pe` of node.
                continue;
            }
            if !is_code && !is_file && !language.values.contains(letter) {
                continue;
            }
            let own = (!joined.is_empty()).then(|| part(word, joined));
            if let Some(value) = own.as_ref().or(rest.first()) {
                if is_code {
                    found.reads_input |= letter == 'm' && READING_MODULES.contains(&value.text.as_str());
                    self.inline(value, found);
                } else if is_file {
                    found.has_code = true;
                    self.code_file(value, stdin);
                }
            }
            return if own.is_some() { rest } else { after };
        }
        rest
    }

    /// Code that stands on the line.
    fn inline(&mut self, code: &Shape, found: &mut Found) {
        found.has_code = true;
        if is_downloaded(code) {
            self.downloads_run();
        }
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
        found.evaluates |= code
            .text
            .split(|letter| !is_part(letter))
            .any(|word| EVALUATORS.contains(&word) || word.ends_with(".system"));
    }

    /// A file with code: it can be what flows in, under any of its names.
    fn code_file(&mut self, word: &Shape, stdin: &Output) {
        if word.is_stream {
            self.code_from(&word.origin.clone().unwrap_or_default());
        } else if is_downloaded(word) {
            self.downloads_run();
        } else {
            self.ran_download(&word.text);
            if self.could_be_input(word) {
                self.code_from(stdin);
            }
        }
    }

    /// Whether a file operand is, or could turn out to be, the input or nothing at all.
    pub(super) fn could_be_input(&self, word: &Shape) -> bool {
        if word.text.is_empty() || word.text == "-" {
            return true;
        }
        if word.known().is_none() {
            let names = ["", "-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];
            return names.iter().any(|name| word.could_be(name))
                || is_input(&wipe::normal(&word.text, self.place.working_folder()));
        }
        let folder = self.folder.as_deref().unwrap_or("/dev");
        is_input(&wipe::normal(&word.text, folder))
    }

    /// Code in another language: only where it comes from, and what it names, can be judged.
    fn code_from(&mut self, stdin: &Output) {
        match stdin {
            Output::Download => self.downloads_run(),
            Output::Known(text) => {
                let shape = Shape::literal(text.clone());
                self.name("code", &shape);
            }
            Output::Decoded | Output::Other => {}
        }
    }

    pub(super) fn downloads_run(&mut self) {
        self.refuse(
            Floor::Unrecoverable,
            "download_runs",
            "what comes from the network would run at once, unseen",
        );
    }
}

/// A path without detours that names an open descriptor.
fn is_input(path: &str) -> bool {
    let is_number = |text: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|letter| letter.is_ascii_digit() || letter == UNKNOWN)
    };
    if path == "/dev/stdin" {
        return true;
    }
    match path.rsplit_once("/fd/") {
        Some((folder, number)) => (folder == "/dev" || folder.starts_with("/proc/")) && is_number(number),
        None => false,
    }
}

fn is_downloaded(word: &Shape) -> bool {
    word.origin == Some(Output::Download)
}

/// A part of a word, as a word.
fn part(word: &Shape, text: &str) -> Shape {
    Shape {
        text: text.to_owned(),
        ..word.clone()
    }
}
