//! Word (WordprocessingML, ECMA-376 part 1, 17).

use std::collections::{HashMap, HashSet};

use tidegate_core::knowledge::Format;

use super::{
    super::{Limits, Parsed, Problem, archive::Archive, builder::Builder},
    one_line, table_text, title,
    xml::{Node, Tag, Xml},
};

/// Reads a Word document.
pub(in super::super) fn read(bytes: &[u8], limits: &Limits) -> Result<Parsed, Problem> {
    let mut archive = Archive::open(bytes, limits)?;
    let mut builder = Builder::new(limits);
    title(&mut archive, &mut builder, limits)?;
    let styles = match archive.text("word/styles.xml")? {
        Some(text) => Styles::read(&text, limits)?,
        None => Styles::default(),
    };
    let text = archive.needed("word/document.xml")?;
    Body::new(&mut builder, &styles).read(&text, limits)?;
    for notes in ["word/footnotes.xml", "word/endnotes.xml"] {
        if let Some(text) = archive.text(notes)? {
            Body::new(&mut builder, &styles).read(&text, limits)?;
        }
    }
    builder.finish(Format::Docx)
}

/// What styles of paragraphs mean.
#[derive(Default)]
struct Styles {
    /// The heading level of each style that is one: by its outline level, or by its name.
    levels: HashMap<String, u8>,
    /// Styles of items in lists.
    items: HashSet<String>,
}

impl Styles {
    fn read(text: &str, limits: &Limits) -> Result<Self, Problem> {
        let mut styles = Self::default();
        let mut style = String::new();
        let mut xml = Xml::new(text, limits);
        while let Some(node) = xml.next()? {
            let (Node::Start(tag) | Node::Empty(tag)) = node else {
                continue;
            };
            match tag.name() {
                "style" => style = tag.attribute("styleId").unwrap_or_default(),
                "name" => {
                    let name = tag.attribute("val").unwrap_or_default().to_lowercase();
                    let level = name
                        .strip_prefix("heading ")
                        .and_then(|rest| rest.trim().parse().ok());
                    // The title stands above headings of the first level.
                    if let Some(level) = level.or((name == "title").then_some(0)) {
                        styles.levels.insert(style.clone(), level);
                    }
                }
                "outlineLvl" => {
                    if let Some(level) = outline_level(&tag) {
                        styles.levels.insert(style.clone(), level);
                    }
                }
                "numPr" => {
                    styles.items.insert(style.clone());
                }
                _ => {}
            }
        }
        Ok(styles)
    }
}

/// Levels are counted from 0; 9 is text (ECMA-376 part 1, 17.3.1.20).
fn outline_level(tag: &Tag<'_>) -> Option<u8> {
    let level: u8 = tag.attribute("val")?.parse().ok()?;
    (level < 9).then_some(level + 1)
}

/// A table that is open, with the row and the cell that are.
#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
    row: Vec<String>,
    cell: String,
}

struct Body<'b, 'l> {
    builder: &'b mut Builder<'l>,
    styles: &'b Styles,
    tables: Vec<Table>,
    paragraph: String,
    level: Option<u8>,
    is_item: bool,
}

impl<'b, 'l> Body<'b, 'l> {
    fn new(builder: &'b mut Builder<'l>, styles: &'b Styles) -> Self {
        Self {
            builder,
            styles,
            tables: Vec::new(),
            paragraph: String::new(),
            level: None,
            is_item: false,
        }
    }

    fn read(mut self, text: &str, limits: &Limits) -> Result<(), Problem> {
        let mut xml = Xml::new(text, limits);
        while let Some(node) = xml.next()? {
            match node {
                Node::Start(tag) => match tag.name() {
                    // The same once more, for programs that cannot show the first one; and the list of properties
                    // that a change replaced.
                    "Fallback" | "pPrChange" | "rPrChange" | "del" | "moveFrom" => xml.skip()?,
                    "t" => {
                        let text = xml.text_of("t")?;
                        self.paragraph.push_str(&text);
                    }
                    "tbl" => self.tables.push(Table::default()),
                    _ => self.tag(&tag),
                },
                Node::Empty(tag) => self.tag(&tag),
                Node::End(name) => self.end(&name)?,
                Node::Text(_) => {}
            }
        }
        Ok(())
    }

    fn tag(&mut self, tag: &Tag<'_>) {
        match tag.name() {
            "pStyle" => {
                let style = tag.attribute("val").unwrap_or_default();
                self.level = self.level.or(self.styles.levels.get(&style).copied());
                self.is_item |= self.styles.items.contains(&style);
            }
            "outlineLvl" => self.level = outline_level(tag).or(self.level),
            "numPr" => self.is_item = true,
            "tab" => self.paragraph.push('\t'),
            "br" | "cr" => self.paragraph.push('\n'),
            "noBreakHyphen" => self.paragraph.push('-'),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) -> Result<(), Problem> {
        match name {
            "p" => self.end_paragraph(),
            "tc" => {
                if let Some(table) = self.tables.last_mut() {
                    let cell = one_line(&std::mem::take(&mut table.cell));
                    table.row.push(cell);
                }
                Ok(())
            }
            "tr" => {
                if let Some(table) = self.tables.last_mut() {
                    let row = std::mem::take(&mut table.row);
                    table.rows.push(row);
                }
                Ok(())
            }
            "tbl" => {
                let text = self
                    .tables
                    .pop()
                    .map(|table| table_text(&table.rows))
                    .unwrap_or_default();
                match self.tables.last_mut() {
                    Some(outer) => {
                        outer.cell.push_str(&text);
                        Ok(())
                    }
                    None => self.builder.whole(&text),
                }
            }
            _ => Ok(()),
        }
    }

    fn end_paragraph(&mut self) -> Result<(), Problem> {
        let text = std::mem::take(&mut self.paragraph);
        let level = self.level.take();
        let is_item = std::mem::take(&mut self.is_item);
        if text.trim().is_empty() {
            return Ok(());
        }
        if let Some(table) = self.tables.last_mut() {
            if !table.cell.is_empty() {
                table.cell.push(' ');
            }
            table.cell.push_str(&text);
            return Ok(());
        }
        match level {
            Some(level) => self.builder.heading(level, &text),
            None if is_item => self.builder.item(&text),
            None => self.builder.paragraph(&text),
        }
    }
}
