//! Packed documents (ZIP): Office and EPUB. Only the entries that are needed are unpacked, each within bounds, and
//! what is packed inside of them stays packed.

use std::io::{Cursor, Read};

use tidegate_core::knowledge::Format;
use zip::{ZipArchive, result::ZipError};

use super::{Limits, Problem};

/// An entry may have any ratio below this size: XML of a few words repeats itself.
const RATIO_FROM_BYTES: u64 = 1 << 20;

/// A packed document.
pub(super) struct Archive<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    limits: &'a Limits,
    unpacked: u64,
}

impl<'a> Archive<'a> {
    /// Reads the directory of the archive.
    pub(super) fn open(bytes: &'a [u8], limits: &'a Limits) -> Result<Self, Problem> {
        let zip = ZipArchive::new(Cursor::new(bytes)).map_err(|problem| broken(&problem))?;
        if zip.len() > limits.entries_max {
            return Err(Problem::UnpacksTooLarge(format!("it has {} entries", zip.len())));
        }
        Ok(Self {
            zip,
            limits,
            unpacked: 0,
        })
    }

    /// The bytes of an entry; `None` where there is none of that name.
    pub(super) fn bytes(&mut self, name: &str) -> Result<Option<Vec<u8>>, Problem> {
        let mut entry = match self.zip.by_name(name) {
            Ok(entry) => entry,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(problem) => return Err(broken(&problem)),
        };
        let room = self.limits.unpacked_bytes_max.saturating_sub(self.unpacked);
        let ratio = entry
            .compressed_size()
            .saturating_mul(self.limits.unpacked_ratio_max);
        let max = room.min(ratio.max(RATIO_FROM_BYTES));
        let mut bytes = Vec::new();
        // What an entry says about its size is only believed as far as it unpacks.
        let read = entry.by_ref().take(max.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|problem| Problem::Corrupt(format!("`{name}` does not unpack: {problem}")))?;
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if length > max {
            return Err(Problem::UnpacksTooLarge(format!(
                "`{name}` has {} bytes and unpacks to more than {max}",
                entry.compressed_size()
            )));
        }
        self.unpacked = self.unpacked.saturating_add(length);
        Ok(Some(bytes))
    }

    /// The text of an entry of XML.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        let Some(bytes) = self.bytes(name)? else {
            return Ok(None);
        };
        let decoded = super::encoding::decode(&bytes, Some(encoding_rs::UTF_8))
            .map_err(|_| Problem::Corrupt(format!("`{name}` is not text")))?;
        Ok(Some(decoded.text))
    }

    /// The text of an entry that must be there.
    pub(super) fn needed(&mut self, name: &str) -> Result<String, Problem> {
        self.text(name)?
            .ok_or_else(|| Problem::Corrupt(format!("`{name}` is missing in it")))
    }
}

fn broken(problem: &ZipError) -> Problem {
    let is_locked = match problem {
        ZipError::InvalidPassword => true,
        ZipError::UnsupportedArchive(text) => *text == ZipError::PASSWORD_REQUIRED,
        ZipError::Io(_) | ZipError::InvalidArchive(_) | ZipError::FileNotFound | _ => false,
    };
    if is_locked {
        Problem::PasswordProtected
    } else {
        Problem::Corrupt(problem.to_string())
    }
}

/// Which packed document this is, by the names of its entries. What is cut off still has the first of them.
pub(super) fn kind(bytes: &[u8]) -> Result<Format, Problem> {
    let holds = |name: &str| bytes.windows(name.len()).any(|window| window == name.as_bytes());
    match ZipArchive::new(Cursor::new(bytes)) {
        Ok(zip) => {
            let has = |name: &str| zip.index_for_name(name).is_some();
            if has("word/document.xml") {
                Ok(Format::Docx)
            } else if has("ppt/presentation.xml") {
                Ok(Format::Pptx)
            } else if has("xl/workbook.xml") {
                Ok(Format::Xlsx)
            } else if has("META-INF/container.xml") && holds("application/epub+zip") {
                Ok(Format::Epub)
            } else if has("mimetype") && holds("application/vnd.oasis.opendocument") {
                Err(Problem::Unsupported("an OpenDocument file".to_owned()))
            } else {
                Err(Problem::Unsupported("an archive that is no document".to_owned()))
            }
        }
        Err(problem) => {
            let known = ["word/", "ppt/", "xl/", "application/epub+zip"];
            if known.iter().any(|name| holds(name)) {
                Err(broken(&problem))
            } else {
                Err(Problem::Unsupported("an archive that is no document".to_owned()))
            }
        }
    }
}
