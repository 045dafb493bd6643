//! XML as a row of events, within a depth, without entities of the document's own.

use quick_xml::{
    Reader,
    events::{BytesStart, Event},
};

use super::super::{Limits, Problem};

/// What comes next.
pub(in super::super) enum Node<'t> {
    /// A tag opens.
    Start(Tag<'t>),
    /// A tag that is empty.
    Empty(Tag<'t>),
    /// The tag of this local name closes.
    End(String),
    /// Characters.
    Text(String),
}

/// A tag with its attributes.
pub(in super::super) struct Tag<'t>(BytesStart<'t>);

impl Tag<'_> {
    /// Its name without a prefix.
    pub(in super::super) fn name(&self) -> &str {
        self.0.local_name().into_inner()
    }

    /// An attribute by its name without a prefix.
    pub(in super::super) fn attribute(&self, name: &str) -> Option<String> {
        let mut attributes = self.0.attributes();
        let found = attributes
            .with_checks(false)
            .filter_map(Result::ok)
            .find(|attribute| attribute.key.local_name().into_inner() == name)?;
        let raw = found.value;
        Some(match quick_xml::escape::unescape(&raw) {
            Ok(text) => text.into_owned(),
            Err(_) => raw.into_owned(),
        })
    }

    /// An attribute by its whole name, where another one has the same name without a prefix.
    pub(in super::super) fn exact(&self, name: &str) -> Option<String> {
        let attribute = self.0.try_get_attribute(name).ok().flatten()?;
        Some(attribute.value.into_owned())
    }
}

/// Reads XML.
pub(in super::super) struct Xml<'t> {
    reader: Reader<&'t [u8]>,
    depth: usize,
    depth_max: usize,
}

impl<'t> Xml<'t> {
    /// A text of XML.
    pub(in super::super) fn new(text: &'t str, limits: &Limits) -> Self {
        let text = text.trim_start_matches('\u{feff}');
        Self {
            reader: Reader::from_str(text),
            depth: 0,
            depth_max: limits.depth_max,
        }
    }

    /// The next event; `None` at the end.
    pub(in super::super) fn next(&mut self) -> Result<Option<Node<'t>>, Problem> {
        loop {
            let event = self.reader.read_event().map_err(|problem| {
                Problem::Corrupt(format!(
                    "its XML ends or breaks at byte {}: {problem}",
                    self.reader.error_position()
                ))
            })?;
            return Ok(Some(match event {
                Event::Start(tag) => {
                    self.depth += 1;
                    if self.depth > self.depth_max {
                        return Err(Problem::TooDeep(self.depth_max));
                    }
                    Node::Start(Tag(tag))
                }
                Event::Empty(tag) => Node::Empty(Tag(tag)),
                Event::End(tag) => {
                    self.depth = self.depth.saturating_sub(1);
                    Node::End(tag.local_name().into_inner().to_owned())
                }
                Event::Text(text) => Node::Text(text.xml10_content().into_owned()),
                Event::CData(text) => Node::Text(text.xml10_content().into_owned()),
                Event::GeneralRef(reference) => match reference.resolve_char_ref() {
                    Ok(Some(character)) => Node::Text(character.to_string()),
                    Ok(None) | Err(_) => match predefined(&reference) {
                        Some(text) => Node::Text(text.to_owned()),
                        // One that the document would have to declare.
                        None => continue,
                    },
                },
                Event::DocType(declaration) => {
                    // A declaration with a body can define entities by entities (a thousand million laughs).
                    if declaration.contains('[') {
                        return Err(Problem::Corrupt(
                            "its XML declares entities, which documents of this kind never do".to_owned(),
                        ));
                    }
                    continue;
                }
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => continue,
                Event::Eof if self.depth > 0 => {
                    return Err(Problem::Corrupt("its XML ends in the middle".to_owned()));
                }
                Event::Eof => return Ok(None),
            }));
        }
    }

    /// The characters up to the end of the tag that has just been opened.
    pub(in super::super) fn text_of(&mut self, name: &str) -> Result<String, Problem> {
        let outside = self.depth.saturating_sub(1);
        let mut text = String::new();
        while let Some(node) = self.next()? {
            match node {
                Node::Text(more) => text.push_str(&more),
                Node::End(end) if end == name && self.depth <= outside => break,
                Node::Start(_) | Node::Empty(_) | Node::End(_) => {}
            }
        }
        Ok(text)
    }

    /// Passes over everything up to the end of the tag that has just been opened.
    pub(in super::super) fn skip(&mut self) -> Result<(), Problem> {
        let outside = self.depth.saturating_sub(1);
        while self.depth > outside {
            if self.next()?.is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// The entities that need no declaration (XML 1.0, 4.6).
fn predefined(name: &str) -> Option<&'static str> {
    match name {
        "amp" => Some("&"),
        "lt" => Some("<"),
        "gt" => Some(">"),
        "quot" => Some("\""),
        "apos" => Some("'"),
        _ => None,
    }
}
