//! The grammars of `find` and `test`.

use super::{Accepted, Kind, Spec, Unlisted, arguments::unlisted, kinds::touch};
use crate::shell::{Access, shape::Shape};

/// Tests of one file. `-v` and `-R` look at variables and can run what stands in an index.
const FILE_TESTS: &str = "bcdefghkprstuwxGLNOS";
/// Tests of one text or descriptor.
const TEXT_TESTS: &str = "nzt";
const COMPARISONS: [&str; 14] = [
    "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef",
];

/// `find PATH… TEST…`.
pub(super) fn find(spec: &Spec, words: &[Shape]) -> Result<Accepted, Unlisted> {
    let mut accepted = Accepted::default();
    let is_path = |word: &&Shape| !word.text.starts_with(['-', '(', '!', ',']);
    let skipped = words
        .iter()
        .take_while(|word| matches!(word.text.as_str(), "-H" | "-P"))
        .count();
    let words = words.get(skipped..).unwrap_or_default();
    let paths = words.iter().take_while(is_path).count();
    for path in words.iter().take(paths) {
        touch(path, Access::List, true, &mut accepted.touched)?;
    }
    let mut rest = words.iter().skip(paths);
    while let Some(word) = rest.next() {
        let text = word.known().ok_or(Unlisted::Dynamic)?;
        let kind = spec
            .tests
            .get(text)
            .ok_or_else(|| Unlisted::Option(text.to_owned()))?;
        if let Some(kind) = kind {
            let value = rest.next().ok_or_else(|| unlisted(word))?;
            // A pattern without quotes could become several words, and the second a test.
            if *kind == Kind::Pattern && value.known().is_none() {
                return Err(Unlisted::Dynamic);
            }
            kind.check(value, &mut accepted.touched)?;
        }
    }
    if paths == 0 {
        touch(&Shape::literal("."), Access::List, true, &mut accepted.touched)?;
    }
    Ok(accepted)
}

/// `test …` and `[ … ]`.
pub(super) fn test(name: &str, words: &[Shape]) -> Result<Accepted, Unlisted> {
    let mut accepted = Accepted::default();
    let mut words = words;
    if name == "[" {
        let (last, rest) = words
            .split_last()
            .ok_or_else(|| Unlisted::Operand("missing".to_owned()))?;
        if last.text != "]" {
            return Err(unlisted(last));
        }
        words = rest;
    }
    let is_comparison = |at: usize| {
        words
            .get(at)
            .is_some_and(|word| COMPARISONS.contains(&word.text.as_str()))
    };
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let text = word.text.as_str();
        if word.has_wildcard() || (word.is_unknown() && word.may_split) {
            return Err(Unlisted::Dynamic);
        }
        if is_comparison(at + 1) && words.get(at + 2).is_some() {
            let is_of_files = words
                .get(at + 1)
                .is_some_and(|word| matches!(word.text.as_str(), "-nt" | "-ot" | "-ef"));
            if is_of_files {
                touch(word, Access::List, false, &mut accepted.touched)?;
                if let Some(other) = words.get(at + 2) {
                    touch(other, Access::List, false, &mut accepted.touched)?;
                }
            }
            at += 3;
            continue;
        }
        if matches!(text, "!" | "(" | ")" | "-a" | "-o") {
            at += 1;
            continue;
        }
        let letter = text.strip_prefix('-').filter(|letter| letter.len() == 1);
        match (letter, words.get(at + 1)) {
            (Some(letter), Some(file)) if FILE_TESTS.contains(letter) => {
                touch(file, Access::List, false, &mut accepted.touched)?;
                at += 2;
            }
            (Some(letter), Some(_)) if TEXT_TESTS.contains(letter) => at += 2,
            (Some(_), Some(_)) => return Err(unlisted(word)),
            (Some(_) | None, _) => at += 1,
        }
    }
    Ok(accepted)
}
