//! From lines to a text: running heads and feet go, lines that are headings become such, the rest becomes paragraphs.

use std::collections::{BTreeMap, HashMap};

use super::{
    super::{Problem, builder::Builder},
    lines::{Line, Page},
};

/// How much larger than the text a heading is, in percent.
const HEADING_PERCENT: u32 = 115;

/// The longest heading, in characters.
const HEADING_CHARS_MAX: usize = 160;

/// How many sizes of headings are told apart.
const HEADING_SIZES_MAX: usize = 4;

/// The most a document's headings take of its text, by their size: one in so many characters. Where it is more, size
/// means something else.
const HEADINGS_SHARE: usize = 5;

/// From this many pages on, what stands at the top or foot of most of them is no text.
const RUNNING_PAGES_MIN: usize = 3;

/// How many lines from the top and from the foot may run through.
const RUNNING_LINES: usize = 2;

/// An entry of the outline.
#[derive(Debug)]
pub(super) struct Bookmark {
    pub(super) page: u32,
    pub(super) level: u8,
    pub(super) title: String,
}

/// What decides which lines are headings.
enum HeadingRule {
    /// The outline, by page and words.
    Outline(HashMap<(u32, String), u8>),
    /// The sizes, the largest first.
    Sizes(Vec<u32>),
}

/// A document on its way.
pub(super) struct Layout {
    pages: BTreeMap<u32, Page>,
    rule: HeadingRule,
}

impl Layout {
    pub(super) fn new(mut pages: BTreeMap<u32, Page>, bookmarks: &[Bookmark]) -> Self {
        drop_running_lines(&mut pages);
        let rule = outline(&pages, bookmarks).unwrap_or_else(|| HeadingRule::Sizes(heading_sizes(&pages)));
        Self { pages, rule }
    }

    /// Writes everything down.
    pub(super) fn write(&self, builder: &mut Builder<'_>) -> Result<(), Problem> {
        for (number, page) in &self.pages {
            builder.turn(*number)?;
            self.page(*number, page, builder)?;
        }
        Ok(())
    }

    fn page(&self, number: u32, page: &Page, builder: &mut Builder<'_>) -> Result<(), Problem> {
        let mut paragraph = String::new();
        let mut heading: Option<(u8, String)> = None;
        for line in &page.lines {
            if let Some(level) = self.level(number, line) {
                builder.paragraph(&std::mem::take(&mut paragraph))?;
                // A heading on two lines is one, unless the outline says that it is two.
                match &mut heading {
                    Some((open, text))
                        if *open == level && line.is_close && matches!(self.rule, HeadingRule::Sizes(_)) =>
                    {
                        text.push(' ');
                        text.push_str(&line.text);
                    }
                    Some((open, text)) => {
                        builder.heading(*open, text)?;
                        heading = Some((level, line.text.clone()));
                    }
                    None => heading = Some((level, line.text.clone())),
                }
                continue;
            }
            if let Some((level, text)) = heading.take() {
                builder.heading(level, &text)?;
            }
            if line.is_apart {
                builder.paragraph(&std::mem::take(&mut paragraph))?;
            }
            join(&mut paragraph, &line.text);
        }
        builder.paragraph(&paragraph)?;
        if let Some((level, text)) = heading {
            builder.heading(level, &text)?;
        }
        Ok(())
    }

    fn level(&self, page: u32, line: &Line) -> Option<u8> {
        match &self.rule {
            HeadingRule::Outline(entries) => entries.get(&(page, plain(&line.text))).copied(),
            HeadingRule::Sizes(sizes) => {
                let rank = sizes.iter().position(|size| *size == line.size)?;
                let is_short = line.text.chars().count() <= HEADING_CHARS_MAX;
                let has_words = line.text.chars().any(char::is_alphabetic);
                u8::try_from(rank + 1).ok().filter(|_| is_short && has_words)
            }
        }
    }
}

