//! The forms of a call.

use super::super::call::{self, is_name};
use super::{
    ARGS, BODY_BYTES_MAX, Brackets, FLOWER, FUNCTION, Form, Found, NAME_BYTES_MAX, Scanner, State, Step,
    TextCall, Undecided, keep,
};

/// The longest opening line of a code block around a header's arguments, in bytes.
const OPENING_BYTES_MAX: usize = 32;

impl<K: Fn(&str) -> bool> Scanner<K> {
    pub(super) fn pair(
        &mut self,
        next: char,
        open: &'static str,
        close: &'static str,
        mut body: String,
    ) -> Step {
        let is_function = open == "<function=";
        match self.begins(close) {
            None => return self.wait(State::Pair { open, close, body }),
            Some(true) => {
                self.end_pair(open, &body);
                return self.skip(close.len());
            }
            Some(false) => {}
        }
        if is_function {
            // A missing `</function>`: the next one, or the tag around it, ends this one.
            match self.first_of([open, "</tool_call>"]) {
                Err(Undecided) => return self.wait(State::Pair { open, close, body }),
                Ok(Some(_)) => {
                    self.end_pair(open, &body);
                    return Step::Went;
                }
                Ok(None) => {}
            }
        }
        self.skip(next.len_utf8());
        keep(&mut body, next);
        self.went(State::Pair { open, close, body })
    }

    fn end_pair(&mut self, open: &str, body: &str) {
        let calls = if open == "<function=" {
            call::functions(&format!("{open}{body}"))
        } else {
            call::marked(body)
        };
        self.find_all(calls);
    }

    pub(super) fn header_name(&mut self, next: char, mut name: String) -> Step {
        if is_name(next) && name.len() < NAME_BYTES_MAX {
            name.push(next);
            self.skip(next.len_utf8());
            return self.went(State::HeaderName { name });
        }
        if !name.is_empty() {
            return self.went(State::HeaderRest { name, marked: false });
        }
        if next.is_whitespace() || next == ':' {
            self.skip(next.len_utf8());
            return self.went(State::HeaderName { name });
        }
        Step::Went
    }

    pub(super) fn header_rest(&mut self, next: char, name: String, marked: bool) -> Step {
        if next.is_whitespace() || (marked && next == ':') {
            self.skip(next.len_utf8());
            return self.went(State::HeaderRest { name, marked });
        }
        let wanted = if next == '`' { "```" } else { ARGS };
        match self.begins(wanted) {
            None => self.wait(State::HeaderRest { name, marked }),
            Some(true) if next == '`' => {
                self.skip(wanted.len());
                self.went(State::HeaderFence {
                    name,
                    opening: wanted.to_owned(),
                })
            }
            Some(true) if !marked => {
                self.skip(wanted.len());
                self.went(State::HeaderRest { name, marked: true })
            }
            Some(_) if next == '{' || (marked && next == '[') => {
                let form = Form::Header { name, fenced: false };
                self.went(State::Object {
                    form,
                    brackets: Brackets::default(),
                    body: String::new(),
                })
            }
            Some(_) if marked && next != FLOWER => self.went(State::HeaderLine {
                name,
                body: String::new(),
            }),
            Some(_) => {
                self.line_start = true;
                self.find(Found::Explicit(call::header(name, None)));
                Step::Went
            }
        }
    }

    pub(super) fn header_fence(&mut self, next: char, name: String, mut opening: String) -> Step {
        if next == '{' {
            let form = Form::Header { name, fenced: true };
            return self.went(State::Object {
                form,
                brackets: Brackets::default(),
                body: String::new(),
            });
        }
        let in_line = !opening.ends_with('\n');
        if opening.len() < OPENING_BYTES_MAX
            && (next.is_whitespace() || (in_line && next.is_ascii_alphanumeric()))
        {
            opening.push(next);
            self.skip(next.len_utf8());
            return self.went(State::HeaderFence { name, opening });
        }
        self.find(Found::Explicit(call::header(name, None)));
        self.show_opening(&opening);
        Step::Went
    }

    /// The code block after a header is not its arguments: it is text.
    fn show_opening(&mut self, opening: &str) {
        self.line_start = true;
        let (line, blanks) = match opening.find('\n') {
            Some(end) => opening.split_at(end + 1),
            None => (opening, ""),
        };
        let (mut length, mut counting) = (0, true);
        for character in line.chars() {
            counting = counting && character == '`';
            self.fence_opening(character, '`', length, counting);
            length += usize::from(counting);
        }
        for character in blanks.chars() {
            self.show(character);
        }
    }

    pub(super) fn header_line(&mut self, next: char, name: String, mut body: String) -> Step {
        if next == '\n' || next == FLOWER {
            self.find(Found::Explicit(call::header(name, Some(&body))));
            self.line_start = next == '\n';
            return Step::Went;
        }
        keep(&mut body, next);
        self.skip(next.len_utf8());
        self.went(State::HeaderLine { name, body })
    }

