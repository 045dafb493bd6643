//! Patterns over paths, as people know them from ignore files.
//!
//! `*` stands for any run of characters within a name, `?` for one, `[a-z]` and `[!a-z]` for one of a set, and `**`
//! as a whole name for any number of folders. A pattern without `/` is about names at any depth; one with `/` begins
//! at the top. A pattern that names a folder means everything below it.
//!
//! The time it takes grows with the product of both lengths and no faster, whoever wrote the pattern.

/// The longest pattern, in bytes.
pub const BYTES_MAX: usize = 512;

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// Nothing in it names anything.
    #[error("a pattern must name something, such as `handbook/**` or `*.pdf`")]
    Empty,
    /// It is too long.
    #[error("a pattern has at most {BYTES_MAX} bytes")]
    TooLong,
    /// A set without its end, or with nothing in it.
    #[error("the set in `{0}` has no end; write `[abc]`, or `[[]` for the bracket itself")]
    OpenSet(String),
}

/// A pattern over paths with `/` between names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    /// `**`: any number of names, also none.
    Folders,
    /// One name.
    Name(Vec<Piece>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Letter(char),
    Any,
    Run,
    Set {
        ranges: Vec<(char, char)>,
        inverted: bool,
    },
}

impl Glob {
    /// Reads a pattern.
    pub fn new(pattern: &str) -> Result<Self, GlobError> {
        if pattern.len() > BYTES_MAX {
            return Err(GlobError::TooLong);
        }
        let anchored = pattern.trim_end_matches('/').contains('/');
        let mut segments = Vec::new();
        if !anchored {
            segments.push(Segment::Folders);
        }
        for name in pattern.split('/').filter(|name| !name.is_empty() && *name != ".") {
            let segment = match name {
                "**" => Segment::Folders,
                name => Segment::Name(pieces(name)?),
            };
            // Two in a row mean no more than one, and would only cost time.
            if segment != Segment::Folders || segments.last() != Some(&Segment::Folders) {
                segments.push(segment);
            }
        }
        if segments.is_empty() || (!anchored && segments.len() == 1 && !pattern.starts_with("**")) {
            return Err(GlobError::Empty);
        }
        // What names a folder means what is in it.
        if segments.last() != Some(&Segment::Folders) {
            segments.push(Segment::Folders);
        }
        Ok(Self { segments })
    }

    /// Whether the path is meant.
    pub fn matches(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        let fits = |segment: &Segment, name: &&str| match segment {
            Segment::Folders => false,
            Segment::Name(pieces) => name_fits(pieces, name),
        };
        two_pointers(
            &self.segments,
            &names,
            |segment| *segment == Segment::Folders,
            fits,
        )
    }
}

/// Whether any of the patterns means the path.
pub fn any_matches(globs: &[Glob], path: &str) -> bool {
    globs.iter().any(|glob| glob.matches(path))
}

fn pieces(name: &str) -> Result<Vec<Piece>, GlobError> {
    let mut pieces = Vec::new();
    let mut letters = name.chars();
    while let Some(letter) = letters.next() {
        let piece = match letter {
            '*' if pieces.last() == Some(&Piece::Run) => continue,
            '*' => Piece::Run,
            '?' => Piece::Any,
            '[' => {
                let (set, rest) = set(letters.as_str()).ok_or_else(|| GlobError::OpenSet(name.to_owned()))?;
                letters = rest.chars();
                set
            }
            '\\' => Piece::Letter(letters.next().unwrap_or('\\')),
            letter => Piece::Letter(letter),
        };
        pieces.push(piece);
    }
    Ok(pieces)
}

