//! Programs that start another one given as operands: how far their own words reach.

use super::Walk;
use crate::shell::shape::{Output, Shape};

/// How a wrapper's own words are told from the command behind them.
#[derive(Debug)]
struct Wrapper {
    names: &'static [&'static str],
    /// Short options without a value.
    flags: &'static str,
    /// Short options with a value.
    values: &'static str,
    /// Long options with a value in the next word.
    long_values: &'static [&'static str],
    /// Operands in front of the command.
    operands: usize,
    /// Takes assignments in front of the command.
    assigns: bool,
}

const fn wrapper(names: &'static [&'static str], flags: &'static str, values: &'static str) -> Wrapper {
    Wrapper {
        names,
        flags,
        values,
        long_values: &[],
        operands: 0,
        assigns: false,
    }
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        long_values: &["--unset", "--chdir", "--argv0"],
        assigns: true,
        ..wrapper(&["env"], "i0v", "uCa")
    },
    wrapper(&["command"], "pvV", ""),
    wrapper(
        &[
            "builtin",
            "nohup",
            "busybox",
            "toybox",
            "eatmydata",
            "fakeroot",
            "unbuffer",
            "catchsegv",
            "noglob",
            "nocorrect",
        ],
        "",
        "",
    ),
    wrapper(&["exec"], "cl", "a"),
    wrapper(&["setsid"], "cfw", ""),
    Wrapper {
        long_values: &["--adjustment"],
        ..wrapper(&["nice"], "0123456789", "n")
    },
    Wrapper {
        long_values: &["--class", "--classdata", "--pid"],
        ..wrapper(&["ionice"], "t", "cnpPu")
    },
    Wrapper {
        long_values: &["--input", "--output", "--error"],
        ..wrapper(&["stdbuf"], "", "ioe")
    },
    Wrapper {
        long_values: &["--signal", "--kill-after"],
        operands: 1,
        ..wrapper(&["timeout", "gtimeout"], "fpv", "sk")
    },
    Wrapper {
        long_values: &["--format", "--output"],
        ..wrapper(&["time", "gtime"], "apqvV", "fo")
    },
    Wrapper {
        long_values: &[
            "--user",
            "--group",
            "--host",
            "--prompt",
            "--chdir",
            "--close-from",
            "--role",
            "--type",
            "--chroot",
            "--other-user",
        ],
        assigns: true,
        ..wrapper(&["sudo"], "AbEeHiKklnPSsvBN", "ughpCrtTRDU")
    },
    wrapper(&["doas"], "Lns", "aCu"),
    wrapper(
        &[
            "pkexec",
            "firejail",
            "dbus-run-session",
            "dbus-launch",
            "xvfb-run",
            "linux32",
            "linux64",
            "setarch",
            "i386",
        ],
        "a",
        "",
    ),
    Wrapper {
        operands: 1,
        ..wrapper(&["chrt"], "abfoimrR", "pTPD")
    },
    Wrapper {
        operands: 1,
        ..wrapper(&["taskset"], "ac", "")
    },
    Wrapper {
        long_values: &["--timeout", "--wait", "--conflict-exit-code"],
        operands: 1,
        ..wrapper(&["flock"], "enosuxFv", "wE")
    },
    Wrapper {
        operands: 1,
        ..wrapper(&["chroot"], "", "")
    },
    wrapper(&["unshare", "nsenter"], "mnpuUirfCTFZ", "tSGRw"),
    Wrapper {
        long_values: &["--user", "--group"],
        ..wrapper(&["runuser"], "lmpf", "ugsG")
    },
    wrapper(&["strace", "ltrace"], "cCdfFhikqrtTvVxyYnz", "abeEIOopPsSuU"),
    Wrapper {
        long_values: &["--interval"],
        ..wrapper(&["watch"], "bcdegprtwxC", "nq")
    },
    Wrapper {
        long_values: &[
            "--arg-file",
            "--delimiter",
            "--eof",
            "--replace",
            "--max-lines",
            "--max-args",
            "--max-procs",
            "--max-chars",
            "--process-slot-var",
        ],
        ..wrapper(&["xargs", "gxargs"], "0ortpxie", "aEdILnPsR")
    },
    Wrapper {
        long_values: &[
            "--jobs",
            "--arg-file",
            "--colsep",
            "--delay",
            "--timeout",
            "--joblog",
            "--results",
            "--max-args",
            "--max-procs",
        ],
        ..wrapper(&["parallel"], "kqtvX0m", "jaIndNPLSs")
    },
    wrapper(&["systemd-run", "systemd-inhibit"], "dGPqSrt", "pEHMu"),
    wrapper(&["entr"], "acdnprsz", ""),
    wrapper(&["caffeinate"], "disum", "tw"),
    wrapper(
        &[
            "perf",
            "valgrind",
            "hyperfine",
            "rlwrap",
            "proxychains",
            "proxychains4",
            "torsocks",
            "tsocks",
            "faketime",
            "gdb",
            "then",
            "do",
            "else",
            "if",
            "while",
            "until",
            "!",
        ],
        "",
        "",
    ),
    wrapper(&["coproc"], "", ""),
];

