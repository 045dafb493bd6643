//! Excel (SpreadsheetML, ECMA-376 part 1, 18): each sheet as a page under its name, each row as `header: value`.

use tidegate_core::knowledge::Format;

use super::{
    super::{Limits, Parsed, Problem, archive::Archive, builder::Builder, table::Sheet},
    numbers::{self, Styles},
    relations, title,
    xml::{Node, Tag, Xml},
};

/// Where the sheets are listed.
const WORKBOOK: &str = "xl/workbook.xml";

/// The most columns that are read of a row.
const COLUMNS_MAX: usize = 2000;

/// Reads a workbook.
pub(in super::super) fn read(bytes: &[u8], limits: &Limits) -> Result<Parsed, Problem> {
    let mut archive = Archive::open(bytes, limits)?;
    let mut builder = Builder::new(limits);
    title(&mut archive, &mut builder, limits)?;
    let listed = relations(&mut archive, WORKBOOK, limits)?;
    let sheets = sheets(&archive.needed(WORKBOOK)?, limits)?;
    if sheets.len() > limits.pages_max {
        return Err(Problem::TooMuch {
            what: "sheets".to_owned(),
            max: limits.pages_max,
        });
    }
    let strings = match archive.text("xl/sharedStrings.xml")? {
        Some(text) => shared_strings(&text, limits)?,
        None => Vec::new(),
    };
    let styles = match archive.text("xl/styles.xml")? {
        Some(text) => numbers::styles(&text, limits)?,
        None => Styles::default(),
    };
    for (number, (name, id)) in (1_u32..).zip(sheets) {
        let Some(sheet) = listed.get(&id) else {
            continue;
        };
        let Some(text) = archive.text(&sheet.target)? else {
            builder.warn(format!("the sheet `{name}` is missing in the file"));
            continue;
        };
        builder.page(number)?;
        builder.heading(1, &name)?;
        builder = rows(&text, Sheet::new(builder), &strings, &styles, limits)?;
    }
    builder.finish(Format::Xlsx)
}

/// Names and relations of the sheets, in their order. Hidden ones stay hidden.
fn sheets(text: &str, limits: &Limits) -> Result<Vec<(String, String)>, Problem> {
    let mut found = Vec::new();
    let mut xml = Xml::new(text, limits);
    while let Some(node) = xml.next()? {
        if let Node::Start(tag) | Node::Empty(tag) = node
            && tag.name() == "sheet"
            && tag.attribute("state").is_none_or(|state| state == "visible")
            && let (Some(name), Some(id)) = (tag.attribute("name"), tag.exact("r:id"))
        {
            found.push((name, id));
        }
    }
    Ok(found)
}

/// Texts that cells refer to by number.
fn shared_strings(text: &str, limits: &Limits) -> Result<Vec<String>, Problem> {
    let mut found = Vec::new();
    let mut xml = Xml::new(text, limits);
    let mut item = String::new();
    while let Some(node) = xml.next()? {
        match node {
            Node::Start(tag) => match tag.name() {
                // How it is pronounced.
                "rPh" => xml.skip()?,
                "t" => item.push_str(&xml.text_of("t")?),
                _ => {}
            },
            Node::End(name) if name == "si" => found.push(std::mem::take(&mut item)),
            Node::Empty(tag) if tag.name() == "si" => found.push(String::new()),
            Node::Empty(_) | Node::End(_) | Node::Text(_) => {}
        }
    }
    Ok(found)
}

/// What a cell says about its value.
#[derive(Default)]
struct Cell {
    column: Option<usize>,
    kind: String,
    is_date: bool,
    value: String,
}

impl Cell {
    fn new(tag: &Tag<'_>, styles: &Styles) -> Self {
        let style = tag.attribute("s").and_then(|style| style.parse().ok());
        Self {
            column: tag.attribute("r").and_then(|place| column(&place)),
            kind: tag.attribute("t").unwrap_or_default(),
            is_date: style.is_some_and(|style| styles.is_date(style)),
            value: String::new(),
        }
    }

    fn text(self, strings: &[String]) -> String {
        match self.kind.as_str() {
            "s" => {
                let index: Option<usize> = self.value.trim().parse().ok();
                index
                    .and_then(|index| strings.get(index))
                    .cloned()
                    .unwrap_or_default()
            }
            "b" => if self.value.trim() == "1" { "true" } else { "false" }.to_owned(),
            "" | "n" if self.is_date => numbers::date(&self.value).unwrap_or(self.value),
            "" | "n" => numbers::plain(&self.value),
            _ => self.value,
        }
    }
}

/// The column of a place such as `AB12`, from 0 (ECMA-376 part 1, 18.18.7).
fn column(place: &str) -> Option<usize> {
    let letters = place.bytes().take_while(u8::is_ascii_alphabetic);
    let number = letters.fold(0_usize, |sum, letter| {
        let value = usize::from(letter.to_ascii_uppercase() - b'A') + 1;
        sum.saturating_mul(26).saturating_add(value)
    });
    number.checked_sub(1)
}

fn rows<'l>(
    text: &str,
    mut sheet: Sheet<'l>,
    strings: &[String],
    styles: &Styles,
    limits: &Limits,
) -> Result<Builder<'l>, Problem> {
    let mut row: Vec<String> = Vec::new();
    let mut cell = Cell::default();
    let mut xml = Xml::new(text, limits);
    while let Some(node) = xml.next()? {
        match node {
            Node::Start(tag) => match tag.name() {
                "c" => cell = Cell::new(&tag, styles),
                "v" => cell.value = xml.text_of("v")?,
                "t" => cell.value.push_str(&xml.text_of("t")?),
                "f" | "rPh" => xml.skip()?,
                _ => {}
            },
            Node::End(name) => match name.as_str() {
                "c" => {
                    let done = std::mem::take(&mut cell);
                    let at = done.column.unwrap_or(row.len());
                    if (row.len()..COLUMNS_MAX).contains(&at) {
                        row.resize(at, String::new());
                        row.push(done.text(strings));
                    }
                }
                "row" => sheet.row(&std::mem::take(&mut row))?,
                _ => {}
            },
            Node::Empty(_) | Node::Text(_) => {}
        }
    }
    sheet.finish()
}
