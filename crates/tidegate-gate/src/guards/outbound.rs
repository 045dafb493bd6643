//! Secrets never leave: a floor on every URL, header, body and set of arguments that goes out.
//!
//! The operator's secret values are searched for as they stand and in the forms in which text travels: percent
//! and JSON escapes (also one in the other), HTML entities, base64 at any alignment, base32, hexadecimal, with
//! case, blanks or punctuation changed, and split over fields. What is found is named by its place alone; no
//! message ever repeats it.
//!
//! The work is linear in what is looked at: a fixed number of views of it, each searched once for all values.
//! This is a net for what passes by; a model that means to leak can always find a code of its own. That is what
//! the address rules and modes are for.

mod needles;
mod query;
mod views;

use std::{collections::BTreeMap, fmt};

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::{Map, Value};

pub use self::query::{QUERY_CHARS_MAX, check_query};
use self::{
    needles::{Forms, Shingle},
    views::Views,
};
use crate::Denial;

/// Values of fewer characters are too likely to be words.
pub const CHARS_MIN: usize = 12;

/// The most that is looked at, in bytes; more is refused, since what was not looked at must not leave.
pub const EXAMINED_BYTES_MAX: usize = 16 << 20;

/// How many letters of a secret may be missing for its pieces to count as the whole.
const PIECES_MISSING_MAX: usize = 4;

/// The values could not be made searchable; without the guard nothing may be sent.
#[derive(Debug, thiserror::Error)]
#[error(
    "the outbound guard cannot be built: {0}; there are too many or too long secrets in the configuration"
)]
pub struct Error(String);

/// The operator's secret values, made searchable. Compiled anew when one is added.
#[derive(Clone)]
pub struct Secrets {
    count: usize,
    /// The values and their base64 forms, letter by letter.
    exact: Needles,
    /// The values, their hexadecimal and base32 forms, in lower-case letters and digits only.
    folded: Needles,
    shingles: AhoCorasick,
    shingle_places: Vec<Shingle>,
    lengths: Vec<usize>,
}

#[derive(Clone)]
struct Needles {
    automaton: AhoCorasick,
    owners: Vec<usize>,
}

impl Needles {
    fn build(needles: Vec<(usize, Vec<u8>)>) -> Result<Self, Error> {
        let (owners, needles): (Vec<usize>, Vec<Vec<u8>>) = needles.into_iter().unzip();
        Ok(Self {
            automaton: automaton(&needles)?,
            owners,
        })
    }
}

fn automaton(needles: &[Vec<u8>]) -> Result<AhoCorasick, Error> {
    AhoCorasick::builder()
        .match_kind(MatchKind::Standard)
        .build(needles)
        .map_err(|problem| Error(problem.to_string()))
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({} values)", self.count)
    }
}

impl Secrets {
    /// No secrets: everything passes.
    pub fn none() -> Result<Self, Error> {
        Self::compile([])
    }

    /// Makes these values searchable. Values of fewer than [`CHARS_MIN`] characters and placeholders are left
    /// out.
    pub fn compile<'v>(values: impl IntoIterator<Item = &'v str>) -> Result<Self, Error> {
        let mut forms = Forms::default();
        for value in values {
            forms.add(value);
        }
        Ok(Self {
            count: forms.lengths.len(),
            exact: Needles::build(forms.exact)?,
            folded: Needles::build(forms.folded)?,
            shingles: automaton(&forms.shingles)?,
            shingle_places: forms.shingle_places,
            lengths: forms.lengths,
        })
    }

    /// How many values are searched for.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is nothing to search for.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The values that stand in these texts, in any form, alone or in pieces.
    fn found_in(&self, views: &Views) -> Found {
        let mut found = Found::default();
        let mut covered: BTreeMap<usize, Vec<bool>> = BTreeMap::new();
        for view in views.iter() {
            for text in [&view.plain, &view.squeezed, &view.base64] {
                found.add(&self.exact, text);
            }
            found.add(&self.folded, &view.folded);
            for hit in self.shingles.find_overlapping_iter(&view.folded) {
                let Some(shingle) = self.shingle_places.get(hit.pattern().as_usize()) else {
                    continue;
                };
                let length = self.lengths.get(shingle.owner).copied().unwrap_or_default();
                let letters = covered
                    .entry(shingle.owner)
                    .or_insert_with(|| vec![false; length]);
                for letter in letters
                    .iter_mut()
                    .skip(shingle.offset)
                    .take(needles::SHINGLE_LETTERS)
                {
                    *letter = true;
                }
            }
        }
        for (owner, letters) in covered {
            let missing = letters.iter().filter(|letter| !**letter).count();
            if missing <= PIECES_MISSING_MAX && letters.len() >= CHARS_MIN {
                found.insert(owner);
            }
        }
        found
    }
}