impl Walk<'_> {
    /// What a wrapper starts; `None` if the program is none.
    pub(super) fn wrapper(&mut self, name: &str, words: &[Shape], stdin: &Output) -> Option<Output> {
        let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name))?;
        // `command -v git` starts nothing.
        if name == "command"
            && words
                .first()
                .is_some_and(|word| matches!(word.text.as_str(), "-v" | "-V"))
        {
            return Some(Output::Other);
        }
        if name == "env" {
            self.split_string(words, stdin);
        }
        let Some(inner) = wrapper.inner(words) else {
            // Its own words could not be told from the command's: any of them could be the first.
            let mut output = Output::Other;
            for at in 0..words.len() {
                if let Some(rest) = words.get(at..) {
                    let next = self.invoke(rest, stdin);
                    output = output.then(next);
                }
            }
            return Some(output);
        };
        let fed;
        let stdin = if matches!(name, "xargs" | "gxargs" | "parallel") {
            fed = self.arguments_from(words, inner, stdin);
            &fed
        } else {
            stdin
        };
        if inner.is_empty() {
            if name == "parallel" {
                return Some(self.text_from(stdin));
            }
            return Some(match name {
                "env" | "time" | "watch" => Output::Other,
                _ => stdin.clone(),
            });
        }
        Some(match name {
            "xargs" | "gxargs" => self.xargs(words, inner, stdin),
            "parallel" => self.parallel(inner, stdin),
            "flock"
                if inner
                    .first()
                    .is_some_and(|word| word.text == "-c" || word.text == "--command") =>
            {
                let text = joined(inner.get(1..).unwrap_or_default());
                self.payload(&text, stdin, true)
            }
            "watch" | "hyperfine" | "flock" | "entr" => {
                let text = joined(inner);
                self.payload(&text, stdin, false);
                self.invoke(inner, stdin)
            }
            _ => self.invoke(inner, stdin),
        })
    }
}

impl Wrapper {
    /// The words of the command inside. `None` if an option is not known.
    fn inner<'w>(&self, words: &'w [Shape]) -> Option<&'w [Shape]> {
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let text = word.text.as_str();
            if text == "--" {
                at += 1;
                break;
            }
            if word.is_unknown() && text.starts_with(crate::shell::shape::UNKNOWN) {
                return None;
            }
            if self.assigns && is_assignment(text) {
                at += 1;
                continue;
            }
            let Some(letters) = text.strip_prefix('-') else {
                break;
            };
            if letters.is_empty() {
                at += 1;
                continue;
            }
            if let Some(long) = letters.strip_prefix('-') {
                if long.contains('=') {
                    at += 1;
                } else if self.long_values.contains(&text) {
                    at += 2;
                } else if self.long_values.iter().any(|value| value.starts_with(text)) {
                    return None;
                } else {
                    at += 1;
                }
                continue;
            }
            at += self.short(letters)?;
        }
        if self.assigns {
            while words.get(at).is_some_and(|word| is_assignment(&word.text)) {
                at += 1;
            }
        }
        words.get((at + self.operands).min(words.len())..)
    }

    /// How many words a cluster of short options takes.
    fn short(&self, letters: &str) -> Option<usize> {
        for (at, letter) in letters.char_indices() {
            if self.values.contains(letter) {
                let is_joined = at + letter.len_utf8() < letters.len();
                return Some(if is_joined { 1 } else { 2 });
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(1)
    }
}

pub(super) fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    })
}

pub(super) fn joined(words: &[Shape]) -> String {
    words
        .iter()
        .map(|word| word.text.as_str())
        .collect::<Vec<_>>()
        .join(" ")
}
