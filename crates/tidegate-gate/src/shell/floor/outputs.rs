//! What a command prints, as far as it matters to a shell behind it.

use super::Walk;
use crate::shell::shape::{Output, Shape, UNKNOWN};

/// Programs that fetch.
const FETCHERS: [&str; 14] = [
    "curl", "wget", "wget2", "fetch", "lynx", "w3m", "links", "elinks", "http", "https", "httpie", "aria2c",
    "nc", "ncat",
];

/// Programs whose output is made from their input by a rule that is not followed.
const DECODERS: [&str; 30] = [
    "base64", "base32", "basenc", "xxd", "uudecode", "gunzip", "zcat", "gzip", "bunzip2", "bzcat", "xzcat",
    "unxz", "zstdcat", "lz4cat", "openssl", "gpg", "rev", "tr", "iconv", "hexdump", "od", "fold", "tac",
    "cut", "paste", "sed", "awk", "gawk", "mawk", "perl",
];

/// Decoders that only change what they are given, and read files like any other program.
const FILTERS: [&str; 10] = [
    "tr", "rev", "fold", "tac", "cut", "paste", "sed", "awk", "gawk", "mawk",
];

pub(super) fn is_fetcher(name: &str) -> bool {
    FETCHERS.contains(&name)
        || matches!(
            name,
            "socat" | "telnet" | "ftp" | "sftp" | "aws" | "gsutil" | "gh"
        )
}

impl Walk<'_> {
    /// What a plain command prints.
    pub(super) fn output_of(&mut self, name: &str, words: &[Shape], stdin: &Output) -> Output {
        self.copied(name, words, stdin);
        let is_held =
            |word: &Shape| word.origin == Some(Output::Download) || self.held(&word.text) == Output::Download;
        match name {
            "echo" => {
                let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
                let is_plain = texts.first().is_none_or(|first| !first.starts_with('-'));
                let from = texts
                    .iter()
                    .take_while(|text| matches!(**text, "-n" | "-e" | "-ne" | "-en" | "-E"))
                    .count();
                let text = texts.get(from..).unwrap_or_default().join(" ");
                let text = if is_plain { text } else { unescape(&text) };
                known_or(text, words)
            }
            "printf" => printed(words),
            ":" | "true" | "false" | "cd" | "test" | "[" | "export" | "unset" | "shift" | "exit"
            | "return" | "wait" => Output::Known(String::new()),
            "cat" | "tee" | "pv" | "sponge" | "head" | "tail" | "sort" | "uniq" | "grep" | "nl"
            | "stdbuf" => {
                let operand = words.iter().find(|word| !word.text.starts_with('-'));
                if matches!(name, "tee" | "sponge") {
                    let files: Vec<String> = words.iter().map(|word| word.text.clone()).collect();
                    self.store(stdin, files);
                    return stdin.clone();
                }
                if words.iter().any(is_held) {
                    return Output::Download;
                }
                match words.iter().find(|word| word.is_stream) {
                    Some(stream) => stream.origin.clone().unwrap_or_default(),
                    None if operand.is_none() || *stdin == Output::Download => stdin.clone(),
                    None => Output::Other,
                }
            }
            // Names below the folders where it starts, for what reads them.
            "find" => {
                let starts: Vec<String> = words
                    .iter()
                    .take_while(|word| !word.text.starts_with(['-', '(', '!']))
                    .map(|word| format!("{}/{UNKNOWN}", word.text.trim_end_matches('/')))
                    .collect();
                Output::Known(starts.join("\n"))
            }
            _ if is_fetcher(name) => {
                self.fetched(name, words);
                Output::Download
            }
            _ if *stdin == Output::Download => Output::Download,
            _ if words.iter().any(is_held) => Output::Download,
            _ if DECODERS.contains(&name) => {
                let is_fed = matches!(stdin, Output::Known(_) | Output::Decoded);
                if is_fed || !FILTERS.contains(&name) {
                    Output::Decoded
                } else {
                    Output::Other
                }
            }
            _ => Output::Other,
        }
    }

    /// A download keeps being one under another name.
    fn copied(&mut self, name: &str, words: &[Shape], stdin: &Output) {
        match name {
            "cp" | "mv" | "ln" | "install" | "rsync"
                if words.iter().any(|word| self.held(&word.text) == Output::Download) =>
            {
                self.downloaded.extend(words.last().map(|word| word.text.clone()));
            }
            "dd" => {
                let input = words.iter().find_map(|word| word.text.strip_prefix("if="));
                let held = input.map_or_else(|| stdin.clone(), |file| self.held(file));
                let output = words.iter().find_map(|word| word.text.strip_prefix("of="));
                self.store(&held, output.map(str::to_owned));
            }
            _ => {}
        }
    }

    /// Remembers under which names a fetcher stores what it gets.
    fn fetched(&mut self, name: &str, words: &[Shape]) {
        let mut stores_by_name = name.starts_with("wget") || name == "aria2c";
        for (at, word) in words.iter().enumerate() {
            let text = word.text.as_str();
            let next = words.get(at + 1).map(|word| word.text.clone());
            if let Some((_, value)) = text
                .split_once('=')
                .filter(|(option, _)| option.starts_with("--out"))
            {
                self.downloaded.push(value.to_owned());
            } else if matches!(text, "--output" | "--output-document" | "--out") {
                self.downloaded.extend(next);
            } else if text.starts_with('-') && !text.starts_with("--") {
                stores_by_name |= text.contains('O');
                if let Some((_, value)) = text.split_once(['o', 'O']) {
                    if value.is_empty() {
                        self.downloaded.extend(next);
                    } else {
                        self.downloaded.push(value.to_owned());
                    }
                }
            }
        }
        stores_by_name |= words.iter().any(|word| word.text == "--remote-name");
        if stores_by_name {
            for word in words.iter().filter(|word| word.text.contains('/')) {
                let path = word.text.split(['?', '#']).next().unwrap_or_default();
                let name = match path.split_once("://") {
                    Some((_, place)) => place.split_once('/').map_or("", |(_, path)| path),
                    None => path,
                };
                let name = crate::shell::shape::base(name);
                self.downloaded
                    .push(if name.is_empty() { "index.html" } else { name }.to_owned());
                self.downloaded.push(crate::shell::shape::base(path).to_owned());
            }
        }
    }
}

