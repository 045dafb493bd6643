//! The ways in which one text can be read.
//!
//! A source is read as it stands, then with its escapes undone until none is left, then with what looks like
//! base64 or hexadecimal decoded, a bounded number of times. Each reading is kept in four forms that are
//! searched: plain, squeezed (no blanks), base64 letters only, and folded (lower-case letters and digits only).

use std::io::Read;

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use flate2::read::MultiGzDecoder;
use serde_json::{Map, Value};
use unicode_normalization::UnicodeNormalization;

/// How often escapes are undone: one in the other, a few times over.
const ESCAPE_ROUNDS_MAX: usize = 4;

/// How often something decoded is looked into again.
const DECODE_DEPTH_MAX: usize = 3;

/// The shortest run of letters that is decoded: what a value of twelve characters gives in base64.
const RUN_LETTERS_MIN: usize = 16;

/// How much of a packed body is unpacked, in bytes.
const UNPACKED_BYTES_MAX: usize = 4 << 20;

/// The most readings of one message.
const VIEWS_MAX: usize = 256;

/// The most fields that are put together to find what is split over them.
const FIELDS_MAX: usize = 4096;

/// One reading.
#[derive(Debug)]
pub(super) struct View {
    pub(super) plain: Vec<u8>,
    pub(super) squeezed: Vec<u8>,
    pub(super) base64: Vec<u8>,
    pub(super) folded: Vec<u8>,
}

/// All readings of a message, and its fields.
#[derive(Debug, Default)]
pub(super) struct Views {
    views: Vec<View>,
    fields: Vec<Vec<u8>>,
}

impl Views {
    pub(super) fn iter(&self) -> impl Iterator<Item = &View> {
        self.views.iter()
    }

    /// A text in all its readings.
    pub(super) fn add_text(&mut self, text: &[u8]) {
        self.read(text.to_vec(), DECODE_DEPTH_MAX);
    }

    /// A named value.
    pub(super) fn add_field(&mut self, name: &[u8], value: &[u8]) {
        self.add_text(name);
        self.add_text(value);
        self.keep_field(value);
    }

    /// A URL, and the values of its query.
    pub(super) fn add_url(&mut self, url: &str) {
        if url.is_empty() {
            return;
        }
        self.add_text(url.as_bytes());
        if let Some((_, query)) = url.split_once(['?', '#']) {
            self.keep_pairs(query.as_bytes());
        }
    }

    /// A body: packed, JSON, a form, or any text.
    pub(super) fn add_body(&mut self, body: &[u8]) {
        if body.is_empty() {
            return;
        }
        let unpacked;
        let body = if body.starts_with(&[0x1f, 0x8b]) {
            unpacked = unpack(body);
            self.add_text(body);
            &unpacked
        } else {
            body
        };
        self.add_text(body);
        let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
        if matches!(first, Some(b'{' | b'[' | b'"'))
            && let Ok(value) = serde_json::from_slice::<Value>(body)
        {
            self.keep_leaves(&value);
        } else {
            self.keep_pairs(body);
        }
    }

    /// Arguments: their text, keys and all, and their leaves as fields; then the fields together.
    pub(super) fn add_object(&mut self, members: &Map<String, Value>) {
        // Cannot fail: the keys are texts.
        self.add_text(&serde_json::to_vec(members).unwrap_or_default());
        members.values().for_each(|member| self.keep_leaves(member));
        self.add_joined();
    }

    /// The fields put together, in their order and in the reverse one.
    pub(super) fn add_joined(&mut self) {
        if self.fields.len() < 2 {
            return;
        }
        let joined = self.fields.concat();
        let reversed: Vec<u8> = self.fields.iter().rev().flatten().copied().collect();
        self.read(joined, DECODE_DEPTH_MAX);
        self.read(reversed, DECODE_DEPTH_MAX);
    }

    fn keep_field(&mut self, value: &[u8]) {
        if !value.is_empty() && self.fields.len() < FIELDS_MAX {
            self.fields.push(unescaped_fully(value.to_vec()));
        }
    }

    /// The values of `name=value&…`.
    fn keep_pairs(&mut self, text: &[u8]) {
        for pair in text.split(|byte| matches!(byte, b'&' | b';' | b'\n')) {
            let value = pair
                .iter()
                .position(|byte| *byte == b'=')
                .and_then(|equals| pair.get(equals + 1..));
            self.keep_field(value.unwrap_or(pair));
        }
    }

