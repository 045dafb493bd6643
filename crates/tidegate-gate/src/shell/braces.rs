//! Brace expansion, which makes several words of one before anything else is expanded.

use super::syntax::{Piece, Word};

/// The most words one word may become; a longer list stays as it is written and counts as unknown.
const MAX_EXPANDED: usize = 64;
/// A word of more pieces is not expanded.
const MAX_PIECES: usize = 100;
/// How often one word is expanded again, for lists inside lists.
const MAX_ROUNDS: usize = 64;

/// Expands the braces of a word and adds what comes out.
pub(super) fn expand(word: Word, into: &mut Vec<Word>) {
    if !word.pieces.iter().any(|piece| matches!(piece, Piece::Mark('{'))) {
        into.push(settled(word));
        return;
    }
    let rounds = if word.pieces.len() > MAX_PIECES {
        0
    } else {
        MAX_ROUNDS
    };
    let mut waiting = vec![word];
    let mut done = Vec::new();
    for _ in 0..rounds {
        let Some(word) = waiting.pop() else { break };
        match split(&word) {
            Some(words) => waiting.extend(words.into_iter().rev()),
            None => done.push(settled(word)),
        }
        if waiting.len() + done.len() > MAX_EXPANDED {
            break;
        }
    }
    for word in waiting.into_iter().rev() {
        let mut unknown = settled(word);
        unknown.pieces.push(Piece::Variable {
            name: "{".to_owned(),
            is_quoted: false,
        });
        done.push(unknown);
    }
    into.extend(done);
}

/// Marks that expand to nothing are letters.
fn settled(word: Word) -> Word {
    let mut plain = Word::default();
    for piece in word.pieces {
        match piece {
            Piece::Mark(letter) => plain.push_text(letter.encode_utf8(&mut [0; 4])),
            Piece::Text(text) => plain.push_text(&text),
            other @ (Piece::Quoted(_)
            | Piece::Glob(_)
            | Piece::Tilde(_)
            | Piece::Variable { .. }
            | Piece::Parameter { .. }
            | Piece::Output { .. }
            | Piece::Stream { .. }
            | Piece::Arithmetic(_)) => plain.pieces.push(other),
        }
    }
    plain
}

/// The words that the first brace expression of a word makes of it.
fn split(word: &Word) -> Option<Vec<Word>> {
    let opens = word
        .pieces
        .iter()
        .enumerate()
        .filter(|(_, piece)| matches!(piece, Piece::Mark('{')))
        .map(|(at, _)| at);
    opens.into_iter().find_map(|open| split_at(word, open))
}

fn split_at(word: &Word, open: usize) -> Option<Vec<Word>> {
    let mut nested = 0_usize;
    let mut commas = Vec::new();
    let mut close = None;
    for (at, piece) in word.pieces.iter().enumerate().skip(open + 1) {
        match piece {
            Piece::Mark('{') => nested += 1,
            Piece::Mark('}') if nested == 0 => {
                close = Some(at);
                break;
            }
            Piece::Mark('}') => nested -= 1,
            Piece::Mark(',') if nested == 0 => commas.push(at),
            Piece::Mark(_)
            | Piece::Text(_)
            | Piece::Quoted(_)
            | Piece::Glob(_)
            | Piece::Tilde(_)
            | Piece::Variable { .. }
            | Piece::Parameter { .. }
            | Piece::Output { .. }
            | Piece::Stream { .. }
            | Piece::Arithmetic(_) => {}
        }
    }
    let close = close?;
    let before = word.pieces.get(..open)?;
    let after = word.pieces.get(close + 1..)?;
    let joined = |middle: &[Piece]| Word {
        pieces: before.iter().chain(middle).chain(after).cloned().collect(),
    };
    if commas.is_empty() {
        let [Piece::Text(range)] = word.pieces.get(open + 1..close)? else {
            return None;
        };
        return Some(
            sequence(range)?
                .into_iter()
                .map(|text| joined(&[Piece::Text(text)]))
                .collect(),
        );
    }
    let mut from = open + 1;
    let mut words = Vec::new();
    for end in commas.into_iter().chain([close]) {
        words.push(joined(word.pieces.get(from..end)?));
        from = end + 1;
    }
    Some(words)
}

/// `1..5`, `a..e`, `0..10..2`.
fn sequence(range: &str) -> Option<Vec<String>> {
    let mut parts = range.split("..");
    let (from, to, step) = (parts.next()?, parts.next()?, parts.next());
    if parts.next().is_some() {
        return None;
    }
    let step = step
        .map_or(Some(1), |step| step.parse::<i64>().ok())?
        .unsigned_abs()
        .max(1);
    let (first, last, is_letters) = match (from.parse::<i64>(), to.parse::<i64>()) {
        (Ok(first), Ok(last)) => (first, last, false),
        _ => match (from.as_bytes(), to.as_bytes()) {
            ([first], [last]) if first.is_ascii_alphabetic() && last.is_ascii_alphabetic() => {
                (i64::from(*first), i64::from(*last), true)
            }
            _ => return None,
        },
    };
    let count = first.abs_diff(last) / step + 1;
    if count > MAX_EXPANDED as u64 || (from.len() > 1 && from.starts_with('0')) {
        return Some(vec![range.to_owned(), range.to_owned()]);
    }
    let sign = if first <= last { 1 } else { -1 };
    let step = i64::try_from(step).ok()?;
    let count = i64::try_from(count).ok()?;
    (0..count)
        .map(|index| {
            let value = first.checked_add(index.checked_mul(step)?.checked_mul(sign)?)?;
            if is_letters {
                u8::try_from(value).ok().map(|byte| char::from(byte).to_string())
            } else {
                Some(value.to_string())
            }
        })
        .collect()
}
