//! Everything that is kept of a person as one JSON document, and the way back.
//!
//! An export holds the facts for the person to read, and the observations, which are all that counts: an import takes
//! the observations alone, and facts are derived from them like from any other. What is imported is marked.

use jiff::{
    civil::{Date, DateTime},
    tz::Offset,
};
use serde::{Deserialize, Serialize};
use tidegate_core::{
    clock::Timestamp,
    id::{ObservationId, UserId},
    memory::{Fact, Observation, Stance, Voice},
};
use tidegate_gate::guards::secrets::Redactor;

use crate::{
    evidence::{Ledger, View, views},
    kinds::{Kinds, ValueFault, normalise},
};

/// What the document says it is.
pub const FORMAT: &str = "tidegate memory";

/// The version of the form that is written, and the newest that is read.
pub const VERSION: u32 = 1;

/// The longest document that is read, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The most observations that are read.
pub const OBSERVATIONS_MAX: usize = 20_000;

/// The longest quote, in characters.
pub const QUOTE_CHARS_MAX: usize = 2_000;

/// The longest id, extractor or conversation digest, in characters.
const TOKEN_CHARS_MAX: usize = 128;

/// What stands before the extractor of an observation that was imported.
const MARK: &str = "import:";

/// A document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// Whose it is.
    pub user: UserId,
    /// When it was made.
    pub exported_at: Timestamp,
    /// The facts, to be read by people.
    #[serde(default)]
    pub facts: Vec<View>,
    /// What the person said.
    pub observations: Vec<Saying>,
}

/// An observation in a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saying {
    /// Its id.
    pub id: ObservationId,
    /// What it is about.
    pub kind: String,
    /// The value as it is compared.
    pub value: String,
    /// The words.
    pub quote: String,
    /// The turn, as 64 hexadecimal digits.
    pub turn: String,
    /// The conversation, as a digest.
    #[serde(default)]
    pub conversation: String,
    /// The local day.
    pub day: Date,
    /// The time.
    pub at: Timestamp,
    /// In which way it was said.
    pub voice: Voice,
    /// Whether it was said to be so or not.
    #[serde(default)]
    pub stance: Stance,
    /// Who found it in the turn.
    pub extractor: String,
    /// Whether it was said outright.
    pub is_explicit: bool,
    /// Whether the person said it of themselves.
    pub is_first_person: bool,
}

/// Whose document may be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// Only one of the same person.
    SamePerson,
    /// Also one that was made under another id: somebody with the right to do so says that it is the same person.
    AnyPerson,
}

/// What a document holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The observations that can be kept, marked.
    pub observations: Vec<Observation>,
    /// What was passed over, and why.
    pub passed_over: Vec<PassedOver>,
}

/// An observation that is not imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PassedOver {
    /// Its place in the document, counted from 1.
    pub number: usize,
    /// Why, in words.
    pub reason: String,
}

/// A document that cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Too long.
    #[error("the document has {0} bytes, and at most {DOCUMENT_BYTES_MAX} are read; split it")]
    TooLong(usize),
    /// Not in the form.
    #[error("the document is no export of memory: {0}")]
    Form(String),
    /// Of a later version.
    #[error("the document is of version {0}, and this server reads up to {VERSION}; update the server")]
    Version(u32),
    /// Of somebody else.
    #[error("the document is {0}'s, not {1}'s; import it as that user, or have an administrator do it")]
    Person(UserId, UserId),
    /// Too much of it.
    #[error("the document has {0} observations, and at most {OBSERVATIONS_MAX} are read; split it")]
    TooMany(usize),
}

/// Why one observation is passed over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Fault {
    #[error("the kind {0:?} is not in the table of kinds")]
    Kind(String),
    #[error(transparent)]
    Value(#[from] ValueFault),
    #[error(
        "the quote must have 1 to {QUOTE_CHARS_MAX} characters, and no control characters but line breaks"
    )]
    Quote,
    #[error("it holds a secret")]
    Secret,
    #[error("the turn must be 64 hexadecimal digits")]
    Turn,
    #[error("`{0}` must have at most {TOKEN_CHARS_MAX} plain characters")]
    Token(&'static str),
    #[error("it was said after the present time")]
    Future,
    #[error("its day is not the day of its time anywhere")]
    Day,
}

/// A person's memory as a document.
pub fn document(kinds: &Kinds, user: &UserId, now: Timestamp, facts: &[Fact], ledger: &Ledger) -> Document {
    Document {
        format: FORMAT.to_owned(),
        version: VERSION,
        user: user.clone(),
        exported_at: now,
        facts: views(kinds, facts, ledger),
        observations: ledger.observations().iter().map(Saying::from).collect(),
    }
}

/// Who imports, and by which rules.
#[derive(Debug, Clone, Copy)]
pub struct Import<'i> {
    /// The table of kinds.
    pub kinds: &'i Kinds,
    /// What tells secrets.
    pub redactor: &'i Redactor,
    /// For whom.
    pub user: &'i UserId,
    /// Whose documents may be taken.
    pub binding: Binding,
    /// The present time.
    pub now: Timestamp,
}

