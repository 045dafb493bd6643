//! Citations in an answer that no tool of the turn has shown are taken out while it streams.
//!
//! A citation stands bare (`kb-` and ten characters) or, alone or in a row, between brackets. Brackets that hold
//! nothing any more go with it, and so does the space in front, or at the start of a text the one behind. Whatever may still become a citation is held back, at
//! most [`ROW_BYTES_MAX`] bytes, so that the outcome is the same however the text was cut into pieces.

use tidegate_core::knowledge::CitationId;

/// A row of citations longer than this is judged one by one.
const ROW_BYTES_MAX: usize = 512;
/// Bytes of a citation.
const ID_BYTES: usize = CitationId::PREFIX.len() + CitationId::CHARS;

/// What stands at a place of the text.
#[derive(Debug, PartialEq, Eq)]
enum Found<'t> {
    /// No citation.
    Nothing,
    /// What there is may still become one.
    Perhaps,
    /// Citations.
    Row(Row<'t>),
}

/// Citations and what is around them.
#[derive(Debug, PartialEq, Eq)]
struct Row<'t> {
    /// The brackets, if there are any.
    brackets: Option<(char, char)>,
    ids: Vec<&'t str>,
    /// Bytes of the whole.
    bytes: usize,
}

/// The filter of one stream of words.
#[derive(Debug, Default)]
pub(crate) struct Citations {
    held: String,
    /// Whether the last character that left could be part of a longer word.
    in_word: bool,
    /// Whether something was just removed, so that a space behind it goes too.
    after_removal: bool,
}

impl Citations {
    /// Takes a piece and gives what may be heard now. `is_known` is asked once for each citation.
    pub(crate) fn push(&mut self, piece: &str, is_known: impl FnMut(&str) -> bool) -> String {
        self.held.push_str(piece);
        self.pass(false, is_known)
    }

    /// What is left at the end.
    pub(crate) fn finish(&mut self, is_known: impl FnMut(&str) -> bool) -> String {
        self.pass(true, is_known)
    }

    fn pass(&mut self, is_end: bool, mut is_known: impl FnMut(&str) -> bool) -> String {
        let text = std::mem::take(&mut self.held);
        let mut out = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(letter) = rest.chars().next() {
            if self.after_removal && letter == ' ' {
                self.after_removal = false;
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            self.after_removal = false;
            // The space in front goes with what is removed: a full stop then stands where it belongs.
            let (space, from) = match rest.strip_prefix(' ') {
                Some("") if !is_end => {
                    rest.clone_into(&mut self.held);
                    return out;
                }
                Some(from) => (" ", from),
                None => ("", rest),
            };
            let found = match from.chars().next() {
                Some('[' | '(') => row(from, is_end),
                Some('k') if !space.is_empty() || !self.in_word => {
                    id(from, is_end).map_or_else(|found| found, |id| bare(id))
                }
                _ => Found::Nothing,
            };
            match found {
                Found::Perhaps => {
                    rest.clone_into(&mut self.held);
                    return out;
                }
                Found::Row(row) => {
                    let known: Vec<&str> = row.ids.iter().copied().filter(|id| is_known(id)).collect();
                    if known.is_empty() {
                        self.after_removal = space.is_empty();
                    } else {
                        out.push_str(space);
                    }
                    write(&mut out, &row, &known, from);
                    self.in_word = !known.is_empty() && row.brackets.is_none();
                    rest = from.get(row.bytes..).unwrap_or_default();
                }
                Found::Nothing => {
                    out.push(letter);
                    self.in_word = is_word(letter);
                    rest = rest.get(letter.len_utf8()..).unwrap_or_default();
                }
            }
        }
        out
    }
}

/// Writes a row with the citations that are known; as it stood where all are.
fn write(out: &mut String, row: &Row<'_>, known: &[&str], rest: &str) {
    if known.len() == row.ids.len() {
        out.push_str(rest.get(..row.bytes).unwrap_or_default());
        return;
    }
    if known.is_empty() {
        return;
    }
    let (open, close) = row.brackets.unzip();
    out.extend(open);
    out.push_str(&known.join(", "));
    out.extend(close);
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '-'
}

fn bare(id: &str) -> Found<'_> {
    Found::Row(Row {
        brackets: None,
        ids: vec![id],
        bytes: id.len(),
    })
}

/// The citation at the start of `text`.
fn id(text: &str, is_end: bool) -> Result<&str, Found<'_>> {
    for (at, byte) in text.bytes().take(ID_BYTES).enumerate() {
        let fits = match CitationId::PREFIX.as_bytes().get(at) {
            Some(expected) => byte == *expected,
            None => byte.is_ascii_digit() || byte.is_ascii_lowercase(),
        };
        if !fits {
            return Err(Found::Nothing);
        }
    }
    let Some(id) = text.get(..ID_BYTES) else {
        return Err(if is_end { Found::Nothing } else { Found::Perhaps });
    };
    match text.get(ID_BYTES..).and_then(|rest| rest.chars().next()) {
        Some(letter) if is_word(letter) => Err(Found::Nothing),
        None if !is_end => Err(Found::Perhaps),
        Some(_) | None => Ok(id),
    }
}

