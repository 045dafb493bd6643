//! Prompt secrecy on the way out: an answer does not carry the text of the prompt it was given.
//!
//! The prompt's lines are remembered as letters and digits alone, look-alikes folded, so that an answer is
//! recognised however it is wrapped, quoted, numbered, cased, spaced or sprinkled with characters that show
//! nothing; also where it is written in rot13, base64 or hexadecimal. One line alone is no leak: a rule may be
//! quoted. Two whole lines are, and so are longer stretches that together make up as much.
//!
//! The check works letter by letter, so that a text in pieces is judged as the whole is, and holds back what may
//! be the beginning of a quotation until it is clear.

mod index;
mod letters;
mod runs;

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use self::{index::Index, letters::Letters, runs::Run};

/// The shortest line that counts, in characters.
const LINE_CHARS_MIN: usize = 40;

/// The shortest stretch of a quotation that counts, in letters.
const QUOTED_LETTERS_MIN: usize = 32;

/// As many letters of the prompt, in stretches that count, are a leak.
const LEAK_LETTERS: usize = 160;

/// As many whole lines of the prompt are a leak.
const LEAK_LINES: usize = 2;

/// The most that is held back while a quotation goes on, in bytes; what is longer is a leak by then.
const HELD_BYTES_MAX: usize = 64 << 10;

/// The prompt, as its quotations are recognised. Made once for each prompt.
#[derive(Debug)]
pub struct Fingerprints {
    index: Index,
    /// Where the letters of each line that counts stand.
    lines: Vec<std::ops::Range<usize>>,
}

impl Fingerprints {
    /// The fingerprints of the texts that a prompt is made of. Leave out what may be repeated to anybody: reports
    /// that the agent is meant to give, and what came from the client.
    pub fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut letters = Vec::new();
        let mut lines = Vec::new();
        for line in texts.into_iter().flat_map(str::lines) {
            let start = letters.len();
            letters.extend(Letters::of(line, false));
            let is_long = line.trim().chars().count() >= LINE_CHARS_MIN;
            if is_long && letters.len() - start >= QUOTED_LETTERS_MIN {
                lines.push(start..letters.len());
            }
        }
        Self {
            index: Index::of(letters),
            lines,
        }
    }

    /// Whether the text carries the prompt.
    pub fn is_leak(self: &Arc<Self>, text: &str) -> bool {
        let mut stream = Stream::new(Arc::clone(self));
        matches!(stream.push(text), Passage::Leak) || matches!(stream.finish(), Passage::Leak)
    }
}

/// What becomes of a piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Passage {
    /// This much may be shown now.
    Shown(String),
    /// The answer carries the prompt. Nothing more of it may be shown.
    Leak,
}

/// Checks an answer that arrives in pieces.
#[derive(Debug)]
pub struct Stream {
    fingerprints: Arc<Fingerprints>,
    held: String,
    /// How many bytes went before what is held.
    before_bytes: usize,
    judge: Judge,
    has_leaked: bool,
}

impl Stream {
    /// A check of an answer that has not begun.
    pub fn new(fingerprints: Arc<Fingerprints>) -> Self {
        Self {
            judge: Judge::new(&fingerprints),
            fingerprints,
            held: String::new(),
            before_bytes: 0,
            has_leaked: false,
        }
    }

    /// Takes a piece of the answer.
    pub fn push(&mut self, piece: &str) -> Passage {
        for (at, letter) in piece.char_indices() {
            let place = self.before_bytes + self.held.len() + at;
            let before = self.judge.quoted_count;
            self.judge.hear(&self.fingerprints, letter, place);
            if self.judge.quoted_count > before && self.judge.is_leak(&self.fingerprints) {
                self.has_leaked = true;
                break;
            }
        }
        if self.has_leaked {
            self.held.clear();
            return Passage::Leak;
        }
        self.held.push_str(piece);
        let end = self.before_bytes + self.held.len();
        let mut open = self.judge.open_from().unwrap_or(end).max(self.before_bytes);
        if end - open > HELD_BYTES_MAX {
            open = end;
        }
        let rest = self.held.split_off(open - self.before_bytes);
        self.before_bytes = open;
        Passage::Shown(std::mem::replace(&mut self.held, rest))
    }

    /// The answer is over: what is left of it.
    pub fn finish(&mut self) -> Passage {
        self.judge.end(&self.fingerprints);
        if self.has_leaked || self.judge.is_leak(&self.fingerprints) {
            self.has_leaked = true;
            self.held.clear();
            return Passage::Leak;
        }
        self.before_bytes += self.held.len();
        Passage::Shown(std::mem::take(&mut self.held))
    }
}