/// Reads a document. One that is not the person's, or not a document, is refused as a whole; observations that the table of
/// kinds or good sense does not allow are passed over, each with its reason.
pub fn read(text: &str, import: &Import<'_>) -> Result<Imported, Error> {
    if text.len() > DOCUMENT_BYTES_MAX {
        return Err(Error::TooLong(text.len()));
    }
    let head: Head = serde_json::from_str(text).map_err(|error| Error::Form(error.to_string()))?;
    if head.format != FORMAT {
        return Err(Error::Form(format!("its `format` must be {FORMAT:?}")));
    }
    if head.version == 0 || head.version > VERSION {
        return Err(Error::Version(head.version));
    }
    let body: Body = serde_json::from_str(text).map_err(|error| Error::Form(error.to_string()))?;
    if import.binding == Binding::SamePerson && body.user != *import.user {
        return Err(Error::Person(body.user, import.user.clone()));
    }
    if body.observations.len() > OBSERVATIONS_MAX {
        return Err(Error::TooMany(body.observations.len()));
    }
    let mut imported = Imported {
        observations: Vec::with_capacity(body.observations.len()),
        passed_over: Vec::new(),
    };
    for (index, saying) in body.observations.into_iter().enumerate() {
        match observation(saying, import) {
            Ok(observation) => imported.observations.push(observation),
            Err(fault) => imported.passed_over.push(PassedOver {
                number: index + 1,
                reason: fault.to_string(),
            }),
        }
    }
    Ok(imported)
}

/// What every version begins with.
#[derive(Debug, Deserialize)]
struct Head {
    format: String,
    version: u32,
}

/// What is read of version 1; the facts are not.
#[derive(Debug, Deserialize)]
struct Body {
    user: UserId,
    observations: Vec<Saying>,
}

impl From<&Observation> for Saying {
    fn from(observation: &Observation) -> Self {
        Self {
            id: observation.id.clone(),
            kind: observation.kind.clone(),
            value: observation.value.clone(),
            quote: observation.quote.clone(),
            turn: hex(&observation.turn),
            conversation: observation.conversation.clone(),
            day: observation.day,
            at: observation.at,
            voice: observation.voice,
            stance: observation.stance,
            extractor: observation.extractor.clone(),
            is_explicit: observation.is_explicit,
            is_first_person: observation.is_first_person,
        }
    }
}

fn observation(saying: Saying, import: &Import<'_>) -> Result<Observation, Fault> {
    let kind = import.kinds.get(&saying.kind).ok_or_else(|| {
        let shown: String = saying.kind.chars().take(TOKEN_CHARS_MAX).collect();
        Fault::Kind(shown)
    })?;
    let value = normalise(kind, &saying.value)?;
    let is_quote_plain = saying
        .quote
        .chars()
        .all(|letter| !letter.is_control() || matches!(letter, '\n' | '\r' | '\t'));
    if saying.quote.trim().is_empty() || saying.quote.chars().count() > QUOTE_CHARS_MAX || !is_quote_plain {
        return Err(Fault::Quote);
    }
    // What the write gate would not have kept does not come in by this way either.
    if import.redactor.redact(&saying.quote) != saying.quote || import.redactor.redact(&value) != value {
        return Err(Fault::Secret);
    }
    for (field, token) in [
        ("id", saying.id.as_str()),
        ("extractor", saying.extractor.as_str()),
        ("conversation", saying.conversation.as_str()),
    ] {
        if token.chars().count() > TOKEN_CHARS_MAX
            || token.chars().any(|letter| letter.is_control() || letter == '<')
        {
            return Err(Fault::Token(field));
        }
    }
    if saying.at > import.now {
        return Err(Fault::Future);
    }
    if !is_day_of(saying.day, saying.at) {
        return Err(Fault::Day);
    }
    let extractor = saying.extractor;
    Ok(Observation {
        turn: from_hex(&saying.turn).ok_or(Fault::Turn)?,
        id: saying.id,
        kind: saying.kind,
        value,
        quote: saying.quote,
        conversation: saying.conversation,
        day: saying.day,
        at: saying.at,
        voice: match saying.voice {
            Voice::Stated | Voice::Imported => Voice::Imported,
            // What was to be believed at once still is: the import is the person's own act, too.
            Voice::Remembered => Voice::Remembered,
            Voice::Corrected => Voice::Corrected,
        },
        stance: saying.stance,
        extractor: if extractor.starts_with(MARK) {
            extractor
        } else {
            format!("{MARK}{extractor}")
        },
        is_explicit: saying.is_explicit,
        is_first_person: saying.is_first_person,
    })
}

/// Whether it was that day somewhere on earth at that time: days can be moved to make several of one otherwise.
fn is_day_of(day: Date, at: Timestamp) -> bool {
    let local = |hours: i8| -> DateTime { Offset::constant(hours).to_datetime(at) };
    // The zones reach from 12 hours behind UTC to 14 before it.
    (local(-12).date()..=local(14).date()).contains(&day)
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| DIGITS.get(usize::from(digit)))
        .collect()
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