/// The brackets with citations at the start of `text`.
fn row(text: &str, is_end: bool) -> Found<'_> {
    let (open, close) = if text.starts_with('[') {
        ('[', ']')
    } else {
        ('(', ')')
    };
    let mut ids = Vec::new();
    let mut at = 1;
    while at < ROW_BYTES_MAX {
        let rest = text.get(at..).unwrap_or_default();
        match id(rest, is_end) {
            Ok(id) => ids.push(id),
            Err(found) => return found,
        }
        at += ID_BYTES;
        let rest = text.get(at..).unwrap_or_default();
        let separators = rest
            .bytes()
            .take_while(|byte| matches!(byte, b',' | b';' | b' '))
            .count();
        match rest.get(separators..).and_then(|rest| rest.chars().next()) {
            Some(letter) if letter == close && separators == 0 => {
                return Found::Row(Row {
                    brackets: Some((open, close)),
                    ids,
                    bytes: at + 1,
                });
            }
            None if !is_end => return Found::Perhaps,
            // What follows is no citation: those that are there are judged one by one.
            Some(_) if separators > 0 => at += separators,
            Some(_) | None => return Found::Nothing,
        }
    }
    Found::Nothing
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Citations;

    const KNOWN: [&str; 2] = ["kb-0123456789", "kb-abcdefghjk"];

    fn is_known(id: &str) -> bool {
        KNOWN.contains(&id)
    }

    fn filtered<'t>(pieces: impl IntoIterator<Item = &'t str>) -> String {
        let mut filter = Citations::default();
        let mut out = String::new();
        for piece in pieces {
            out.push_str(&filter.push(piece, is_known));
        }
        out + &filter.finish(is_known)
    }

    #[test]
    fn what_was_shown_stays_and_what_was_made_up_goes() {
        let cases = [
            ("Twelve weeks [kb-0123456789].", "Twelve weeks [kb-0123456789]."),
            ("Twelve weeks [kb-9999999999] a year.", "Twelve weeks a year."),
            ("a (kb-9999999999) b", "a b"),
            ("see kb-9999999999 there", "see there"),
            ("see kb-0123456789 there", "see kb-0123456789 there"),
            ("[kb-0123456789, kb-9999999999]", "[kb-0123456789]"),
            ("[kb-0123456789; kb-abcdefghjk]", "[kb-0123456789; kb-abcdefghjk]"),
            ("[kb-9999999999, kb-8888888888] x", "x"),
            (
                "It is so [kb-9999999999]. And so [kb-9999999999] [kb-8888888888].",
                "It is so. And so.",
            ),
            ("[kb-9999999999", "["),
            ("[kb-9999999999 says so]", "[says so]"),
            // No citations: part of a longer word, too short, capitals, markup of other kinds.
            (
                "akb-9999999999 kb-99999999990 kb-999 KB-9999999999",
                "akb-9999999999 kb-99999999990 kb-999 KB-9999999999",
            ),
            ("[link](kb) [k] [kb-] (k", "[link](kb) [k] [kb-] (k"),
            ("{\"source\": \"kb-9999999999\"}", "{\"source\": \"\"}"),
            ("\u{e9}kb-9999999999", "\u{e9}kb-9999999999"),
        ];
        for (text, expected) in cases {
            assert_eq!(filtered([text]), expected, "{text}");
            let letters: Vec<String> = text.chars().map(String::from).collect();
            assert_eq!(
                filtered(letters.iter().map(String::as_str)),
                expected,
                "letter by letter: {text}"
            );
        }
    }

    #[test]
    fn little_is_held_back() {
        let mut filter = Citations::default();
        let mut heard = filter.push("[", is_known);
        for _ in 0..1000 {
            heard.push_str(&filter.push("kb-0123456789, ", is_known));
            assert!(filter.held.len() <= super::ROW_BYTES_MAX + 16);
        }
        heard.push_str(&filter.finish(is_known));
        assert_eq!(heard, format!("[{}", "kb-0123456789, ".repeat(1000)));
    }

    fn text() -> impl Strategy<Value = Vec<String>> {
        let part = prop_oneof![
            Just("kb-0123456789".to_owned()),
            Just("kb-9999999999".to_owned()),
            "[\\[\\](),; kb\\-0-9a\u{e9}]{0,6}",
        ];
        prop::collection::vec(part, 0..12)
    }

    proptest! {
        #[test]
        fn however_it_is_cut_the_outcome_is_the_same(parts in text(), cuts in prop::collection::vec(0_usize..8, 0..30)) {
            let whole = parts.concat();
            let mut pieces = Vec::new();
            let mut rest = whole.as_str();
            for cut in cuts {
                let at = rest.char_indices().nth(cut).map_or(rest.len(), |(at, _)| at);
                pieces.push(&rest[..at]);
                rest = &rest[at..];
            }
            pieces.push(rest);
            let out = filtered(pieces);
            prop_assert_eq!(&out, &filtered([whole.as_str()]));
        }

        #[test]
        fn text_without_citations_is_untouched(text in "[a-j \\[\\](),;.\\-]{0,80}") {
            prop_assert_eq!(filtered([text.as_str()]), text);
        }
    }
}
