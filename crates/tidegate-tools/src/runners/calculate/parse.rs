//! From text to a value, by recursive descent with a bound on nodes and on depth.
//!
//! Precedence, loosest first: `+ -`, then `* / // %`, then signs, then `**` (right to left), as in school and
//! in most languages: `-2 ** 2` is `-4`.

use std::{cmp::Ordering, iter::Peekable, str::Chars};

use super::{DEPTH_MAX, EXPONENT_MAX, NODES_MAX, Problem, Rational, rational::power_of_ten};

/// One word of an expression.
#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(Rational),
    Name(String),
    Plus,
    Minus,
    Times,
    Over,
    FloorOver,
    Modulo,
    Power,
    Open,
    Close,
    Comma,
}

impl Token {
    fn shown(&self) -> String {
        match self {
            Self::Number(value) => value.to_text(),
            Self::Name(name) => name.clone(),
            Self::Plus => "+".to_owned(),
            Self::Minus => "-".to_owned(),
            Self::Times => "*".to_owned(),
            Self::Over => "/".to_owned(),
            Self::FloorOver => "//".to_owned(),
            Self::Modulo => "%".to_owned(),
            Self::Power => "**".to_owned(),
            Self::Open => "(".to_owned(),
            Self::Close => ")".to_owned(),
            Self::Comma => ",".to_owned(),
        }
    }
}

/// Reads tokens and computes as it goes.
#[derive(Debug)]
pub(crate) struct Parser {
    tokens: Vec<Token>,
    next: usize,
    nodes: usize,
    depth: usize,
}

impl Parser {
    /// Splits the text into tokens.
    pub(crate) fn new(text: &str) -> Result<Self, Problem> {
        let tokens = tokens(text)?;
        if tokens.is_empty() {
            return Err(Problem::Syntax("the expression is empty".to_owned()));
        }
        Ok(Self {
            tokens,
            next: 0,
            nodes: 0,
            depth: 0,
        })
    }

    /// The value of the whole text.
    pub(crate) fn value(mut self) -> Result<Rational, Problem> {
        let value = self.sum()?;
        match self.take() {
            None => Ok(value),
            Some(Token::Comma) => Err(Problem::Syntax(
                "a comma is only for function arguments; write 1000, not 1,000".to_owned(),
            )),
            Some(token) => Err(Problem::Syntax(format!(
                "`{}` is not expected there",
                token.shown()
            ))),
        }
    }

    fn sum(&mut self) -> Result<Rational, Problem> {
        let mut value = self.product()?;
        loop {
            if self.accept(&Token::Plus)? {
                value = value.add(&self.product()?)?;
            } else if self.accept(&Token::Minus)? {
                value = value.add(&self.product()?.negate())?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<Rational, Problem> {
        let mut value = self.signed()?;
        loop {
            if self.accept(&Token::Times)? {
                value = value.multiply(&self.signed()?)?;
            } else if self.accept(&Token::Over)? {
                value = value.divide(&self.signed()?)?;
            } else if self.accept(&Token::FloorOver)? {
                value = value.divide(&self.signed()?)?.floor();
            } else if self.accept(&Token::Modulo)? {
                if matches!(self.tokens.get(self.next), None | Some(Token::Close)) {
                    return Err(Problem::Syntax(
                        "% is the remainder of a division; write 15 percent as 15 / 100".to_owned(),
                    ));
                }
                value = value.modulo(&self.signed()?)?;
            } else {
                return Ok(value);
            }
        }
    }

    fn signed(&mut self) -> Result<Rational, Problem> {
        self.deeper(|parser| {
            if parser.accept(&Token::Minus)? {
                Ok(parser.signed()?.negate())
            } else if parser.accept(&Token::Plus)? {
                parser.signed()
            } else {
                parser.power()
            }
        })
    }

    fn power(&mut self) -> Result<Rational, Problem> {
        let base = self.atom()?;
        if self.accept(&Token::Power)? {
            let exponent = self.signed()?;
            return base.power(&exponent);
        }
        Ok(base)
    }

    fn atom(&mut self) -> Result<Rational, Problem> {
        self.count()?;
        match self.take() {
            Some(Token::Number(value)) => Ok(value),
            Some(Token::Open) => {
                let value = self.sum()?;
                self.close()?;
                Ok(value)
            }
            Some(Token::Name(name)) if name == "pi" || name == "π" => Rational::pi(),
            Some(Token::Name(name)) => self.function(&name),
            Some(
                token @ (Token::Plus
                | Token::Minus
                | Token::Times
                | Token::Over
                | Token::FloorOver
                | Token::Modulo
                | Token::Power
                | Token::Close
                | Token::Comma),
            ) => Err(Problem::Syntax(format!(
                "a number is missing before `{}`",
                token.shown()
            ))),
            None => Err(Problem::Syntax("the expression ends too early".to_owned())),
        }
    }

    fn function(&mut self, name: &str) -> Result<Rational, Problem> {
        if !self.accept(&Token::Open)? {
            return Err(unknown(name));
        }
        let mut values = vec![self.sum()?];
        while self.accept(&Token::Comma)? {
            values.push(self.sum()?);
        }
        self.close()?;
        match (name, values.as_slice()) {
            ("sqrt", [value]) => value.sqrt(),
            ("abs", [value]) => Ok(value.absolute()),
            ("floor", [value]) => Ok(value.floor()),
            ("ceil", [value]) => Ok(value.ceil()),
            ("round", [value]) => value.round(&Rational::integer(0)),
            ("round", [value, places]) => value.round(places),
            ("min", [first, rest @ ..]) => Ok(extreme(first, rest, Ordering::Less)),
            ("max", [first, rest @ ..]) => Ok(extreme(first, rest, Ordering::Greater)),
            ("sqrt" | "abs" | "floor" | "ceil" | "round", _) => Err(Problem::Syntax(format!(
                "`{name}` has too many arguments; numbers are written without thousands separators"
            ))),
            _ => Err(unknown(name)),
        }
    }

    fn close(&mut self) -> Result<(), Problem> {
        if self.accept(&Token::Close)? {
            return Ok(());
        }
        Err(Problem::Syntax(match self.take() {
            None => "a closing bracket is missing".to_owned(),
            Some(token) => format!("`{}` stands where a closing bracket is expected", token.shown()),
        }))
    }

    fn take(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.next).cloned();
        self.next += 1;
        token
    }

    fn accept(&mut self, token: &Token) -> Result<bool, Problem> {
        if self.tokens.get(self.next) != Some(token) {
            return Ok(false);
        }
        self.next += 1;
        if !matches!(token, Token::Close | Token::Comma) {
            self.count()?;
        }
        Ok(true)
    }

    fn count(&mut self) -> Result<(), Problem> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(Problem::TooLarge(format!(
                "the expression has more than {NODES_MAX} numbers and operators; calculate it in parts"
            )));
        }
        Ok(())
    }

