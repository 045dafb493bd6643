//! From characters with a place to lines of words.

use std::collections::BTreeMap;

use pdf_extract::{MediaBox, OutputDev, OutputError, Transform};

/// A gap of this share of the character size is a blank.
const BLANK_GAP: f64 = 0.1;

/// A move down of this share of the character size is another line.
const LINE_STEP: f64 = 0.5;

/// A move down of this many character sizes is another paragraph.
const PARAGRAPH_STEP: f64 = 1.7;

/// A move down of at most this many character sizes goes on with what the line above is: a heading on two lines.
const CLOSE_STEP: f64 = 1.35;

/// A line of a page.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub(super) text: String,
    /// The size of most of its characters, in tenths of a point.
    pub(super) size: u32,
    /// Whether there is a gap above it.
    pub(super) is_apart: bool,
    /// Whether it is as near to the line above as lines of one heading are.
    pub(super) is_close: bool,
}

/// A page.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Page {
    pub(super) lines: Vec<Line>,
}

impl Page {
    /// How many letters and digits are on it.
    pub(super) fn letters(&self) -> usize {
        self.lines
            .iter()
            .map(|line| line.text.chars().filter(|one| one.is_alphanumeric()).count())
            .sum()
    }
}

/// Takes characters in and keeps lines, up to a bound.
pub(super) struct Pages {
    done: BTreeMap<u32, Page>,
    number: u32,
    page: Page,
    line: String,
    /// Characters of the line by size.
    sizes: BTreeMap<u32, usize>,
    is_apart: bool,
    is_close: bool,
    /// Where the last character ended and stood; `None` at the top of a page.
    last: Option<(f64, f64)>,
    is_word_start: bool,
    bytes: usize,
    bytes_max: usize,
}

impl Pages {
    /// No page yet; no more than so many bytes of text.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            done: BTreeMap::new(),
            number: 0,
            page: Page::default(),
            line: String::new(),
            sizes: BTreeMap::new(),
            is_apart: true,
            is_close: false,
            last: None,
            is_word_start: false,
            bytes: 0,
            bytes_max,
        }
    }

    /// Whether there is more text than is taken.
    pub(super) fn is_full(&self) -> bool {
        self.bytes > self.bytes_max
    }

    /// It ended in the middle: the number of the page that it ended on, of which nothing is kept.
    pub(super) fn stop(&mut self) -> u32 {
        self.line.clear();
        self.page = Page::default();
        self.number.max(1)
    }

    /// All pages.
    pub(super) fn finish(self) -> BTreeMap<u32, Page> {
        self.done
    }

    fn end_line(&mut self) {
        let text = std::mem::take(&mut self.line);
        let sizes = std::mem::take(&mut self.sizes);
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        let size = sizes
            .into_iter()
            .max_by_key(|(_, count)| *count)
            .map_or(0, |(size, _)| size);
        self.page.lines.push(Line {
            text: text.to_owned(),
            size,
            is_apart: self.is_apart,
            is_close: self.is_close,
        });
        self.is_apart = false;
        self.is_close = false;
    }

    fn place(&mut self, x: f64, y: f64, size: f64) {
        let Some((last_x, last_y)) = self.last else {
            return;
        };
        let step = (y - last_y).abs();
        if step > size * PARAGRAPH_STEP {
            self.end_line();
            self.is_apart = true;
        } else if step > size * LINE_STEP && x < last_x {
            self.end_line();
            self.is_close = step <= size * CLOSE_STEP;
        } else if x > last_x + size * BLANK_GAP && !self.line.is_empty() && !self.line.ends_with(' ') {
            self.line.push(' ');
        }
    }
}

impl OutputDev for Pages {
    fn begin_page(
        &mut self,
        number: u32,
        _media_box: &MediaBox,
        _art_box: Option<(f64, f64, f64, f64)>,
    ) -> Result<(), OutputError> {
        self.number = number;
        self.page = Page::default();
        self.line.clear();
        self.is_apart = true;
        self.is_close = false;
        self.last = None;
        Ok(())
    }

    fn end_page(&mut self) -> Result<(), OutputError> {
        self.end_line();
        self.done.insert(self.number, std::mem::take(&mut self.page));
        Ok(())
    }

    fn output_character(
        &mut self,
        place: &Transform,
        width: f64,
        _spacing: f64,
        font_size: f64,
        text: &str,
    ) -> Result<(), OutputError> {
        let scale = (place.m11 * place.m22 - place.m12 * place.m21).abs().sqrt();
        let size = scale * font_size.abs();
        let (x, y) = (place.m31, place.m32);
        if self.is_word_start {
            self.place(x, y, size);
        }
        self.is_word_start = false;
        for character in text.chars() {
            match character {
                // Ligatures stand for their letters (Unicode, alphabetic presentation forms).
                'ﬀ' => self.line.push_str("ff"),
                'ﬁ' => self.line.push_str("fi"),
                'ﬂ' => self.line.push_str("fl"),
                'ﬃ' => self.line.push_str("ffi"),
                'ﬄ' => self.line.push_str("ffl"),
                other if other.is_control() => {}
                other if other.is_whitespace() => self.line.push(' '),
                other => self.line.push(other),
            }
        }
        *self.sizes.entry(tenths(size)).or_default() += 1;
        self.last = Some((x + width * size, y));
        self.bytes = self.bytes.saturating_add(text.len());
        // There is no error of ours to give; a formatting one ends it as well.
        if self.is_full() {
            Err(OutputError::FormatError(std::fmt::Error))
        } else {
            Ok(())
        }
    }

    fn begin_word(&mut self) -> Result<(), OutputError> {
        self.is_word_start = true;
        Ok(())
    }

    fn end_word(&mut self) -> Result<(), OutputError> {
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), OutputError> {
        Ok(())
    }
}

/// A size in tenths of a point; whatever is no sensible size is 0.
fn tenths(size: f64) -> u32 {
    if !(0.0..10_000.0).contains(&size) {
        return 0;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was checked in the line above"
    )]
    let tenths = (size * 10.0).round() as u32;
    tenths
}