    fn keep_leaves(&mut self, value: &Value) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => self.keep_field(number.to_string().as_bytes()),
            Value::String(text) => self.keep_field(text.as_bytes()),
            Value::Array(items) => items.iter().for_each(|item| self.keep_leaves(item)),
            Value::Object(members) => members.values().for_each(|member| self.keep_leaves(member)),
        }
    }

    /// Adds a text, the text without escapes, and what is encoded in it.
    fn read(&mut self, text: Vec<u8>, depth: usize) {
        let mut encoded = Vec::new();
        let mut current = text;
        for _ in 0..=ESCAPE_ROUNDS_MAX {
            if self.views.len() >= VIEWS_MAX {
                return;
            }
            if depth > 0 {
                decode_runs(&current, &mut encoded);
            }
            let next = unescaped(&current);
            self.views.push(View::of(current));
            match next {
                Some(next) => current = next,
                None => break,
            }
        }
        if !encoded.is_empty() {
            self.read(encoded, depth - 1);
        }
    }
}

impl View {
    fn of(plain: Vec<u8>) -> Self {
        Self {
            squeezed: squeezed(&plain),
            base64: plain.iter().filter_map(|byte| base64_letter(*byte)).collect(),
            folded: folded(&plain),
            plain,
        }
    }
}

/// Without blanks, in any of their forms; a plus is a blank in forms.
pub(super) fn squeezed(text: &[u8]) -> Vec<u8> {
    text.iter()
        .filter(|byte| !byte.is_ascii_whitespace() && **byte != b'+' && **byte != 0)
        .copied()
        .collect()
}

