//! HTML: the words that a reader of the page sees, without what stands on every page of a site.
//!
//! The page is read as a row of tags (the tokenizer of the HTML standard) and never becomes a tree, so that neither
//! depth nor broken nesting costs anything. Scripts, styles and hidden parts are passed over, nothing is loaded.
//! Navigation, footers and the like are left out by their tags and roles. Where the page names its main part, only that
//! is read, unless next to nothing is in it; where nothing is left at all, everything is.

mod sink;

use encoding_rs::Encoding;
use tidegate_core::knowledge::Format;

use self::sink::Part;
use super::{Limits, Parsed, Problem, builder::Builder, encoding};

/// How far into a page its encoding must be declared (HTML, 4.2.5.4).
const DECLARED_WITHIN: usize = 1024;

/// The share of a page's text that its main part has at least, for it to be what it says.
const MAIN_SHARE: usize = 5;

/// Reads a page.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> Result<Parsed, Problem> {
    let decoded = encoding::decode(bytes, declared(bytes))?;
    let read = |part: Part| sink::read(&decoded.text, part, Builder::new(limits))?.finish(Format::Html);
    let body = read(Part::Body)?;
    let has_main = ["<main", "role=\"main\"", "<article"]
        .iter()
        .any(|mark| decoded.text.contains(mark));
    let mut parsed = if has_main {
        let main = read(Part::Main)?;
        if main.text.len() * MAIN_SHARE >= body.text.len() && !main.text.is_empty() {
            main
        } else {
            body
        }
    } else {
        body
    };
    if parsed.text.is_empty() {
        parsed = read(Part::Everything)?;
    }
    parsed.warnings.extend(decoded.warning);
    Ok(parsed)
}

/// Puts a chapter of a book into a document.
pub(super) fn chapter<'l>(text: &str, builder: Builder<'l>) -> Result<Builder<'l>, Problem> {
    sink::read(text, Part::Chapter, builder)
}

/// The encoding that the page declares.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes.get(..DECLARED_WITHIN).unwrap_or(bytes).to_ascii_lowercase();
    let mark = b"charset=";
    let at = head.windows(mark.len()).position(|window| window == mark)? + mark.len();
    let rest = head.get(at..)?;
    let rest = rest
        .strip_prefix(b"\"")
        .or(rest.strip_prefix(b"'"))
        .unwrap_or(rest);
    let end = rest
        .iter()
        .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':' | b'.')))
        .unwrap_or(rest.len());
    Encoding::for_label(rest.get(..end)?)
}

#[cfg(test)]
mod tests;
