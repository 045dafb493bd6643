//! What a word may become, as far as that is known without running anything.

/// Stands for text that is not known.
pub(super) const UNKNOWN: char = '\u{f8f0}';
/// Stands for `*`.
pub(super) const RUN: char = '\u{f8f1}';
/// Stands for `?` or a bracket.
pub(super) const ONE: char = '\u{f8f2}';

/// What comes out of a command, as text for the next one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Output {
    /// Exactly this.
    Known(String),
    /// It came over the network.
    Download,
    /// It was decoded or transformed, so that what it says cannot be read here.
    Decoded,
    /// Something local: a file, a listing, nothing.
    #[default]
    Other,
}

impl Output {
    /// What both together are, one after the other.
    pub(super) fn then(self, next: Self) -> Self {
        match (self, next) {
            (Self::Download, _) | (_, Self::Download) => Self::Download,
            (Self::Decoded, _) | (_, Self::Decoded) => Self::Decoded,
            (Self::Known(mut first), Self::Known(second)) => {
                first.push_str(&second);
                Self::Known(first)
            }
            (Self::Known(text), Self::Other) | (Self::Other, Self::Known(text)) => {
                Self::Known(format!("{text}{UNKNOWN}"))
            }
            (Self::Other, Self::Other) => Self::Other,
        }
    }
}

/// A word after quotes are removed, with marks where it is not known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Shape {
    /// The letters, with [`UNKNOWN`], [`RUN`] and [`ONE`] among them.
    pub(super) text: String,
    /// Where the unknown part came from, and what a stream (`<(…)`) would hold.
    pub(super) origin: Option<Output>,
    /// The word is a stream.
    pub(super) is_stream: bool,
    /// The word as a pattern for a file system, special letters escaped, if it has wildcards.
    pub(super) pattern: Option<String>,
    /// A part without quotes came from an expansion, so that this could be several words.
    pub(super) may_split: bool,
}

impl Shape {
    pub(super) fn literal(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// The letters, if nothing in the word expands.
    pub(super) fn known(&self) -> Option<&str> {
        (!self.text.contains([UNKNOWN, RUN, ONE])).then_some(self.text.as_str())
    }

    pub(super) fn is_unknown(&self) -> bool {
        self.text.contains(UNKNOWN)
    }

    pub(super) fn has_wildcard(&self) -> bool {
        self.text.contains([RUN, ONE])
    }

    /// Whether the word could be exactly `name`.
    pub(super) fn could_be(&self, name: &str) -> bool {
        could_match(&self.text, name)
    }
}

/// The part behind the last slash.
pub(super) fn base(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or(text)
}

/// The name of a program as it would be looked up: no folder, no case, no `.exe`.
pub(super) fn program_name(text: &str) -> String {
    let name = base(text.rsplit('\\').next().unwrap_or(text)).to_ascii_lowercase();
    for ending in [".exe", ".cmd", ".bat", ".com"] {
        if let Some(stem) = name.strip_suffix(ending)
            && !stem.is_empty()
        {
            return stem.to_owned();
        }
    }
    name
}

/// Whether a text with marks could become `name`.
pub(super) fn could_match(text: &str, name: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut reached) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while reached < name.len() {
        match text.get(at) {
            Some(&(RUN | UNKNOWN)) => {
                retry = Some((at, reached));
                at += 1;
                continue;
            }
            Some(letter) if *letter == ONE || name.get(reached) == Some(letter) => {
                at += 1;
                reached += 1;
                continue;
            }
            _ => {}
        }
        let Some((mark, from)) = retry else { return false };
        at = mark + 1;
        reached = from + 1;
        retry = Some((mark, reached));
    }
    text.get(at..)
        .is_some_and(|rest| rest.iter().all(|letter| matches!(*letter, RUN | UNKNOWN)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_stands_for_anything() {
        let text = format!(".e{ONE}{RUN}");
        assert!(could_match(&text, ".env"));
        assert!(could_match(&text, ".en"));
        assert!(!could_match(&text, ".e"));
        assert!(could_match(&format!("{UNKNOWN}it"), "git"));
        assert!(!could_match("git", "gi"));
        assert!(could_match(&RUN.to_string(), ""));
    }

    #[test]
    fn a_program_is_named_without_folder_case_and_ending() {
        for (text, name) in [
            ("/usr/bin/git", "git"),
            ("GIT.EXE", "git"),
            ("a/b.sh", "b.sh"),
            (".exe", ".exe"),
        ] {
            assert_eq!(program_name(text), name);
        }
    }
}
