//! Fences, code within a line, quotation marks, and actions between asterisks.

use super::{Cut, Cuts};

/// Cuts fences of code, to their end or to the end of the text.
pub(super) fn fences(text: &str, cuts: &mut Cuts) {
    for fence in ["```", "~~~"] {
        let mut from = 0;
        while let Some(start) = find_from(text, from, fence) {
            let body = start + fence.len();
            let end = find_from(text, body, fence).map_or(text.len(), |end| end + fence.len());
            cuts.cut(start, end, Cut::Code);
            from = end;
        }
    }
}

fn find_from(text: &str, from: usize, what: &str) -> Option<usize> {
    text.get(from..)?.find(what).map(|at| from + at)
}

/// What opens a span, and what closes it.
const PAIRS: [(char, &str, Cut); 14] = [
    ('"', "\"", Cut::Quotation),
    ('“', "”\"“", Cut::Quotation),
    ('„', "“”\"", Cut::Quotation),
    ('”', "”", Cut::Quotation),
    ('‟', "”\"", Cut::Quotation),
    ('«', "»", Cut::Quotation),
    ('»', "«", Cut::Quotation),
    ('‹', "›", Cut::Quotation),
    ('›', "‹", Cut::Quotation),
    ('「', "」", Cut::Quotation),
    ('『', "』", Cut::Quotation),
    ('‘', "'", Cut::Quotation),
    ('‚', "'‘", Cut::Quotation),
    ('`', "`", Cut::Code),
];

/// Short forms that begin with an apostrophe.
const ELISIONS: &[&str] = &["cause", "til", "till", "em", "n", "tis", "twas", "bout", "round"];

/// Cuts spans within quotation marks and code marks. What is opened and not closed goes on to the end of its
/// paragraph.
pub(super) fn spans(text: &str, cuts: &mut Cuts) {
    let mut letters = text.char_indices();
    let mut before = ' ';
    while let Some((at, letter)) = letters.next() {
        if cuts.at(at).is_some() {
            before = ' ';
            continue;
        }
        let rest = text.get(at + letter.len_utf8()..).unwrap_or_default();
        let end = match letter {
            '\'' => apostrophe(before, rest),
            '*' | '_' => emphasis(letter, before, rest),
            '`' if rest.starts_with('`') => Some((double(rest), Cut::Code)),
            // A code mark in the middle of a word is a mistyped apostrophe.
            '`' if before.is_alphanumeric() && rest.starts_with(char::is_alphanumeric) => None,
            // Behind a number it is the sign for inches.
            '"' if before.is_ascii_digit() && !paragraph(rest).contains('"') => None,
            _ => PAIRS
                .iter()
                .find(|(opens, ..)| *opens == letter)
                .map(|(_, closes, cut)| (close(rest, closes), *cut)),
        };
        if let Some((length, why)) = end {
            let to = at + letter.len_utf8() + length;
            cuts.cut(at, to, why);
            while letters.clone().next().is_some_and(|(next, _)| next < to) {
                letters.next();
            }
            before = ' ';
        } else {
            before = letter;
        }
    }
}

/// The text to the end of the paragraph.
fn paragraph(rest: &str) -> &str {
    rest.find("\n\n").and_then(|end| rest.get(..end)).unwrap_or(rest)
}

/// How long the span is, with what closes it.
fn close(rest: &str, closes: &str) -> usize {
    let paragraph = paragraph(rest);
    paragraph
        .char_indices()
        .find(|(_, letter)| closes.contains(*letter))
        .map_or(paragraph.len(), |(at, letter)| at + letter.len_utf8())
}

/// An apostrophe that opens a quotation: it stands before a word and not within or behind one.
fn apostrophe(before: char, rest: &str) -> Option<(usize, Cut)> {
    let opens = !before.is_alphanumeric() && before != '\'' && rest.starts_with(char::is_alphabetic);
    let word: String = rest
        .chars()
        .take_while(|letter| letter.is_alphanumeric())
        .collect();
    if !opens || ELISIONS.contains(&word.as_str()) {
        return None;
    }
    let paragraph = paragraph(rest);
    let closing = paragraph.char_indices().find(|(at, letter)| {
        *letter == '\''
            && !paragraph
                .get(at + 1..)
                .is_some_and(|after| after.starts_with(char::is_alphanumeric))
    });
    Some((
        closing.map_or(paragraph.len(), |(at, letter)| at + letter.len_utf8()),
        Cut::Quotation,
    ))
}

/// A span that two code marks open: to two of them, or to two apostrophes.
fn double(rest: &str) -> usize {
    let inside = rest.trim_start_matches('`');
    let opened = rest.len() - inside.len();
    let ends = ["``", "''"].iter().filter_map(|end| inside.find(end)).min();
    ends.map_or(rest.len(), |end| opened + end + 2)
}

/// Something between single asterisks or bars that is more than a word: what an actor does, or what was set apart.
fn emphasis(mark: char, before: char, rest: &str) -> Option<(usize, Cut)> {
    let line = rest.split('\n').next().unwrap_or_default();
    let opens = !before.is_alphanumeric() && before != mark && !line.starts_with(mark);
    let end = line.find(mark).filter(|_| opens)?;
    let inside = line.get(..end)?;
    let is_bold = line.get(end + 1..).is_some_and(|after| after.starts_with(mark));
    (inside.trim().contains(' ') && !is_bold).then_some((end + 1, Cut::Quotation))
}
