//! From tags to text.

use std::cell::RefCell;

use html5ever::{
    tendril::StrTendril,
    tokenizer::{
        BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
        states::RawKind,
    },
};

use super::super::{Problem, builder::Builder, office::table_text};

/// Which part of a page is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// What the page calls its main part.
    Main,
    /// Everything but navigation and the like.
    Body,
    /// Everything that is shown, as a chapter of a book: its title is not the book's.
    Chapter,
    /// Everything that is shown.
    Everything,
}

/// Never shown.
const UNSEEN: &[&str] = &[
    "script", "style", "template", "noscript", "svg", "math", "iframe", "object", "canvas", "audio", "video",
    "select", "button", "textarea", "datalist", "head",
];

/// On every page of a site.
const AROUND: &[&str] = &["nav", "footer", "aside", "menu", "dialog"];

/// The same as roles (WAI-ARIA 1.2).
const AROUND_ROLES: &[&str] = &[
    "navigation",
    "banner",
    "contentinfo",
    "search",
    "complementary",
    "menu",
    "menubar",
    "dialog",
];

/// Elements without an end tag (HTML, 13.1.2).
const VOID: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr",
];

/// What stands on lines of its own.
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "blockquote",
    "body",
    "center",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "form",
    "header",
    "hr",
    "html",
    "main",
    "p",
    "section",
    "summary",
    "legend",
    "caption",
    "option",
];

/// Reads a page into a document.
pub(super) fn read<'l>(page: &str, part: Part, builder: Builder<'l>) -> Result<Builder<'l>, Problem> {
    let tokenizer = Tokenizer::new(
        Sink(RefCell::new(Page::new(part, builder))),
        TokenizerOpts::default(),
    );
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(page));
    // Scripts do not run, so nothing ever holds it up: it takes everything at once.
    drop(tokenizer.feed(&input));
    tokenizer.end();
    let page = tokenizer.sink.0.into_inner();
    page.finish()
}

struct Sink<'l>(RefCell<Page<'l>>);

impl TokenSink for Sink<'_> {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut page = self.0.borrow_mut();
        if page.problem.is_some() {
            return TokenSinkResult::Continue;
        }
        let mut next = TokenSinkResult::Continue;
        let outcome = match token {
            Token::TagToken(tag) => {
                next = raw(&tag);
                page.tag(&tag)
            }
            Token::CharacterTokens(text) => {
                page.characters(&text);
                Ok(())
            }
            Token::DoctypeToken(_)
            | Token::CommentToken(_)
            | Token::NullCharacterToken
            | Token::EOFToken
            | Token::ParseError(_) => Ok(()),
        };
        page.problem = outcome.err();
        next
    }
}

/// What is behind a tag may be no markup (HTML, 13.2.6.4).
fn raw(tag: &Tag) -> TokenSinkResult<()> {
    if tag.kind == TagKind::EndTag || tag.self_closing {
        return TokenSinkResult::Continue;
    }
    match &*tag.name {
        "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
        "style" | "xmp" | "iframe" | "noembed" | "noframes" => TokenSinkResult::RawData(RawKind::Rawtext),
        "script" => TokenSinkResult::RawData(RawKind::ScriptData),
        _ => TokenSinkResult::Continue,
    }
}

/// Something that is passed over, until its tag has closed as often as it has opened.
struct Skipped {
    name: String,
    depth: usize,
}

/// A table of data. Pages are laid out with tables as well: one with headings or tables in it is none.
#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
    row: Vec<String>,
}

struct Page<'l> {
    part: Part,
    builder: Builder<'l>,
    problem: Option<Problem>,
    skipped: Option<Skipped>,
    title: Option<String>,
    /// How many main parts are open.
    main: usize,
    /// The text since the last block; lines in it are those of a list or of preformatted text.
    text: String,
    lists: usize,
    pre: usize,
    heading: Option<u8>,
    table: Option<Table>,
}

impl<'l> Page<'l> {
    fn new(part: Part, builder: Builder<'l>) -> Self {
        Self {
            part,
            builder,
            problem: None,
            skipped: None,
            title: None,
            main: 0,
            text: String::new(),
            lists: 0,
            pre: 0,
            heading: None,
            table: None,
        }
    }

