//! Programs that run text: shells, `eval` and its kin, remote shells, interpreters.

use super::{
    Floor, Walk, interpreters,
    wrappers::{is_assignment, joined},
};
use crate::shell::shape::{Output, Shape, UNKNOWN, base, program_name};

const SHELLS: [&str; 14] = [
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "mksh",
    "ash",
    "fish",
    "rbash",
    "csh",
    "tcsh",
    "cmd",
    "powershell",
    "pwsh",
];

pub(super) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name) || name.strip_prefix("bash-").is_some()
}

impl Walk<'_> {
    /// What a program that runs text would run; `None` if it is none.
    pub(super) fn runs_text(&mut self, name: &str, words: &[Shape], stdin: &Output) -> Option<Output> {
        if !interpreters::is_interpreter(name) {
            // What makes of `awk -f` and the like their code.
            self.interprets(name, words, stdin);
        }
        match name {
            _ if is_shell(name) => Some(self.shell(name, words, stdin)),
            "eval" => Some(self.text_of(words, stdin)),
            "source" | "." => {
                if let Some(script) = words.iter().find(|word| word.text != "--") {
                    self.script_operand(script, stdin);
                }
                Some(Output::Other)
            }
            "trap" => {
                let action = words.iter().find(|word| !word.text.starts_with('-'));
                Some(self.text_of(action.map(std::slice::from_ref).unwrap_or_default(), stdin))
            }
            "alias" | "bind" | "complete" => {
                for word in words {
                    let text = word
                        .text
                        .split_once('=')
                        .map_or(word.text.as_str(), |(_, value)| value);
                    self.payload(&format!("{text} {UNKNOWN}"), stdin, false);
                }
                Some(Output::Other)
            }
            "su" | "script" | "runuser" | "sg" | "newgrp" | "su-exec" | "gosu" => {
                Some(self.dash_c(words, stdin))
            }
            "ssh" | "rsh" | "mosh" | "autossh" | "sshpass" => Some(self.remote_shell(words, stdin)),
            "docker" | "podman" | "kubectl" | "oc" | "lxc" | "nix-shell" | "vagrant" | "tmux" | "screen"
            | "at" | "batch" | "make" | "npx" | "uv" | "poetry" | "pipenv" | "direnv" | "conda" => {
                Some(self.perhaps_inside(name, words, stdin))
            }
            "find" | "fd" | "fdfind" => {
                self.find(name, words, stdin);
                Some(self.output_of(name, words, stdin))
            }
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                for word in words.iter().filter(|word| is_assignment(&word.text)) {
                    if let Some((name, value)) = word.text.split_once('=') {
                        self.bind(name, vec![Shape::literal(value)]);
                    }
                }
                Some(Output::Other)
            }
            "set" => {
                // `set -- rm x; "$@"`.
                let text = joined(words);
                let text = text.trim_start_matches("--").trim().to_owned();
                for name in ["@", "*"] {
                    self.bind(name, vec![Shape::literal(text.clone())]);
                }
                Some(Output::Other)
            }
            "read" | "mapfile" | "readarray" => {
                self.reads(words, stdin);
                Some(Output::Other)
            }
            _ if interpreters::is_interpreter(name) => Some(self.interprets(name, words, stdin)),
            _ => None,
        }
    }

    /// `read NAME…`: the variables hold what flows in.
    fn reads(&mut self, words: &[Shape], stdin: &Output) {
        match stdin {
            Output::Known(text) => {
                if let Some(word) = words.last() {
                    let text = text.trim_end().to_owned();
                    self.bind(&word.text, vec![Shape::literal(text)]);
                }
            }
            Output::Download | Output::Decoded => {
                let names = words.iter().map(|word| word.text.as_str());
                for name in names
                    .chain(["REPLY", "MAPFILE"])
                    .filter(|name| !name.starts_with('-'))
                {
                    self.tainted.push((name.to_owned(), stdin.clone()));
                }
            }
            Output::Other => {}
        }
    }

    fn shell(&mut self, name: &str, words: &[Shape], stdin: &Output) -> Output {
        let is_windows = matches!(name, "cmd" | "powershell" | "pwsh");
        for (at, word) in words.iter().enumerate() {
            let text = word.text.as_str();
            let lower = text.to_ascii_lowercase();
            let is_payload_flag = if is_windows {
                matches!(
                    lower.as_str(),
                    "/c" | "/k" | "-c" | "-command" | "-encodedcommand" | "-enc" | "-e"
                )
            } else {
                (text.starts_with('-') || text.starts_with('+'))
                    && !text.starts_with("--")
                    && text.contains('c')
                    || lower == "--command"
            };
            if is_payload_flag {
                let rest = words.get(at + 1..).unwrap_or_default();
                return self.shell_payload(rest, stdin, is_windows);
            }
            let is_cluster = text.starts_with('-') && !text.starts_with("--");
            if text == "-" || (!is_windows && is_cluster && text.contains('s')) {
                return self.text_from(stdin);
            }
            if matches!(text, "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file") {
                continue;
            }
            if !text.starts_with('-') && !text.starts_with('+') {
                let is_option_value = at > 0
                    && words
                        .get(at - 1)
                        .is_some_and(|word| matches!(word.text.as_str(), "-o" | "+o" | "-O" | "+O"));
                if is_option_value {
                    continue;
                }
                self.script_operand(word, stdin);
                // A word that is only known later may come to nothing, and a script that comes from elsewhere may
                // read on: then what flows in is the script.
                if word.is_stream || self.could_be_input(word) {
                    return self.text_from(stdin);
                }
                return Output::Other;
            }
        }
        self.text_from(stdin)
    }

    fn shell_payload(&mut self, rest: &[Shape], stdin: &Output, is_windows: bool) -> Output {
        // More options may stand between `-c` and the text.
        let skipped = rest.iter().take_while(|word| word.text.starts_with('-')).count();
        let Some((payload, operands)) = rest.get(skipped..).and_then(<[Shape]>::split_first) else {
            return if rest.is_empty() {
                self.text_from(stdin)
            } else {
                Output::Other
            };
        };
        if is_windows {
            let text = joined(rest.get(skipped..).unwrap_or_default());
            return self.payload(&text, stdin, false);
        }
        // Parameters of the text can be commands themselves.
        let parameters = operands.get(1..).unwrap_or_default();
        self.bind("@", vec![Shape::literal(joined(parameters))]);
        for operand in operands
            .iter()
            .filter(|operand| operand.text.contains([' ', '\t', '\n', ';']))
        {
            self.payload(&operand.text, stdin, false);
        }
        if payload.text.contains('$') || payload.is_unknown() {
            self.invoke(parameters, stdin);
            self.invoke(operands, stdin);
        }
        self.text_of(std::slice::from_ref(payload), stdin)
    }

    /// Words that are joined and run as a script.
    fn text_of(&mut self, words: &[Shape], stdin: &Output) -> Output {
        if words.iter().any(|word| word.origin == Some(Output::Download)) {
            self.downloads_run();
        }
        if words.iter().any(|word| word.origin == Some(Output::Decoded)) {
            self.unreadable_text();
        }
        let text = joined(words);
        self.payload(&text, stdin, true)
    }

    /// A shell that reads its script from what flows in.
    pub(super) fn text_from(&mut self, stdin: &Output) -> Output {
        match stdin {
            Output::Known(text) => {
                let text = text.clone();
                self.payload(&text, &Output::Other, true)
            }
            Output::Download => {
                self.downloads_run();
                Output::Other
            }
            Output::Decoded => {
                self.unreadable_text();
                Output::Other
            }
            Output::Other => Output::Other,
        }
    }

    fn unreadable_text(&mut self) {
        self.refuse(
            Floor::Unanalysable,
            "decoded_runs",
            "text that is decoded on the way would run, and cannot be read before",
        );
    }

    /// A file that a shell or an interpreter runs.
    pub(super) fn script_operand(&mut self, word: &Shape, stdin: &Output) {
        if word.is_stream {
            self.text_from(&word.origin.clone().unwrap_or_default());
        } else if self.could_be_input(word) {
            self.text_from(stdin);
        } else if word.origin == Some(Output::Download) {
            self.downloads_run();
        } else {
            let text = word.text.clone();
            self.ran_download(&text);
            self.ran_stored(&text);
        }
    }

    /// A program file that was fetched in the same line.
    pub(super) fn ran_download(&mut self, file: &str) {
        // The folder is left out: an option may have named it.
        let name = base(file);
        if name.is_empty() {
            return;
        }
        if self.downloaded.iter().any(|fetched| base(fetched) == name) {
            self.downloads_run();
        }
    }

    /// A script that the same line has written.
    pub(super) fn ran_stored(&mut self, file: &str) {
        let name = base(file);
        let stored: Vec<Output> = self
            .stored
            .iter()
            .filter(|(stored, _)| base(stored) == name)
            .map(|(_, output)| output.clone())
            .collect();
        for output in stored {
            match output {
                // A first line may name another interpreter, whose language is not read here.
                Output::Known(text) => {
                    let first = text.lines().next().unwrap_or_default();
                    if !first.starts_with("#!") || first.contains("sh") {
                        self.payload(&text, &Output::Other, false);
                    }
                }
                Output::Decoded => self.unreadable_text(),
                Output::Download | Output::Other => {}
            }
        }
    }

    /// `su -c TEXT`, `script -qc TEXT`.
    fn dash_c(&mut self, words: &[Shape], stdin: &Output) -> Output {
        for (at, word) in words.iter().enumerate() {
            let text = word.text.as_str();
            if let Some(value) = text.strip_prefix("--command=") {
                return self.payload(value, stdin, true);
            }
            let is_flag = text == "--command"
                || (text.starts_with('-') && !text.starts_with("--") && text.ends_with('c'));
            if is_flag && let Some(payload) = words.get(at + 1) {
                return self.text_of(std::slice::from_ref(payload), stdin);
            }
            if let Some(joined) = text.strip_prefix("-c").filter(|rest| !rest.is_empty()) {
                return self.payload(joined, stdin, true);
            }
        }
        for at in 0..words.len() {
            if let Some(rest) = words
                .get(at..)
                .filter(|rest| rest.first().is_some_and(|word| !word.text.starts_with('-')))
            {
                self.invoke(rest, stdin);
            }
        }
        self.text_from(stdin)
    }

    fn remote_shell(&mut self, words: &[Shape], stdin: &Output) -> Output {
        let mut operands = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            if operands.is_empty() && text.starts_with('-') {
                if text == "-o"
                    && let Some(value) = words.next()
                {
                    if let Some((_, command)) = value.text.split_once('=') {
                        self.payload(command, &Output::Other, false);
                    }
                } else if text.len() == 2 && "BbcDEeFIiJLlmOpQRSWw".contains(text.get(1..).unwrap_or(" ")) {
                    words.next();
                } else if let Some((_, command)) = text.split_once('=') {
                    self.payload(command, &Output::Other, false);
                }
                continue;
            }
            operands.push(word.clone());
        }
        let Some((host, rest)) = operands.split_first() else {
            return Output::Other;
        };
        self.hosts.push(host.text.clone());
        if rest.is_empty() {
            self.text_from(stdin);
        } else {
            self.text_of(rest, stdin);
        }
        Output::Download
    }

    /// `env -S TEXT`.
    pub(super) fn split_string(&mut self, words: &[Shape], stdin: &Output) {
        for (at, word) in words.iter().enumerate() {
            let text = word.text.as_str();
            let value = match text.split_once('=') {
                Some((option, value)) if option.starts_with("--s") => Some(value.to_owned()),
                _ if text.starts_with("--s") => words.get(at + 1).map(|word| word.text.clone()),
                _ if text.starts_with('-') && !text.starts_with("--") => {
                    text.split_once('S').map(|(_, value)| {
                        if value.is_empty() {
                            words
                                .get(at + 1)
                                .map(|word| word.text.clone())
                                .unwrap_or_default()
                        } else {
                            value.to_owned()
                        }
                    })
                }
                _ => None,
            };
            if let Some(value) = value {
                let mut text = value;
                for word in words.get(at + 1..).unwrap_or_default() {
                    text.push(' ');
                    text.push_str(&word.text);
                }
                self.payload(&text, stdin, false);
            }
        }
    }

    /// Programs with sub-commands of which some run a command: any operand could be its first word.
    fn perhaps_inside(&mut self, name: &str, words: &[Shape], stdin: &Output) -> Output {
        if matches!(name, "at" | "batch") {
            return self.text_from(stdin);
        }
        if name == "make" {
            return Output::Other;
        }
        let runs = [
            "exec",
            "run",
            "shell",
            "--run",
            "new-session",
            "new",
            "send-keys",
            "-c",
            "--",
            "new-window",
            "-S",
            "-dm",
        ];
        let Some(at) = words.iter().position(|word| runs.contains(&word.text.as_str())) else {
            return Output::Other;
        };
        for (offset, word) in words.iter().enumerate().skip(at + 1) {
            if word.text.contains(' ') {
                self.payload(&word.text, stdin, false);
            }
            let candidate = program_name(&word.text);
            if candidate == "git" || is_shell(&candidate) || candidate == "rm" {
                self.invoke(words.get(offset..).unwrap_or_default(), stdin);
                break;
            }
        }
        Output::Other
    }
}
