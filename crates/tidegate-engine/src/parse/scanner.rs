//! Splits a model's text into what people see and what is markup, one character at a time.
//!
//! The scanner takes text in pieces of any size. A decision is taken only when the text that it rests on is
//! there, never on where a piece ends; so any cut gives the same result. What waits undecided is short (a
//! marker, a tool's name); the inside of a form is kept apart, up to [`BODY_BYTES_MAX`]. Nothing is looked at
//! twice but an opening object that turns out to be none, and that once a reply.

mod forms;
mod words;

use super::call::{Brackets, NAME_BYTES_MAX};
use super::{Dialect, TextCall, canonical};

/// How much of the inside of one form is kept, in bytes; the rest is dropped and the call cannot be read.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// How many blanks may stand between a tool's name and its arguments.
const BLANKS_MAX: usize = 8;

const FLOWER: char = '✿';
const FUNCTION: &str = "✿FUNCTION✿";
const ARGS: &str = "✿ARGS✿";
/// Markers of the same family that open no call.
const STRAYS: [&str; 4] = [ARGS, "✿RESULT✿", "✿RETURN✿", "✿"];

const REASONING: [(&str, &str); 6] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<reason>", "</reason>"),
    ("<reasoning>", "</reasoning>"),
    ("<thought>", "</thought>"),
    ("<scratchpad>", "</scratchpad>"),
];

/// Pairs of markers around calls, and what ends the form beside its own closing marker.
const PAIRS: [(&str, &str); 3] = [
    ("<tool_call>", "</tool_call>"),
    ("<|mask_start|>", "<|mask_end|>"),
    ("<function=", "</function>"),
];

/// Closing markers that stand alone.
const LONE_CLOSERS: [&str; 3] = ["</tool_call>", "<|mask_end|>", "</function>"];

/// How calls are recognised.
pub(super) struct Calls<K> {
    /// Whether a tool of that name is offered.
    pub(super) known: K,
    /// How the provider's models write.
    pub(super) dialect: Dialect,
}

/// A call and the kind of form it was found in.
pub(super) enum Found {
    /// Between explicit markers.
    Explicit(TextCall),
    /// A known name before its arguments.
    Named(TextCall),
    /// An object alone.
    Bare(TextCall),
}

/// Where an object belongs.
enum Form {
    Header { name: String, fenced: bool },
    Flower,
    Named { name: String },
    Bare,
}

enum State {
    /// Words for people.
    Text,
    /// The line that opens a code block.
    FenceOpening {
        marker: char,
        length: usize,
        counting: bool,
    },
    /// Inside a code block.
    Fence {
        marker: char,
        length: usize,
        line: FenceLine,
    },
    /// Reasoning, dropped until its closing tag.
    Reasoning { close: &'static str },
    /// Between a pair of markers.
    Pair {
        open: &'static str,
        close: &'static str,
        body: String,
    },
    /// After `✿FUNCTION✿`: the name.
    HeaderName { name: String },
    /// After the name: its arguments may follow.
    HeaderRest { name: String, marked: bool },
    /// A code block that may hold a header's arguments.
    HeaderFence { name: String, opening: String },
    /// Arguments that are no object: to the end of the line.
    HeaderLine { name: String, body: String },
    /// After a lone flower.
    Flower,
    /// A JSON value.
    Object {
        form: Form,
        brackets: Brackets,
        body: String,
    },
    /// After the object of a header in a code block, or of a flower pair: the closing marker may follow.
    Closer { marker: &'static str },
    /// After an object that was all of the reply so far.
    BareEnd { body: String, call: TextCall },
}

/// What stands so far in a line of a code block: whether it can still be the one that closes it.
#[derive(Clone, Copy, Default)]
struct FenceLine {
    run: usize,
    after_run: bool,
    other: bool,
}

/// What a step did.
enum Step {
    /// It went on.
    Went,
    /// It needs more text.
    Waits,
}

/// The text ahead is too short to tell.
struct Undecided;

/// Reads one reply.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one fact about the text so far, set and read apart from the others"
)]
pub(super) struct Scanner<K> {
    calls: Option<Calls<K>>,
    /// Text not yet decided on.
    rest: String,
    at: usize,
    ended: bool,
    state: State,
    /// Whether only blanks and quotation signs stand before, in this line.
    line_start: bool,
    /// Line ends given out in a row.
    newlines: usize,
    previous: char,
    /// Whether anything but blanks and reasoning has been met.
    begun: bool,
    /// Whether reasoning was just dropped and nothing shown yet: the blanks after it go along.
    eats_blanks: bool,
    /// Whether an object alone may still be a call.
    bare_allowed: bool,
    text: String,
    found: Vec<Found>,
}

impl<K: Fn(&str) -> bool> Scanner<K> {
    /// A scanner that drops reasoning and, with `calls`, takes calls out.
    pub(super) fn new(calls: Option<Calls<K>>) -> Self {
        Self {
            bare_allowed: calls.is_some(),
            calls,
            rest: String::new(),
            at: 0,
            ended: false,
            state: State::Text,
            line_start: true,
            newlines: 0,
            previous: '\n',
            begun: false,
            eats_blanks: false,
            text: String::new(),
            found: Vec::new(),
        }
    }

