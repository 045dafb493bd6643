//! Names as other systems, editors and eyes would read them.

use std::path::{Component, Path};

use unicode_normalization::UnicodeNormalization;

/// Endings that editors and people give to copies of a file.
const COPY_ENDINGS: [&str; 9] = [
    ".bak", ".backup", ".old", ".orig", ".save", ".swp", ".swo", ".copy", ".tmp",
];

/// The spellings under which one component of a path is judged, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spellings {
    /// With blanks, a trailing dot and a stream suffix cut.
    pub(super) plain: Vec<String>,
    /// Of what it would be a copy: `.env~`, `id_rsa.bak`, `#.netrc#`.
    pub(super) original: Vec<String>,
}

impl Spellings {
    fn of(component: &str) -> Self {
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
            // An editor's swap file has a dot in front of the name it stands for.
            if let Some(hidden) = uncopied.strip_prefix('.')
                && uncopied != *spelling
            {
                push(&mut original, hidden.to_owned());
            }
            push(&mut original, uncopied);
        }
        Self { plain, original }
    }

    /// Whether it may be read as that name.
    pub(super) fn is(&self, name: &str) -> bool {
        self.all().any(|spelling| spelling == name)
    }

    /// Every spelling.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.plain.iter().chain(&self.original).map(String::as_str)
    }
}

/// The components of a path, each under all its spellings. A backslash separates too: it does elsewhere.
pub(super) fn components(path: &Path) -> Vec<Spellings> {
    let mut found: Vec<String> = Vec::new();
    for component in path.components() {
        let Component::Normal(name) = component else {
            if component == Component::ParentDir {
                found.pop();
            }
            continue;
        };
        for part in name.to_string_lossy().split('\\') {
            match part {
                "" | "." => {}
                ".." => {
                    found.pop();
                }
                part => found.push(part.to_owned()),
            }
        }
    }
    found.iter().map(|part| Spellings::of(part)).collect()
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
fn uncopy(name: &str) -> String {
    let mut name = name;
    loop {
        let mut shorter = name
            .trim_end_matches(['~', '#', '.', ' '])
            .trim_start_matches('#');
        for ending in COPY_ENDINGS {
            shorter = shorter.strip_suffix(ending).unwrap_or(shorter);
        }
        if shorter == name {
            return name.to_owned();
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