    fn deeper(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<Rational, Problem>,
    ) -> Result<Rational, Problem> {
        if self.depth == DEPTH_MAX {
            return Err(Problem::TooLarge(format!(
                "brackets and signs are nested more than {DEPTH_MAX} deep"
            )));
        }
        self.depth += 1;
        let value = work(self);
        self.depth -= 1;
        value
    }
}

fn extreme(first: &Rational, rest: &[Rational], wanted: Ordering) -> Rational {
    rest.iter()
        .fold(first, |best, value| {
            if value.compare(best) == wanted {
                value
            } else {
                best
            }
        })
        .clone()
}

fn unknown(name: &str) -> Problem {
    Problem::Syntax(format!(
        "`{name}` is not known; the functions are sqrt, abs, min, max, round, floor and ceil, the only constant is pi"
    ))
}

fn tokens(text: &str) -> Result<Vec<Token>, Problem> {
    let mut tokens = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(&next) = chars.peek() {
        if next.is_ascii_digit() || next == '.' {
            tokens.push(Token::Number(number(&mut chars)?));
            continue;
        }
        if next.is_ascii_alphabetic() || next == 'π' {
            tokens.push(Token::Name(name(&mut chars)));
            continue;
        }
        chars.next();
        tokens.push(match next {
            ' ' | '\t' | '\n' | '\r' | '\u{a0}' => continue,
            '+' => Token::Plus,
            '-' | '−' | '–' => Token::Minus,
            '*' if chars.next_if_eq(&'*').is_some() => Token::Power,
            '*' | '×' | '·' => Token::Times,
            '/' if chars.next_if_eq(&'/').is_some() => Token::FloorOver,
            '/' | '÷' => Token::Over,
            '%' => Token::Modulo,
            '^' => Token::Power,
            '(' => Token::Open,
            ')' => Token::Close,
            ',' => Token::Comma,
            '=' => {
                return Err(Problem::Syntax(
                    "equations are not solved here; give the side to calculate".to_owned(),
                ));
            }
            other => {
                return Err(Problem::Syntax(format!(
                    "`{}` is not part of arithmetic",
                    other.escape_debug()
                )));
            }
        });
    }
    Ok(tokens)
}

fn name(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut name = String::new();
    while let Some(letter) = chars.next_if(|letter| letter.is_ascii_alphanumeric() || *letter == 'π') {
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// A number: digits, an optional fraction, an optional power of ten. `_` may stand between digits.
fn number(chars: &mut Peekable<Chars<'_>>) -> Result<Rational, Problem> {
    let mut digits = String::new();
    let mut places: u32 = 0;
    let mut in_fraction = false;
    while let Some(letter) = chars.next_if(|letter| letter.is_ascii_digit() || matches!(letter, '.' | '_')) {
        match letter {
            '_' => {}
            '.' if in_fraction => {
                return Err(Problem::Syntax("a number has two points".to_owned()));
            }
            '.' => in_fraction = true,
            digit => {
                digits.push(digit);
                places += u32::from(in_fraction);
            }
        }
    }
    if digits.is_empty() {
        return Err(Problem::Syntax("a point stands without digits".to_owned()));
    }
    let exponent = if chars.next_if(|letter| matches!(letter, 'e' | 'E')).is_some() {
        power_of_ten_written(chars)?
    } else {
        0
    };
    let mantissa = digits
        .parse::<num_bigint::BigInt>()
        .map_err(|error| Problem::Syntax(error.to_string()))?;
    let value = Rational::new(mantissa, power_of_ten(places), true)?;
    let scale = power_of_ten(exponent.unsigned_abs());
    if exponent < 0 {
        value.divide(&Rational::integer(scale))
    } else {
        value.multiply(&Rational::integer(scale))
    }
}

fn power_of_ten_written(chars: &mut Peekable<Chars<'_>>) -> Result<i32, Problem> {
    let mut text = String::new();
    if let Some(sign) = chars.next_if(|letter| matches!(letter, '+' | '-')) {
        text.push(sign);
    }
    while let Some(digit) = chars.next_if(char::is_ascii_digit) {
        text.push(digit);
    }
    if !text.ends_with(|letter: char| letter.is_ascii_digit()) {
        return Err(Problem::Syntax("digits are missing after `e`".to_owned()));
    }
    text.parse::<i32>()
        .ok()
        .filter(|exponent| exponent.unsigned_abs() <= EXPONENT_MAX)
        .ok_or_else(|| Problem::TooLarge(format!("exponents go up to {EXPONENT_MAX}; this one is beyond")))
}
