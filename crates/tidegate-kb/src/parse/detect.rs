//! What a file is made of, by its name and its first bytes. Where both disagree the bytes win if they are certain.

use tidegate_core::knowledge::Format;

use super::{Problem, archive};

/// How far into a file the mark of a PDF may stand (ISO 32000-2, annex I).
const PDF_MARK_WITHIN: usize = 1024;

/// Extensions of source code and configuration that is read line by line.
const CODE: &[&str] = &[
    "asm",
    "awk",
    "bash",
    "bat",
    "bicep",
    "c",
    "cc",
    "cfg",
    "clj",
    "cljs",
    "cmake",
    "conf",
    "cpp",
    "cs",
    "css",
    "cxx",
    "d",
    "dart",
    "dockerfile",
    "el",
    "elm",
    "env",
    "erl",
    "ex",
    "exs",
    "f90",
    "fish",
    "fs",
    "gd",
    "go",
    "gradle",
    "graphql",
    "groovy",
    "h",
    "hcl",
    "hh",
    "hpp",
    "hs",
    "ini",
    "java",
    "jl",
    "js",
    "jsx",
    "kt",
    "kts",
    "less",
    "lisp",
    "lua",
    "m",
    "make",
    "mjs",
    "mk",
    "ml",
    "mli",
    "mm",
    "nim",
    "nix",
    "pas",
    "php",
    "pl",
    "pm",
    "properties",
    "proto",
    "ps1",
    "py",
    "pyi",
    "r",
    "rb",
    "rkt",
    "rs",
    "sass",
    "scala",
    "scm",
    "scss",
    "sh",
    "sol",
    "sql",
    "svelte",
    "swift",
    "tcl",
    "tf",
    "thrift",
    "toml",
    "ts",
    "tsx",
    "v",
    "vb",
    "vhd",
    "vim",
    "vue",
    "xml",
    "xsd",
    "xsl",
    "yaml",
    "yml",
    "zig",
    "zsh",
];

/// Extensions of plain text.
const TEXT: &[&str] = &[
    "txt", "text", "log", "rst", "adoc", "asciidoc", "org", "tex", "srt", "vtt", "eml", "",
];

/// First bytes of what is certainly no document, and what it is called.
const OTHERS: &[(&[u8], &str)] = &[
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "a sound, image or video file"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"(\xb5/\xfd", "a zstd archive"),
    (b"\x7fELF", "a program"),
    (b"MZ\x90", "a program"),
    (b"SQLite format 3", "a database"),
    (b"ID3", "a sound file"),
    (b"OggS", "a sound or video file"),
    (b"{\\rtf", "an RTF document"),
    (b"%!PS", "a PostScript document"),
];

/// The first bytes of a compound file (MS-CFB, 2.2): Office before 2007, or Office with a password.
const COMPOUND: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";

/// What a file is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) format: Format,
    pub(super) warning: Option<String>,
}

/// Looks at name and bytes.
pub(super) fn detect(name: &str, bytes: &[u8]) -> Result<Found, Problem> {
    let extension = extension(name);
    let named = by_extension(&extension);
    let certain = if is_packed(bytes) {
        Some(archive::kind(bytes)?)
    } else {
        by_bytes(bytes)?
    };
    if let Some(format) = certain {
        let is_other = named.is_some_and(|named| named != format) && !extension.is_empty();
        let warning = is_other.then(|| {
            format!(
                "the name ends in `.{extension}` but the content is {}; it was read as that",
                called(format)
            )
        });
        return Ok(Found { format, warning });
    }
    let Some(format) = named else {
        return unknown(&extension, bytes);
    };
    match format {
        Format::Pdf | Format::Docx | Format::Pptx | Format::Xlsx | Format::Epub => {
            // A document that is cut off keeps its head; what has none is something else.
            Err(Problem::WrongExtension {
                extension,
                found: if is_text(bytes) {
                    "plain text".to_owned()
                } else {
                    "of no kind that is known".to_owned()
                },
            })
        }
        Format::Markdown | Format::Text | Format::Html | Format::Csv | Format::Json | Format::Code => {
            Ok(Found {
                format,
                warning: None,
            })
        }
    }
}

