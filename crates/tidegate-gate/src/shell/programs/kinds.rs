//! Kinds of operands.

use super::{Error, Kind, Touched, Unlisted, arguments::unlisted};
use crate::shell::{Access, OperandKind, shape::Shape};

/// Words of jq that reach the environment or other files.
const REACHING: [&str; 7] = [
    "env",
    "ENV",
    "import",
    "include",
    "input_filename",
    "modulemeta",
    "get_search_list",
];

impl Kind {
    pub(super) fn of(text: &str) -> Result<Self, Error> {
        Ok(match text {
            "text" => Self::Text,
            "pattern" => Self::Pattern,
            "number" => Self::Number,
            "short" => Self::Short,
            "read" => Self::Read,
            "list" => Self::List,
            "exists" => Self::Exists,
            "revision" => Self::Revision,
            "format" => Self::Format,
            "pretty" => Self::Pretty,
            "program" => Self::Program,
            "jq" => Self::Jq,
            _ => match text.strip_prefix("letters:") {
                Some(letters) => Self::Letters(letters.to_owned()),
                None => return Err(Error::Table(format!("{text:?} is no kind of operand"))),
            },
        })
    }

    /// Whether a word may stand here, and what it touches.
    pub(super) fn check(&self, word: &Shape, touched: &mut Vec<Touched>) -> Result<(), Unlisted> {
        let fits = |is_fit: bool| if is_fit { Ok(()) } else { Err(unlisted(word)) };
        match self {
            Self::Text => {
                if word.has_wildcard() {
                    touch(word, Access::List, false, touched)?;
                }
                Ok(())
            }
            Self::Pattern => {
                if word.is_stream || word.has_wildcard() || (word.is_unknown() && word.may_split) {
                    Err(Unlisted::Dynamic)
                } else {
                    Ok(())
                }
            }
            Self::Read => {
                if word.text == "-" || word.is_stream {
                    return Ok(());
                }
                // Some programs read their own options from a file that is named this way.
                if word.text.starts_with('@') {
                    return Err(unlisted(word));
                }
                touch(word, Access::Read, true, touched)
            }
            Self::List => touch(word, Access::List, true, touched),
            Self::Exists => touch(word, Access::List, false, touched),
            Self::Revision => revision(word, touched),
            Self::Number => {
                let text = word.known().ok_or(Unlisted::Dynamic)?;
                fits(is_number(text))
            }
            Self::Short => {
                let text = word.known().ok_or(Unlisted::Dynamic)?;
                fits(text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
            }
            Self::Format => fits(word.known().ok_or(Unlisted::Dynamic)?.starts_with('+')),
            // A format with signatures starts the program that checks them.
            Self::Pretty => {
                let text = word.known().ok_or(Unlisted::Dynamic)?;
                fits(!text.contains("%G") && !text.contains("signature"))
            }
            Self::Program => {
                let text = word.known().ok_or(Unlisted::Dynamic)?;
                fits(
                    text.bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte)),
                )
            }
            Self::Letters(letters) => {
                let text = word.known().ok_or(Unlisted::Dynamic)?;
                fits(text.chars().all(|letter| letters.contains(letter)))
            }
            Self::Jq => {
                let text = word.known().ok_or(Unlisted::Dynamic)?;
                fits(!reaches(text))
            }
        }
    }
}

/// Whether a filter of jq uses one of the words. Behind a dot they are names of fields.
fn reaches(filter: &str) -> bool {
    REACHING.iter().any(|word| {
        filter.match_indices(word).any(|(at, _)| {
            let before = filter.get(..at).unwrap_or_default();
            let after = filter.get(at + word.len()..).unwrap_or_default();
            let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let is_field = before.ends_with('.') && !before.ends_with("..");
            !before.ends_with(is_letter) && !after.starts_with(is_letter) && !is_field
        })
    })
}

fn is_number(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-']);
    text.len() - digits.len() <= 1
        && digits.bytes().next().is_some_and(|byte| byte.is_ascii_digit())
        && digits.len() <= 20
        && digits
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b".bckmwKMGTPEB%i".contains(&byte))
}

/// A file that is touched: it must be a name or a pattern that our own code can expand.
pub(in crate::shell) fn touch(
    word: &Shape,
    access: Access,
    is_certain: bool,
    touched: &mut Vec<Touched>,
) -> Result<(), Unlisted> {
    if word.is_stream {
        return Err(Unlisted::Dynamic);
    }
    let (text, kind) = if let Some(text) = word.known() {
        (text.to_owned(), OperandKind::Literal)
    } else if let Some(pattern) = word.pattern.clone().filter(|_| !word.is_unknown()) {
        (pattern, OperandKind::Glob)
    } else {
        return Err(Unlisted::Dynamic);
    };
    if text.is_empty() || text == "/dev/null" || text == "/dev/stdin" {
        return Ok(());
    }
    if text.starts_with("/dev/") || text.starts_with("/proc/") || text.starts_with("/sys/") {
        return Err(unlisted(word));
    }
    touched.push(Touched {
        text,
        access,
        kind,
        is_certain,
    });
    Ok(())
}

/// A revision, a range, a file at a revision, or a file of the working tree: git decides when it runs, so that
/// everything that could be a file is judged as one.
fn revision(word: &Shape, touched: &mut Vec<Touched>) -> Result<(), Unlisted> {
    let text = word.known().ok_or(Unlisted::Dynamic)?;
    let is_reference = matches!(text, "HEAD" | "FETCH_HEAD" | "ORIG_HEAD" | "@")
        || text.starts_with('^')
        || (text.contains("..") && !text.contains("../") && !text.ends_with("/.."))
        || (text.contains(['~', '^']) && !text.starts_with(['/', '~', '.']))
        || text.contains("@{");
    let file = match text.split_once(':') {
        Some((_, file)) => file,
        None if is_reference => return Ok(()),
        None => text,
    };
    if file.is_empty() {
        return Ok(());
    }
    // A path out of the folder is no revision.
    let is_certain = text.starts_with('/') || text.starts_with("../") || text.contains("/../");
    touch(&Shape::literal(file), Access::Read, is_certain, touched)
}
