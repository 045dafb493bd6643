//! Cuts a byte stream into lines, whatever pieces it arrives in.
//!
//! A line ends with LF, CR LF or CR, as the event stream format says (WHATWG HTML, "Server-sent events",
//! section 9.2.6). Bytes become text only when the line is complete, so a character may be split anywhere.

use std::collections::VecDeque;

/// A line was longer than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

/// The cutter.
#[derive(Debug)]
pub(crate) struct Lines {
    partial: Vec<u8>,
    ready: VecDeque<String>,
    after_cr: bool,
    started: bool,
    bytes_max: usize,
}

/// The byte order mark, which may open a stream and is no part of it.
const BYTE_ORDER_MARK: char = '\u{feff}';

impl Lines {
    /// A cutter for lines of at most `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            partial: Vec::new(),
            ready: VecDeque::new(),
            after_cr: false,
            started: false,
            bytes_max,
        }
    }

    /// Takes a piece of the stream.
    pub(crate) fn push(&mut self, mut piece: &[u8]) -> Result<(), TooLong> {
        if self.after_cr && !piece.is_empty() {
            self.after_cr = false;
            piece = piece.strip_prefix(b"\n").unwrap_or(piece);
        }
        while let Some(end) = piece.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, rest) = piece.split_at(end);
            self.extend(line)?;
            self.complete();
            let is_cr = rest.first() == Some(&b'\r');
            let rest = rest.get(1..).unwrap_or_default();
            if is_cr && rest.is_empty() {
                self.after_cr = true;
            }
            piece = if is_cr {
                rest.strip_prefix(b"\n").unwrap_or(rest)
            } else {
                rest
            };
        }
        self.extend(piece)
    }

    /// Takes the end of the stream: what has no line end yet is the last line.
    pub(crate) fn finish(&mut self) {
        if !self.partial.is_empty() {
            self.complete();
        }
    }

    /// The next complete line, without its end.
    pub(crate) fn next(&mut self) -> Option<String> {
        self.ready.pop_front()
    }

    /// The longest line.
    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.partial.len() + bytes.len() > self.bytes_max {
            return Err(TooLong);
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    fn complete(&mut self) {
        let bytes = std::mem::take(&mut self.partial);
        let mut line = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        if !self.started {
            self.started = true;
            if line.starts_with(BYTE_ORDER_MARK) {
                line.remove(0);
            }
        }
        self.ready.push_back(line);
    }
}
