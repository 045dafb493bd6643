//! Office documents (ECMA-376): Word, PowerPoint, Excel. Packed XML, of which the text is taken and nothing else:
//! no macros, no linked files, no embedded documents, and no declarations of entities.

mod docx;
mod numbers;
mod pptx;
mod xlsx;
pub(super) mod xml;

use std::collections::HashMap;

use self::xml::{Node, Xml};
use super::{Limits, Problem, archive::Archive, builder::Builder};

pub(super) use self::{docx::read as docx, pptx::read as pptx, xlsx::read as xlsx};

/// The title in the document's properties (ECMA-376 part 2, 11).
fn title(archive: &mut Archive<'_>, builder: &mut Builder<'_>, limits: &Limits) -> Result<(), Problem> {
    let Some(text) = archive.text("docProps/core.xml")? else {
        return Ok(());
    };
    let mut xml = Xml::new(&text, limits);
    while let Some(node) = xml.next()? {
        if let Node::Start(tag) = node
            && tag.name() == "title"
        {
            let title = xml.text_of("title")?;
            builder.title(&title);
            return Ok(());
        }
    }
    Ok(())
}

/// What a part refers to by id (ECMA-376 part 2, 9.3), as names of entries.
fn relations(
    archive: &mut Archive<'_>,
    part: &str,
    limits: &Limits,
) -> Result<HashMap<String, Relation>, Problem> {
    let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
    let Some(text) = archive.text(&format!("{folder}/_rels/{name}.rels"))? else {
        return Ok(HashMap::new());
    };
    let mut found = HashMap::new();
    let mut xml = Xml::new(&text, limits);
    while let Some(node) = xml.next()? {
        let (Node::Start(tag) | Node::Empty(tag)) = node else {
            continue;
        };
        if tag.name() != "Relationship" || tag.attribute("TargetMode").is_some_and(|mode| mode == "External")
        {
            continue;
        }
        if let (Some(id), Some(target)) = (tag.attribute("Id"), tag.attribute("Target")) {
            let kind = tag.attribute("Type").unwrap_or_default();
            found.insert(
                id,
                Relation {
                    target: resolve(folder, &target),
                    kind,
                },
            );
        }
    }
    Ok(found)
}

/// Another part of the document.
struct Relation {
    target: String,
    kind: String,
}

/// A name relative to a folder of the archive.
pub(super) fn resolve(folder: &str, target: &str) -> String {
    if let Some(absolute) = target.strip_prefix('/') {
        return absolute.to_owned();
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts.join("/")
}

/// The rows of a table as lines of Markdown, which people and models read alike.
pub(super) fn table_text(rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    for row in rows.iter().filter(|row| row.iter().any(|cell| !cell.is_empty())) {
        text.push('|');
        for cell in row {
            text.push(' ');
            text.push_str(cell);
            text.push_str(" |");
        }
        text.push('\n');
    }
    text
}

/// Text on one line.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
