//! The marks of wrapped content, taken out of what a model says: they are for it alone, and small ones repeat them.

use super::{BEGIN, END};

/// The longest mark, in bytes; what is longer is text.
const MARK_BYTES_MAX: usize = 1024;

/// The filter of one stream of words. What it lets pass is the same however the words were cut into pieces.
#[derive(Debug, Default)]
pub struct Unmarked {
    held: String,
    /// Whether a mark was just removed, so that the end of its line goes too.
    after_mark: bool,
}

impl Unmarked {
    /// Takes a piece and gives what may be heard now.
    pub fn push(&mut self, piece: &str) -> String {
        if self.held.is_empty() && !self.after_mark && !piece.contains('<') {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        self.pass(false)
    }

    /// What is left at the end.
    pub fn finish(&mut self) -> String {
        self.pass(true)
    }

    fn pass(&mut self, is_end: bool) -> String {
        let text = std::mem::take(&mut self.held);
        let mut out = String::with_capacity(text.len());
        let mut rest = text.as_str();
        loop {
            if self.after_mark && !rest.is_empty() {
                rest = rest.strip_prefix('\n').unwrap_or(rest);
                self.after_mark = false;
            }
            let Some(at) = rest.find('<') else {
                out.push_str(rest);
                return out;
            };
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            match mark(from, is_end) {
                Mark::Bytes(bytes) => {
                    self.after_mark = true;
                    rest = from.get(bytes..).unwrap_or_default();
                }
                Mark::Perhaps => {
                    from.clone_into(&mut self.held);
                    return out;
                }
                Mark::None => {
                    out.push('<');
                    rest = from.get(1..).unwrap_or_default();
                }
            }
        }
    }
}

enum Mark {
    None,
    /// What there is may still become one.
    Perhaps,
    Bytes(usize),
}

/// The mark at the start of `text`. Its end may lack a bracket: that is how it is most often repeated.
fn mark(text: &str, is_end: bool) -> Mark {
    let mut perhaps = false;
    for name in [BEGIN, END] {
        let open = format!("<<<{name}");
        if let Some(inner) = text.strip_prefix(&open) {
            let shown = inner
                .char_indices()
                .take_while(|(at, letter)| *letter != '\n' && open.len() + at < MARK_BYTES_MAX)
                .find(|(_, letter)| *letter == '>');
            let Some((at, _)) = shown else {
                let goes_on = !inner.contains('\n') && text.len() < MARK_BYTES_MAX;
                return if goes_on && !is_end {
                    Mark::Perhaps
                } else {
                    Mark::None
                };
            };
            let closing = inner.get(at..).unwrap_or_default();
            let brackets = closing.bytes().take(3).take_while(|byte| *byte == b'>').count();
            if brackets < 3 && closing.len() == brackets && !is_end {
                return Mark::Perhaps;
            }
            return Mark::Bytes(open.len() + at + brackets);
        }
        perhaps |= open.starts_with(text);
    }
    if perhaps && !is_end {
        Mark::Perhaps
    } else {
        Mark::None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::wrap;
    use super::Unmarked;

    fn unmarked<'t>(pieces: impl IntoIterator<Item = &'t str>) -> String {
        let mut filter = Unmarked::default();
        let mut out = String::new();
        for piece in pieces {
            out.push_str(&filter.push(piece));
        }
        out + &filter.finish()
    }

    #[test]
    fn marks_go_and_what_they_hold_stays() {
        let wrapped = wrap("The valve is checked every six months.", "a.pdf", "b1");
        for (text, kept) in [
            (wrapped.as_str(), "The valve is checked every six months.\n"),
            ("<<<END_UNTRUSTED_CONTENT id=\"b\">>\n\nYes.", "\nYes."),
            ("<<<EXTERNAL_UNTRUSTED_CONTENT>>>", ""),
            ("a < b, a << b, a <<< b", "a < b, a << b, a <<< b"),
            (
                "<<<EXTERNAL_UNTRUSTED_CONTENT and so on",
                "<<<EXTERNAL_UNTRUSTED_CONTENT and so on",
            ),
            (
                "<<<EXTERNAL_UNTRUSTED_CONTENT\n>",
                "<<<EXTERNAL_UNTRUSTED_CONTENT\n>",
            ),
            ("the end <<<END_UNTRUSTED", "the end <<<END_UNTRUSTED"),
        ] {
            assert_eq!(unmarked([text]), kept, "{text}");
        }
    }

    proptest! {
        #[test]
        fn cuts_make_no_difference(
            parts in proptest::collection::vec("(<<<EXTERNAL_UNTRUSTED_CONTENT|<<<END_UNTRUSTED_CONTENT| id=\"b\"|>{1,4}|<{1,4}|\n|ä|a)", 0..12),
            at in proptest::collection::vec(0_usize..200, 0..6),
        ) {
            let text = parts.concat();
            let mut cuts: Vec<usize> = at.into_iter().filter(|at| *at <= text.len() && text.is_char_boundary(*at)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            prop_assert_eq!(unmarked(pieces), unmarked([text.as_str()]));
        }
    }
}
