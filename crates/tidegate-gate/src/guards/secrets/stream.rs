//! Redaction of text that arrives in pieces.

use std::{ops::Range, sync::Arc};

use super::{MASK, Redactor, headers::BEFORE_BYTES_MAX, joined, shapes::is_of_token};

/// Bytes of what was given out that are kept, to tell where words begin, and what stands before a value.
const CONTEXT_BYTES: usize = BEFORE_BYTES_MAX + 16;

/// The most that is held back for a shape that does not come to an end, in bytes. Its beginning is masked then,
/// and its rest swallowed as it comes.
const HELD_BYTES_MAX: usize = 8 << 10;

/// From which length on a word that is held is not read again for every piece of it, in bytes.
const LONG_WORD_BYTES: usize = 256;

/// What the rest of a shape that was too long to be held is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Token,
    Pem,
}

/// Masks secrets in a text that arrives in pieces, whatever the pieces are: put together, what is given out is
/// what [`Redactor::redact`] makes of the whole. No more is held back than may still turn out to be a secret.
#[derive(Debug)]
pub struct Stream {
    redactor: Arc<Redactor>,
    /// A little of what was given out, then what is held.
    text: String,
    /// Where what is held begins.
    held_from: usize,
    /// How much of what is held belongs to a find that a mask was given out for already. `Some(0)` where that
    /// find ended there.
    masked_bytes: Option<usize>,
    rest: Option<Rest>,
    /// At which length a word that is held is looked at again, should it only grow.
    look_at_bytes: usize,
}

impl Stream {
    /// A stream that nothing has come through yet.
    pub fn new(redactor: Arc<Redactor>) -> Self {
        Self {
            redactor,
            text: String::new(),
            held_from: 0,
            masked_bytes: None,
            rest: None,
            look_at_bytes: 0,
        }
    }

    /// Takes a piece and gives what is safe to show.
    pub fn push(&mut self, piece: &str) -> String {
        self.text.push_str(piece);
        if !self.swallow() {
            return String::new();
        }
        // A long word in small pieces would be read from its beginning for each of them.
        if self.text.len() < self.look_at_bytes && piece.chars().all(is_of_token) {
            return String::new();
        }
        let known = self.redactor.known();
        let mut found = self.redactor.find(&known, &self.text, self.held_from);
        let open = known
            .open_from(&self.text, self.held_from)
            .min(self.redactor.shapes.open_from(&self.text));
        let mut cut = open.max(self.held_from);
        if self.text.len() - cut > HELD_BYTES_MAX {
            let rest = self.text.get(cut..).unwrap_or_default();
            let is_pem = self.redactor.shapes.is_pem(rest);
            let is_shape = found.iter().any(|range| range.end == self.text.len());
            cut = self.text.len();
            if is_pem || is_shape {
                self.rest = Some(if is_pem { Rest::Pem } else { Rest::Token });
            }
        }
        while !self.text.is_char_boundary(cut) {
            cut -= 1;
        }
        self.include_masked(&mut found);
        let shown = self.take(cut, &found);
        if self.rest == Some(Rest::Pem) {
            // The mark of the end may have begun.
            self.keep_tail();
        }
        let held_bytes = self.text.len() - self.held_from;
        self.look_at_bytes = if held_bytes > LONG_WORD_BYTES {
            self.text.len() + held_bytes / 8
        } else {
            0
        };
        shown
    }

    /// What is left when no more comes.
    pub fn finish(&mut self) -> String {
        if !self.swallow() {
            self.text.clear();
            self.held_from = 0;
            return String::new();
        }
        let known = self.redactor.known();
        let mut found = self.redactor.find(&known, &self.text, self.held_from);
        self.include_masked(&mut found);
        let shown = self.take(self.text.len(), &found);
        self.text.clear();
        self.held_from = 0;
        shown
    }

    /// Drops the rest of a shape whose beginning was masked; whether it is over.
    fn swallow(&mut self) -> bool {
        let held = self.text.get(self.held_from..).unwrap_or_default();
        let end = match self.rest {
            None => return true,
            Some(Rest::Token) => held.find(|letter: char| !is_of_token(letter)),
            Some(Rest::Pem) => self.redactor.shapes.end_of_pem(held),
        };
        match (end, self.rest) {
            (Some(end), _) => {
                self.drop_until(self.held_from + end);
                self.masked_bytes = Some(0);
                self.rest = None;
                true
            }
            (None, Some(Rest::Pem)) => {
                self.keep_tail();
                false
            }
            (None, _) => {
                self.drop_until(self.text.len());
                false
            }
        }
    }

    /// Of a private key that is swallowed, only what may be the beginning of its end is kept.
    fn keep_tail(&mut self) {
        const END_BYTES_MAX: usize = 96;
        let mut from = self.text.len().saturating_sub(END_BYTES_MAX).max(self.held_from);
        while !self.text.is_char_boundary(from) {
            from += 1;
        }
        self.drop_until(from);
    }

    fn include_masked(&self, found: &mut Vec<Range<usize>>) {
        if let Some(bytes) = self.masked_bytes.filter(|bytes| *bytes > 0) {
            let mut all = std::mem::take(found);
            all.push(self.held_from..self.held_from + bytes);
            *found = joined(all);
        }
    }

    /// Gives out what is held up to `cut`, masked.
    fn take(&mut self, cut: usize, found: &[Range<usize>]) -> String {
        let mut shown = String::new();
        let mut at = self.held_from;
        let mut masked_bytes = None;
        for range in found {
            let is_masked = range.start == self.held_from && self.masked_bytes.is_some();
            if range.start >= cut && !is_masked {
                break;
            }
            shown.push_str(self.text.get(at..range.start).unwrap_or_default());
            if !is_masked {
                shown.push_str(MASK);
            }
            at = range.end.min(cut);
            masked_bytes = range.end.checked_sub(cut);
        }
        shown.push_str(self.text.get(at..cut).unwrap_or_default());
        if cut > self.held_from || masked_bytes.is_some() {
            self.masked_bytes = masked_bytes;
        }
        self.drop_until(cut);
        shown
    }

    /// Forgets what was given out, but for a little.
    fn drop_until(&mut self, until: usize) {
        let mut from = until.saturating_sub(CONTEXT_BYTES);
        while !self.text.is_char_boundary(from) {
            from -= 1;
        }
        self.text.drain(..from);
        self.held_from = until - from;
    }
}
