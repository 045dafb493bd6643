//! `calculate`: exact arithmetic with bounds, and no code evaluation of any kind.
//!
//! Decimals are exact fractions, so `0.1 + 0.2` is `0.3`. Only roots and π are approximations; a result they
//! entered is marked `≈`, and so is one that has no finite decimal form.

mod parse;
mod rational;

use tidegate_core::tool::{FailureCode, ToolResult};

use self::{parse::Parser, rational::Rational};
use crate::arguments::Values;

/// The longest expression, in characters.
pub(crate) const EXPRESSION_CHARS_MAX: usize = 1000;
/// The most numbers, operators and function calls in one expression.
pub(crate) const NODES_MAX: usize = 128;
/// The deepest nesting of brackets and signs.
pub(crate) const DEPTH_MAX: usize = 64;
/// The largest exponent, either sign.
pub(crate) const EXPONENT_MAX: u32 = 1000;
/// The largest intermediate numerator or denominator, in bits.
pub(crate) const BITS_MAX: u64 = 4096;

/// Why an expression has no result; the text is for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    /// It cannot be read.
    Syntax(String),
    /// It can be read and has no value.
    Undefined(String),
    /// It, or a number on the way, is beyond a bound.
    TooLarge(String),
}

/// Runs the tool.
pub(crate) fn run(values: &Values<'_>) -> ToolResult {
    let Some(expression) = values.text("expression") else {
        return ToolResult::failed(FailureCode::MissingArgument, "`expression` is missing.");
    };
    match evaluate(expression) {
        Ok(text) => ToolResult::ok(text),
        Err(Problem::Syntax(why)) => ToolResult::failed(
            FailureCode::InvalidArguments,
            format!(
                "{why}. Write numbers with + - * / // % ** and brackets, for example \
                 {{\"expression\": \"(17.5 + 3) * 4\"}}."
            ),
        ),
        Err(Problem::Undefined(why)) => ToolResult::failed(FailureCode::Unsuccessful, format!("{why}.")),
        Err(Problem::TooLarge(why)) => ToolResult::failed(FailureCode::TooLarge, format!("{why}.")),
    }
}

/// The value of an expression as text.
pub(crate) fn evaluate(expression: &str) -> Result<String, Problem> {
    if expression.chars().count() > EXPRESSION_CHARS_MAX {
        return Err(Problem::TooLarge(format!(
            "the expression is longer than {EXPRESSION_CHARS_MAX} characters; calculate it in parts"
        )));
    }
    let value: Rational = Parser::new(expression)?.value()?;
    Ok(value.to_text())
}

#[cfg(test)]
mod tests;