    fn finish(mut self) -> Result<Builder<'l>, Problem> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        self.end_table()?;
        self.flush()?;
        Ok(self.builder)
    }

    fn characters(&mut self, text: &str) {
        if let Some(title) = &mut self.title {
            title.push_str(text);
            return;
        }
        let is_outside = self.part == Part::Main && self.main == 0;
        if self.skipped.is_some() || is_outside {
            return;
        }
        if self.pre > 0 {
            self.text.push_str(text);
            return;
        }
        for (index, word) in text
            .split(|character: char| character.is_whitespace())
            .enumerate()
        {
            if index > 0 {
                self.blank();
            }
            self.text.push_str(word);
        }
    }

    fn blank(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
    }

    fn line(&mut self) {
        self.text.truncate(self.text.trim_end_matches(' ').len());
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    fn tag(&mut self, tag: &Tag) -> Result<(), Problem> {
        let name: &str = &tag.name;
        let is_start = tag.kind == TagKind::StartTag;
        if let Some(skipped) = &mut self.skipped {
            if name == "title" && skipped.name == "head" {
                self.title(is_start);
                return Ok(());
            }
            // A page without the end of its head has a body all the same.
            let is_body = skipped.name == "head" && name == "body";
            if skipped.name == name && !tag.self_closing {
                skipped.depth = if is_start {
                    skipped.depth + 1
                } else {
                    skipped.depth.saturating_sub(1)
                };
            }
            if skipped.depth == 0 || is_body {
                self.skipped = None;
            }
            return Ok(());
        }
        if name == "title" {
            self.title(is_start);
            return Ok(());
        }
        if is_start && !tag.self_closing && !VOID.contains(&name) && self.is_passed_over(tag) {
            self.skipped = Some(Skipped {
                name: name.to_owned(),
                depth: 1,
            });
            return Ok(());
        }
        if name == "main" || name == "article" || attribute(tag, "role") == Some("main") {
            self.flush()?;
            self.main = if is_start {
                self.main + 1
            } else {
                self.main.saturating_sub(1)
            };
        }
        self.element(tag, name, is_start)
    }

    fn title(&mut self, is_start: bool) {
        if is_start {
            self.title = Some(String::new());
        } else if let Some(title) = self.title.take()
            && self.part != Part::Chapter
        {
            self.builder.title(&title);
        }
    }

    fn is_passed_over(&self, tag: &Tag) -> bool {
        let name: &str = &tag.name;
        let is_hidden = tag.attrs.iter().any(|attribute| match &*attribute.name.local {
            "hidden" => true,
            "aria-hidden" => &*attribute.value == "true",
            "style" => {
                let style: String = attribute
                    .value
                    .chars()
                    .filter(|one| !one.is_whitespace())
                    .collect();
                style.contains("display:none") || style.contains("visibility:hidden")
            }
            _ => false,
        });
        let is_around = match self.part {
            Part::Main | Part::Body => {
                AROUND.contains(&name)
                    || attribute(tag, "role").is_some_and(|role| AROUND_ROLES.contains(&role))
            }
            Part::Chapter | Part::Everything => false,
        };
        UNSEEN.contains(&name) || is_hidden || is_around
    }

    fn element(&mut self, tag: &Tag, name: &str, is_start: bool) -> Result<(), Problem> {
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.heading(name, is_start),
            "br" => {
                self.text.truncate(self.text.trim_end_matches(' ').len());
                self.text.push('\n');
                Ok(())
            }
            "img" => {
                if let Some(text) = attribute(tag, "alt") {
                    let text = text.to_owned();
                    self.characters(&text);
                }
                Ok(())
            }
            "ul" | "ol" => {
                self.lists = if is_start {
                    self.lists + 1
                } else {
                    self.lists.saturating_sub(1)
                };
                if self.lists == 0 || (is_start && self.lists == 1) {
                    self.flush()
                } else {
                    Ok(())
                }
            }
            "li" if is_start => {
                self.line();
                self.text.push_str("- ");
                Ok(())
            }
            "pre" => {
                self.flush()?;
                self.pre = if is_start {
                    self.pre + 1
                } else {
                    self.pre.saturating_sub(1)
                };
                Ok(())
            }
            "table" if is_start => {
                let is_layout = self.table.is_some();
                self.end_table()?;
                self.flush()?;
                self.table = (!is_layout).then(Table::default);
                Ok(())
            }
            "table" => self.end_table(),
            "tr" | "td" | "th" => self.cell(name, is_start),
            name if BLOCKS.contains(&name) => {
                // Inside of an item or a cell a block is a line.
                if self.table.is_some() {
                    self.blank();
                } else if self.lists > 0 {
                    let is_bare = self.text.ends_with("- ");
                    if !is_bare {
                        self.line();
                    }
                } else {
                    return self.flush();
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn heading(&mut self, name: &str, is_start: bool) -> Result<(), Problem> {
        if is_start {
            // A table with headings is a layout.
            self.end_table()?;
            self.flush()?;
            self.heading = name.get(1..).and_then(|level| level.parse().ok());
            return Ok(());
        }
        self.flush()
    }

    fn cell(&mut self, name: &str, is_start: bool) -> Result<(), Problem> {
        let text = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let Some(table) = &mut self.table else {
            return self.flush();
        };
        self.text.clear();
        // Ends of cells and rows may be left out.
        let has_cell = !text.is_empty() || (!is_start && name != "tr");
        if has_cell {
            table.row.push(text);
        }
        if name == "tr" && !table.row.is_empty() {
            let row = std::mem::take(&mut table.row);
            table.rows.push(row);
        }
        Ok(())
    }

    /// What was a table so far is put down as one.
    fn end_table(&mut self) -> Result<(), Problem> {
        if self.table.is_none() {
            return Ok(());
        }
        self.cell("tr", true)?;
        let table = self.table.take().unwrap_or_default();
        let is_single = table.rows.iter().all(|row| row.len() < 2);
        if is_single {
            // One column is a frame around text.
            return table
                .rows
                .iter()
                .flatten()
                .try_for_each(|cell| self.builder.paragraph(cell));
        }
        self.builder.whole(&table_text(&table.rows))
    }

    fn flush(&mut self) -> Result<(), Problem> {
        let text = std::mem::take(&mut self.text);
        if let Some(level) = self.heading.take() {
            return self.builder.heading(level, &text);
        }
        if self.pre > 0 {
            return self.builder.whole(&text);
        }
        self.builder.paragraph(text.trim())
    }
}

fn attribute<'t>(tag: &'t Tag, name: &str) -> Option<&'t str> {
    let found = tag
        .attrs
        .iter()
        .find(|attribute| &*attribute.name.local == name)?;
    Some(&found.value)
}
