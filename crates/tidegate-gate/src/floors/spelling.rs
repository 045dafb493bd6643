//! Names as other systems, editors and eyes would read them.

use std::{
    borrow::Cow,
    collections::HashMap,
    path::{Component, Path},
};

use unicode_normalization::UnicodeNormalization;

/// Endings that editors and people give to copies of a file.
const COPY_ENDINGS: [&str; 9] = [
    ".bak", ".backup", ".old", ".orig", ".save", ".swp", ".swo", ".copy", ".tmp",
];

/// The longest name that is judged, in bytes: no file system takes a longer one (NTFS and APFS take 255 units, of at
/// most four bytes each, Linux fewer). What is longer opens nothing, so it names nothing.
const NAME_BYTES_MAX: usize = 1_020;

/// The spellings under which one component of a path is judged, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spellings<'a> {
    /// With blanks, a trailing dot and a stream suffix cut.
    first: Cow<'a, str>,
    /// Other ways to read it as it stands.
    others: Vec<String>,
    /// Of what it would be a copy, where it could be one: `.env~`, `id_rsa.bak`, `#.netrc#`.
    original: Vec<String>,
}

impl<'a> Spellings<'a> {
    fn of(component: Cow<'a, str>) -> Self {
        if component.len() > NAME_BYTES_MAX {
            return Self::one(Cow::Borrowed(""));
        }
        // Nearly every name reads one way, and is no copy of anything.
        if is_settled(&component) {
            return Self::one(component);
        }
        if component.is_ascii() {
            let lower = component.to_ascii_lowercase();
            if is_settled(&lower) {
                return Self::one(Cow::Owned(lower));
            }
        }
        let mut plain = vec![cut(&component.to_lowercase())];
        let compatible: String = component.nfkc().filter(|letter| !is_invisible(*letter)).collect();
        push(&mut plain, cut(&compatible.to_lowercase()));
        // Behind a colon stands a stream, or the file of a revision: `HEAD:.env`.
        for part in compatible.to_lowercase().split(':').skip(1) {
            push(&mut plain, cut(part));
        }
        let mut original = Vec::new();
        for spelling in &plain {
            let uncopied = uncopy(spelling);
            if uncopied == spelling {
                continue;
            }
            // An editor's swap file has a dot in front of the name it stands for.
            if let Some(hidden) = uncopied.strip_prefix('.') {
                push(&mut original, hidden.to_owned());
            }
            push(&mut original, uncopied.to_owned());
        }
        let mut plain = plain.into_iter();
        Self {
            first: Cow::Owned(plain.next().unwrap_or_default()),
            others: plain.collect(),
            original,
        }
    }

    fn one(first: Cow<'a, str>) -> Self {
        Self {
            first,
            others: Vec::new(),
            original: Vec::new(),
        }
    }

    /// Every way to read it as it stands.
    pub(super) fn plain(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.first).chain(self.others.iter().map(String::as_str))
    }

    /// Every spelling.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.plain().chain(self.original.iter().map(String::as_str))
    }
}

/// Names of a table that follow each other in a path, found by the first of them.
#[derive(Debug)]
pub(super) struct Chains(HashMap<&'static str, Vec<&'static [&'static str]>>);

impl Chains {
    pub(super) fn of(chains: &[&'static [&'static str]]) -> Self {
        let mut found: HashMap<&'static str, Vec<&'static [&'static str]>> = HashMap::new();
        for chain in chains {
            if let [first, rest @ ..] = chain {
                found.entry(first).or_default().push(rest);
            }
        }
        Self(found)
    }

    /// Whether a chain stands in a path. `spellings` says under which spellings a component counts.
    pub(super) fn stand_in<'s, 'a: 's, I>(
        &self,
        components: &'s [Spellings<'a>],
        spellings: impl Fn(&'s Spellings<'a>) -> I,
    ) -> bool
    where
        I: Iterator<Item = &'s str>,
    {
        let follow = |rest: &[&str], behind: &'s [Spellings<'a>]| {
            rest.len() <= behind.len()
                && rest
                    .iter()
                    .zip(behind)
                    .all(|(name, component)| spellings(component).any(|spelling| spelling == *name))
        };
        components.iter().enumerate().any(|(at, component)| {
            let behind = components.get(at + 1..).unwrap_or_default();
            spellings(component)
                .filter_map(|spelling| self.0.get(spelling))
                .flatten()
                .any(|rest| follow(rest, behind))
        })
    }
}

