//! Files that a pattern finds (POSIX.1-2024, shell pattern matching).

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::words::Letter;

/// The most names that one pattern finds.
const FOUND_MAX: usize = 20_000;

/// A piece of a pattern within one name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    One(char),
    Any,
    Many,
    Of(String),
}

/// The names that a word finds, as they would be written, sorted. None where it holds no pattern.
pub(super) fn find(folder: &Path, letters: &[Letter]) -> Vec<String> {
    if !letters.iter().any(|letter| matches!(letter, Letter::Wildcard(_))) {
        return Vec::new();
    }
    let mut found = vec![String::new()];
    let names = names(letters);
    let last = names.len().saturating_sub(1);
    for (number, name) in names.iter().enumerate() {
        let end = if number == last { "" } else { "/" };
        found = found
            .iter()
            .flat_map(|so_far| step(folder, so_far, name, end))
            .take(FOUND_MAX)
            .collect();
    }
    found.sort_unstable();
    found
}

/// The pattern, name by name.
fn names(letters: &[Letter]) -> Vec<Vec<Piece>> {
    let mut names = vec![Vec::new()];
    for letter in letters {
        match letter {
            Letter::Text(text) => {
                for one in text.chars() {
                    if one == '/' {
                        names.push(Vec::new());
                    } else if let Some(name) = names.last_mut() {
                        name.push(Piece::One(one));
                    }
                }
            }
            Letter::Wildcard(text) => {
                let Some(name) = names.last_mut() else { continue };
                match text.as_str() {
                    "*" => name.push(Piece::Many),
                    "?" => name.push(Piece::Any),
                    bracket if bracket.len() > 2 && bracket.starts_with('[') && bracket.ends_with(']') => {
                        name.push(Piece::Of(bracket[1..bracket.len() - 1].to_owned()));
                    }
                    other => name.extend(other.chars().map(Piece::One)),
                }
            }
        }
    }
    names
}

/// What one name of the pattern finds behind what was found so far.
fn step(folder: &Path, so_far: &str, name: &[Piece], end: &str) -> Vec<String> {
    let literal: Option<String> = name
        .iter()
        .map(|piece| match piece {
            Piece::One(one) => Some(*one),
            Piece::Any | Piece::Many | Piece::Of(_) => None,
        })
        .collect();
    let place = |text: &str| -> PathBuf { folder.join(if text.is_empty() { "." } else { text }) };
    if let Some(literal) = literal {
        let whole = format!("{so_far}{literal}");
        let is_there = literal.is_empty() || fs::symlink_metadata(place(&whole)).is_ok();
        return if is_there {
            vec![format!("{whole}{end}")]
        } else {
            Vec::new()
        };
    }
    let entries = fs::read_dir(place(so_far)).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        // A leading dot is only ever found by a dot.
        .filter(|found| !found.starts_with('.') || name.first() == Some(&Piece::One('.')))
        .filter(|found| matches(name, &found.chars().collect::<Vec<_>>()))
        .map(|found| format!("{so_far}{found}"))
        .filter(|whole| end.is_empty() || place(whole).is_dir())
        .map(|whole| format!("{whole}{end}"))
        .take(FOUND_MAX)
        .collect()
}

/// Whether a name fits, in time that grows with the product of both lengths.
fn matches(pattern: &[Piece], name: &[char]) -> bool {
    let mut fits = vec![false; name.len() + 1];
    if let Some(first) = fits.first_mut() {
        *first = true;
    }
    for piece in pattern {
        let mut next = vec![false; name.len() + 1];
        let mut is_open = false;
        for (at, is_fit) in fits.iter().enumerate() {
            match piece {
                Piece::Many => {
                    is_open |= is_fit;
                    if let Some(slot) = next.get_mut(at) {
                        *slot = is_open;
                    }
                }
                Piece::One(_) | Piece::Any | Piece::Of(_) => {
                    let is_next = *is_fit && name.get(at).is_some_and(|letter| fits_one(piece, *letter));
                    if let Some(slot) = next.get_mut(at + 1) {
                        *slot = is_next;
                    }
                }
            }
        }
        fits = next;
    }
    fits.last().copied().unwrap_or(false)
}

