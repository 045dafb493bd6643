//! What of a model's text people see: the whole of it cleaned, or piece by piece while it arrives.

use std::collections::BTreeSet;

use super::Dialect;
use super::scanner::{Calls, Scanner};

/// The text without reasoning. An unclosed tag takes everything after it along.
pub fn strip_reasoning(text: &str) -> String {
    let mut scanner = Scanner::<fn(&str) -> bool>::new(None);
    scanner.push(text);
    scanner.finish();
    scanner.take_text()
}

/// The text without reasoning, calls and stray call markers, three or more line ends collapsed to two. Code
/// blocks stay as they are.
pub fn strip_markup(text: &str, known: &dyn Fn(&str) -> bool, dialect: Dialect) -> String {
    let mut scanner = Scanner::new(Some(Calls { known, dialect }));
    scanner.push(text);
    scanner.finish();
    scanner.take_text()
}

/// Which text is held back from people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Visible {
    /// The model calls tools natively: only reasoning is held back, all other text passes unchanged.
    AllButReasoning,
    /// The model writes calls as text: they are held back too.
    NoMarkup {
        /// The tools offered.
        names: BTreeSet<String>,
        /// How the provider's models write calls.
        dialect: Dialect,
    },
}

type Known = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// Cleans text while it arrives. What may be the beginning of a call or of reasoning is held back until it is
/// clear what it is, so that nothing appears that has to be taken back. However the text is cut into pieces,
/// they add up to what [`strip_reasoning`] or [`strip_markup`] makes of the whole.
pub struct DisplayFilter {
    scanner: Scanner<Known>,
}

impl std::fmt::Debug for DisplayFilter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("DisplayFilter").finish_non_exhaustive()
    }
}

impl DisplayFilter {
    /// A filter for one reply.
    pub fn new(visible: Visible) -> Self {
        let calls = match visible {
            Visible::AllButReasoning => None,
            Visible::NoMarkup { names, dialect } => Some(Calls {
                known: Box::new(move |name: &str| names.contains(name)) as Known,
                dialect,
            }),
        };
        Self {
            scanner: Scanner::new(calls),
        }
    }

    /// Takes the next piece and gives what can be shown now.
    pub fn push(&mut self, piece: &str) -> String {
        self.scanner.push(piece);
        self.scanner.take_found();
        self.scanner.take_text()
    }

    /// Ends the reply and gives what is still to be shown.
    pub fn finish(mut self) -> String {
        self.scanner.finish();
        self.scanner.take_text()
    }
}
