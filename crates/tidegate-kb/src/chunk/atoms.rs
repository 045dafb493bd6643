//! A text as small runs, each with how good a border its end is.
//!
//! Cutting goes down only as far as it must: a paragraph's lines, a line's sentences, a sentence's words, and a word
//! without an end every few characters. Each step counts what it cut, so that a byte is counted once a step.

use std::ops::Range;

/// The longest run that is counted as one. Counting longer ones is no use, and tokenizers take words beyond some
/// length for one unknown token.
const RUN_BYTES_MAX: usize = 512;

/// The longest run of a text without any border.
const BLIND_BYTES: usize = 32;

/// The longest group of words that is one run, in bytes.
const GROUP_BYTES_MAX: usize = 64;

/// How good a place to end a chunk at is, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Border {
    /// Inside a word.
    Inside,
    /// Between words.
    Word,
    /// The end of a line of prose, or of a sentence in a format of lines.
    Weak,
    /// The end of a sentence or an item in prose, of a line in a format of lines.
    Strong,
    /// A blank line, with something indented behind it.
    Blank,
    /// A blank line.
    Paragraph,
}

/// What a line end means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Little: sentences count.
    Prose,
    /// Much: lines count.
    Lines,
}

/// A run of text that is not cut.
#[derive(Debug, Clone)]
pub(super) struct Atom {
    /// Its bytes, with the white space behind it.
    pub(super) bytes: Range<usize>,
    /// How many tokens it has by itself.
    pub(super) tokens: usize,
    /// What its end is.
    pub(super) border: Border,
}

/// Cuts a range of a text into atoms of at most `tokens_max` tokens, as far as that is possible at all.
pub(super) fn cut(
    text: &str,
    range: Range<usize>,
    style: Style,
    tokens_max: usize,
    tokens: &dyn Fn(&str) -> usize,
    found: &mut Vec<Atom>,
) {
    let knife = Knife {
        text,
        style,
        tokens_max,
        tokens,
    };
    knife.lines(range, found);
}

struct Knife<'t> {
    text: &'t str,
    style: Style,
    tokens_max: usize,
    tokens: &'t dyn Fn(&str) -> usize,
}