/// Whether our own parsers for plain formats read it, and nobody else's.
pub(super) fn is_ours(name: &str, bytes: &[u8]) -> bool {
    if is_packed(bytes) {
        return false;
    }
    let Ok(found) = by_bytes(bytes) else {
        // A refusal is no work.
        return true;
    };
    if found.is_some() {
        return false;
    }
    match by_extension(&extension(name)) {
        Some(Format::Markdown | Format::Text | Format::Csv | Format::Json | Format::Code) | None => true,
        Some(Format::Pdf | Format::Docx | Format::Pptx | Format::Xlsx | Format::Html | Format::Epub) => false,
    }
}

/// Files of unknown extensions are read where they are text.
fn unknown(extension: &str, bytes: &[u8]) -> Result<Found, Problem> {
    if is_text(bytes) {
        return Ok(Found {
            format: Format::Text,
            warning: None,
        });
    }
    Err(Problem::Unsupported(format!(
        "the format of `.{extension}` files"
    )))
}

fn is_text(bytes: &[u8]) -> bool {
    super::encoding::decode(bytes, None).is_ok_and(|decoded| decoded.warning.is_none())
}

/// What a file would be by its name alone, for one that could not be read.
pub(crate) fn by_name(name: &str) -> Format {
    by_extension(&extension(name)).unwrap_or(Format::Text)
}

fn extension(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or(name);
    let lower = name.to_lowercase();
    match lower.rsplit_once('.') {
        // `.gitignore` has no extension.
        Some(("", _)) => String::new(),
        Some((_, extension)) => extension.to_owned(),
        None if matches!(lower.as_str(), "dockerfile" | "makefile") => "dockerfile".to_owned(),
        None => String::new(),
    }
}

fn by_extension(extension: &str) -> Option<Format> {
    match extension {
        "md" | "markdown" | "mdx" | "mkd" => Some(Format::Markdown),
        "pdf" => Some(Format::Pdf),
        "docx" | "docm" | "dotx" => Some(Format::Docx),
        "pptx" | "pptm" | "ppsx" => Some(Format::Pptx),
        "xlsx" | "xlsm" | "xltx" => Some(Format::Xlsx),
        "html" | "htm" | "xhtml" => Some(Format::Html),
        "csv" | "tsv" | "tab" => Some(Format::Csv),
        "json" | "jsonl" | "ndjson" | "geojson" | "ipynb" => Some(Format::Json),
        "epub" => Some(Format::Epub),
        other if TEXT.contains(&other) => Some(Format::Text),
        other if CODE.contains(&other) => Some(Format::Code),
        _ => None,
    }
}

/// Whether it begins as an archive does (APPNOTE 4.3.7), or as an empty one.
fn is_packed(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
}

/// The format that the bytes are certain about, without unpacking anything.
fn by_bytes(bytes: &[u8]) -> Result<Option<Format>, Problem> {
    let head = bytes.get(..PDF_MARK_WITHIN).unwrap_or(bytes);
    if head.windows(5).any(|window| window == b"%PDF-") && !head.trim_ascii_start().starts_with(b"#") {
        return Ok(Some(Format::Pdf));
    }
    if bytes.starts_with(COMPOUND) {
        return Err(compound(bytes));
    }
    if let Some((_, called)) = OTHERS.iter().find(|(mark, _)| bytes.starts_with(mark)) {
        return Err(Problem::Unsupported((*called).to_owned()));
    }
    let text = head
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(head)
        .trim_ascii_start();
    let starts = |mark: &[u8]| {
        text.get(..mark.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(mark))
    };
    Ok((starts(b"<!doctype html") || starts(b"<html")).then_some(Format::Html))
}

/// The names in a compound file are UTF-16; one of them stands for content under a password (MS-OFFCRYPTO, 2.3.4.4).
fn compound(bytes: &[u8]) -> Problem {
    let name: Vec<u8> = "EncryptedPackage"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    if bytes.windows(name.len()).any(|window| window == name) {
        Problem::PasswordProtected
    } else {
        Problem::Unsupported("a document of Office before 2007".to_owned())
    }
}

fn called(format: Format) -> &'static str {
    match format {
        Format::Markdown => "Markdown",
        Format::Text => "plain text",
        Format::Pdf => "a PDF",
        Format::Docx => "a Word document",
        Format::Pptx => "a PowerPoint presentation",
        Format::Xlsx => "an Excel workbook",
        Format::Html => "HTML",
        Format::Csv => "a table of separated values",
        Format::Json => "JSON",
        Format::Epub => "an electronic book",
        Format::Code => "source code",
    }
}
