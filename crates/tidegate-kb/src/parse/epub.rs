//! Electronic books (EPUB 3): the chapters in the order of reading, each as the HTML that it is.

use std::collections::HashMap;

use tidegate_core::knowledge::Format;

use super::{
    Limits, Parsed, Problem,
    archive::Archive,
    builder::Builder,
    html,
    office::{
        resolve,
        xml::{Node, Xml},
    },
};

/// Reads a book.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> Result<Parsed, Problem> {
    let mut archive = Archive::open(bytes, limits)?;
    if is_locked(&mut archive)? {
        return Err(Problem::PasswordProtected);
    }
    let container = archive.needed("META-INF/container.xml")?;
    let package = package_path(&container, limits)?;
    let folder = package
        .rsplit_once('/')
        .map_or("", |(folder, _)| folder)
        .to_owned();
    let book = Package::read(&archive.needed(&package)?, limits)?;
    let mut builder = Builder::new(limits);
    builder.title(&book.title);
    for id in &book.spine {
        let Some(href) = book.items.get(id) else {
            continue;
        };
        let name = resolve(&folder, &unescaped(href));
        let Some(chapter) = archive.bytes(&name)? else {
            builder.warn(format!("the chapter `{name}` is missing in the file"));
            continue;
        };
        let text = super::encoding::decode(&chapter, Some(encoding_rs::UTF_8))
            .map_err(|_| Problem::Corrupt(format!("the chapter `{name}` is not text")))?
            .text;
        builder.leave_headings()?;
        builder = html::chapter(&text, builder)?;
    }
    builder.finish(Format::Epub)
}

/// Whether the content is encrypted. Fonts may be scrambled, which is no lock (EPUB 3.3, 4.4).
fn is_locked(archive: &mut Archive<'_>) -> Result<bool, Problem> {
    let Some(text) = archive.text("META-INF/encryption.xml")? else {
        return Ok(false);
    };
    Ok(text.contains("http://www.w3.org/2001/04/xmlenc#aes"))
}

fn package_path(container: &str, limits: &Limits) -> Result<String, Problem> {
    let mut xml = Xml::new(container, limits);
    while let Some(node) = xml.next()? {
        if let Node::Start(tag) | Node::Empty(tag) = node
            && tag.name() == "rootfile"
            && let Some(path) = tag.attribute("full-path")
        {
            return Ok(path);
        }
    }
    Err(Problem::Corrupt(
        "it does not say where its content is".to_owned(),
    ))
}

#[derive(Default)]
struct Package {
    title: String,
    items: HashMap<String, String>,
    spine: Vec<String>,
}

impl Package {
    fn read(text: &str, limits: &Limits) -> Result<Self, Problem> {
        let mut package = Self::default();
        let mut xml = Xml::new(text, limits);
        while let Some(node) = xml.next()? {
            match node {
                Node::Start(tag) if tag.name() == "title" && package.title.is_empty() => {
                    package.title = xml.text_of("title")?;
                }
                Node::Start(tag) | Node::Empty(tag) => match tag.name() {
                    "item" => {
                        if let (Some(id), Some(href)) = (tag.attribute("id"), tag.attribute("href")) {
                            package.items.insert(id, href);
                        }
                    }
                    "itemref" => package.spine.extend(tag.attribute("idref")),
                    _ => {}
                },
                Node::End(_) | Node::Text(_) => {}
            }
        }
        if package.spine.len() > limits.pages_max {
            return Err(Problem::TooMuch {
                what: "chapters".to_owned(),
                max: limits.pages_max,
            });
        }
        Ok(package)
    }
}

/// A reference without its fragment and with `%` escapes read (RFC 3986, 2.1).
fn unescaped(href: &str) -> String {
    let path = href.split('#').next().unwrap_or(href);
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = behind.get(2..).unwrap_or_default();
            }
            Some(_) | None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
