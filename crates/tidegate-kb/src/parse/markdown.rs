//! Markdown (CommonMark): headings, tables and blocks of code. The text is the file itself.
//!
//! Only lines are looked at. Headings are `#` lines and underlined ones outside of fenced code; a fence that is never
//! closed reaches to the end, as CommonMark has it.

use std::ops::Range;

use tidegate_core::knowledge::Format;

use super::{
    Limits, Parsed, Problem, Section,
    builder::{HEADING_CHARS_MAX, Headings, first_heading, too_many_sections},
    front_matter, plain,
};

/// Reads a Markdown text.
pub(super) fn read(text: String, limits: &Limits) -> Result<Parsed, Problem> {
    let start = plain::body_start(&text);
    let body = text.get(start..).unwrap_or_default();
    let (front_matter, head) = front_matter::read(body).unwrap_or_default();
    let mut scan = Scan::new(&text, limits, start + head);
    scan.lines()?;
    let sections = scan.sections;
    let title = front_matter
        .get("title")
        .filter(|title| !title.trim().is_empty())
        .cloned()
        .or_else(|| first_heading(&sections));
    Ok(Parsed {
        format: Format::Markdown,
        title,
        front_matter,
        sections,
        text,
        warnings: Vec::new(),
    })
}

struct Scan<'t> {
    text: &'t str,
    limits: &'t Limits,
    sections: Vec<Section>,
    headings: Headings,
    /// The bytes of the last heading as long as nothing stands under it.
    bare: Option<Range<usize>>,
    /// Where the section began.
    start: usize,
    whole: Vec<Range<usize>>,
    /// The open fence, and where it began.
    fence: Option<(char, usize, usize)>,
    /// Where the table began.
    table: Option<usize>,
    /// The paragraph that ends with the last line, for an underline that makes it a heading.
    paragraph: Option<Range<usize>>,
}

impl<'t> Scan<'t> {
    fn new(text: &'t str, limits: &'t Limits, start: usize) -> Self {
        Self {
            text,
            limits,
            sections: Vec::new(),
            headings: Headings::default(),
            bare: None,
            start,
            whole: Vec::new(),
            fence: None,
            table: None,
            paragraph: None,
        }
    }

    fn lines(&mut self) -> Result<(), Problem> {
        let mut at = self.start;
        for line in self.text.get(at..).unwrap_or_default().split_inclusive('\n') {
            let bytes = at..at + line.len();
            at = bytes.end;
            self.line(line, bytes)?;
        }
        if let Some((_, _, start)) = self.fence.take() {
            self.whole.push(start..at);
        }
        self.end_table(at);
        self.close(at)
    }

    fn line(&mut self, line: &str, bytes: Range<usize>) -> Result<(), Problem> {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let content = line.trim();
        if let Some((mark, length, start)) = self.fence {
            let is_end = indent < 4 && content.len() >= length && content.chars().all(|one| one == mark);
            if is_end {
                self.fence = None;
                self.whole.push(start..bytes.end);
            }
            return Ok(());
        }
        if indent < 4 {
            if let Some((mark, length)) = fence(content) {
                self.end_table(bytes.start);
                self.paragraph = None;
                self.bare = None;
                self.fence = Some((mark, length, bytes.start));
                return Ok(());
            }
            if let Some((level, title)) = hashes(content) {
                return self.heading(level, title, bytes);
            }
            if let Some(level) = underline(content)
                && let Some(paragraph) = self.paragraph.take()
            {
                let title = self.text.get(paragraph.clone()).unwrap_or_default().trim();
                return self.heading(level, title, paragraph.start..bytes.end);
            }
        }
        self.text_line(content, bytes);
        Ok(())
    }

    fn text_line(&mut self, content: &str, bytes: Range<usize>) {
        if content.is_empty() {
            self.end_table(bytes.start);
            self.paragraph = None;
            return;
        }
        self.bare = None;
        if content.starts_with('|') {
            self.table.get_or_insert(bytes.start);
            self.paragraph = None;
            return;
        }
        self.end_table(bytes.start);
        let is_item = content.starts_with(['-', '*', '+', '>']);
        self.paragraph = match self.paragraph.take() {
            Some(before) => Some(before.start..bytes.end),
            None if is_item => None,
            None => Some(bytes),
        };
    }

    fn end_table(&mut self, end: usize) {
        if let Some(start) = self.table.take() {
            self.whole.push(start..end);
        }
    }

    fn heading(&mut self, level: u8, title: &str, bytes: Range<usize>) -> Result<(), Problem> {
        self.end_table(bytes.start);
        self.paragraph = None;
        if self.headings.is_inside(level) {
            self.bare = None;
        }
        self.close(bytes.start)?;
        self.headings.enter(level, title);
        if title.chars().count() > HEADING_CHARS_MAX {
            self.start = bytes.start;
        } else {
            self.start = bytes.end;
            self.bare = Some(bytes);
        }
        Ok(())
    }

    /// Ends the section. A heading with nothing under it is its own text.
    fn close(&mut self, end: usize) -> Result<(), Problem> {
        let bytes = self.bare.take().unwrap_or(self.start..end);
        let whole = std::mem::take(&mut self.whole);
        if self
            .text
            .get(bytes.clone())
            .is_none_or(|text| text.trim().is_empty())
        {
            return Ok(());
        }
        if self.sections.len() >= self.limits.sections_max {
            return Err(too_many_sections(self.limits));
        }
        self.sections.push(Section {
            headings: self.headings.path(),
            page: None,
            bytes,
            whole,
        });
        Ok(())
    }
}

/// The mark and length of a line that opens fenced code.
fn fence(content: &str) -> Option<(char, usize)> {
    let mark = content.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = content.trim_start_matches(mark);
    let length = content.len() - rest.len();
    (length >= 3 && !(mark == '`' && rest.contains('`'))).then_some((mark, length))
}

/// The level and words of a `#` line.
fn hashes(content: &str) -> Option<(u8, &str)> {
    let rest = content.trim_start_matches('#');
    let level = content.len() - rest.len();
    let level = u8::try_from(level).ok().filter(|level| (1..=6).contains(level))?;
    if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
        return None;
    }
    let title = rest.trim();
    let closed = title.trim_end_matches('#');
    let title = if closed.is_empty() || closed.ends_with([' ', '\t']) {
        closed.trim_end()
    } else {
        title
    };
    Some((level, title))
}

/// The level that an underline gives to the paragraph above it.
fn underline(content: &str) -> Option<u8> {
    let is_all = |mark: char| !content.is_empty() && content.chars().all(|one| one == mark);
    if is_all('=') {
        Some(1)
    } else if is_all('-') {
        Some(2)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
