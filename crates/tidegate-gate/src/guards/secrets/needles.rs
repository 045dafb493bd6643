//! The forms in which one secret travels.

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use unicode_normalization::UnicodeNormalization;

use crate::guards::base32;

/// Values of fewer characters are not masked at all.
const CHARS_MIN: usize = 4;

/// Values of fewer characters are masked as they are, in no other form and no other case; where they are words or
/// numbers, only where they stand apart.
const LONG_CHARS_MIN: usize = 8;

/// Values that stand where a secret is not needed. Compared without case.
const PLACEHOLDERS: [&str; 24] = [
    "none",
    "null",
    "true",
    "false",
    "ollama",
    "changeme",
    "change-me",
    "change_me",
    "dummy",
    "test",
    "testing",
    "example",
    "sample",
    "placeholder",
    "default",
    "secret",
    "password",
    "your-key",
    "your-api-key",
    "your_api_key",
    "sk-...",
    "sk-xxx",
    "not-needed",
    "no-key-required",
];

/// The shortest line of a value of several lines that counts by itself, in characters.
const LINE_CHARS_MIN: usize = 16;

/// Words before the credential in a header (RFC 7235 §2.1).
const SCHEMES: [&str; 5] = ["bearer ", "basic ", "token ", "apikey ", "digest "];

/// What is searched for.
#[derive(Debug, Default)]
pub(super) struct Needles {
    /// Forms long enough to be told from words.
    pub(super) long: Vec<Vec<u8>>,
    /// Short values that are no words.
    pub(super) short: Vec<Vec<u8>>,
    /// Short values of letters or of digits alone: they count only where they stand apart.
    pub(super) words: Vec<Vec<u8>>,
}

/// Adds every form of `value`, and of the credentials that are a part of it.
pub(super) fn add(value: &str, needles: &mut Needles) {
    let value = value.trim();
    add_one(value, needles);
    for part in parts(value) {
        add_one(&part, needles);
    }
}

/// The credential of a header's value, the password of an address, the lines of a key.
fn parts(value: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for scheme in SCHEMES {
        let (Some(word), Some(rest)) = (value.get(..scheme.len()), value.get(scheme.len()..)) else {
            continue;
        };
        if word.eq_ignore_ascii_case(scheme) {
            let rest = rest.trim();
            parts.push(rest.to_owned());
            if let Some(pair) = STANDARD
                .decode(rest)
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok())
            {
                parts.extend(pair.split_once(':').map(|(_, password)| password.to_owned()));
            }
        }
    }
    if let Some((_, rest)) = value.split_once("://") {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        parts.extend(
            user.and_then(|user| user.split_once(':'))
                .map(|(_, password)| password.to_owned()),
        );
    }
    let lines = value.lines().map(str::trim).filter(|line| {
        value.contains('\n') && line.chars().count() >= LINE_CHARS_MIN && !line.starts_with("-----")
    });
    parts.extend(lines.map(str::to_owned));
    parts
}

fn add_one(value: &str, needles: &mut Needles) {
    let count = value.chars().count();
    if count < CHARS_MIN || is_placeholder(value) {
        return;
    }
    if count < LONG_CHARS_MIN {
        let could_be_word =
            value.chars().all(char::is_alphabetic) || value.chars().all(|letter| letter.is_ascii_digit());
        let list = if could_be_word {
            &mut needles.words
        } else {
            &mut needles.short
        };
        add_new(list, value.as_bytes().to_vec());
        return;
    }
    let long = &mut needles.long;
    let spellings: [String; 7] = [
        value.to_owned(),
        value.nfc().collect(),
        value.nfd().collect(),
        value.nfkc().collect(),
        value.replace("\r\n", "\n"),
        value.replace("\r\n", "\n").replace('\n', "\r\n"),
        value.replace(['\r', '\n'], ""),
    ];
    for (index, spelling) in spellings.iter().enumerate() {
        if spellings.iter().position(|other| other == spelling) != Some(index) {
            continue;
        }
        let forms = [
            json_escaped(spelling, false),
            json_escaped(spelling, true),
            percent_encoded(spelling, "%20"),
            percent_encoded(spelling, "+"),
            hexadecimal(spelling.as_bytes(), ""),
            hexadecimal(spelling.as_bytes(), " "),
            hexadecimal(spelling.as_bytes(), ":"),
        ];
        for form in forms {
            add_new(long, form.into_bytes());
        }
        add_new(long, spelling.chars().rev().collect::<String>().into_bytes());
        for aligned in base64_forms(spelling.as_bytes()) {
            add_new(long, aligned.into_bytes());
        }
        for aligned in base32::forms(spelling.as_bytes()) {
            add_new(long, aligned);
        }
        add_new(long, spelling.clone().into_bytes());
    }
}

fn is_placeholder(value: &str) -> bool {
    let is_one_letter = value
        .chars()
        .next()
        .is_some_and(|first| value.chars().all(|letter| letter == first));
    is_one_letter || PLACEHOLDERS.iter().any(|known| known.eq_ignore_ascii_case(value))
}

fn add_new(needles: &mut Vec<Vec<u8>>, needle: Vec<u8>) {
    if !needle.is_empty() && !needles.contains(&needle) {
        needles.push(needle);
    }
}

/// As the inside of a JSON string (RFC 8259 §7), with letters beyond ASCII as they are or as `\u` escapes.
fn json_escaped(value: &str, is_ascii: bool) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    let inside = quoted.trim_start_matches('"');
    let inside = inside.strip_suffix('"').unwrap_or(inside);
    // A value that begins with a quote keeps its escaped one: that begins with a backslash.
    if !is_ascii {
        return inside.to_owned();
    }
    let mut escaped = String::new();
    for letter in inside.chars() {
        if letter.is_ascii() {
            escaped.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                escaped.push_str("\\u");
                push_hex(&mut escaped, u32::from(*unit), 4);
            }
        }
    }
    escaped
}

/// Everything but the unreserved characters of RFC 3986 §2.3 as `%XX`, and blanks as forms write them.
fn percent_encoded(value: &str, blank: &str) -> String {
    let mut encoded = String::new();
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            b' ' => encoded.push_str(blank),
            byte => {
                encoded.push('%');
                push_hex(&mut encoded, u32::from(byte), 2);
            }
        }
    }
    encoded
}

fn hexadecimal(bytes: &[u8], between: &str) -> String {
    let mut text = String::new();
    for byte in bytes {
        if !text.is_empty() {
            text.push_str(between);
        }
        push_hex(&mut text, u32::from(*byte), 2);
    }
    text
}

/// Base64 at each of the three places at which the value can begin in what is encoded. Letters that depend on
/// what stands before or behind are left out.
fn base64_forms(bytes: &[u8]) -> Vec<String> {
    let mut forms = Vec::new();
    for before in 0..3 {
        let mut padded = vec![0; before];
        padded.extend_from_slice(bytes);
        let first = (before * 8).div_ceil(6);
        let end = padded.len() * 8 / 6;
        for encoded in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            forms.extend(encoded.get(first..end).map(str::to_owned));
        }
    }
    forms
}

/// Appends so many hexadecimal digits. Needles of this length are searched for without case.
fn push_hex(text: &mut String, value: u32, digits: u32) {
    text.extend(
        (0..digits)
            .rev()
            .filter_map(|place| char::from_digit((value >> (4 * place)) & 0xf, 16)),
    );
}
