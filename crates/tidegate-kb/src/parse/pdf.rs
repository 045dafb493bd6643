//! PDF (ISO 32000-2): what is written on each page, in lines, with headings by bookmarks or by size.
//!
//! The library gives characters with a place and a size. Everything above that is made here: words and lines
//! ([`lines`]), running heads, headings and paragraphs ([`layout`]). A page on which the library gives up, by an error or
//! a panic, costs that page.

mod layout;
mod lines;
mod rebuild;

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

use pdf_extract::{Document, Error, output_doc, output_doc_page};
use tidegate_core::knowledge::Format;

use self::{
    layout::{Bookmark, Layout},
    lines::{Page, Pages},
};
use super::{Limits, Parsed, Problem, builder::Builder};

/// A scan has fewer letters a page than this on average, with a page number and a stamp taken into account.
const LETTERS_A_PAGE_MIN: usize = 16;

/// How much less text than in the file itself a page may have before the file counts as a scan, in pages.
const PAGES_WITH_TEXT_SHARE: usize = 10;

/// Reads a PDF.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> Result<Parsed, Problem> {
    let document = open(bytes)?;
    let count = document.get_pages().len();
    if count == 0 {
        return Err(Problem::Corrupt("it has no pages".to_owned()));
    }
    if count > limits.pages_max {
        return Err(Problem::TooMuch {
            what: "pages".to_owned(),
            max: limits.pages_max,
        });
    }
    let (pages, lost) = pages(&document, limits)?;
    let letters: usize = pages.values().map(Page::letters).sum();
    let written = pages
        .values()
        .filter(|page| page.letters() >= LETTERS_A_PAGE_MIN)
        .count();
    let is_scan = written * PAGES_WITH_TEXT_SHARE < count || letters < LETTERS_A_PAGE_MIN.min(count * 4);
    if is_scan {
        return Err(if lost.len() * 2 > count {
            Problem::Corrupt("most of its pages cannot be read".to_owned())
        } else if has_images(&document) {
            Problem::ScannedPdf { pages: count }
        } else if letters == 0 {
            Problem::NoText
        } else {
            return lay_out(&document, pages, &lost, limits);
        });
    }
    lay_out(&document, pages, &lost, limits)
}

fn lay_out(
    document: &Document,
    pages: BTreeMap<u32, Page>,
    lost: &[u32],
    limits: &Limits,
) -> Result<Parsed, Problem> {
    let mut builder = Builder::new(limits);
    if let Some(title) = title(document) {
        builder.title(&title);
    }
    if !lost.is_empty() {
        let numbers: Vec<String> = lost.iter().take(10).map(u32::to_string).collect();
        builder.warn(format!(
            "{} pages cannot be read, among them {}",
            lost.len(),
            numbers.join(", ")
        ));
    }
    Layout::new(pages, &bookmarks(document)).write(&mut builder)?;
    builder.finish(Format::Pdf)
}

fn open(bytes: &[u8]) -> Result<Document, Problem> {
    let first = load(bytes);
    let mut document = match first {
        Ok(document) if !document.get_pages().is_empty() => document,
        Err(Problem::PasswordProtected) => return Err(Problem::PasswordProtected),
        Ok(_) | Err(_) => {
            let second = rebuild::rebuild(bytes).and_then(|rebuilt| load(&rebuilt).ok());
            match second {
                Some(document) => document,
                None => first?,
            }
        }
    };
    // Some documents are encrypted so that they may be read and not changed: their password is empty.
    if document.is_encrypted() && document.decrypt("").is_err() {
        return Err(Problem::PasswordProtected);
    }
    Ok(document)
}

fn load(bytes: &[u8]) -> Result<Document, Problem> {
    let loaded = catch_unwind(|| Document::load_mem(bytes));
    let loaded = loaded.map_err(|_| Problem::Corrupt("the library for PDF gave up on it".to_owned()))?;
    loaded.map_err(|problem| {
        if matches!(problem, Error::Decryption(_) | Error::InvalidPassword) {
            Problem::PasswordProtected
        } else {
            Problem::Corrupt(problem.to_string())
        }
    })
}

/// The pages by number, and the numbers of those that are lost.
fn pages(document: &Document, limits: &Limits) -> Result<(BTreeMap<u32, Page>, Vec<u32>), Problem> {
    let mut pages = Pages::new(limits.text_bytes_max);
    let whole = catch_unwind(AssertUnwindSafe(|| output_doc(document, &mut pages).is_ok()));
    let mut lost = Vec::new();
    if !matches!(whole, Ok(true)) && !pages.is_full() {
        // Page by page from the one on where it stopped.
        let first = pages.stop();
        for number in document.get_pages().into_keys().filter(|number| *number >= first) {
            let page = catch_unwind(AssertUnwindSafe(|| {
                output_doc_page(document, &mut pages, number).is_ok()
            }));
            if !matches!(page, Ok(true)) {
                lost.push(number);
            }
            if pages.is_full() {
                break;
            }
        }
    }
    if pages.is_full() {
        return Err(Problem::TooMuch {
            what: "bytes of text".to_owned(),
            max: limits.text_bytes_max,
        });
    }
    Ok((pages.finish(), lost))
}

/// Whether any object is an image.
fn has_images(document: &Document) -> bool {
    document.objects.values().any(|object| {
        object.as_stream().is_ok_and(|stream| {
            stream
                .dict
                .get(b"Subtype")
                .and_then(|kind| kind.as_name())
                .is_ok_and(|kind| kind == b"Image")
        })
    })
}

/// The title of the document's properties (ISO 32000-2, 14.3.3), unless it is a file's name.
fn title(document: &Document) -> Option<String> {
    let info = document.trailer.get(b"Info").ok()?;
    let (_, info) = document.dereference(info).ok()?;
    let title = info.as_dict().ok()?.get(b"Title").ok()?;
    let (_, title) = document.dereference(title).ok()?;
    let title = pdf_extract::decode_text_string(title).ok()?;
    let lower = title.to_lowercase();
    let is_name = [".doc", ".docx", ".pdf", ".indd", ".tex", ".dvi", "untitled"]
        .iter()
        .any(|end| lower.trim().ends_with(end));
    (!is_name && !title.trim().is_empty() && !lower.starts_with("microsoft word")).then_some(title)
}

/// The bookmarks. A broken outline is none.
fn bookmarks(document: &Document) -> Vec<Bookmark> {
    let toc = catch_unwind(AssertUnwindSafe(|| document.get_toc().ok()))
        .ok()
        .flatten();
    toc.map(|toc| toc.toc)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|entry| {
            Some(Bookmark {
                page: u32::try_from(entry.page).ok()?,
                level: u8::try_from(entry.level).unwrap_or(u8::MAX),
                title: entry.title,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
