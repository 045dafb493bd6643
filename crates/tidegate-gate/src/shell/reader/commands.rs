//! Lists, pipelines and simple commands.

use super::{Fault, MAX_WORDS, Reader, as_quoted, is_blank, is_meta, is_name, is_name_start};
use crate::shell::{
    braces,
    syntax::{Assignment, Command, Item, Joint, Pipeline, Redirect, Script, Stage, Word},
};

/// Words that end a list where a command could start.
const CLOSERS: [&str; 8] = ["then", "elif", "else", "fi", "do", "done", "esac", "}"];

impl Reader<'_> {
    /// A list, up to the end, a closing parenthesis, a closing word or `;;`.
    pub(super) fn script(&mut self) -> Result<Script, Fault> {
        let mut script = Script::default();
        loop {
            self.skip_lines()?;
            if self.is_list_end() {
                return Ok(script);
            }
            let mut item = self.item()?;
            self.skip_blanks();
            let is_separated = match self.peek() {
                Some(b'&') => {
                    self.at += 1;
                    item.is_background = true;
                    true
                }
                Some(b';') if !self.starts_with(";;") && !self.starts_with(";&") => {
                    self.at += 1;
                    true
                }
                Some(b'\n') => true,
                _ => false,
            };
            script.items.push(item);
            if !is_separated {
                self.skip_blanks();
                return if self.is_list_end() {
                    Ok(script)
                } else {
                    Err(Fault::Syntax)
                };
            }
        }
    }

    /// A list that must hold something, as inside every compound command.
    pub(super) fn full_script(&mut self) -> Result<Script, Fault> {
        let script = self.deeper(Self::script)?;
        if script.items.is_empty() {
            return Err(Fault::Syntax);
        }
        Ok(script)
    }

    fn is_list_end(&self) -> bool {
        match self.peek() {
            None | Some(b')') => true,
            Some(b';') => self.starts_with(";;") || self.starts_with(";&"),
            Some(_) => self.reserved().is_some_and(|word| CLOSERS.contains(&word)),
        }
    }

    /// The unquoted word that comes next, if it could be a reserved one.
    pub(super) fn reserved(&self) -> Option<&str> {
        let length = self.rest().iter().take_while(|byte| !is_meta(**byte)).count();
        let word = self.line.get(self.at..self.at + length)?;
        (!word.is_empty() && word.len() <= 8).then_some(word)
    }

    /// Takes a reserved word after line ends; anything else is broken.
    pub(super) fn expect(&mut self, word: &str) -> Result<(), Fault> {
        self.skip_lines()?;
        if self.reserved() == Some(word) {
            self.at += word.len();
            Ok(())
        } else {
            Err(Fault::Syntax)
        }
    }

    fn item(&mut self) -> Result<Item, Fault> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.skip_blanks();
            let joint = if self.take("&&") {
                Joint::And
            } else if self.take("||") {
                Joint::Or
            } else {
                break;
            };
            self.skip_lines()?;
            rest.push((joint, self.pipeline()?));
        }
        Ok(Item {
            first,
            rest,
            is_background: false,
        })
    }

    fn pipeline(&mut self) -> Result<Pipeline, Fault> {
        let mut pipeline = Pipeline {
            is_negated: false,
            is_timed: false,
            stages: Vec::new(),
        };
        loop {
            self.skip_blanks();
            match self.reserved() {
                Some("!") => {
                    self.at += 1;
                    pipeline.is_negated = !pipeline.is_negated;
                }
                Some("time") => {
                    self.at += 4;
                    pipeline.is_timed = true;
                    self.skip_blanks();
                    while matches!(self.reserved(), Some("-p" | "--")) {
                        self.at += 2;
                        self.skip_blanks();
                    }
                }
                _ => break,
            }
        }
        loop {
            let mut stage = self.stage()?;
            self.skip_blanks();
            if self.starts_with("||") || self.peek() != Some(b'|') {
                pipeline.stages.push(stage);
                return Ok(pipeline);
            }
            self.at += 1;
            stage.pipes_errors = self.take("&");
            pipeline.stages.push(stage);
            self.skip_lines()?;
        }
    }

    pub(super) fn stage(&mut self) -> Result<Stage, Fault> {
        self.skip_blanks();
        let Some(command) = self.compound()? else {
            return self.simple();
        };
        let mut redirects = Vec::new();
        loop {
            self.skip_blanks();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => break,
            }
        }
        Ok(staged(command, redirects))
    }

    fn simple(&mut self) -> Result<Stage, Fault> {
        let mut assignments = Vec::new();
        let mut words: Vec<Word> = Vec::new();
        let mut redirects = Vec::new();
        loop {
            self.skip_blanks();
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            match self.peek() {
                Some(b'(') if redirects.is_empty() && assignments.is_empty() => {
                    if let [name] = words.as_slice()
                        && let Some(name) = name.bare().map(str::to_owned)
                    {
                        return self.function_body(name);
                    }
                    return Err(Fault::Syntax);
                }
                Some(byte) if !is_meta(byte) || self.is_stream_start() => {}
                _ => break,
            }
            if words.is_empty()
                && let Some(assignment) = self.assignment()?
            {
                assignments.push(assignment);
                continue;
            }
            let is_declaration = words
                .first()
                .and_then(Word::bare)
                .is_some_and(|name| ["declare", "typeset", "local", "export", "readonly"].contains(&name));
            let word = if is_declaration && self.is_array_assignment() {
                self.array_word()?
            } else {
                self.word()?
            };
            braces::expand(word, &mut words);
            if words.len() > MAX_WORDS {
                return Err(Fault::Words);
            }
        }
        if words.is_empty() && assignments.is_empty() && redirects.is_empty() {
            return Err(Fault::Syntax);
        }
        Ok(staged(Command::Simple { assignments, words }, redirects))
    }

    /// The length of `name=`, `name+=` or `name[…]=` if that is what comes next.
    fn assignment_length(&self) -> Option<(usize, usize)> {
        let rest = self.rest();
        if !rest.first().is_some_and(|byte| is_name_start(*byte)) {
            return None;
        }
        let name = rest.iter().take_while(|byte| is_name(**byte)).count();
        let mut at = name;
        if rest.get(at) == Some(&b'[') {
            let close = rest
                .get(at..)?
                .iter()
                .position(|byte| *byte == b']' || *byte == b'\n')?;
            at += close + 1;
        }
        if rest.get(at) == Some(&b'+') {
            at += 1;
        }
        (rest.get(at) == Some(&b'=')).then_some((name, at + 1))
    }

    fn assignment(&mut self) -> Result<Option<Assignment>, Fault> {
        let Some((name, length)) = self.assignment_length() else {
            return Ok(None);
        };
        let is_plain = length == name + 1;
        let text = self.slice(self.at, self.at + length).to_owned();
        let name = self.slice(self.at, self.at + name).to_owned();
        self.at += length;
        let mut values = Vec::new();
        let mut is_array = false;
        if self.peek() == Some(b'(') {
            is_array = true;
            values = self.array()?;
        } else if self.peek().is_some_and(|byte| !is_meta(byte)) || self.is_stream_start() {
            values.push(self.word()?);
        }
        if !is_plain {
            // An index is arithmetic, and arithmetic can hold a substitution.
            let index = text.trim_end_matches('=').to_owned();
            values.push(self.inner(&index, as_quoted)?);
        }
        Ok(Some(Assignment {
            name,
            is_plain: is_plain && !is_array,
            values,
        }))
    }

    fn is_array_assignment(&self) -> bool {
        self.assignment_length()
            .is_some_and(|(_, length)| self.peek_at(length) == Some(b'('))
    }

    /// `declare a=(…)`, as one word that holds the words of the array.
    fn array_word(&mut self) -> Result<Word, Fault> {
        let mut word = Word::default();
        if let Some((_, length)) = self.assignment_length() {
            word.push_text(self.slice(self.at, self.at + length));
            self.at += length;
        }
        for element in self.array()? {
            word.push_quoted(" ");
            word.pieces.extend(element.pieces);
        }
        Ok(word)
    }

    fn array(&mut self) -> Result<Vec<Word>, Fault> {
        self.at += 1;
        let mut words = Vec::new();
        loop {
            self.skip_lines()?;
            match self.peek() {
                Some(b')') => {
                    self.at += 1;
                    return Ok(words);
                }
                Some(byte) if !is_meta(byte) || self.is_stream_start() => words.push(self.word()?),
                Some(_) => return Err(Fault::Syntax),
                None => return Err(Fault::Unclosed),
            }
        }
    }

    fn function_body(&mut self, name: String) -> Result<Stage, Fault> {
        self.at += 1;
        self.skip_blanks();
        if !self.take(")") {
            return Err(Fault::Syntax);
        }
        self.skip_lines()?;
        let body = self.deeper(Self::stage)?;
        Ok(staged(
            Command::Function {
                name,
                body: Box::new(body),
            },
            Vec::new(),
        ))
    }

    /// `function name { … }`.
    pub(super) fn named_function(&mut self) -> Result<Command, Fault> {
        self.skip_blanks();
        let name = self.word()?.literal().ok_or(Fault::Syntax)?;
        self.skip_blanks();
        if self.take("(") {
            self.skip_blanks();
            if !self.take(")") {
                return Err(Fault::Syntax);
            }
        }
        self.skip_lines()?;
        let body = Box::new(self.deeper(Self::stage)?);
        Ok(Command::Function { name, body })
    }

    pub(super) fn is_reserved_followed_by_blank(&self, word: &str) -> bool {
        self.reserved() == Some(word)
            && self
                .peek_at(word.len())
                .is_none_or(|byte| is_blank(byte) || byte == b'\n')
    }
}

fn staged(command: Command, redirects: Vec<Redirect>) -> Stage {
    Stage {
        command,
        redirects,
        pipes_errors: false,
    }
}
