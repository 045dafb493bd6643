//! Chunks: the pieces of a document that are searched, embedded and cited.
//!
//! A chunk never crosses a heading or a page, never has more tokens than the embedder reads, and ends at the best
//! border within reach: between paragraphs, then sentences or lines, then words. Tables and blocks of code stay
//! whole where they fit. Chunks do not overlap: together they are the text, so that reading a document is reading
//! its chunks, and a byte of the text has one citation.
//!
//! What is embedded is not the text alone but the headings above it as well ([`embedded_text`]), and the token limit
//! holds for both together. Headings that would take more than a third of it are cut from the outermost on.

mod atoms;
mod pack;

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use tidegate_core::knowledge::{CitationId, Format, Place};

use crate::parse::{Parsed, Section};

/// How many tokens a chunk should have. Counts are the embedder's own, of headings and text together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From here on a border is looked for.
    pub tokens_min: usize,
    /// Never more than this.
    pub tokens_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tokens_min: 350,
            tokens_max: 450,
        }
    }
}

impl Limits {
    /// The usual size, or the most that an embedder reads where that is less.
    pub fn within(tokens_max: usize) -> Self {
        let usual = Self::default();
        let tokens_max = tokens_max.clamp(1, usual.tokens_max);
        Self {
            tokens_min: tokens_max.saturating_mul(usual.tokens_min) / usual.tokens_max,
            tokens_max,
        }
    }
}

/// A chunk of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Where in the document.
    pub place: Place,
    /// The words: exactly the bytes of `place` in the document's text.
    pub text: String,
    /// SHA-256 of what is embedded.
    pub sha256: [u8; 32],
}

impl Piece {
    fn new(place: Place, text: String) -> Self {
        let sha256 = Sha256::digest(embedded_text(&place, &text)).into();
        Self { place, text, sha256 }
    }
}

/// What of a chunk is embedded: the headings above it on a line, then the text.
pub fn embedded_text(place: &Place, text: &str) -> String {
    if place.headings.is_empty() {
        return text.to_owned();
    }
    let mut whole = headings_line(&place.headings);
    whole.push_str(text);
    whole
}

fn headings_line(headings: &[String]) -> String {
    let mut line = headings.join(" > ");
    if !line.is_empty() {
        line.push('\n');
    }
    line
}

/// Cuts a document into chunks. `tokens` counts as the embedder does, with whatever it adds to each text. The time is
/// near linear in the length of the text: nothing is counted more than a few times.
pub fn split(parsed: &Parsed, tokens: &dyn Fn(&str) -> usize, limits: &Limits) -> Vec<Piece> {
    let style = style_of(parsed.format);
    let mut pieces = Vec::new();
    for section in &parsed.sections {
        split_section(parsed, section, style, tokens, limits, &mut pieces);
    }
    pieces
}

fn split_section(
    parsed: &Parsed,
    section: &Section,
    style: atoms::Style,
    tokens: &dyn Fn(&str) -> usize,
    limits: &Limits,
    pieces: &mut Vec<Piece>,
) {
    let headings = fitting_headings(&section.headings, tokens, limits);
    let counter = pack::Counter::new(tokens, headings_line(&headings), limits);
    for bytes in pack::ranges(&parsed.text, section, style, &counter) {
        let Some(text) = parsed.text.get(bytes.clone()) else {
            continue;
        };
        let place = Place {
            headings: headings.clone(),
            page: section.page,
            bytes: wide(bytes.start)..wide(bytes.end),
        };
        pieces.push(Piece::new(place, text.to_owned()));
    }
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn style_of(format: Format) -> atoms::Style {
    match format {
        Format::Markdown
        | Format::Text
        | Format::Pdf
        | Format::Docx
        | Format::Pptx
        | Format::Html
        | Format::Epub => atoms::Style::Prose,
        Format::Xlsx | Format::Csv | Format::Json | Format::Code => atoms::Style::Lines,
    }
}

/// The headings, from the outermost on left out or cut until they leave room for the text.
fn fitting_headings(headings: &[String], tokens: &dyn Fn(&str) -> usize, limits: &Limits) -> Vec<String> {
    let room = limits.tokens_max / 3;
    let none = tokens("");
    let fits = |headings: &[String]| tokens(&headings_line(headings)).saturating_sub(none) <= room;
    let mut kept = headings;
    loop {
        if fits(kept) {
            return kept.to_vec();
        }
        match kept {
            [] => return Vec::new(),
            [last] => {
                let mut last = last.as_str();
                // Each round halves it.
                while !last.is_empty() {
                    let half = last.chars().count() / 2;
                    last = last
                        .char_indices()
                        .nth(half)
                        .map_or("", |(at, _)| &last[..at])
                        .trim_end();
                    let cut = [last.to_owned()];
                    if !last.is_empty() && fits(&cut) {
                        return cut.to_vec();
                    }
                }
                return Vec::new();
            }
            [_, rest @ ..] => kept = rest,
        }
    }
}

/// What each chunk of the document at `path` is quoted by: path, headings and text, and for equal ones their number.
/// It stays the same while the passage does, wherever in the document it moves to.
pub fn citations(path: &str, pieces: &[Piece]) -> Vec<CitationId> {
    citations_of(
        path,
        pieces.iter().map(|piece| (&piece.place, piece.text.as_str())),
    )
}

/// The same for chunks that are kept elsewhere, in the order of the document.
pub fn citations_of<'c>(
    path: &str,
    chunks: impl IntoIterator<Item = (&'c Place, &'c str)>,
) -> Vec<CitationId> {
    let mut seen: HashMap<[u8; 32], u64> = HashMap::new();
    chunks
        .into_iter()
        .map(|(place, text)| {
            let mut digest = Sha256::new();
            for part in std::iter::once(path)
                .chain(place.headings.iter().map(String::as_str))
                .chain(std::iter::once(text))
            {
                digest.update(wide(part.len()).to_le_bytes());
                digest.update(part);
            }
            let same: [u8; 32] = digest.finalize().into();
            let number = seen.entry(same).or_default();
            *number += 1;
            if *number == 1 {
                return CitationId::of_digest(&same);
            }
            let numbered = Sha256::new()
                .chain_update(same)
                .chain_update(number.to_le_bytes());
            CitationId::of_digest(&numbered.finalize())
        })
        .collect()
}

#[cfg(test)]
mod tests;
