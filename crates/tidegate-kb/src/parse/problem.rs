//! Why a file could not be read.

use serde::{Deserialize, Serialize};
use tidegate_core::port::Failure;

/// Why there is no text. The message is the reason as people see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Problem {
    /// Nothing is in it.
    #[error("the file is empty")]
    Empty,
    /// More than is read.
    #[error("the file has {bytes} bytes, more than the {max} that are read")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The bound.
        max: usize,
    },
    /// Nobody here reads this.
    #[error("{0} is not read")]
    Unsupported(String),
    /// The name says something else than the bytes.
    #[error("the name ends in `.{extension}` but the content is {found}")]
    WrongExtension {
        /// What the name says.
        extension: String,
        /// What it is.
        found: String,
    },
    /// No text at all.
    #[error("the content is binary, not text")]
    Binary,
    /// Locked.
    #[error("the document is protected by a password")]
    PasswordProtected,
    /// Pictures of pages.
    #[error("the PDF has {pages} pages but next to no text: it is a scan")]
    ScannedPdf {
        /// How many.
        pages: usize,
    },
    /// Broken.
    #[error("the document is broken or cut off: {0}")]
    Corrupt(String),
    /// An archive that is made to fill the machine.
    #[error("the document unpacks to more than is read: {0}")]
    UnpacksTooLarge(String),
    /// Brackets in brackets.
    #[error("the document is nested more than {0} levels deep")]
    TooDeep(usize),
    /// It gives more than is taken.
    #[error("the document holds more than {max} {what}")]
    TooMuch {
        /// Of what.
        what: String,
        /// The bound.
        max: usize,
    },
    /// It is a document, with nothing to read in it.
    #[error("the document holds no text")]
    NoText,
    /// The process that read it went down.
    #[error("the reader crashed on this file: {0}")]
    Crashed(String),
    /// The process that read it took too long.
    #[error("reading took longer than {limit_ms} ms")]
    TooSlow {
        /// The bound.
        limit_ms: u64,
    },
    /// The process that read it took too much memory.
    #[error("reading took more than {limit_mb} MB of memory")]
    OutOfMemory {
        /// The bound.
        limit_mb: u64,
    },
    /// No process could be started. This is not the file's fault.
    #[error("the reader cannot be started: {0}")]
    Unavailable(String),
}

impl Problem {
    /// Its stable name.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::TooLarge { .. } => "too_large",
            Self::Unsupported(_) => "unsupported_format",
            Self::WrongExtension { .. } => "wrong_extension",
            Self::Binary => "binary",
            Self::PasswordProtected => "password_protected",
            Self::ScannedPdf { .. } => "scanned_pdf",
            Self::Corrupt(_) => "corrupt",
            Self::UnpacksTooLarge(_) => "unpacks_too_large",
            Self::TooDeep(_) => "too_deeply_nested",
            Self::TooMuch { .. } => "too_much_content",
            Self::NoText => "no_text",
            Self::Crashed(_) => "parser_crashed",
            Self::TooSlow { .. } => "parser_too_slow",
            Self::OutOfMemory { .. } => "parser_out_of_memory",
            Self::Unavailable(_) => "parser_unavailable",
        }
    }

    /// What would help.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Empty | Self::NoText => "put text into it, or take it out of the knowledge bank",
            Self::TooLarge { .. } | Self::TooMuch { .. } => "split it into smaller files",
            Self::Unsupported(_) => {
                "save it as PDF, DOCX, PPTX, XLSX, HTML, EPUB, Markdown, text, CSV or JSON"
            }
            Self::WrongExtension { .. } => "give it the extension of what it is",
            Self::Binary => "take it out of the knowledge bank, or save it in a format that is read",
            Self::PasswordProtected => "save a copy without a password",
            Self::ScannedPdf { .. } => "run it through text recognition (OCR) first and put the result here",
            Self::Corrupt(_) => "open it in the program it comes from and save it again",
            Self::UnpacksTooLarge(_) => "if you trust it, save it again in its program, or split it",
            Self::TooDeep(_) => "flatten it, or save it as text",
            Self::Crashed(_) => "save it again in its program, or in another format such as text or PDF",
            Self::TooSlow { .. } => "split it, save it in a simpler format, or raise `kb.parse_timeout_ms`",
            Self::OutOfMemory { .. } => {
                "split it, save it in a simpler format, or raise `kb.parse_memory_mb`"
            }
            Self::Unavailable(_) => "see the log; the file is read again when the server starts",
        }
    }

    /// Whether the same file may well be read another time, since the reader and not the file was at fault.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

impl From<&Problem> for Failure {
    fn from(problem: &Problem) -> Self {
        Self {
            code: problem.code().to_owned(),
            reason: problem.to_string(),
            hint: problem.hint().to_owned(),
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::from(&problem)
    }
}