    /// Takes the next piece.
    pub(super) fn push(&mut self, piece: &str) {
        self.rest.push_str(piece);
        self.run();
    }

    /// Ends the text: what waits is decided as it stands.
    pub(super) fn finish(&mut self) {
        self.ended = true;
        self.run();
        self.close();
    }

    /// The text for people since the last time.
    pub(super) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// The calls since the last time.
    pub(super) fn take_found(&mut self) -> Vec<Found> {
        std::mem::take(&mut self.found)
    }

    fn run(&mut self) {
        while matches!(self.step(), Step::Went) {}
        self.rest.drain(..self.at);
        self.at = 0;
    }

    fn ahead(&self) -> &str {
        &self.rest[self.at..]
    }

    fn known(&self, name: &str) -> bool {
        self.calls.as_ref().is_some_and(|calls| {
            let known: &dyn Fn(&str) -> bool = &calls.known;
            known(canonical(name, known))
        })
    }

    /// Whether the text ahead begins with the marker, whatever the case; `None` while that cannot be told.
    fn begins(&self, marker: &str) -> Option<bool> {
        let ahead = self.ahead().as_bytes();
        let length = marker.len().min(ahead.len());
        if !ahead[..length].eq_ignore_ascii_case(&marker.as_bytes()[..length]) {
            return Some(false);
        }
        (length == marker.len() || self.ended).then_some(length == marker.len())
    }

    /// The first of the markers the text ahead begins with, if with any.
    fn first_of(
        &self,
        markers: impl IntoIterator<Item = &'static str>,
    ) -> Result<Option<&'static str>, Undecided> {
        for marker in markers {
            if self.begins(marker).ok_or(Undecided)? {
                return Ok(Some(marker));
            }
        }
        Ok(None)
    }

    fn step(&mut self) -> Step {
        let Some(next) = self.ahead().chars().next() else {
            return Step::Waits;
        };
        match std::mem::replace(&mut self.state, State::Text) {
            State::Text => self.text_step(next),
            State::FenceOpening {
                marker,
                length,
                counting,
            } => {
                self.skip(next.len_utf8());
                self.fence_opening(next, marker, length, counting);
                Step::Went
            }
            State::Fence { marker, length, line } => {
                self.skip(next.len_utf8());
                self.fence(next, marker, length, line);
                Step::Went
            }
            State::Reasoning { close } => self.reasoning(next, close),
            State::Pair { open, close, body } => self.pair(next, open, close, body),
            State::HeaderName { name } => self.header_name(next, name),
            State::HeaderRest { name, marked } => self.header_rest(next, name, marked),
            State::HeaderFence { name, opening } => self.header_fence(next, name, opening),
            State::HeaderLine { name, body } => self.header_line(next, name, body),
            State::Flower => self.flower(next),
            State::Object { form, brackets, body } => self.object(next, form, brackets, body),
            State::Closer { marker } => self.closer(next, marker),
            State::BareEnd { body, call } => self.bare_end(next, body, call),
        }
    }

    /// Passes over text without showing it.
    fn skip(&mut self, bytes: usize) -> Step {
        self.at += bytes;
        Step::Went
    }

    fn wait(&mut self, state: State) -> Step {
        self.state = state;
        Step::Waits
    }

    fn went(&mut self, state: State) -> Step {
        self.state = state;
        Step::Went
    }

    /// Shows the next character and passes over it.
    fn pass(&mut self, character: char) -> Step {
        self.show(character);
        self.skip(character.len_utf8())
    }

    /// Gives a character out, whether or not it is still ahead.
    fn show(&mut self, character: char) {
        self.previous = character;
        self.line_start = match character {
            '\n' => true,
            ' ' | '\t' | '>' => self.line_start,
            _ => false,
        };
        if character.is_whitespace() {
            if self.eats_blanks {
                return;
            }
        } else {
            self.begun = true;
            self.eats_blanks = false;
            if !self.dialect().bare_objects {
                self.bare_allowed = false;
            }
        }
        let in_fence = matches!(self.state, State::Fence { .. } | State::FenceOpening { .. });
        if character == '\n' {
            if self.newlines >= 2 && self.calls.is_some() && !in_fence {
                return;
            }
            self.newlines += 1;
        } else {
            self.newlines = 0;
        }
        self.text.push(character);
    }

    fn dialect(&self) -> Dialect {
        self.calls
            .as_ref()
            .map_or_else(Dialect::default, |calls| calls.dialect)
    }

    /// Puts text back in front, to be read as words. Costs the length of what is ahead, so it is done only where
    /// it can happen once a reply.
    fn put_back(&mut self, body: &str) {
        self.rest.insert_str(self.at, body);
    }

    fn find(&mut self, found: Found) {
        self.begun = true;
        self.eats_blanks = false;
        if !self.dialect().bare_objects {
            self.bare_allowed = false;
        }
        self.previous = ' ';
        self.found.push(found);
    }

    fn find_all(&mut self, calls: Vec<TextCall>) {
        for call in calls {
            self.find(Found::Explicit(call));
        }
    }
}

fn keep(body: &mut String, character: char) {
    if body.len() < BODY_BYTES_MAX {
        body.push(character);
    }
}
