//! From the bytes of a file to its text, with the headings, pages and tables in it.
//!
//! [`read`] looks at a file's name and first bytes, picks a parser and gives a [`Parsed`]. It is pure: bytes in, text
//! out. Two kinds of parser stand behind it. Those for plain formats (Markdown, text, code, CSV, JSON) are our own,
//! total and linear. Those for foreign formats (PDF, Office, EPUB, HTML) chew on whatever somebody sent, some in
//! other people's code, and run in a process of their own that can be lost: [`Worker`] decides which is which, starts
//! the process and says in a [`Problem`] what became of a file that could not be read.
//!
//! A document's text is the file itself where it is UTF-8 in a plain format, byte for byte; else it is what was read
//! out of the file. Every [`Section`] is a range of it.

mod archive;
mod builder;
mod detect;
mod encoding;
mod epub;
mod front_matter;
mod html;
mod json;
mod markdown;
mod office;
mod options;
mod pdf;
mod plain;
mod problem;
mod table;
mod wire;
mod worker;

pub mod child;

use std::{collections::BTreeMap, ops::Range};

use serde::{Deserialize, Serialize};
use tidegate_core::knowledge::Format;

pub(crate) use self::detect::by_name;
pub use self::{
    options::{Limits, Options},
    problem::Problem,
    worker::Worker,
};

/// Changes whenever the same bytes may give another text than before: part of what makes a file be read anew.
pub const VERSION: u32 = 2;

/// What was read out of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// What it is made of.
    pub format: Format,
    /// Its title, by front matter, a property of the file or its first heading; `None` where it has none of these.
    pub title: Option<String>,
    /// The keys of the head of a Markdown file between `---` lines, in lower case; lists are joined by `, `.
    pub front_matter: BTreeMap<String, String>,
    /// The whole text.
    pub text: String,
    /// Its parts in their order. What is outside of all of them is white space, headings and front matter.
    pub sections: Vec<Section>,
    /// What was not as it should be and did not keep it from being read, as sentences.
    pub warnings: Vec<String>,
}

/// A part of a text under one heading, on one page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// The headings above it, outermost first.
    pub headings: Vec<String>,
    /// Its page, slide or sheet, counted from 1.
    pub page: Option<u32>,
    /// Its bytes in the text, without the heading.
    pub bytes: Range<usize>,
    /// What in it is one thing, such as a table or a block of code, in order.
    pub whole: Vec<Range<usize>>,
}

/// Reads a file, here and now. `name` is its path or name; only what is behind the last dot counts. For files of
/// foreign formats this belongs into a process that may be lost: see [`Worker`].
///
/// # Errors
/// It cannot be read; the problem says why and what would help.
pub fn read(name: &str, bytes: &[u8], limits: &Limits) -> Result<Parsed, Problem> {
    if bytes.is_empty() {
        return Err(Problem::Empty);
    }
    if bytes.len() > limits.file_bytes_max {
        return Err(Problem::TooLarge {
            bytes: bytes.len(),
            max: limits.file_bytes_max,
        });
    }
    let found = detect::detect(name, bytes)?;
    let mut parsed = match found.format {
        Format::Pdf => pdf::read(bytes, limits),
        Format::Docx => office::docx(bytes, limits),
        Format::Pptx => office::pptx(bytes, limits),
        Format::Xlsx => office::xlsx(bytes, limits),
        Format::Epub => epub::read(bytes, limits),
        Format::Html => html::read(bytes, limits),
        Format::Markdown => with_text(bytes, limits, markdown::read),
        Format::Text => with_text(bytes, limits, |text, _| Ok(plain::read(text, Format::Text))),
        Format::Code => with_text(bytes, limits, |text, _| Ok(plain::read(text, Format::Code))),
        Format::Csv => with_text(bytes, limits, |text, limits| table::read(&text, limits)),
        Format::Json => with_text(bytes, limits, json::read),
    }?;
    parsed.warnings.extend(found.warning);
    let has_words = parsed.sections.iter().any(|section| {
        parsed
            .text
            .get(section.bytes.clone())
            .is_some_and(|text| !text.trim().is_empty())
    });
    if has_words {
        Ok(parsed)
    } else {
        Err(Problem::NoText)
    }
}

/// Decodes a text and hands it on, with a warning where something in it could not be decoded.
fn with_text(
    bytes: &[u8],
    limits: &Limits,
    parser: impl FnOnce(String, &Limits) -> Result<Parsed, Problem>,
) -> Result<Parsed, Problem> {
    let decoded = encoding::decode(bytes, None)?;
    let mut parsed = parser(decoded.text, limits)?;
    parsed.warnings.extend(decoded.warning);
    Ok(parsed)
}

#[cfg(test)]
mod tests;
