//! Collects the text that is read out of a document, piece by piece, within the bounds.

use std::ops::Range;

use tidegate_core::knowledge::Format;

use super::{Limits, Parsed, Problem, Section};

/// The longest heading that is kept as one, in characters. A longer one is a paragraph as well.
pub(super) const HEADING_CHARS_MAX: usize = 160;

/// How deep headings go (HTML and Word agree on about this).
const HEADINGS_MAX: usize = 9;

/// Headings one inside the other.
#[derive(Debug, Default)]
pub(super) struct Headings(Vec<(u8, String)>);

impl Headings {
    /// A heading of this level begins: those of its level and below end. White space in it becomes single blanks.
    pub(super) fn enter(&mut self, level: u8, text: &str) {
        self.0.retain(|(above, _)| *above < level);
        if self.0.len() < HEADINGS_MAX {
            self.0.push((level, shorten(text)));
        }
    }

    /// All of them, outermost first.
    pub(super) fn path(&self) -> Vec<String> {
        self.0
            .iter()
            .map(|(_, text)| text.clone())
            .filter(|text| !text.is_empty())
            .collect()
    }

    /// Whether a heading of this level is inside of the last one.
    pub(super) fn is_inside(&self, level: u8) -> bool {
        self.0.last().is_some_and(|(above, _)| *above < level)
    }
}

/// A heading on one line and within its bound.
pub(super) fn shorten(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > HEADING_CHARS_MAX * 4 {
            break;
        }
    }
    if let Some((at, _)) = line.char_indices().nth(HEADING_CHARS_MAX) {
        line.truncate(at);
        line.push('…');
    }
    line
}

/// A document as it is put together.
#[derive(Debug)]
pub(super) struct Builder<'l> {
    limits: &'l Limits,
    text: String,
    sections: Vec<Section>,
    headings: Headings,
    /// The last heading as long as nothing stands under it.
    bare: Option<String>,
    page: Option<u32>,
    /// Whether the last thing was an item of a list.
    is_item: bool,
    start: usize,
    whole: Vec<Range<usize>>,
    title: Option<String>,
    warnings: Vec<String>,
}

impl<'l> Builder<'l> {
    /// An empty document.
    pub(super) fn new(limits: &'l Limits) -> Self {
        Self {
            limits,
            text: String::new(),
            sections: Vec::new(),
            headings: Headings::default(),
            bare: None,
            page: None,
            is_item: false,
            start: 0,
            whole: Vec::new(),
            title: None,
            warnings: Vec::new(),
        }
    }

    /// Its title, unless that is blank.
    pub(super) fn title(&mut self, title: &str) {
        let title = shorten(title);
        if !title.is_empty() {
            self.title = Some(title);
        }
    }

    /// Something that is not as it should be.
    pub(super) fn warn(&mut self, sentence: impl Into<String>) {
        self.warnings.push(sentence.into());
    }

    /// A page, slide or sheet begins; it is under no heading yet.
    pub(super) fn page(&mut self, number: u32) -> Result<(), Problem> {
        self.leave_headings()?;
        self.page = Some(number);
        Ok(())
    }

    /// A page begins in the middle of whatever headings there are.
    pub(super) fn turn(&mut self, number: u32) -> Result<(), Problem> {
        if self.bare.is_some() {
            // The heading at the foot of a page belongs to what follows.
            self.page = Some(number);
            return Ok(());
        }
        self.close()?;
        self.page = Some(number);
        Ok(())
    }

    /// What follows is under no heading yet.
    pub(super) fn leave_headings(&mut self) -> Result<(), Problem> {
        self.close()?;
        self.headings = Headings::default();
        Ok(())
    }

    /// A heading begins.
    pub(super) fn heading(&mut self, level: u8, text: &str) -> Result<(), Problem> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(());
        }
        if self.headings.is_inside(level) {
            self.bare = None;
        }
        self.close()?;
        self.headings.enter(level, text);
        if text.chars().count() > HEADING_CHARS_MAX {
            return self.paragraph(text);
        }
        self.bare = Some(text.to_owned());
        Ok(())
    }

    /// An item of a list: directly below the one before.
    pub(super) fn item(&mut self, text: &str) -> Result<(), Problem> {
        let line = format!("- {}", text.trim());
        if self.is_item && self.text.len() > self.start && line.len() < self.room() {
            self.text.push('\n');
            self.text.push_str(&line);
            return Ok(());
        }
        self.put(&line)?;
        self.is_item = true;
        Ok(())
    }

    /// Running text.
    pub(super) fn paragraph(&mut self, text: &str) -> Result<(), Problem> {
        self.put(text).map(drop)
    }

    /// Text that is one thing: a table, a block of code.
    pub(super) fn whole(&mut self, text: &str) -> Result<(), Problem> {
        let range = self.put(text)?;
        if !range.is_empty() {
            self.whole.push(range);
        }
        Ok(())
    }

    /// How many more bytes of text are taken.
    pub(super) fn room(&self) -> usize {
        self.limits.text_bytes_max.saturating_sub(self.text.len())
    }

    /// There is more text than is taken.
    pub(super) fn too_much(&self) -> Problem {
        Problem::TooMuch {
            what: "bytes of text".to_owned(),
            max: self.limits.text_bytes_max,
        }
    }

    fn put(&mut self, text: &str) -> Result<Range<usize>, Problem> {
        let text = text.trim_end().trim_start_matches(['\n', '\r']);
        if text.trim().is_empty() {
            return Ok(0..0);
        }
        if self.text.len().saturating_add(text.len()) > self.limits.text_bytes_max {
            return Err(self.too_much());
        }
        self.bare = None;
        self.is_item = false;
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        let start = self.text.len();
        self.text.push_str(text);
        Ok(start..self.text.len())
    }

    /// Ends the section. A heading with nothing under it is text itself, so that it can be found.
    fn close(&mut self) -> Result<(), Problem> {
        if let Some(bare) = self.bare.take() {
            self.put(&bare)?;
        }
        let bytes = self.start..self.text.len();
        self.start = bytes.end;
        let whole = std::mem::take(&mut self.whole);
        if bytes.is_empty() {
            return Ok(());
        }
        if self.sections.len() >= self.limits.sections_max {
            return Err(too_many_sections(self.limits));
        }
        self.sections.push(Section {
            headings: self.headings.path(),
            page: self.page,
            bytes,
            whole,
        });
        Ok(())
    }

    /// The document.
    pub(super) fn finish(mut self, format: Format) -> Result<Parsed, Problem> {
        self.close()?;
        let title = self.title.or_else(|| first_heading(&self.sections));
        Ok(Parsed {
            format,
            title,
            front_matter: std::collections::BTreeMap::new(),
            text: self.text,
            sections: self.sections,
            warnings: self.warnings,
        })
    }
}

/// The outermost heading of the first section that has one.
pub(super) fn first_heading(sections: &[Section]) -> Option<String> {
    sections
        .iter()
        .find_map(|section| section.headings.first().cloned())
}

/// There are more headings than are kept.
pub(super) fn too_many_sections(limits: &Limits) -> Problem {
    Problem::TooMuch {
        what: "sections".to_owned(),
        max: limits.sections_max,
    }
}
