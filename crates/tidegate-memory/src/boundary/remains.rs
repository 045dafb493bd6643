//! What remains of a turn when everything is cut out that may not be the person's own words.
//!
//! Cutting errs towards too much: a statement that is lost will be made again, and one that was somebody else's would
//! be kept as the person's.

mod inline;
mod lines;
mod requests;

use super::{
    sentence::{Hidden, Mask, Sentence, sentences},
    text::Folded,
};
use tidegate_gate::guards::untrusted;

/// Why a part of a turn does not count as the person's own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cut {
    /// A quoted block: lines that begin with `>` or a bar.
    BlockQuote,
    /// A fence of code, indented code, or code within a line.
    Code,
    /// A span within quotation marks.
    Quotation,
    /// Text that was given to be worked on, a long paste, or what stands below a heading or a rule.
    Pasted,
    /// A mail or message with its header.
    Forwarded,
    /// Lines of a conversation with the names of speakers.
    Transcript,
    /// Markup or data: tags, tables, objects.
    Markup,
    /// A turn that holds the control tokens of a chat template.
    Forged,
}

impl Cut {
    /// How it goes on behind the cut.
    fn hidden(self) -> Hidden {
        match self {
            Self::Quotation | Self::Code => Hidden::Gap,
            Self::BlockQuote
            | Self::Pasted
            | Self::Forwarded
            | Self::Transcript
            | Self::Markup
            | Self::Forged => Hidden::End,
        }
    }
}

/// How many sentences somebody writes themselves.
const SENTENCES_MAX: usize = 400;

/// Which bytes of a folded text are cut, and why.
#[derive(Debug)]
pub(super) struct Cuts {
    bytes: Vec<Option<Cut>>,
}

impl Cuts {
    fn none(length: usize) -> Self {
        Self {
            bytes: vec![None; length],
        }
    }

    /// Cuts a part, except what is cut already.
    fn cut(&mut self, from: usize, to: usize, why: Cut) {
        let to = to.min(self.bytes.len());
        for byte in self.bytes.get_mut(from.min(to)..to).into_iter().flatten() {
            byte.get_or_insert(why);
        }
    }

    /// Why a byte is cut, if it is.
    pub(super) fn at(&self, at: usize) -> Option<Cut> {
        self.bytes.get(at).copied().flatten()
    }
}

impl Mask for Cuts {
    fn hidden(&self, at: usize) -> Option<Hidden> {
        self.at(at).map(Cut::hidden)
    }
}

/// What is cut out of a turn, and the sentences that remain.
pub(super) fn cut(raw: &str, folded: &Folded) -> (Cuts, Vec<Sentence>) {
    let mut cuts = Cuts::none(folded.text.len());
    if is_forged(raw) {
        cuts.cut(0, folded.text.len(), Cut::Forged);
        return (cuts, Vec::new());
    }
    inline::fences(&folded.text, &mut cuts);
    lines::cut(&folded.text, &mut cuts);
    inline::spans(&folded.text, &mut cuts);
    let read = sentences(folded, &cuts);
    if read.len() > SENTENCES_MAX {
        cuts.cut(0, folded.text.len(), Cut::Pasted);
        return (cuts, Vec::new());
    }
    requests::cut(folded, &read, &mut cuts);
    let remaining = sentences(folded, &cuts);
    (cuts, remaining)
}

/// Whether the control tokens of a chat template, or our own call markup, stand in the turn. Then none of it counts:
/// nobody types them in passing.
fn is_forged(raw: &str) -> bool {
    let read: String = raw
        .chars()
        .filter(|letter| !untrusted::is_invisible(*letter))
        .collect();
    untrusted::neutralise(&read) != read
}