impl Knife<'_> {
    fn slice(&self, range: &Range<usize>) -> &str {
        self.text.get(range.clone()).unwrap_or_default()
    }

    /// The run as an atom where it is small enough.
    fn atom(&self, bytes: &Range<usize>, border: Border) -> Option<Atom> {
        if bytes.len() > RUN_BYTES_MAX {
            return None;
        }
        let count = (self.tokens)(self.slice(bytes).trim());
        (count <= self.tokens_max).then(|| Atom {
            bytes: bytes.clone(),
            tokens: count,
            border,
        })
    }

    fn lines(&self, range: Range<usize>, found: &mut Vec<Atom>) {
        let mut start = range.start;
        let mut lines = self.slice(&range).split_inclusive('\n').peekable();
        while let Some(line) = lines.next() {
            let mut end = start + line.len();
            let mut is_blank_behind = false;
            while let Some(blank) = lines.next_if(|next| next.trim().is_empty()) {
                is_blank_behind = true;
                end += blank.len();
            }
            let next = lines.peek().copied();
            let border = self.line_border(line, next, is_blank_behind);
            let bytes = start..end;
            match self.atom(&bytes, border) {
                Some(atom) => found.push(atom),
                None => self.sentences(&bytes, border, found),
            }
            start = end;
        }
    }

    fn line_border(&self, line: &str, next: Option<&str>, is_blank_behind: bool) -> Border {
        let is_indented = next.is_some_and(|next| next.starts_with([' ', '\t', '}', ')', ']']));
        match (is_blank_behind, is_indented) {
            (true, true) => return Border::Blank,
            (true, false) => return Border::Paragraph,
            (false, _) => {}
        }
        match self.style {
            Style::Lines if is_indented => Border::Weak,
            Style::Lines => Border::Strong,
            Style::Prose => {
                let ends = line
                    .trim_end()
                    .ends_with(['.', '!', '?', ':', ';', '…', '。', '！', '？', '|']);
                let begins_item = next.is_some_and(|next| {
                    next.trim_start().starts_with(['-', '*', '+', '•', '|']) || begins_with_number(next)
                });
                if ends || begins_item {
                    Border::Strong
                } else {
                    Border::Weak
                }
            }
        }
    }

    fn sentences(&self, range: &Range<usize>, last: Border, found: &mut Vec<Atom>) {
        let border = match self.style {
            Style::Prose => Border::Strong,
            Style::Lines => Border::Weak,
        };
        let ends = sentence_ends(self.slice(range));
        let mut start = range.start;
        for end in ends.into_iter().map(|end| range.start + end) {
            let bytes = start..end;
            let border = if end == range.end { last } else { border };
            match self.atom(&bytes, border) {
                Some(atom) => found.push(atom),
                None => self.words(&bytes, border, found),
            }
            start = end;
        }
    }

    /// Groups of words, of a size that leaves a chunk a choice of where to end.
    fn words(&self, range: &Range<usize>, last: Border, found: &mut Vec<Atom>) {
        let mut start = range.start;
        let mut end = start;
        for word in self.slice(range).split_inclusive(char::is_whitespace) {
            if end > start && end - start + word.len() > GROUP_BYTES_MAX {
                self.group(start..end, Border::Word, found);
                start = end;
            }
            end += word.len();
        }
        if end > start {
            self.group(start..end, last, found);
        }
    }

    fn group(&self, range: Range<usize>, last: Border, found: &mut Vec<Atom>) {
        let is_one_word = range.len() > BLIND_BYTES && self.slice(&range).trim().len() > GROUP_BYTES_MAX;
        if !is_one_word && let Some(atom) = self.atom(&range, last) {
            found.push(atom);
            return;
        }
        self.blind(&range, last, found);
    }

    /// Every few characters, and one by one where even those are too much.
    fn blind(&self, range: &Range<usize>, last: Border, found: &mut Vec<Atom>) {
        let text = self.slice(range);
        let mut start = 0;
        while start < text.len() {
            let end = text.ceil_char_boundary(start.saturating_add(BLIND_BYTES).min(text.len()));
            let piece = start..end;
            let whole = range.start + piece.start..range.start + piece.end;
            let border = if end == text.len() { last } else { Border::Inside };
            if let Some(atom) = self.atom(&whole, border) {
                found.push(atom);
            } else {
                self.characters(&whole, border, found);
            }
            start = end;
        }
    }

    fn characters(&self, range: &Range<usize>, last: Border, found: &mut Vec<Atom>) {
        for (at, character) in self.slice(range).char_indices() {
            let at = range.start + at;
            let bytes = at..at + character.len_utf8();
            let border = if bytes.end == range.end {
                last
            } else {
                Border::Inside
            };
            let tokens = (self.tokens)(self.slice(&bytes));
            found.push(Atom {
                bytes,
                tokens,
                border,
            });
        }
    }
}

fn begins_with_number(line: &str) -> bool {
    let rest = line
        .trim_start()
        .trim_start_matches(|character: char| character.is_ascii_digit());
    rest.len() < line.trim_start().len() && rest.starts_with(['.', ')'])
}

/// Where sentences end, behind the white space that follows; the end of the text is always one.
fn sentence_ends(text: &str) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut characters = text.char_indices().peekable();
    while let Some((_, character)) = characters.next() {
        let is_wide = matches!(character, '。' | '！' | '？');
        if !is_wide && !matches!(character, '.' | '!' | '?' | '…' | ';') {
            continue;
        }
        while characters
            .next_if(|(_, next)| matches!(next, '"' | '\'' | ')' | ']' | '”' | '’' | '»' | '」' | '』'))
            .is_some()
        {}
        let mut has_space = false;
        while characters.next_if(|(_, next)| next.is_whitespace()).is_some() {
            has_space = true;
        }
        match characters.peek() {
            Some((at, next)) if is_wide || (has_space && !next.is_lowercase()) => ends.push(*at),
            Some(_) | None => {}
        }
    }
    if ends.last() != Some(&text.len()) {
        ends.push(text.len());
    }
    ends
}
