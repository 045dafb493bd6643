//! Words, code blocks and reasoning.

use super::{
    BLANKS_MAX, Brackets, FLOWER, FUNCTION, FenceLine, Form, LONE_CLOSERS, NAME_BYTES_MAX, PAIRS, REASONING,
    STRAYS, Scanner, State, Step, Undecided,
};

impl<K: Fn(&str) -> bool> Scanner<K> {
    pub(super) fn text_step(&mut self, next: char) -> Step {
        match next {
            '`' | '~' if self.line_start => self.fence_start(next),
            '<' => self.tag(),
            FLOWER if self.calls.is_some() => self.flower_start(),
            '{' if self.bare_allowed => self.went(State::Object {
                form: Form::Bare,
                brackets: Brackets::default(),
                body: String::new(),
            }),
            _ if self.calls.is_some() && is_word(next) && !hinders_word(self.previous) => self.word(),
            _ => self.pass(next),
        }
    }

    fn fence_start(&mut self, marker: char) -> Step {
        let length = self
            .ahead()
            .chars()
            .take(3)
            .take_while(|&next| next == marker)
            .count();
        if length == 3 {
            return self.went(State::FenceOpening {
                marker,
                length: 0,
                counting: true,
            });
        }
        if length == self.ahead().len() && !self.ended {
            return Step::Waits;
        }
        self.pass(marker)
    }

    /// One more character of the line that opens a code block.
    pub(super) fn fence_opening(&mut self, next: char, marker: char, length: usize, counting: bool) {
        let counting = counting && next == marker;
        let length = length + usize::from(counting);
        self.state = State::FenceOpening {
            marker,
            length,
            counting,
        };
        self.show(next);
        if next == '\n' {
            let line = FenceLine::default();
            self.state = State::Fence { marker, length, line };
        } else if marker == '`' && next == '`' && !counting {
            // A back quote later in the line makes it code within a line, not a block (CommonMark 4.5).
            self.state = State::Text;
        }
    }

    /// One more character inside a code block.
    pub(super) fn fence(&mut self, next: char, marker: char, length: usize, mut line: FenceLine) {
        let closes = !line.other && line.run >= length;
        match next {
            '\n' => line = FenceLine::default(),
            ' ' | '\t' | '\r' | '>' => line.after_run = line.run > 0,
            _ if next == marker && !line.after_run => line.run += 1,
            _ => line.other = true,
        }
        self.state = State::Fence { marker, length, line };
        self.show(next);
        if closes && next == '\n' {
            self.state = State::Text;
        }
    }

    fn tag(&mut self) -> Step {
        let reasoning = REASONING.iter().flat_map(|&(open, close)| [open, close]);
        let pairs = PAIRS.iter().map(|&(open, _)| open).chain(LONE_CLOSERS);
        let call_markers = if self.calls.is_some() { usize::MAX } else { 0 };
        let Ok(marker) = self.first_of(reasoning.chain(pairs.take(call_markers))) else {
            return Step::Waits;
        };
        let Some(marker) = marker else {
            return self.pass('<');
        };
        self.skip(marker.len());
        if let Some(&(_, close)) = REASONING.iter().find(|(open, _)| *open == marker) {
            self.state = State::Reasoning { close };
        } else if let Some(&(open, close)) = PAIRS.iter().find(|(open, _)| *open == marker) {
            self.begun = true;
            self.state = State::Pair {
                open,
                close,
                body: String::new(),
            };
        }
        Step::Went
    }

    pub(super) fn reasoning(&mut self, next: char, close: &'static str) -> Step {
        match self.begins(close) {
            None => self.wait(State::Reasoning { close }),
            Some(true) => {
                self.eats_blanks = !self.begun;
                self.skip(close.len())
            }
            Some(false) => {
                self.skip(next.len_utf8());
                self.went(State::Reasoning { close })
            }
        }
    }

    fn flower_start(&mut self) -> Step {
        match self.first_of([FUNCTION].into_iter().chain(STRAYS)) {
            Err(Undecided) => Step::Waits,
            Ok(Some(FUNCTION)) => {
                self.skip(FUNCTION.len());
                self.begun = true;
                self.went(State::HeaderName { name: String::new() })
            }
            Ok(Some("✿")) => {
                self.skip(FLOWER.len_utf8());
                self.went(State::Flower)
            }
            Ok(Some(stray)) => {
                self.skip(stray.len());
                self.went(State::Closer { marker: ":" })
            }
            // Unreachable, as the last of the strays is the flower itself; passing on is right anyway.
            Ok(None) => self.skip(FLOWER.len_utf8()),
        }
    }

    /// A word that may be a tool's name before its arguments.
    fn word(&mut self) -> Step {
        let ahead = self.ahead();
        let length = ahead
            .bytes()
            .take(NAME_BYTES_MAX + 1)
            .take_while(|&byte| is_word(char::from(byte)))
            .count();
        let (name, rest) = ahead.split_at(length);
        let (name, rest_length) = (name.to_owned(), rest.len());
        let blanks = rest
            .bytes()
            .take(BLANKS_MAX)
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
        let inside = rest[blanks..].strip_prefix('{');
        let first = inside.and_then(|inside| {
            let mut bytes = inside.bytes().take(BLANKS_MAX);
            bytes.find(|byte| !byte.is_ascii_whitespace())
        });
        let first_missing = inside.is_some_and(|inside| first.is_none() && inside.len() < BLANKS_MAX);

        let known = length <= NAME_BYTES_MAX && self.known(&name);
        let undecided = rest_length == 0 || known && (rest_length == blanks || first_missing);
        if undecided && length <= NAME_BYTES_MAX && !self.ended {
            return Step::Waits;
        }
        if known && matches!(first, Some(b'"' | b'}')) {
            self.skip(length + blanks);
            let form = Form::Named { name };
            return self.went(State::Object {
                form,
                brackets: Brackets::default(),
                body: String::new(),
            });
        }
        for character in name.chars() {
            self.pass(character);
        }
        Step::Went
    }
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

/// What stands before a word that is part of something longer, quoted, or code.
fn hinders_word(previous: char) -> bool {
    previous.is_alphanumeric()
        || matches!(
            previous,
            '_' | '-' | '.' | '/' | '\\' | '`' | '"' | '\'' | '$' | '@' | '#'
        )
}