    pub(super) fn flower(&mut self, next: char) -> Step {
        if next == '{' {
            self.begun = true;
            return self.went(State::Object {
                form: Form::Flower,
                brackets: Brackets::default(),
                body: String::new(),
            });
        }
        if next.is_whitespace() {
            // Shown as it is met: a lone flower leaves its blanks where they were.
            self.pass(next);
            return self.went(State::Flower);
        }
        Step::Went
    }

    pub(super) fn object(
        &mut self,
        next: char,
        form: Form,
        mut brackets: Brackets,
        mut body: String,
    ) -> Step {
        if next == FLOWER && matches!(form, Form::Header { .. } | Form::Flower) {
            match self.begins(FUNCTION) {
                None => return self.wait(State::Object { form, brackets, body }),
                // The next header ends an object that was cut off.
                Some(true) => {
                    self.end_object(form, body);
                    self.state = State::Text;
                    return Step::Went;
                }
                Some(false) => {}
            }
        }
        self.skip(next.len_utf8());
        keep(&mut body, next);
        if brackets.closes(next) {
            self.end_object(form, body);
            return Step::Went;
        }
        if matches!(form, Form::Bare) && body.len() >= BODY_BYTES_MAX {
            self.show_object(&body);
            return Step::Went;
        }
        self.went(State::Object { form, brackets, body })
    }

    /// Takes a whole object, and sets what may follow it.
    fn end_object(&mut self, form: Form, body: String) {
        match form {
            Form::Header { name, fenced } => {
                self.find(Found::Explicit(call::header(name, Some(&body))));
                if fenced {
                    self.state = State::Closer { marker: "```" };
                }
            }
            Form::Flower => {
                self.find_all(call::marked(&body));
                self.state = State::Closer { marker: "✿" };
            }
            Form::Named { name } => self.find(Found::Named(call::header(name, Some(&body)))),
            Form::Bare => match call::bare(&body).filter(|call| self.known(&call.name)) {
                Some(call) if self.dialect().bare_objects => self.find(Found::Bare(call)),
                Some(call) => self.state = State::BareEnd { body, call },
                None => self.show_object(&body),
            },
        }
    }

    /// An object that is no call. Where only a whole reply counts, it is read again as words; in a dialect
    /// with bare objects it is shown as it stands, so that nested objects are not tried one by one.
    fn show_object(&mut self, body: &str) {
        if self.dialect().bare_objects {
            for character in body.chars() {
                self.show(character);
            }
        } else {
            self.bare_allowed = false;
            self.put_back(body);
        }
    }

    pub(super) fn closer(&mut self, next: char, marker: &'static str) -> Step {
        if next.is_whitespace() && marker != ":" {
            self.skip(next.len_utf8());
            return self.went(State::Closer { marker });
        }
        // A flower that opens the next header is not this one's closing flower.
        if marker == "✿" {
            match self.begins(FUNCTION) {
                None => return self.wait(State::Closer { marker }),
                Some(true) => return Step::Went,
                Some(false) => {}
            }
        }
        match self.begins(marker) {
            None => self.wait(State::Closer { marker }),
            Some(true) => self.skip(marker.len()),
            Some(false) => Step::Went,
        }
    }

    pub(super) fn bare_end(&mut self, next: char, mut body: String, call: TextCall) -> Step {
        if next.is_whitespace() {
            keep(&mut body, next);
            self.skip(next.len_utf8());
            return self.went(State::BareEnd { body, call });
        }
        self.bare_allowed = false;
        self.put_back(&body);
        Step::Went
    }

    /// The end of the text inside a form.
    pub(super) fn close(&mut self) {
        match std::mem::replace(&mut self.state, State::Text) {
            State::Text
            | State::FenceOpening { .. }
            | State::Fence { .. }
            | State::Reasoning { .. }
            | State::Flower
            | State::Closer { .. } => {}
            State::Pair { open, body, .. } => self.end_pair(open, &body),
            State::HeaderName { name } if name.is_empty() => {}
            State::HeaderName { name } | State::HeaderRest { name, .. } => {
                self.find(Found::Explicit(call::header(name, None)));
            }
            State::HeaderFence { name, opening } => {
                self.find(Found::Explicit(call::header(name, None)));
                self.show_opening(&opening);
            }
            State::HeaderLine { name, body } => self.find(Found::Explicit(call::header(name, Some(&body)))),
            State::BareEnd { call, .. } => self.find(Found::Bare(call)),
            State::Object {
                form: Form::Bare,
                body,
                ..
            } => {
                self.bare_allowed = false;
                self.put_back(&body);
                self.run();
                self.close();
            }
            State::Object { form, body, .. } => self.end_object(form, body),
        }
    }
}