/// Adds a line. A word that was cut by a hyphen at the end of a line is one again.
fn join(paragraph: &mut String, line: &str) {
    if paragraph.is_empty() {
        paragraph.push_str(line);
        return;
    }
    let mut end = paragraph.chars().rev();
    let is_cut = matches!(end.next(), Some('-' | '\u{ad}' | '\u{2010}'))
        && end.next().is_some_and(char::is_lowercase)
        && line.chars().next().is_some_and(char::is_lowercase);
    if is_cut {
        paragraph.pop();
    } else {
        paragraph.push('\n');
    }
    paragraph.push_str(line);
}

/// Letters and digits only, in lower case: bookmarks and lines differ in blanks and dots.
fn plain(text: &str) -> String {
    text.chars()
        .filter(|one| one.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// The outline, if at least half of its entries are found as lines on their pages.
fn outline(pages: &BTreeMap<u32, Page>, bookmarks: &[Bookmark]) -> Option<HeadingRule> {
    let mut entries = HashMap::new();
    for bookmark in bookmarks {
        let title = plain(&bookmark.title);
        let Some(page) = pages.get(&bookmark.page) else {
            continue;
        };
        // Titles often leave out the number in front of the heading.
        let found = page.lines.iter().map(|line| plain(&line.text)).find(|line| {
            !title.is_empty() && line.ends_with(&title) && line.len() <= title.len() + title.len() / 2 + 8
        });
        if let Some(line) = found {
            entries.insert((bookmark.page, line), bookmark.level);
        }
    }
    (!bookmarks.is_empty() && entries.len() * 2 >= bookmarks.len()).then_some(HeadingRule::Outline(entries))
}

/// The sizes of headings: those well above the size of the text, as long as they are rare.
fn heading_sizes(pages: &BTreeMap<u32, Page>) -> Vec<u32> {
    let mut characters: BTreeMap<u32, usize> = BTreeMap::new();
    for line in pages.values().flat_map(|page| &page.lines) {
        *characters.entry(line.size).or_default() += line.text.len();
    }
    let total: usize = characters.values().sum();
    let Some((body, _)) = characters.iter().max_by_key(|(_, count)| **count) else {
        return Vec::new();
    };
    let larger: Vec<(u32, usize)> = characters
        .iter()
        .rev()
        .filter(|(size, _)| **size * 100 >= *body * HEADING_PERCENT)
        .map(|(size, count)| (*size, *count))
        .collect();
    let headings: usize = larger.iter().map(|(_, count)| count).sum();
    if headings * HEADINGS_SHARE > total {
        return Vec::new();
    }
    larger
        .into_iter()
        .map(|(size, _)| size)
        .take(HEADING_SIZES_MAX)
        .collect()
}

/// Takes out the lines at the top and foot that are the same on most pages but for numbers, and lone page numbers.
fn drop_running_lines(pages: &mut BTreeMap<u32, Page>) {
    let count = pages.values().filter(|page| !page.lines.is_empty()).count();
    if count < RUNNING_PAGES_MIN {
        return;
    }
    let mut seen: HashMap<String, usize> = HashMap::new();
    for page in pages.values() {
        let mut own: Vec<String> = edges(page.lines.len())
            .filter_map(|at| page.lines.get(at))
            .map(running)
            .collect();
        own.sort_unstable();
        own.dedup();
        for line in own {
            *seen.entry(line).or_default() += 1;
        }
    }
    for page in pages.values_mut() {
        let edges: Vec<usize> = edges(page.lines.len()).collect();
        let mut at = 0;
        page.lines.retain(|line| {
            let is_edge = edges.contains(&at);
            at += 1;
            let times = seen.get(&running(line)).copied().unwrap_or(0);
            // Left and right pages have heads of their own.
            !(is_edge && times * 5 >= count * 2)
        });
    }
}

fn edges(lines: usize) -> impl Iterator<Item = usize> {
    let foot = lines.saturating_sub(RUNNING_LINES).max(RUNNING_LINES.min(lines));
    (0..RUNNING_LINES.min(lines)).chain(foot..lines)
}

/// A line with all numbers alike.
fn running(line: &Line) -> String {
    let mut text = String::new();
    for character in line.text.chars() {
        let character = if character.is_numeric() { '#' } else { character };
        if !(character == '#' && text.ends_with('#')) {
            text.push(character);
        }
    }
    text
}
