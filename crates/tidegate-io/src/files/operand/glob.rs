//! Patterns, expanded as a POSIX shell expands them (XCU §2.14 of POSIX.1-2024).

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use rustix::fs::FileType;
use tidegate_gate::PathFault;

use super::{View, find};
use crate::files::{place::names_in, resolve::kind_of};

/// The most names that are held against one pattern, in all its folders together.
const LOOKED_AT_MAX: usize = 20_000;

/// The most paths that one pattern may stand for.
const MATCHES_MAX: usize = 1_000;

/// The most parts of a pattern that hold wildcards. Each multiplies the work.
const WILD_PARTS_MAX: usize = 8;

/// The paths that a pattern stands for; the pattern without its backslashes where there is none.
pub(super) fn expand(pattern: &str, view: &View) -> Result<Vec<PathBuf>, PathFault> {
    let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
    let wild_parts = parts.iter().filter(|part| is_wild(part)).count();
    if wild_parts > WILD_PARTS_MAX {
        return Err(too_much());
    }
    let mut paths = vec![PathBuf::from("/")];
    let mut looked_at = 0;
    for (index, part) in parts.iter().enumerate() {
        if !is_wild(part) {
            let name = unescape(part);
            for path in &mut paths {
                path.push(&name);
            }
            continue;
        }
        let needs_folder = index + 1 < parts.len() || pattern.ends_with('/');
        let mut next = Vec::new();
        for path in &paths {
            for name in names(view, path, &mut looked_at)? {
                if matches(part, &name.to_string_lossy())
                    && (!needs_folder || is_folder(view, &path.join(&name)))
                {
                    next.push(path.join(name));
                }
                if next.len() > MATCHES_MAX {
                    return Err(too_much());
                }
            }
        }
        paths = next;
    }
    // A literal part behind a wild one need not be there.
    if wild_parts > 0 {
        paths.retain(|path| !find(view, path).is_ok_and(|found| found.handle.is_none()));
    }
    if paths.is_empty() {
        paths.push(PathBuf::from(unescape(pattern)));
    }
    paths.sort_unstable();
    Ok(paths)
}

fn too_much() -> PathFault {
    PathFault::Unreadable("its pattern stands for more files than can be checked".to_owned())
}

/// The names in a folder; none where it is no folder. What may not be read cannot be expanded by a shell either.
fn names(view: &View, folder: &Path, looked_at: &mut usize) -> Result<Vec<OsString>, PathFault> {
    let Ok(found) = find(view, folder) else {
        return Ok(Vec::new());
    };
    let Some(handle) = found.handle else {
        return Ok(Vec::new());
    };
    let Ok((names, left_out)) = names_in(&handle) else {
        return Ok(Vec::new());
    };
    *looked_at += names.len();
    if left_out > 0 || *looked_at > LOOKED_AT_MAX {
        return Err(too_much());
    }
    Ok(names)
}

fn is_folder(view: &View, path: &Path) -> bool {
    find(view, path).is_ok_and(|found| {
        found
            .handle
            .is_some_and(|handle| kind_of(&handle).is_ok_and(|kind| kind == FileType::Directory))
    })
}

/// Whether a part holds a wildcard that is not escaped.
fn is_wild(part: &str) -> bool {
    let mut letters = part.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                letters.next();
            }
            '*' | '?' | '[' => return true,
            _ => {}
        }
    }
    false
}

fn unescape(part: &str) -> String {
    let mut plain = String::new();
    let mut letters = part.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => plain.extend(letters.next()),
            letter => plain.push(letter),
        }
    }
    plain
}

/// One part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Letter(char),
    One,
    Any,
    /// Ranges, and whether they are what must not stand there.
    Set(Vec<(char, char)>, bool),
}

impl Piece {
    fn takes(&self, letter: char) -> bool {
        match self {
            Self::Letter(expected) => *expected == letter,
            Self::One | Self::Any => true,
            Self::Set(ranges, is_negated) => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&letter)) != *is_negated
            }
        }
    }
}

/// Whether a name is what a part of a pattern stands for. A dot at the beginning must be written.
pub(super) fn matches(part: &str, name: &str) -> bool {
    let pieces = pieces(part);
    if name.starts_with('.') && pieces.first() != Some(&Piece::Letter('.')) {
        return false;
    }
    let letters: Vec<char> = name.chars().collect();
    // Where the last star stood, and how much of the name it takes so far.
    let mut star: Option<(usize, usize)> = None;
    let (mut piece, mut letter) = (0, 0);
    while letter < letters.len() {
        match pieces.get(piece) {
            Some(Piece::Any) => {
                star = Some((piece, letter));
                piece += 1;
                continue;
            }
            Some(here) if letters.get(letter).is_some_and(|found| here.takes(*found)) => {
                piece += 1;
                letter += 1;
                continue;
            }
            Some(_) | None => {}
        }
        match &mut star {
            Some((at, taken)) => {
                *taken += 1;
                piece = *at + 1;
                letter = *taken;
            }
            None => return false,
        }
    }
    pieces.iter().skip(piece).all(|rest| *rest == Piece::Any)
}

fn pieces(part: &str) -> Vec<Piece> {
    let letters: Vec<char> = part.chars().collect();
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(letter) = letters.get(at) {
        at += 1;
        match letter {
            '\\' => {
                pieces.extend(letters.get(at).copied().map(Piece::Letter));
                at += 1;
            }
            '*' => pieces.push(Piece::Any),
            '?' => pieces.push(Piece::One),
            '[' => match set(letters.get(at..).unwrap_or_default()) {
                Some((piece, length)) => {
                    pieces.push(piece);
                    at += length;
                }
                None => pieces.push(Piece::Letter('[')),
            },
            letter => pieces.push(Piece::Letter(*letter)),
        }
    }
    pieces
}

/// A set behind its bracket, and how many letters it takes; `None` where it is not closed. Named classes and
/// what else depends on the language stand for everything: more is then judged, never less.
fn set(letters: &[char]) -> Option<(Piece, usize)> {
    let is_negated = matches!(letters.first(), Some('!' | '^'));
    let start = usize::from(is_negated);
    let mut ranges = Vec::new();
    let mut at = start;
    loop {
        let letter = *letters.get(at)?;
        match letter {
            ']' if at > start => break,
            '[' if matches!(letters.get(at + 1), Some(':' | '.' | '=')) => {
                let mark = *letters.get(at + 1)?;
                let rest = letters.get(at + 2..)?;
                let length = rest.windows(2).position(|pair| pair == [mark, ']'])?;
                return skip_to_end(letters, at + length + 4).map(|end| (Piece::One, end));
            }
            _ => {}
        }
        let (low, next) = literal(letters, at)?;
        match (letters.get(next), letters.get(next + 1)) {
            (Some('-'), Some(end)) if *end != ']' => {
                let (high, after) = literal(letters, next + 1)?;
                ranges.push((low, high));
                at = after;
            }
            (_, _) => {
                ranges.push((low, low));
                at = next;
            }
        }
    }
    Some((Piece::Set(ranges, is_negated), at + 1))
}

fn literal(letters: &[char], at: usize) -> Option<(char, usize)> {
    match letters.get(at)? {
        '\\' => Some((*letters.get(at + 1)?, at + 2)),
        letter => Some((*letter, at + 1)),
    }
}

fn skip_to_end(letters: &[char], from: usize) -> Option<usize> {
    let rest = letters.get(from..)?;
    rest.iter()
        .position(|letter| *letter == ']')
        .map(|found| from + found + 1)
}
