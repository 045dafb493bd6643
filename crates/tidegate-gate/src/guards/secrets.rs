//! Redaction: configured secrets, and shapes that are plainly secrets, never leave in text.
//!
//! All configured values and the forms in which they travel (escaped, percent-encoded, hexadecimal, base64, base32)
//! are searched for at once, in the text as it stands and in the text as it reads when its escapes are undone;
//! overlapping finds are joined before anything is masked, so that no tail of a longer secret stays behind a
//! shorter one. Time is linear in the text.
//!
//! Values can be added while the process lives ([`Redactor::register`]); none is ever taken out, since a value
//! that was replaced may still be in use elsewhere. Text that arrives in pieces goes through a [`Stream`].

mod headers;
mod known;
mod needles;
mod reading;
mod shapes;
mod stream;

use std::{
    borrow::Cow,
    fmt,
    ops::Range,
    sync::{Arc, PoisonError, RwLock},
};

use serde_json::Value;
use tidegate_core::secret::Secret;

pub use self::stream::Stream;
use self::{known::Known, shapes::Shapes};

/// What stands for a secret.
pub const MASK: &str = "[redacted]";

/// How deep a JSON value is looked into; what lies deeper is dropped.
const JSON_DEPTH_MAX: usize = 128;

/// The redactor could not be built; without it nothing may be shown.
#[derive(Debug, thiserror::Error)]
#[error("the redactor cannot be built: {0}; there are too many or too long secrets in the configuration")]
pub struct RedactorError(String);

/// Masks secrets in text. Shared by everything that shows text; values may be added at any time.
pub struct Redactor {
    known: RwLock<Arc<Known>>,
    shapes: &'static Shapes,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} values)", self.known().values.len())
    }
}

impl Redactor {
    /// A redactor for these values. Blank values, values of fewer than 4 characters and placeholders such as
    /// `changeme` are left out: masking them would only mangle text.
    pub fn new(secrets: impl IntoIterator<Item = Secret>) -> Result<Self, RedactorError> {
        Ok(Self {
            known: RwLock::new(Arc::new(Known::new(secrets.into_iter().collect())?)),
            shapes: Shapes::get()?,
        })
    }

    /// Adds values, for all text that is looked at from now on. On an error nothing has changed.
    pub fn register(&self, secrets: impl IntoIterator<Item = Secret>) -> Result<(), RedactorError> {
        let mut guard = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut values = guard.values.clone();
        values.extend(secrets);
        let known = Known::new(values)?;
        if known.values.len() > guard.values.len() {
            *guard = Arc::new(known);
        }
        Ok(())
    }

    /// Every value that is known, those included that are too short to be masked.
    pub fn values(&self) -> Vec<Secret> {
        self.known().values.clone()
    }

    /// The text with every secret masked. Borrowed when there was none.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let found = self.find(&self.known(), text, 0);
        if found.is_empty() {
            Cow::Borrowed(text)
        } else {
            Cow::Owned(mask(text, &found))
        }
    }

    /// Masks secrets in every text of a JSON value, names of members included.
    pub fn redact_json(&self, value: &mut Value) {
        self.redact_json_within(value, JSON_DEPTH_MAX);
    }

    fn redact_json_within(&self, value: &mut Value, depth: usize) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => {
                if let Cow::Owned(masked) = self.redact(text) {
                    *text = masked;
                }
            }
            Value::Array(_) | Value::Object(_) if depth == 0 => *value = Value::Null,
            Value::Array(items) => {
                for item in items {
                    self.redact_json_within(item, depth - 1);
                }
            }
            Value::Object(members) => {
                let old = std::mem::take(members);
                for (name, mut member) in old {
                    self.redact_json_within(&mut member, depth - 1);
                    members.insert(self.redact(&name).into_owned(), member);
                }
            }
        }
    }

    fn known(&self) -> Arc<Known> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Where secrets stand that begin at `from` or behind it, sorted and joined where they touch.
    fn find(&self, known: &Known, text: &str, from: usize) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        known.find(text, from, &mut found);
        self.shapes.find(text, from, &mut found);
        joined(found)
    }
}

/// Adds a find, joined with the last one where they touch: a text of one letter must not cost one entry for
/// each of its positions.
fn join(found: &mut Vec<Range<usize>>, range: Range<usize>) {
    match found.last_mut() {
        Some(last) if range.start <= last.end && last.start <= range.end => {
            last.start = last.start.min(range.start);
            last.end = last.end.max(range.end);
        }
        Some(_) | None => found.push(range),
    }
}

/// Sorts finds and joins those that touch.
fn joined(mut found: Vec<Range<usize>>) -> Vec<Range<usize>> {
    found.sort_unstable_by_key(|range| range.start);
    let mut runs = Vec::with_capacity(found.len());
    for range in found {
        join(&mut runs, range);
    }
    runs
}

/// Writes the text with one mask for each find. Finds are sorted and do not touch.
fn mask(text: &str, found: &[Range<usize>]) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = 0;
    for range in found {
        // Needles are whole characters, so every bound is one of the text's.
        masked.push_str(text.get(rest..range.start).unwrap_or(""));
        masked.push_str(MASK);
        rest = range.end;
    }
    masked.push_str(text.get(rest..).unwrap_or(""));
    masked
}

#[cfg(test)]
mod tests;