/// Which values were found.
#[derive(Debug, Default)]
struct Found {
    owners: Vec<usize>,
}

impl Found {
    fn insert(&mut self, owner: usize) {
        if !self.owners.contains(&owner) {
            self.owners.push(owner);
        }
    }

    fn add(&mut self, needles: &Needles, text: &[u8]) {
        for hit in needles.automaton.find_overlapping_iter(text) {
            if let Some(owner) = needles.owners.get(hit.pattern().as_usize()) {
                self.insert(*owner);
            }
        }
    }

    fn has_more_than(&self, known: &Self) -> bool {
        self.owners.iter().any(|owner| !known.owners.contains(owner))
    }
}

/// Text that the operator wrote into a tool's row, credentials among it, for one host.
#[derive(Debug, Clone, Copy)]
pub struct Own<'a> {
    /// The host that the row names, normalised.
    pub host: &'a str,
    /// What the row sends of its own: its header values, its query, its body.
    pub texts: &'a [String],
}

/// What is about to leave.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outgoing<'a> {
    /// The URL as it was given, fragment included; empty where there is none.
    pub url: &'a str,
    /// The host that it leads to, normalised; empty where there is none.
    pub host: &'a str,
    /// Header names and values.
    pub headers: &'a [(String, String)],
    /// The body, also a packed one.
    pub body: &'a [u8],
    /// The arguments of the call, as the model gave them.
    pub arguments: Option<&'a Map<String, Value>>,
    /// What the operator's own row may send to its own host.
    pub own: Option<Own<'a>>,
}

/// Refuses what holds a secret. No approval lifts it.
pub fn check(secrets: &Secrets, outgoing: &Outgoing<'_>) -> Result<(), Denial> {
    if secrets.is_empty() {
        return Ok(());
    }
    let headers_length: usize = outgoing
        .headers
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    if outgoing.url.len() + headers_length + outgoing.body.len() > EXAMINED_BYTES_MAX {
        return Err(Denial::with_code(
            "outbound_secret",
            "outbound_too_large",
            "the request is too large to be searched for secrets; send less.",
        ));
    }
    let nothing = Found::default();
    if let Some(arguments) = outgoing.arguments {
        let mut views = Views::default();
        views.add_object(arguments);
        refuse(secrets, &views, &nothing, "the arguments of the call")?;
    }
    let own = match outgoing.own {
        Some(own) if own.host == outgoing.host && !own.host.is_empty() => {
            let mut views = Views::default();
            for text in own.texts {
                views.add_text(text.as_bytes());
            }
            secrets.found_in(&views)
        }
        Some(_) | None => Found::default(),
    };
    let mut views = Views::default();
    views.add_url(outgoing.url);
    for (name, value) in outgoing.headers {
        views.add_field(name.as_bytes(), value.as_bytes());
    }
    views.add_body(outgoing.body);
    views.add_joined();
    refuse(secrets, &views, &own, "the request")
}

/// Refuses a text (a command, a message, a query) that holds a secret.
pub fn check_text(secrets: &Secrets, text: &str, what: &str) -> Result<(), Denial> {
    if secrets.is_empty() {
        return Ok(());
    }
    if text.len() > EXAMINED_BYTES_MAX {
        return Err(Denial::with_code(
            "outbound_secret",
            "outbound_too_large",
            format!("{what} is too long to be searched for secrets."),
        ));
    }
    let mut views = Views::default();
    views.add_text(text.as_bytes());
    refuse(secrets, &views, &Found::default(), what)
}

/// Refuses arguments that hold a secret, as a key or a value, whole or in pieces.
pub fn check_arguments(secrets: &Secrets, arguments: &Map<String, Value>) -> Result<(), Denial> {
    check(
        secrets,
        &Outgoing {
            arguments: Some(arguments),
            ..Outgoing::default()
        },
    )
}

fn refuse(secrets: &Secrets, views: &Views, known: &Found, place: &str) -> Result<(), Denial> {
    if secrets.found_in(views).has_more_than(known) {
        return Err(Denial::new(
            "outbound_secret",
            format!("{place} would send a secret of this server away. It stays here, whatever the reason."),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
