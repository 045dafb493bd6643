//! Plain text and source code: the text is the document, as one section.

use std::collections::BTreeMap;

use tidegate_core::knowledge::Format;

use super::{Parsed, Section};

/// A text without any structure but its lines.
pub(super) fn read(text: String, format: Format) -> Parsed {
    let section = Section {
        headings: Vec::new(),
        page: None,
        bytes: body_start(&text)..text.len(),
        whole: Vec::new(),
    };
    Parsed {
        format,
        title: None,
        front_matter: BTreeMap::new(),
        text,
        sections: vec![section],
        warnings: Vec::new(),
    }
}

/// Behind the byte order mark, where the text begins with one: it stays in the text so that ranges are those of the
/// file.
pub(super) fn body_start(text: &str) -> usize {
    if text.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        0
    }
}