/// The set that `text` begins with, after its bracket, and what follows it.
fn set(text: &str) -> Option<(Piece, &str)> {
    let (inverted, body) = match text.strip_prefix(['!', '^']) {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    // A bracket that comes first is a member.
    let end = body.char_indices().skip(1).find(|(_, letter)| *letter == ']')?.0;
    let (members, rest) = (body.get(..end)?, body.get(end + 1..)?);
    let members: Vec<char> = members.chars().collect();
    let mut ranges = Vec::new();
    let mut left = members.as_slice();
    loop {
        left = match left {
            [] => break,
            [first, '-', last, rest @ ..] => {
                ranges.push((*first, *last));
                rest
            }
            [one, rest @ ..] => {
                ranges.push((*one, *one));
                rest
            }
        };
    }
    Some((Piece::Set { ranges, inverted }, rest))
}

fn name_fits(pieces: &[Piece], name: &str) -> bool {
    let letters: Vec<char> = name.chars().collect();
    two_pointers(
        pieces,
        &letters,
        |piece| *piece == Piece::Run,
        |piece, letter| match piece {
            Piece::Run => false,
            Piece::Any => true,
            Piece::Letter(wanted) => wanted == letter,
            Piece::Set { ranges, inverted } => {
                ranges
                    .iter()
                    .any(|(first, last)| (first..=last).contains(&letter))
                    != *inverted
            }
        },
    )
}

/// Whether `pattern` covers `items`, where some of its parts take any run of them. Going back to the latest such part
/// is enough: what an earlier one could take more of, the latest one can, too.
fn two_pointers<P, I>(
    pattern: &[P],
    items: &[I],
    takes_any: impl Fn(&P) -> bool,
    fits: impl Fn(&P, &I) -> bool,
) -> bool {
    let (mut at, mut item) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while let Some(current) = items.get(item) {
        match pattern.get(at) {
            Some(part) if takes_any(part) => {
                back = Some((at, item));
                at += 1;
            }
            Some(part) if fits(part, current) => {
                at += 1;
                item += 1;
            }
            Some(_) | None => {
                let Some((part, taken)) = back else { return false };
                back = Some((part, taken + 1));
                (at, item) = (part + 1, taken + 1);
            }
        }
    }
    pattern.get(at..).is_some_and(|rest| rest.iter().all(takes_any))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_mean_what_people_expect() {
        let table = [
            ("*.pdf", "a.pdf", true),
            ("*.pdf", "deep/down/a.pdf", true),
            ("*.pdf", "a.pdf.txt", false),
            ("handbook", "handbook/leave/a.md", true),
            ("handbook/", "old/handbook/a.md", true),
            ("handbook/*", "handbook/leave/a.md", true),
            ("handbook/*.md", "handbook/leave/a.md", false),
            ("handbook/**/a.md", "handbook/a.md", true),
            ("handbook/**/a.md", "handbook/x/y/a.md", true),
            ("/handbook/**", "old/handbook/a.md", false),
            ("**", "anything/at/all", true),
            ("**/a.md", "a.md", true),
            ("re[gG]?lation[!0-9].md", "reGulations.md", true),
            ("re[gG]?lation[!0-9].md", "regulation7.md", false),
            ("[]a].md", "].md", true),
            ("[a-c-]x", "-x", true),
            (r"\*.md", "*.md", true),
            (r"\*.md", "a.md", false),
            ("Grüße-?.md", "Grüße-ß.md", true),
            ("a.md", "A.md", false),
            ("a/b", "a", false),
        ];
        for (pattern, path, expected) in table {
            assert_eq!(
                Glob::new(pattern).unwrap().matches(path),
                expected,
                "{pattern} {path}"
            );
        }
        for empty in ["", "/", "//", "./"] {
            assert_eq!(Glob::new(empty), Err(GlobError::Empty), "{empty:?}");
        }
        assert!(matches!(Glob::new("a/[b"), Err(GlobError::OpenSet(_))));
        assert_eq!(Glob::new(&"a".repeat(BYTES_MAX + 1)), Err(GlobError::TooLong));
    }

    #[test]
    fn a_hostile_pattern_takes_no_longer_than_the_product_of_the_lengths() {
        let glob = Glob::new(&"*a".repeat(200)).unwrap();
        let begun = std::time::Instant::now();
        assert!(!glob.matches(&"a".repeat(199).repeat(2).replace("aa", "ab")));
        assert!(
            !Glob::new(&"**/a/".repeat(100))
                .unwrap()
                .matches(&"a/b/".repeat(99))
        );
        assert!(begun.elapsed() < std::time::Duration::from_secs(2));
    }

    proptest! {
        #[test]
        fn a_path_matches_itself_and_everything_above_it(names in prop::collection::vec("[a-z.]{1,6}", 1..5)) {
            let names: Vec<String> = names.into_iter().map(|name| format!("x{name}")).collect();
            let path = names.join("/");
            for depth in 1..=names.len() {
                let pattern = names[..depth].join("/");
                prop_assert!(Glob::new(&pattern).unwrap().matches(&path), "{} {}", pattern, path);
            }
        }

        #[test]
        fn no_text_breaks_it(pattern in ".{0,40}", path in ".{0,40}") {
            if let Ok(glob) = Glob::new(&pattern) {
                glob.matches(&path);
            }
        }
    }
}
