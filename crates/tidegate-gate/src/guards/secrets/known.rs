//! The values that are known, made searchable.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use tidegate_core::secret::Secret;

use super::{RedactorError, join, joined, needles, needles::Needles, reading::Reading};

/// Values in every form, as automata and as sorted lists.
pub(super) struct Known {
    pub(super) values: Vec<Secret>,
    /// Forms long enough to be told from words, whatever their case.
    long: AhoCorasick,
    /// Short values, letter by letter as they are.
    short: AhoCorasick,
    /// Short values that could be part of an ordinary word or number.
    words: AhoCorasick,
    prefixes: [Prefixes; 3],
}

impl Known {
    pub(super) fn new(all: Vec<Secret>) -> Result<Self, RedactorError> {
        let mut values: Vec<Secret> = Vec::with_capacity(all.len());
        let mut found = Needles::default();
        for secret in all {
            if !values.contains(&secret) {
                needles::add(secret.expose(), &mut found);
                values.push(secret);
            }
        }
        let build = |needles: &[Vec<u8>], ignores_case: bool| {
            AhoCorasick::builder()
                .match_kind(MatchKind::Standard)
                .ascii_case_insensitive(ignores_case)
                .build(needles)
                .map_err(|problem| RedactorError(problem.to_string()))
        };
        Ok(Self {
            values,
            long: build(&found.long, true)?,
            short: build(&found.short, false)?,
            words: build(&found.words, false)?,
            prefixes: [
                Prefixes::new(found.long, true),
                Prefixes::new(found.short, false),
                Prefixes::new(found.words, false),
            ],
        })
    }

    /// Adds where known values stand that begin at `from` or behind it.
    pub(super) fn find(&self, text: &str, from: usize, found: &mut Vec<Range<usize>>) {
        let mut add = |range: Range<usize>| {
            if range.start >= from {
                join(found, range);
            }
        };
        for automaton in [&self.long, &self.short] {
            automaton
                .find_overlapping_iter(text)
                .for_each(|hit| add(hit.range()));
        }
        let words = self.words(text, from).into_iter().filter(|run| {
            let (before, after) = (text.get(..run.start), text.get(run.end..));
            before.is_some_and(ends_apart)
                && after.is_some_and(|after| !after.starts_with(char::is_alphanumeric))
        });
        words.for_each(&mut add);
        if self.long.patterns_len() > 0
            && let Some(mut reading) = Reading::of(text)
        {
            loop {
                self.long
                    .find_overlapping_iter(reading.bytes())
                    .for_each(|hit| add(reading.origin(hit.range())));
                match reading.unescaped() {
                    Some(next) => reading = next,
                    None => break,
                }
            }
        }
    }

    /// Runs of values that could be words, whatever stands around them.
    fn words(&self, text: &str, from: usize) -> Vec<Range<usize>> {
        let mut runs = Vec::new();
        for hit in self.words.find_overlapping_iter(text) {
            if hit.start() >= from {
                join(&mut runs, hit.range());
            }
        }
        joined(runs)
    }

    /// Where the end of the text may be the beginning of a value that goes on behind it. What stands before `held`
    /// counts no more.
    pub(super) fn open_from(&self, text: &str, held: usize) -> usize {
        let mut from = self
            .prefixes
            .iter()
            .map(|prefixes| prefixes.open_from(text.as_bytes()))
            .min()
            .unwrap_or(text.len());
        // Whether a word ends here is not known before the next letter is.
        for run in self.words(text, held).iter().rev() {
            if run.end >= from {
                from = from.min(run.start);
            }
        }
        let [long, ..] = &self.prefixes;
        if !long.is_empty() {
            from = from.min(Reading::open_from(text, |bytes| long.open_from(bytes)));
        }
        from
    }
}

/// Whether a word may begin behind this text. An escape is no letter.
fn ends_apart(before: &str) -> bool {
    let is_escape = ["\\n", "\\r", "\\t"]
        .iter()
        .any(|escape| before.ends_with(escape));
    is_escape || !before.ends_with(char::is_alphanumeric)
}

/// Needles, sorted, to be asked for by their beginnings.
struct Prefixes {
    sorted: Vec<Vec<u8>>,
    is_first: [bool; 256],
    bytes_max: usize,
    ignores_case: bool,
}

impl Prefixes {
    fn new(mut needles: Vec<Vec<u8>>, ignores_case: bool) -> Self {
        if ignores_case {
            for needle in &mut needles {
                needle.make_ascii_lowercase();
            }
        }
        needles.sort_unstable();
        needles.dedup();
        let mut is_first = [false; 256];
        for first in needles.iter().filter_map(|needle| needle.first()) {
            if let Some(slot) = is_first.get_mut(usize::from(*first)) {
                *slot = true;
            }
        }
        Self {
            bytes_max: needles.iter().map(Vec::len).max().unwrap_or(0),
            sorted: needles,
            is_first,
            ignores_case,
        }
    }

    fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Where the longest end of `text` begins that is the beginning of a needle, and not all of it.
    fn open_from(&self, text: &[u8]) -> usize {
        let first = (text.len() + 1).saturating_sub(self.bytes_max);
        let mut tail = text.get(first..).unwrap_or_default().to_vec();
        if self.ignores_case {
            tail.make_ascii_lowercase();
        }
        (0..tail.len())
            .find(|start| tail.get(*start..).is_some_and(|end| self.is_beginning(end)))
            .map_or(text.len(), |start| first + start)
    }

    fn is_beginning(&self, text: &[u8]) -> bool {
        let is_first = text
            .first()
            .and_then(|first| self.is_first.get(usize::from(*first)))
            .is_some_and(|is_first| *is_first);
        if !is_first {
            return false;
        }
        // What begins with the text stands in one run; only the text itself can stand before the rest of it.
        let at = self.sorted.partition_point(|needle| needle.as_slice() <= text);
        self.sorted.get(at).is_some_and(|needle| needle.starts_with(text))
    }
}
