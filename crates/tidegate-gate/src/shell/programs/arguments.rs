//! The words behind a program's name, compared with its row.

use super::{Accepted, Grammar, Kind, Spec, Touched, Unlisted, Value, expression, stream_editor};
use crate::shell::shape::Shape;

/// The options that were given, and the operands.
#[derive(Debug, Default)]
pub(super) struct Parsed<'w> {
    pub(super) given: Vec<String>,
    pub(super) operands: Vec<&'w Shape>,
    /// How many of the operands stand in front of `--`.
    pub(super) before_dashes: usize,
    /// Values of options that are files, and scripts given by options.
    pub(super) touched: Vec<Touched>,
    pub(super) scripts: Vec<String>,
}

impl Spec {
    pub(super) fn judge(&self, name: &str, words: &[Shape]) -> Result<Accepted, Unlisted> {
        if self.grammar == Grammar::Test {
            return expression::test(name, words);
        }
        if self.grammar == Grammar::Find {
            return expression::find(self, words);
        }
        // Nothing that echo or printf is given can be an option that does anything.
        let is_text_only = self.operands == [Kind::Text] && self.flags == "neE";
        let parsed = if is_text_only {
            Parsed {
                operands: words.iter().collect(),
                before_dashes: words.len(),
                ..Parsed::default()
            }
        } else {
            self.parse(words)?
        };
        let is_given = |option: &String| parsed.given.contains(option);
        if (self.is_required && parsed.given.is_empty())
            || (!self.needs.is_empty() && !self.needs.iter().any(is_given))
        {
            return Err(Unlisted::Option("none".to_owned()));
        }
        let is_deep = self.deep.iter().any(|option| option == "*" || is_given(option));
        let mut accepted = Accepted {
            touched: parsed.touched.clone(),
            is_deep,
        };
        if self.grammar == Grammar::Sed {
            stream_editor::judge(&parsed)?;
        }
        self.operands(&parsed, &mut accepted)?;
        Ok(accepted)
    }

    fn operands(&self, parsed: &Parsed<'_>, accepted: &mut Accepted) -> Result<(), Unlisted> {
        let is_replaced = self.replaces.iter().any(|option| parsed.given.contains(option));
        let kinds = if is_replaced {
            self.operands.get(1..).unwrap_or_default()
        } else {
            &self.operands
        };
        let least = if is_replaced {
            self.least.saturating_sub(1)
        } else {
            self.least
        };
        if parsed.operands.len() < least {
            return Err(Unlisted::Operand("missing".to_owned()));
        }
        for (at, operand) in parsed.operands.iter().enumerate() {
            let is_behind = at >= parsed.before_dashes;
            let kind = match (is_behind, &self.dashes) {
                (true, Some(kind)) => kind,
                _ => match kinds.get(at) {
                    Some(kind) => kind,
                    None if self.repeats => kinds.last().ok_or_else(|| unlisted(operand))?,
                    None => return Err(unlisted(operand)),
                },
            };
            kind.check(operand, &mut accepted.touched)?;
        }
        Ok(())
    }

    /// Tells options from operands. Every option must be known, under its whole name.
    fn parse<'w>(&self, words: &'w [Shape]) -> Result<Parsed<'w>, Unlisted> {
        let mut parsed = Parsed::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            if text == "--" {
                parsed.before_dashes = parsed.operands.len();
                parsed.operands.extend(words);
                return Ok(parsed);
            }
            if !text.starts_with('-') || text == "-" {
                // What is not known could turn out to be an option.
                if word.is_unknown() && text.starts_with(crate::shell::shape::UNKNOWN) {
                    return Err(Unlisted::Dynamic);
                }
                parsed.operands.push(word);
                continue;
            }
            let text = word.known().ok_or(Unlisted::Dynamic)?;
            if let Some(long) = text.strip_prefix("--") {
                self.long(long, &mut words, &mut parsed)?;
            } else if self.has_number && is_number_option(text) {
                parsed.given.push("number".to_owned());
            } else {
                self.short(text, &mut words, &mut parsed)?;
            }
        }
        parsed.before_dashes = parsed.operands.len();
        Ok(parsed)
    }

    fn long<'w>(
        &self,
        option: &str,
        words: &mut std::slice::Iter<'w, Shape>,
        parsed: &mut Parsed<'w>,
    ) -> Result<(), Unlisted> {
        let (name, joined) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        let value = self
            .long
            .get(name)
            .ok_or_else(|| Unlisted::Option(format!("--{name}")))?;
        parsed.given.push(name.to_owned());
        match (value, joined) {
            (Value::None | Value::Optional, None) => Ok(()),
            (Value::None, Some(_)) => Err(Unlisted::Option(format!("--{option}"))),
            (Value::Needed | Value::Optional, Some(value)) => {
                self.value(name, &Shape::literal(value), parsed)
            }
            (Value::Needed, None) => {
                let value = words
                    .next()
                    .ok_or_else(|| Unlisted::Option(format!("--{name}")))?;
                self.value(name, value, parsed)
            }
        }
    }

    fn short<'w>(
        &self,
        text: &str,
        words: &mut std::slice::Iter<'w, Shape>,
        parsed: &mut Parsed<'w>,
    ) -> Result<(), Unlisted> {
        let letters = text.get(1..).unwrap_or_default();
        for (at, letter) in letters.char_indices() {
            let name = letter.to_string();
            let rest = letters.get(at + letter.len_utf8()..).unwrap_or_default();
            if self.joined.contains(letter) {
                parsed.given.push(name);
                return Ok(());
            }
            if self.values.contains(letter) {
                parsed.given.push(name.clone());
                if !rest.is_empty() {
                    return self.value(&name, &Shape::literal(rest), parsed);
                }
                let value = words.next().ok_or_else(|| Unlisted::Option(text.to_owned()))?;
                return self.value(&name, value, parsed);
            }
            if !self.flags.contains(letter) {
                return Err(Unlisted::Option(text.to_owned()));
            }
            parsed.given.push(name);
        }
        Ok(())
    }

    fn value(&self, option: &str, value: &Shape, parsed: &mut Parsed<'_>) -> Result<(), Unlisted> {
        let kind = self.kinds.get(option).unwrap_or(&Kind::Pattern);
        if self.grammar == Grammar::Sed {
            parsed
                .scripts
                .push(value.known().ok_or(Unlisted::Dynamic)?.to_owned());
        }
        kind.check(value, &mut parsed.touched)
    }
}

pub(super) fn unlisted(word: &Shape) -> Unlisted {
    Unlisted::Operand(word.text.chars().take(40).collect())
}

fn is_number_option(text: &str) -> bool {
    text.get(1..)
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}
