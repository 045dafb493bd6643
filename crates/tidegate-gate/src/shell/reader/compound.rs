//! Compound commands: groups, conditions, loops, functions.

use super::{Fault, Reader, is_blank, is_meta};
use crate::shell::{
    braces,
    syntax::{Command, Word},
};

impl Reader<'_> {
    /// A compound command, if one comes next.
    pub(super) fn compound(&mut self) -> Result<Option<Command>, Fault> {
        if self.starts_with("((")
            && let Some(command) = self.arithmetic_command()?
        {
            return Ok(Some(command));
        }
        if self.take("(") {
            let script = self.full_script()?;
            self.skip_lines()?;
            return if self.take(")") {
                Ok(Some(Command::Subshell(script)))
            } else {
                Err(self.unclosed())
            };
        }
        let Some(word) = self.reserved() else {
            return Ok(None);
        };
        let length = word.len();
        let step: fn(&mut Self) -> Result<Command, Fault> = match word {
            "{" => Self::group,
            "if" => Self::condition_command,
            "while" => |reader| reader.repeated(false),
            "until" => |reader| reader.repeated(true),
            "for" => Self::for_loop,
            "select" => |reader| reader.word_loop(true),
            "case" => Self::case,
            "[[" if self.is_reserved_followed_by_blank("[[") => Self::conditional,
            "function" => Self::named_function,
            "coproc" => Self::coprocess,
            _ => return Ok(None),
        };
        self.at += length;
        step(self).map(Some)
    }

    fn unclosed(&self) -> Fault {
        if self.peek().is_none() {
            Fault::Unclosed
        } else {
            Fault::Syntax
        }
    }

    fn group(&mut self) -> Result<Command, Fault> {
        let script = self.full_script()?;
        self.expect("}")?;
        Ok(Command::Group(script))
    }

    fn condition_command(&mut self) -> Result<Command, Fault> {
        let mut branches = Vec::new();
        loop {
            let condition = self.full_script()?;
            self.expect("then")?;
            branches.push((condition, self.full_script()?));
            self.skip_lines()?;
            match self.reserved() {
                Some("elif") => self.at += 4,
                Some("else") => {
                    self.at += 4;
                    let otherwise = Some(self.full_script()?);
                    self.expect("fi")?;
                    return Ok(Command::If { branches, otherwise });
                }
                Some("fi") => {
                    self.at += 2;
                    return Ok(Command::If {
                        branches,
                        otherwise: None,
                    });
                }
                _ => return Err(Fault::Syntax),
            }
        }
    }

    fn repeated(&mut self, is_until: bool) -> Result<Command, Fault> {
        let condition = self.full_script()?;
        let body = self.loop_body()?;
        Ok(Command::Loop {
            is_until,
            condition,
            body,
        })
    }

    fn loop_body(&mut self) -> Result<crate::shell::syntax::Script, Fault> {
        self.expect("do")?;
        let body = self.full_script()?;
        self.expect("done")?;
        Ok(body)
    }

    fn for_loop(&mut self) -> Result<Command, Fault> {
        self.skip_blanks();
        if !self.starts_with("((") {
            return self.word_loop(false);
        }
        let Some(Command::Arithmetic(header)) = self.arithmetic_command()? else {
            return Err(Fault::Syntax);
        };
        self.skip_blanks();
        self.take(";");
        let body = self.loop_body()?;
        Ok(Command::Counted { header, body })
    }

    fn word_loop(&mut self, is_select: bool) -> Result<Command, Fault> {
        self.skip_blanks();
        let variable = self.word()?.literal().ok_or(Fault::Syntax)?;
        self.skip_lines()?;
        let mut words = None;
        if self.reserved() == Some("in") {
            self.at += 2;
            let mut found = Vec::new();
            loop {
                self.skip_blanks();
                match self.peek() {
                    Some(b';') if !self.starts_with(";;") => {
                        self.at += 1;
                        break;
                    }
                    Some(b'\n') => break,
                    Some(byte) if !is_meta(byte) => {
                        let word = self.word()?;
                        braces::expand(word, &mut found);
                    }
                    Some(_) | None => return Err(Fault::Syntax),
                }
            }
            words = Some(found);
        } else {
            self.take(";");
        }
        let body = self.loop_body()?;
        Ok(Command::For {
            is_select,
            variable,
            words,
            body,
        })
    }

    fn case(&mut self) -> Result<Command, Fault> {
        self.skip_blanks();
        let subject = self.word()?;
        self.expect("in")?;
        let mut arms = Vec::new();
        loop {
            self.skip_lines()?;
            if self.reserved() == Some("esac") {
                self.at += 4;
                return Ok(Command::Case { subject, arms });
            }
            self.take("(");
            let mut patterns = Vec::new();
            loop {
                self.skip_blanks();
                patterns.push(self.pattern_word()?);
                self.skip_blanks();
                if self.take(")") {
                    break;
                }
                if !self.take("|") {
                    return Err(self.unclosed());
                }
            }
            let body = self.deeper(Self::script)?;
            arms.push((patterns, body));
            self.skip_lines()?;
            if !(self.take(";;&") || self.take(";;") || self.take(";&")) && self.reserved() != Some("esac") {
                return Err(self.unclosed());
            }
        }
    }

    /// `[[ … ]]`: words and operators alike, as words.
    fn conditional(&mut self) -> Result<Command, Fault> {
        let mut words: Vec<Word> = Vec::new();
        loop {
            self.skip_lines()?;
            if self.reserved() == Some("]]") {
                self.at += 2;
                return if words.is_empty() {
                    Err(Fault::Syntax)
                } else {
                    Ok(Command::Condition(words))
                };
            }
            let is_pattern = words
                .last()
                .and_then(Word::bare)
                .is_some_and(|operator| ["=~", "==", "=", "!="].contains(&operator));
            match self.peek() {
                None => return Err(Fault::Unclosed),
                Some(_) if is_pattern => words.push(self.pattern_word()?),
                Some(byte @ (b'(' | b')' | b'<' | b'>')) if !self.is_stream_start() => {
                    self.at += 1;
                    words.push(operator(char::from(byte).encode_utf8(&mut [0; 4])));
                }
                Some(b'&' | b'|') => {
                    if self.take("&&") {
                        words.push(operator("&&"));
                    } else if self.take("||") {
                        words.push(operator("||"));
                    } else {
                        return Err(Fault::Syntax);
                    }
                }
                Some(b';') => return Err(Fault::Syntax),
                Some(_) => words.push(self.word()?),
            }
        }
    }

    /// A pattern: parentheses inside it are its own.
    fn pattern_word(&mut self) -> Result<Word, Fault> {
        let mut word = Word::default();
        let mut open = 0_usize;
        loop {
            match self.peek() {
                Some(b'(') => {
                    open += 1;
                    self.at += 1;
                    word.push_text("(");
                }
                Some(b')') if open > 0 => {
                    open -= 1;
                    self.at += 1;
                    word.push_text(")");
                }
                Some(b'|' | b' ' | b'<' | b'>' | b'&' | b';') if open > 0 => {
                    if let Some(letter) = self.character() {
                        word.push_text(letter);
                    }
                }
                Some(byte) if !is_meta(byte) => word.pieces.extend(self.word()?.pieces),
                Some(_) | None if open > 0 => return Err(Fault::Unclosed),
                Some(_) | None if word.pieces.is_empty() => return Err(Fault::Syntax),
                Some(_) | None => return Ok(word),
            }
        }
    }

    fn coprocess(&mut self) -> Result<Command, Fault> {
        self.skip_blanks();
        // `coproc NAME { … }`: the name in front of a compound command is no command.
        let name = self.rest().iter().take_while(|byte| !is_meta(**byte)).count();
        let after = self
            .rest()
            .iter()
            .skip(name)
            .position(|byte| !is_blank(*byte))
            .map_or(0, |blanks| name + blanks);
        if name > 0 && matches!(self.peek_at(after), Some(b'{' | b'(')) && after > name {
            self.at += name;
        }
        Ok(Command::Coprocess(Box::new(self.deeper(Self::stage)?)))
    }
}

/// An operator between the words of a condition.
fn operator(text: &str) -> Word {
    let mut word = Word::default();
    word.push_text(text);
    word
}
