//! A text as whoever undoes its escapes would read it, with the place each byte came from.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

use crate::guards::untrusted::is_invisible;

/// How often escapes are undone: one inside the other, a few times over.
const ROUNDS_MAX: u8 = 3;

/// The longest escape that is undone, in bytes: a surrogate pair of JSON.
const ESCAPE_BYTES_MAX: usize = 12;

/// The bytes of a reading, and for each the bytes of the original text it stands for.
#[derive(Debug)]
pub(super) struct Reading {
    bytes: Vec<u8>,
    origins: Vec<(u32, u32)>,
    rounds: u8,
}

impl Reading {
    /// The first reading: compatibility forms folded, what shows nothing and ends of lines dropped, escapes
    /// undone. `None` where that is the text itself, or where the text is too long to be counted.
    pub(super) fn of(text: &str) -> Option<Self> {
        let is_plain = text
            .bytes()
            .all(|byte| byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | b'%' | b'\\' | b'&'));
        if is_plain || u32::try_from(text.len()).is_err() {
            return None;
        }
        let folded = Self::folded(text);
        Some(folded.unescaped().unwrap_or(folded))
    }

    fn folded(text: &str) -> Self {
        let mut reading = Self {
            bytes: Vec::with_capacity(text.len()),
            origins: Vec::with_capacity(text.len()),
            rounds: 0,
        };
        for (at, letter) in text.char_indices() {
            let origin = (at, at + letter.len_utf8());
            if letter.is_ascii() {
                if !matches!(letter, '\n' | '\r') {
                    reading.push(&[letter as u8], origin);
                }
            } else if !is_invisible(letter) {
                for folded in std::iter::once(letter).nfkc() {
                    reading.push(folded.encode_utf8(&mut [0; 4]).as_bytes(), origin);
                }
            }
        }
        reading
    }

    /// The reading with one more round of escapes undone; `None` where there are none.
    pub(super) fn unescaped(&self) -> Option<Self> {
        if self.rounds >= ROUNDS_MAX {
            return None;
        }
        let mut next = Self {
            bytes: Vec::with_capacity(self.bytes.len()),
            origins: Vec::with_capacity(self.bytes.len()),
            rounds: self.rounds + 1,
        };
        let mut rest = self.bytes.as_slice();
        let mut at = 0;
        let mut has_changed = false;
        while let Some(first) = rest.first() {
            let (letters, length) = match escape(rest) {
                Some((letter, length)) => {
                    has_changed = true;
                    (letter, length)
                }
                None => (Letter::Byte(*first), 1),
            };
            let origin = self.origin(at..at + length);
            match letters {
                Letter::Byte(b'\n' | b'\r') => {}
                Letter::Byte(byte) => next.push(&[byte], (origin.start, origin.end)),
                Letter::Char(letter) => next.push(
                    letter.encode_utf8(&mut [0; 4]).as_bytes(),
                    (origin.start, origin.end),
                ),
            }
            at += length;
            rest = rest.get(length..).unwrap_or_default();
        }
        has_changed.then_some(next)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The original bytes that some bytes of the reading stand for.
    pub(super) fn origin(&self, range: Range<usize>) -> Range<usize> {
        let start = self.origins.get(range.start).map_or(0, |(start, _)| *start);
        let end = range
            .end
            .checked_sub(1)
            .and_then(|last| self.origins.get(last))
            .map_or(start, |(_, end)| *end);
        start as usize..end as usize
    }

    /// Where the end of the text may be the beginning of something that goes on behind it, as `open_from` says
    /// of the bytes of a reading.
    pub(super) fn open_from(text: &str, open_from: impl Fn(&[u8]) -> usize) -> usize {
        let whole = open_escape(text);
        let head = text.get(..whole).unwrap_or_default();
        let Some(mut reading) = Self::of(head) else {
            return open_from(head.as_bytes());
        };
        let mut from = whole;
        loop {
            let open = open_from(reading.bytes());
            if open < reading.bytes.len() {
                from = from.min(reading.origin(open..open + 1).start);
            }
            match reading.unescaped() {
                Some(next) => reading = next,
                None => return from,
            }
        }
    }

    fn push(&mut self, bytes: &[u8], origin: (usize, usize)) {
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        for byte in bytes {
            self.bytes.push(*byte);
            self.origins.push((place(origin.0), place(origin.1)));
        }
    }
}

/// Where an escape begins that may not be whole yet; the end of the text where none does.
fn open_escape(text: &str) -> usize {
    let first = text.len().saturating_sub(ESCAPE_BYTES_MAX);
    text.bytes()
        .enumerate()
        .skip(first)
        .find(|(_, byte)| matches!(byte, b'%' | b'\\' | b'&'))
        .map_or(text.len(), |(at, _)| at)
}

enum Letter {
    Byte(u8),
    Char(char),
}

/// The escape that a text begins with, and how long it is: of URLs (RFC 3986 §2.1), of JSON (RFC 8259 §7) and the
/// languages that write strings like it, and of HTML.
fn escape(text: &[u8]) -> Option<(Letter, usize)> {
    match text.first()? {
        b'%' => Some((Letter::Byte(u8::try_from(hex(text.get(1..3)?)?).ok()?), 3)),
        b'\\' => backslash(text),
        b'&' => entity(text),
        _ => None,
    }
}

fn backslash(text: &[u8]) -> Option<(Letter, usize)> {
    let byte = |byte| Some((Letter::Byte(byte), 2));
    match text.get(1)? {
        b'n' => byte(b'\n'),
        b'r' => byte(b'\r'),
        b't' => byte(b'\t'),
        b'"' => byte(b'"'),
        b'\'' => byte(b'\''),
        b'\\' => byte(b'\\'),
        b'/' => byte(b'/'),
        b'x' => Some((Letter::Byte(u8::try_from(hex(text.get(2..4)?)?).ok()?), 4)),
        b'u' if text.get(2) == Some(&b'{') => {
            let inside = text.get(3..)?;
            let length = inside.iter().take(7).position(|byte| *byte == b'}')?;
            Some((
                Letter::Char(char::from_u32(hex(inside.get(..length)?)?)?),
                length + 4,
            ))
        }
        b'u' => {
            let unit = hex(text.get(2..6)?)?;
            if let Some(letter) = char::from_u32(unit) {
                return Some((Letter::Char(letter), 6));
            }
            let low = (text.get(6..8)? == b"\\u")
                .then(|| hex(text.get(8..12)?))
                .flatten()?;
            let pair = [u16::try_from(unit).ok()?, u16::try_from(low).ok()?];
            let letter = char::decode_utf16(pair).next()?.ok()?;
            Some((Letter::Char(letter), 12))
        }
        _ => None,
    }
}

fn entity(text: &[u8]) -> Option<(Letter, usize)> {
    let length = text
        .iter()
        .take(ESCAPE_BYTES_MAX)
        .position(|byte| *byte == b';')?;
    let letter = match text.get(1..length)? {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        [b'#', b'x' | b'X', digits @ ..] => char::from_u32(hex(digits)?)?,
        [b'#', digits @ ..] => {
            let digits = std::str::from_utf8(digits).ok()?;
            char::from_u32(digits.parse().ok()?)?
        }
        _ => return None,
    };
    Some((Letter::Char(letter), length + 1))
}

fn hex(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