/// The components of a path, each under all its spellings. A backslash separates too: it does elsewhere.
pub(super) fn components(path: &Path) -> Vec<Spellings<'_>> {
    let mut found: Vec<Cow<'_, str>> = Vec::new();
    for component in path.components() {
        let Component::Normal(name) = component else {
            if component == Component::ParentDir {
                found.pop();
            }
            continue;
        };
        match name.to_str() {
            Some(name) => name
                .split('\\')
                .for_each(|part| keep(&mut found, Cow::Borrowed(part))),
            None => name
                .to_string_lossy()
                .split('\\')
                .for_each(|part| keep(&mut found, Cow::Owned(part.to_owned()))),
        }
    }
    found.into_iter().map(Spellings::of).collect()
}

fn keep<'a>(found: &mut Vec<Cow<'a, str>>, part: Cow<'a, str>) {
    match &*part {
        "" | "." => {}
        ".." => {
            found.pop();
        }
        _ => found.push(part),
    }
}

/// Whether a name reads one way only: small letters of ASCII without the marks of copies, streams and blanks.
fn is_settled(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase() && byte != b':')
        && !name.ends_with('.')
        && uncopy(name) == name
}

fn push(spellings: &mut Vec<String>, spelling: String) {
    if !spelling.is_empty() && !spellings.contains(&spelling) {
        spellings.push(spelling);
    }
}

/// Cuts what some file systems do not tell apart: blanks around, dots behind, a stream after a colon.
fn cut(name: &str) -> String {
    let name = match name.char_indices().find(|(at, letter)| *at > 0 && *letter == ':') {
        Some((at, _)) => name.get(..at).unwrap_or(name),
        None => name,
    };
    name.trim_start()
        .trim_end_matches(|letter: char| letter == '.' || letter.is_whitespace())
        .to_owned()
}

/// Cuts the marks of a copy, however many there are.
fn uncopy(name: &str) -> &str {
    let mut name = name;
    loop {
        let mut shorter = name
            .trim_end_matches(['~', '#', '.', ' '])
            .trim_start_matches('#');
        if shorter.contains('.') {
            for ending in COPY_ENDINGS {
                shorter = shorter.strip_suffix(ending).unwrap_or(shorter);
            }
        }
        if shorter == name {
            return name;
        }
        name = shorter;
    }
}

fn is_invisible(letter: char) -> bool {
    crate::guards::untrusted::is_invisible(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(path: &str) -> Vec<Vec<String>> {
        components(Path::new(path))
            .iter()
            .map(|spellings| spellings.all().map(str::to_owned).collect())
            .collect()
    }

    #[test]
    fn a_name_is_read_in_every_way_it_could_be_meant() {
        for (name, meant) in [
            (".ENV", ".env"),
            (" .env ", ".env"),
            (".env.", ".env"),
            (".env:x", ".env"),
            (".env::$DATA", ".env"),
            ("HEAD:.env", ".env"),
            (".env~", ".env"),
            (".env.bak.old~", ".env"),
            ("#.env#", ".env"),
            (".id_rsa.swp", "id_rsa"),
            ("ｉｄ_ｒｓａ", "id_rsa"),
            (".e\u{200b}nv", ".env"),
            ("server.KEY ", "server.key"),
        ] {
            let spellings = judged(name);
            assert!(
                spellings[0].iter().any(|spelling| spelling == meant),
                "{name:?}: {spellings:?}"
            );
        }
    }

    #[test]
    fn components_are_split_as_any_system_would() {
        assert_eq!(judged("src\\..\\.env").len(), 1);
        assert_eq!(judged("/a/b\\c/../d").len(), 3);
        assert_eq!(judged("./a//b/.").len(), 2);
    }
}
