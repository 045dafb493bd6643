//! From small runs to chunks: as many as fit, ended at the best border within reach.

use std::ops::Range;

use super::{
    Limits,
    atoms::{self, Atom, Border, Style},
};
use crate::parse::Section;

/// How many bytes a token may stand for on average. A tokenizer that knows none of the words may count many bytes as
/// one, and a chunk is read by people and models as well.
const BYTES_A_TOKEN_MAX: usize = 16;

/// Into how many runs a chunk falls at least, so that it has a choice of where to end.
const RUNS_A_CHUNK: usize = 8;

/// Counts tokens of a text below its headings.
pub(super) struct Counter<'t> {
    tokens: &'t dyn Fn(&str) -> usize,
    headings: String,
    /// What the embedder adds to each text.
    added: usize,
    /// What is left for the text.
    room_min: usize,
    room_max: usize,
    tokens_max: usize,
}

impl<'t> Counter<'t> {
    pub(super) fn new(tokens: &'t dyn Fn(&str) -> usize, headings: String, limits: &Limits) -> Self {
        let above = tokens(&headings);
        Self {
            tokens,
            headings,
            added: tokens(""),
            room_min: limits.tokens_min.saturating_sub(above),
            room_max: limits.tokens_max.saturating_sub(above).max(1),
            tokens_max: limits.tokens_max,
        }
    }

    /// The tokens of a run, without what is added to each text.
    fn run(&self, text: &str) -> usize {
        (self.tokens)(text).saturating_sub(self.added)
    }

    /// Whether headings and text are within the limit.
    fn fits(&self, text: &str) -> bool {
        if self.headings.is_empty() {
            return (self.tokens)(text) <= self.tokens_max;
        }
        let mut whole = self.headings.clone();
        whole.push_str(text);
        (self.tokens)(&whole) <= self.tokens_max
    }
}

/// The ranges of a section's chunks, in order, without the white space around them.
pub(super) fn ranges(
    text: &str,
    section: &Section,
    style: Style,
    counter: &Counter<'_>,
) -> Vec<Range<usize>> {
    let atoms = atoms_of(text, section, style, counter);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = atoms.get(at..).filter(|rest| !rest.is_empty()) {
        let mut count = best_count(rest, counter);
        loop {
            let range = range_of(text, rest.get(..count).unwrap_or(rest));
            let is_one = count <= 1;
            if is_one || counter.fits(text.get(range.clone()).unwrap_or_default()) {
                if !range.is_empty() {
                    found.push(range);
                }
                break;
            }
            // The sum of the parts was less than the whole. An eighth less each time: a few rounds at most.
            count = (count - (count / RUNS_A_CHUNK).max(1)).max(1);
        }
        at += count;
    }
    found
}

fn atoms_of(text: &str, section: &Section, style: Style, counter: &Counter<'_>) -> Vec<Atom> {
    let mut found = Vec::new();
    let mut at = section.bytes.start;
    let run = |text: &str| counter.run(text);
    let run_max = (counter.room_max / RUNS_A_CHUNK).max(1);
    for whole in &section.whole {
        if whole.start < at || whole.end > section.bytes.end {
            continue;
        }
        atoms::cut(text, at..whole.start, style, run_max, &run, &mut found);
        let inner = text.get(whole.clone()).unwrap_or_default();
        let is_short = inner.len() <= counter.room_max.saturating_mul(BYTES_A_TOKEN_MAX);
        let tokens = if is_short { run(inner) } else { usize::MAX };
        if tokens <= counter.room_max && counter.fits(inner.trim()) {
            found.push(Atom {
                bytes: whole.clone(),
                tokens,
                border: Border::Paragraph,
            });
        } else {
            atoms::cut(text, whole.clone(), Style::Lines, run_max, &run, &mut found);
        }
        at = whole.end;
    }
    atoms::cut(text, at..section.bytes.end, style, run_max, &run, &mut found);
    found
}

/// How many of the atoms the next chunk takes, by the sum of their tokens.
fn best_count(atoms: &[Atom], counter: &Counter<'_>) -> usize {
    let bytes_max = counter.room_max.saturating_mul(BYTES_A_TOKEN_MAX);
    let (mut sum, mut bytes, mut fitting) = (0_usize, 0_usize, 0_usize);
    let mut best: Option<(Border, usize)> = None;
    let mut is_cut = false;
    for atom in atoms {
        sum = sum.saturating_add(atom.tokens);
        bytes = bytes.saturating_add(atom.bytes.len());
        if fitting > 0 && (sum > counter.room_max || bytes > bytes_max) {
            is_cut = true;
            break;
        }
        fitting += 1;
        let is_far = sum >= counter.room_min || bytes.saturating_mul(2) >= bytes_max;
        if is_far && best.is_none_or(|(border, _)| atom.border >= border) {
            best = Some((atom.border, fitting));
        }
    }
    if !is_cut {
        return fitting;
    }
    best.map_or(fitting, |(_, count)| count)
}

/// The bytes of some atoms without blank lines before and white space behind. The first line keeps its indent.
fn range_of(text: &str, atoms: &[Atom]) -> Range<usize> {
    let (Some(first), Some(last)) = (atoms.first(), atoms.last()) else {
        return 0..0;
    };
    let (start, end) = (first.bytes.start, last.bytes.end);
    let whole = text.get(start..end).unwrap_or_default();
    let end = start + whole.trim_end().len();
    let blank = whole.len() - whole.trim_start().len();
    let lines = whole
        .get(..blank)
        .and_then(|head| head.rfind('\n'))
        .map_or(0, |at| at + 1);
    let start = start + lines;
    start..end.max(start)
}