/// What has been quoted so far.
#[derive(Debug)]
struct Judge {
    /// Of the prompt's letters, those that were quoted in stretches that count.
    quoted: Vec<bool>,
    quoted_count: usize,
    letters: Letters,
    plain: Tracker,
    rotated: Tracker,
    run: Run,
}

impl Judge {
    fn new(fingerprints: &Fingerprints) -> Self {
        Self {
            quoted: vec![false; fingerprints.index.len()],
            quoted_count: 0,
            letters: Letters::default(),
            plain: Tracker::default(),
            rotated: Tracker::default(),
            run: Run::default(),
        }
    }

    fn hear(&mut self, fingerprints: &Fingerprints, letter: char, place: usize) {
        for folded in self.letters.fold(letter, false) {
            for range in self.plain.hear(&fingerprints.index, folded, place) {
                self.mark(range);
            }
        }
        for folded in self.letters.fold(letter, true) {
            for range in self.rotated.hear(&fingerprints.index, folded, place) {
                self.mark(range);
            }
        }
        if let Some(run) = self.run.hear(letter, place) {
            self.decode(fingerprints, &run);
        }
    }

    fn end(&mut self, fingerprints: &Fingerprints) {
        if let Some(run) = self.run.end() {
            self.decode(fingerprints, &run);
        }
    }

    /// Looks at what a run of letters and digits stands for.
    fn decode(&mut self, fingerprints: &Fingerprints, run: &str) {
        for text in runs::decoded(run) {
            let mut tracker = Tracker::default();
            for folded in Letters::of(&text, false) {
                for range in tracker.hear(&fingerprints.index, folded, 0) {
                    self.mark(range);
                }
            }
        }
    }

    fn mark(&mut self, range: std::ops::Range<usize>) {
        for slot in self.quoted.get_mut(range).into_iter().flatten() {
            self.quoted_count += usize::from(!*slot);
            *slot = true;
        }
    }

    fn is_leak(&self, fingerprints: &Fingerprints) -> bool {
        if self.quoted_count >= LEAK_LETTERS {
            return true;
        }
        if self.quoted_count < LEAK_LINES * QUOTED_LETTERS_MIN {
            return false;
        }
        let is_whole = |line: &&std::ops::Range<usize>| {
            self.quoted
                .get((*line).clone())
                .is_some_and(|letters| letters.iter().all(|is_quoted| *is_quoted))
        };
        fingerprints.lines.iter().filter(is_whole).count() >= LEAK_LINES
    }

    /// Where in the answer something begins that may become a quotation.
    fn open_from(&self) -> Option<usize> {
        [
            self.plain.open_from(),
            self.rotated.open_from(),
            self.run.open_from(),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}

/// Follows one form of an answer through the prompt.
#[derive(Debug, Default)]
struct Tracker {
    /// The last letters, and where in the answer each stands.
    last: VecDeque<(u8, usize)>,
    /// For every place of the prompt at which the answer may be: where the stretch began there, and in the answer.
    candidates: HashMap<usize, (usize, usize)>,
}

impl Tracker {
    /// Takes a letter and gives the stretches of the prompt that are quoted now.
    fn hear(&mut self, index: &Index, letter: u8, place: usize) -> Vec<std::ops::Range<usize>> {
        let mut quoted = Vec::new();
        let mut next = HashMap::new();
        for (at, began) in std::mem::take(&mut self.candidates) {
            if index.letter(at) == Some(letter) {
                next.insert(at + 1, began);
                if at + 1 - began.0 >= QUOTED_LETTERS_MIN {
                    quoted.push(began.0..at + 1);
                }
            }
        }
        self.last.push_back((letter, place));
        if self.last.len() > index::GRAM {
            self.last.pop_front();
        }
        if self.last.len() == index::GRAM {
            let began_in_answer = self.last.front().map_or(place, |(_, place)| *place);
            let gram = self.last.iter().map(|(letter, _)| *letter);
            for start in index.places(gram) {
                next.entry(start + index::GRAM)
                    .or_insert((start, began_in_answer));
            }
        }
        self.candidates = next;
        quoted
    }

    fn open_from(&self) -> Option<usize> {
        self.candidates.values().map(|(_, place)| *place).min()
    }
}

#[cfg(test)]
mod tests;
