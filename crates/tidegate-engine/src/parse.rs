//! What a model's text says beside its words: tool calls written as text, and reasoning.
//!
//! Models without native tool calls write them between markers, and many models write their reasoning between
//! tags. One scanner (`scanner`) reads both, character by character, in one pass and without recursion, so
//! that the same text gives the same answer whether it is parsed whole, cleaned for the history, or shown
//! while it arrives. What stands in a fenced code block is an example and never a call.
//!
//! To add a form: a state in `scanner` that finds its extent, and its reading in `call`.

mod call;
mod display;
mod scanner;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use tidegate_core::tool::Arguments;

pub use display::{DisplayFilter, Visible, strip_markup, strip_reasoning};

use scanner::{Calls, Found, Scanner};

/// The longest reply that is read for calls, in bytes. What follows is not looked at.
pub const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How a provider's models write calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dialect {
    /// The provider is marked as one whose models follow the prompt's convention: an object with `name` and
    /// `arguments` counts as a call wherever it stands, not only where it is the whole reply.
    pub bare_objects: bool,
}

/// A call found in text.
#[derive(Debug, Clone, PartialEq)]
pub struct TextCall {
    /// The tool's name, aliases resolved.
    pub name: String,
    /// Its arguments.
    pub arguments: Arguments,
}

/// What a reply asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Parsed {
    /// Calls in text order; at least one names a known tool. Unknown ones are among them, so that each is
    /// answered.
    Calls(Vec<TextCall>),
    /// Calls, none of a known tool.
    Unknown {
        /// The names asked for, each once, in text order.
        names: Vec<String>,
    },
    /// No calls.
    None,
}

/// The calls of a reply: all between explicit markers; if there are none, those written `name{"argument": …}`;
/// if there are none, the reply that is one object (or, in a [`Dialect`] with bare objects, each such object).
/// `known` tells whether a tool of that name is offered.
pub fn parse_calls(text: &str, known: &dyn Fn(&str) -> bool, dialect: Dialect) -> Parsed {
    let mut scanner = Scanner::new(Some(Calls { known, dialect }));
    scanner.push(&text[..text.floor_char_boundary(TEXT_BYTES_MAX)]);
    scanner.finish();
    let (mut explicit, mut named, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for found in scanner.take_found() {
        match found {
            Found::Explicit(call) => explicit.push(call),
            Found::Named(call) => named.push(call),
            Found::Bare(call) => bare.push(call),
        }
    }
    let mut calls = [explicit, named, bare]
        .into_iter()
        .find(|calls| !calls.is_empty())
        .unwrap_or_default();
    for call in &mut calls {
        call.name = canonical(&call.name, known).to_owned();
    }
    if calls.is_empty() {
        Parsed::None
    } else if calls.iter().any(|call| known(&call.name)) {
        Parsed::Calls(calls)
    } else {
        let mut seen = BTreeSet::new();
        let asked = calls.into_iter().map(|call| call.name);
        Parsed::Unknown {
            names: asked.filter(|name| seen.insert(name.clone())).collect(),
        }
    }
}

/// The tool that a name models like to use stands for; the name itself where it is no alias.
pub fn resolve_alias(name: &str) -> &str {
    match name.to_ascii_lowercase().as_str() {
        "bash" | "sh" | "shell" | "run" => "execute_shell",
        "search" | "web" | "google" => "web_search",
        "read" | "cat" => "read_text",
        "write" | "create_file" | "writefile" => "write_file",
        "calc" | "eval" | "math" => "calculate",
        "last" | "prev_output" => "last_output",
        _ => name,
    }
}

/// The name as the registry knows it. An operator's own tool goes before an alias of the same name.
fn canonical<'a>(name: &'a str, known: &dyn Fn(&str) -> bool) -> &'a str {
    if known(name) { name } else { resolve_alias(name) }
}