fn known_or(text: String, words: &[Shape]) -> Output {
    match words.iter().find_map(|word| match &word.origin {
        Some(origin @ (Output::Download | Output::Decoded)) => Some(origin.clone()),
        Some(Output::Known(_) | Output::Other) | None => None,
    }) {
        Some(origin) => origin,
        None => Output::Known(text),
    }
}

/// `printf FORMAT ARGUMENT…`, as far as texts go.
fn printed(words: &[Shape]) -> Output {
    let words: Vec<&Shape> = words.iter().skip_while(|word| word.text == "--").collect();
    let Some((format, arguments)) = words.split_first() else {
        return Output::Known(String::new());
    };
    let format = unescape(&format.text);
    let mut arguments = arguments.iter();
    let mut text = String::new();
    loop {
        let mut has_taken = false;
        let mut letters = format.chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                text.push(letter);
                continue;
            }
            match letters
                .by_ref()
                .find(|letter| letter.is_ascii_alphabetic() || *letter == '%')
            {
                Some('s' | 'b' | 'q') => {
                    if let Some(argument) = arguments.next() {
                        text.push_str(&unescape(&argument.text));
                        has_taken = true;
                    }
                }
                Some('%') => text.push('%'),
                Some(_) | None => {
                    has_taken |= arguments.next().is_some();
                    text.push(UNKNOWN);
                }
            }
        }
        if !has_taken || arguments.len() == 0 {
            break;
        }
    }
    let all: Vec<Shape> = words.into_iter().cloned().collect();
    known_or(text, &all)
}

/// The escapes of `echo -e` and `printf`.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            plain.push(letter);
            continue;
        }
        let (radix, most) = match letters.peek() {
            Some('x') => {
                letters.next();
                (16, 2)
            }
            Some('0'..='7') => (8, 4),
            Some(_) | None => {
                match letters.next() {
                    Some('n') => plain.push('\n'),
                    Some('t') => plain.push('\t'),
                    Some('c') => break,
                    Some(other) => plain.push(other),
                    None => plain.push('\\'),
                }
                continue;
            }
        };
        let mut value = 0_u32;
        for _ in 0..most {
            let Some(digit) = letters.peek().and_then(|letter| letter.to_digit(radix)) else {
                break;
            };
            value = value * radix + digit;
            letters.next();
        }
        plain.push(char::from_u32(value & 0xff).unwrap_or(UNKNOWN));
    }
    plain
}
