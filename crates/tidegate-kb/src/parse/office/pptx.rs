//! PowerPoint (PresentationML, ECMA-376 part 1, 19): slides as pages, with their notes.

use tidegate_core::knowledge::Format;

use super::{
    super::{Limits, Parsed, Problem, archive::Archive, builder::Builder},
    one_line, relations, table_text, title,
    xml::{Node, Xml},
};

/// Where the slides are listed.
const PRESENTATION: &str = "ppt/presentation.xml";

/// Reads a presentation.
pub(in super::super) fn read(bytes: &[u8], limits: &Limits) -> Result<Parsed, Problem> {
    let mut archive = Archive::open(bytes, limits)?;
    let mut builder = Builder::new(limits);
    title(&mut archive, &mut builder, limits)?;
    let listed = relations(&mut archive, PRESENTATION, limits)?;
    let order = slide_ids(&archive.needed(PRESENTATION)?, limits)?;
    if order.len() > limits.pages_max {
        return Err(Problem::TooMuch {
            what: "slides".to_owned(),
            max: limits.pages_max,
        });
    }
    for (number, id) in (1_u32..).zip(order) {
        let Some(slide) = listed.get(&id) else {
            continue;
        };
        let Some(text) = archive.text(&slide.target)? else {
            builder.warn(format!("slide {number} is missing in the file"));
            continue;
        };
        builder.page(number)?;
        let shapes = shapes(&text, limits)?;
        if let Some(heading) = shapes.iter().find(|shape| shape.is_title) {
            builder.heading(1, &one_line(&heading.text))?;
        }
        for shape in shapes.iter().filter(|shape| !shape.is_title) {
            if shape.is_table {
                builder.whole(&shape.text)?;
            } else {
                builder.paragraph(&shape.text)?;
            }
        }
        let related = relations(&mut archive, &slide.target, limits)?;
        if let Some(notes) = related
            .values()
            .find(|relation| relation.kind.ends_with("/notesSlide"))
            && let Some(text) = archive.text(&notes.target)?
        {
            for shape in self::shapes(&text, limits)?.iter().filter(|shape| shape.is_body) {
                builder.paragraph(&shape.text)?;
            }
        }
    }
    builder.finish(Format::Pptx)
}

/// The ids of the slides' relations, in the order in which they are shown.
fn slide_ids(text: &str, limits: &Limits) -> Result<Vec<String>, Problem> {
    let mut ids = Vec::new();
    let mut xml = Xml::new(text, limits);
    while let Some(node) = xml.next()? {
        if let Node::Start(tag) | Node::Empty(tag) = node
            && tag.name() == "sldId"
        {
            ids.extend(tag.exact("r:id"));
        }
    }
    Ok(ids)
}

/// Something on a slide.
#[derive(Default)]
struct Shape {
    text: String,
    is_title: bool,
    /// The main text, which is what the notes are on a page of notes.
    is_body: bool,
    is_table: bool,
}

fn shapes(text: &str, limits: &Limits) -> Result<Vec<Shape>, Problem> {
    let mut found = Vec::new();
    let mut shape = Shape::default();
    let mut rows: Option<Vec<Vec<String>>> = None;
    let mut cell = String::new();
    let mut xml = Xml::new(text, limits);
    while let Some(node) = xml.next()? {
        let into = if rows.is_some() {
            &mut cell
        } else {
            &mut shape.text
        };
        match node {
            Node::Start(tag) | Node::Empty(tag) if tag.name() == "ph" => {
                let kind = tag.attribute("type").unwrap_or_default();
                shape.is_title = kind == "title" || kind == "ctrTitle";
                shape.is_body = kind == "body";
            }
            Node::Start(tag) => match tag.name() {
                "Fallback" => xml.skip()?,
                "t" => into.push_str(&xml.text_of("t")?),
                "tbl" => rows = Some(Vec::new()),
                "tr" => rows.iter_mut().for_each(|rows| rows.push(Vec::new())),
                _ => {}
            },
            Node::Empty(tag) if tag.name() == "br" => into.push('\n'),
            Node::End(name) => match name.as_str() {
                "p" => into.push('\n'),
                "tc" => {
                    let text = one_line(&std::mem::take(&mut cell));
                    if let Some(row) = rows.as_mut().and_then(|rows| rows.last_mut()) {
                        row.push(text);
                    }
                }
                "tbl" => found.push(Shape {
                    text: table_text(&rows.take().unwrap_or_default()),
                    is_table: true,
                    ..Shape::default()
                }),
                "sp" | "graphicFrame" => {
                    let done = std::mem::take(&mut shape);
                    if !done.text.trim().is_empty() {
                        found.push(done);
                    }
                }
                _ => {}
            },
            Node::Empty(_) | Node::Text(_) => {}
        }
    }
    Ok(found)
}