fn fits_one(piece: &Piece, letter: char) -> bool {
    match piece {
        Piece::One(one) => *one == letter,
        Piece::Any | Piece::Many => true,
        Piece::Of(set) => is_in(set, letter),
    }
}

/// A bracket expression without its brackets: letters, ranges, classes, turned around by `!` or `^`.
fn is_in(set: &str, letter: char) -> bool {
    let (is_turned, set) = match set.strip_prefix(['!', '^']) {
        Some(rest) => (true, rest),
        None => (false, set),
    };
    let mut is_found = false;
    let mut rest = set;
    while let Some(first) = rest.chars().next() {
        if let Some((class, behind)) = rest.strip_prefix("[:").and_then(|rest| rest.split_once(":]")) {
            is_found |= is_of(class, letter);
            rest = behind;
            continue;
        }
        rest = &rest[first.len_utf8()..];
        let mut ahead = rest.chars();
        match (ahead.next(), ahead.next()) {
            (Some('-'), Some(last)) => {
                is_found |= (first..=last).contains(&letter);
                rest = ahead.as_str();
            }
            _ => is_found |= first == letter,
        }
    }
    is_found != is_turned
}

fn is_of(class: &str, letter: char) -> bool {
    match class {
        "alnum" => letter.is_alphanumeric(),
        "alpha" => letter.is_alphabetic(),
        "blank" => matches!(letter, ' ' | '\t'),
        "digit" => letter.is_ascii_digit(),
        "lower" => letter.is_lowercase(),
        "punct" => letter.is_ascii_punctuation(),
        "space" => letter.is_whitespace(),
        "upper" => letter.is_uppercase(),
        "xdigit" => letter.is_ascii_hexdigit(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Vec<Letter> {
        let mut letters = Vec::new();
        let mut rest = text;
        while let Some(one) = rest.chars().next() {
            let length = if one == '[' {
                rest.find(']').map_or(1, |end| end + 1)
            } else {
                one.len_utf8()
            };
            let (now, behind) = rest.split_at(length);
            letters.push(if "*?[".contains(one) {
                Letter::Wildcard(now.to_owned())
            } else {
                Letter::Text(now.to_owned())
            });
            rest = behind;
        }
        letters
    }

    #[test]
    fn finds_what_a_shell_finds() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in [
            "a.rs",
            "b.rs",
            "B.txt",
            ".hidden",
            "sub/c.rs",
            "sub/deep/d.rs",
            "-dash",
            "other/c.rs",
        ] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            drop(fs::File::create_new(path).expect("a file"));
        }
        let root = folder.path().display().to_string();
        for (pattern, found) in [
            ("*.rs", vec!["a.rs", "b.rs"]),
            ("*", vec!["-dash", "B.txt", "a.rs", "b.rs", "other", "sub"]),
            (".*", vec![".hidden"]),
            ("?.rs", vec!["a.rs", "b.rs"]),
            ("[a-b].rs", vec!["a.rs", "b.rs"]),
            ("[!a].rs", vec!["b.rs"]),
            ("[[:upper:]].*", vec![]),
            ("*/c.rs", vec!["other/c.rs", "sub/c.rs"]),
            ("*/*/*", vec!["sub/deep/d.rs"]),
            ("s*/", vec!["sub/"]),
            ("*.none", vec![]),
            ("plain", vec![]),
        ] {
            assert_eq!(find(folder.path(), &word(pattern)), found, "{pattern}");
        }
        let whole = vec![
            Letter::Text(format!("{root}/a.")),
            Letter::Wildcard("*".to_owned()),
        ];
        assert_eq!(find(Path::new("/"), &whole), [format!("{root}/a.rs")]);
        assert!(
            is_in("[:upper:]x", 'A') && is_in("[:upper:]x", 'x') && !is_in("^ab-d", 'c') && is_in("-a", '-')
        );
    }

    #[test]
    fn many_stars_take_bounded_time() {
        let pattern: Vec<_> = std::iter::repeat_n([Piece::Many, Piece::One('a')], 100)
            .flatten()
            .collect();
        let name: Vec<_> = std::iter::repeat_n('a', 99).chain(['b']).collect();
        assert!(!matches(&pattern, &name));
    }
}