/// Letters and digits alone, in lower case and in their plain form: what survives when somebody changes case,
/// blanks, dashes or quotes, or writes look-alike letters.
pub(super) fn folded(text: &[u8]) -> Vec<u8> {
    let mut letters = Vec::with_capacity(text.len());
    if text.is_ascii() {
        letters.extend(
            text.iter()
                .filter(|byte| byte.is_ascii_alphanumeric())
                .map(u8::to_ascii_lowercase),
        );
    } else {
        let text = String::from_utf8_lossy(text);
        for letter in text.nfkc().filter(|letter| letter.is_alphanumeric()) {
            for lower in letter.to_lowercase() {
                letters.extend_from_slice(lower.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
    without_hex_marks(letters)
}

/// `0x73 0x6b` is `736b`. The mark is dropped only where two digits and the next mark follow, so that values
/// which merely hold `0x` stay as they are.
fn without_hex_marks(letters: Vec<u8>) -> Vec<u8> {
    if !letters
        .windows(6)
        .any(|six| is_marked(six) && six.get(4..) == Some(b"0x"))
    {
        return letters;
    }
    let mut kept = Vec::with_capacity(letters.len());
    let mut rest = letters.as_slice();
    while let Some((first, more)) = rest.split_first() {
        if is_marked(rest) {
            rest = rest.get(2..).unwrap_or_default();
        } else {
            kept.push(*first);
            rest = more;
        }
    }
    kept
}

fn is_marked(text: &[u8]) -> bool {
    text.starts_with(b"0x")
        && text
            .get(2..4)
            .is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
}

fn base64_letter(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => Some(byte),
        b'-' => Some(b'+'),
        b'_' => Some(b'/'),
        _ => None,
    }
}

/// Decodes what looks like base64 or hexadecimal and gives readable text.
fn decode_runs(text: &[u8], decoded: &mut Vec<u8>) {
    let is_letter = |byte: &u8| base64_letter(*byte).is_some();
    for run in text.split(|byte| !is_letter(byte)) {
        if run.len() < RUN_LETTERS_MIN {
            continue;
        }
        if run.iter().all(u8::is_ascii_hexdigit) {
            let bytes: Vec<u8> = run
                .chunks_exact(2)
                .filter_map(|pair| hex_byte(pair.first(), pair.get(1)))
                .collect();
            keep_readable(&bytes, decoded);
        }
        let standard: Vec<u8> = run.iter().filter_map(|byte| base64_letter(*byte)).collect();
        // What stands right before a run (a path, a prefix) may hide where it begins.
        for skipped in 0..4 {
            let Some(aligned) = standard.get(skipped..) else {
                continue;
            };
            let whole = aligned.len() - aligned.len() % 4;
            let end = if aligned.len() % 4 == 1 {
                whole
            } else {
                aligned.len()
            };
            if let Some(bytes) = aligned.get(..end).and_then(lenient_base64) {
                keep_readable(&bytes, decoded);
            }
        }
    }
}

fn lenient_base64(letters: &[u8]) -> Option<Vec<u8>> {
    STANDARD_NO_PAD.decode(letters).ok().or_else(|| {
        STANDARD_NO_PAD
            .decode(letters.get(..letters.len() - letters.len() % 4)?)
            .ok()
    })
}

/// Keeps what could be text: nine of ten bytes are printable.
fn keep_readable(bytes: &[u8], decoded: &mut Vec<u8>) {
    let readable = bytes
        .iter()
        .filter(|byte| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r'))
        .count();
    if readable * 10 >= bytes.len() * 9 {
        decoded.extend_from_slice(bytes);
        decoded.push(b'\n');
    }
}

fn unescaped_fully(text: Vec<u8>) -> Vec<u8> {
    let mut current = text;
    for _ in 0..ESCAPE_ROUNDS_MAX {
        match unescaped(&current) {
            Some(next) => current = next,
            None => break,
        }
    }
    current
}

/// The text with one layer of escapes undone: `%73`, `\u0073`, `\x73`, `\n`, `&#115;`, `&#x73;`, `&amp;`.
/// `None` where there is none.
fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    if !text.iter().any(|byte| matches!(byte, b'%' | b'\\' | b'&')) {
        return None;
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    let mut has_changed = false;
    while let Some((first, more)) = rest.split_first() {
        let read = match first {
            b'%' => hex_byte(more.first(), more.get(1)).map(|byte| (vec![byte], 3)),
            b'\\' => backslashed(more),
            b'&' => entity(more),
            _ => None,
        };
        if let Some((bytes, length)) = read {
            plain.extend_from_slice(&bytes);
            rest = rest.get(length..).unwrap_or_default();
            has_changed = true;
        } else {
            plain.push(*first);
            rest = more;
        }
    }
    has_changed.then_some(plain)
}

/// What follows a backslash, and how long the escape is with it.
fn backslashed(rest: &[u8]) -> Option<(Vec<u8>, usize)> {
    Some(match rest.first()? {
        b'u' => {
            let (letter, length) = utf16(rest)?;
            (letter.to_string().into_bytes(), length)
        }
        b'x' => (vec![hex_byte(rest.get(1), rest.get(2))?], 4),
        b'n' | b'r' | b't' => (vec![b' '], 2),
        other @ (b'"' | b'\'' | b'/' | b'\\') => (vec![*other], 2),
        _ => return None,
    })
}

/// `uXXXX`, or two of them for one letter beyond the basic plane.
fn utf16(rest: &[u8]) -> Option<(char, usize)> {
    let high = hex_number(rest.get(1..5)?)?;
    if let Some(letter) = char::from_u32(high) {
        return Some((letter, 6));
    }
    if rest.get(5..7)? != b"\\u" {
        return None;
    }
    let low = hex_number(rest.get(7..11)?)?;
    let letter = 0x1_0000_u32
        .checked_add(high.checked_sub(0xd800)? << 10)?
        .checked_add(low.checked_sub(0xdc00)?)?;
    Some((char::from_u32(letter)?, 12))
}

/// A character reference of HTML, behind its `&`.
fn entity(rest: &[u8]) -> Option<(Vec<u8>, usize)> {
    const NAMED: [(&[u8], u8); 6] = [
        (b"amp;", b'&'),
        (b"lt;", b'<'),
        (b"gt;", b'>'),
        (b"quot;", b'"'),
        (b"apos;", b'\''),
        (b"nbsp;", b' '),
    ];
    if let Some((name, letter)) = NAMED.iter().find(|(name, _)| rest.starts_with(name)) {
        return Some((vec![*letter], name.len() + 1));
    }
    let digits = rest.strip_prefix(b"#")?;
    let (digits, radix, before) = match digits.split_first()? {
        (b'x' | b'X', digits) => (digits, 16, 3),
        _ => (digits, 10, 2),
    };
    let length = digits
        .iter()
        .take(8)
        .take_while(|byte| char::from(**byte).is_digit(radix))
        .count();
    let number = std::str::from_utf8(digits.get(..length)?).ok()?;
    let letter = char::from_u32(u32::from_str_radix(number, radix).ok()?)?;
    let has_end = digits.get(length) == Some(&b';');
    Some((
        letter.to_string().into_bytes(),
        before + length + usize::from(has_end),
    ))
}

fn hex_byte(high: Option<&u8>, low: Option<&u8>) -> Option<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    u8::try_from(digit(high?)? << 4 | digit(low?)?).ok()
}

fn hex_number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number: u32, digit| {
        Some(number << 4 | char::from(*digit).to_digit(16)?)
    })
}

/// What a gzip body holds, as far as it can be unpacked within the bound.
fn unpack(body: &[u8]) -> Vec<u8> {
    let mut unpacked = Vec::new();
    let bound = u64::try_from(UNPACKED_BYTES_MAX).unwrap_or(u64::MAX);
    // A damaged rest is no reason to overlook what came before it.
    drop(MultiGzDecoder::new(body).take(bound).read_to_end(&mut unpacked));
    unpacked
}
