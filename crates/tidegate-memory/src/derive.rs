//! From observations to facts: a pure function, and the only way to a fact.
//!
//! Nothing is promoted in place. Whoever wants to know what is believed of a person hands over everything that the person
//! said, the table of kinds and the time, and gets the same facts for the same evidence, in whatever order it comes. A
//! change of the table therefore changes the state of everything at once.
//!
//! The rules, for each kind on its own:
//! - A value is a *candidate* from the day on which it was first said.
//! - It is *stable* once it was said on enough days ([`Kind::days_to_stable`]) that are at least 24 hours apart from first
//!   to last, or at once where the person asked for it to be remembered, or corrected it.
//! - The same turn counts once, however often it is sent again; so does the same day.
//! - Where a person has one value at a time ([`Kind::is_single`]), a different value makes the believed one *contested*:
//!   neither is certain. The one wins that is said on enough days without the other in between, or that is to be
//!   remembered. The believed one that loses is *superseded* as of the day on which the winner's days began.
//! - A value that was taken back is *retracted*; earlier days no longer count for it.
//! - What was not said for long enough ([`Kind::reconfirm_after_days`]) is *expired*. Said again, it is believed again if
//!   it was before; days further apart than that do not add up.

mod course;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use sha2::{Digest as _, Sha256};
use tidegate_core::{
    clock::Timestamp,
    id::{FactId, UserId, base32},
    memory::{Fact, Observation, Stance, Voice},
};

use self::course::Course;
use crate::kinds::{Kind, Kinds, normalise};

/// What stands before everything that is hashed to a fact's id, so that no other digest is ever the same.
const ID_DOMAIN: &[u8] = b"tidegate fact 1";

/// How many bytes of the digest an id has: as many as a random one.
const ID_BYTES: usize = 15;

/// An observation that counts, with its value as the table wants it today.
#[derive(Debug, Clone)]
struct Said<'o> {
    value: String,
    observation: &'o Observation,
}

/// What follows from a person's observations at `now`, in the order of the table, then of time. Every observation must be
/// of `user`: only ids depend on who it is. Observations of a kind or value that the table does not allow are passed over.
pub fn derive(kinds: &Kinds, user: &UserId, now: Timestamp, observations: &[Observation]) -> Vec<Fact> {
    let mut by_kind: BTreeMap<usize, Vec<Said<'_>>> = BTreeMap::new();
    // A value that is said again is put into its form once.
    let mut forms: HashMap<(usize, &str), Option<String>> = HashMap::new();
    for observation in observations {
        let (Some(position), Some(kind)) = (kinds.position(&observation.kind), kinds.get(&observation.kind))
        else {
            continue;
        };
        if !counts(kind, observation) {
            continue;
        }
        let form = forms
            .entry((position, observation.value.as_str()))
            .or_insert_with(|| normalise(kind, &observation.value).ok());
        if let Some(value) = form.clone() {
            by_kind
                .entry(position)
                .or_default()
                .push(Said { value, observation });
        }
    }
    let mut facts = Vec::new();
    for said in by_kind.into_values() {
        let Some(kind) = said.first().and_then(|said| kinds.get(&said.observation.kind)) else {
            continue;
        };
        facts.extend(facts_of(kind, user, now, said));
    }
    facts
}

/// The id of a fact: the same for the same person, kind and value.
pub fn fact_id(user: &UserId, kind: &str, value: &str) -> FactId {
    let mut digest = Sha256::new();
    digest.update(ID_DOMAIN);
    for part in [user.as_str(), kind, value] {
        // The length first, so that no two triples run together into the same bytes.
        digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        digest.update(part.as_bytes());
    }
    let digest: [u8; 32] = digest.finalize().into();
    FactId::new(format!(
        "fact_{}",
        base32(digest.get(..ID_BYTES).unwrap_or(&digest))
    ))
}

/// The values under which a fact's observations are stored, those included that were sent again and do not count: all
/// that has to go when the fact is forgotten. More than one where the table, or how values are compared, has changed.
pub fn stored_values<'o>(kinds: &Kinds, fact: &Fact, observations: &'o [Observation]) -> BTreeSet<&'o str> {
    let kind = kinds.get(&fact.kind);
    observations
        .iter()
        .filter(|observation| observation.kind == fact.kind)
        .map(|observation| observation.value.as_str())
        .filter(|value| {
            *value == fact.value
                || kind.is_some_and(|kind| normalise(kind, value).is_ok_and(|value| value == fact.value))
        })
        .collect()
}

/// Whether the table lets an observation count.
fn counts(kind: &Kind, observation: &Observation) -> bool {
    let is_outright = observation.is_explicit && observation.is_first_person;
    match observation.voice {
        // Through the memory API a person can only speak of themselves.
        Voice::Corrected => true,
        Voice::Stated | Voice::Remembered | Voice::Imported => is_outright || !kind.explicit_only,
    }
}

fn facts_of(kind: &Kind, user: &UserId, now: Timestamp, said: Vec<Said<'_>>) -> Vec<Fact> {
    let mut course = Course::new(kind);
    let said = once_a_turn(said);
    for moment in said.chunk_by(|left, right| left.observation.at == right.observation.at) {
        course.take(moment);
    }
    let mut facts = course.facts(user, now);
    facts.sort_by(|left, right| {
        left.valid_from
            .cmp(&right.valid_from)
            .then_with(|| left.value.cmp(&right.value))
    });
    facts
}

/// In the order of time, and what was sent again left out: of the same value in the same turn, the first one stays.
fn once_a_turn(mut said: Vec<Said<'_>>) -> Vec<Said<'_>> {
    said.sort_by(|left, right| sort_key(left).cmp(&sort_key(right)));
    let mut seen = HashSet::new();
    said.retain(|said| {
        let observation = said.observation;
        seen.insert((said.value.clone(), is_affirmed(observation), observation.turn))
    });
    said
}

/// An order that depends on what was said and never on the order of rows.
fn sort_key<'s>(said: &'s Said<'_>) -> impl Ord + use<'s> {
    let observation = said.observation;
    (
        observation.at,
        said.value.as_str(),
        is_affirmed(observation),
        std::cmp::Reverse(weight(observation.voice)),
        observation.day,
        observation.turn,
        observation.id.as_str(),
    )
}

fn is_affirmed(observation: &Observation) -> bool {
    match observation.stance {
        Stance::Affirmed => true,
        Stance::Retracted => false,
    }
}

/// How much a voice weighs; only what weighs more than 0 is believed at once.
fn weight(voice: Voice) -> u8 {
    match voice {
        Voice::Stated | Voice::Imported => 0,
        Voice::Remembered => 1,
        Voice::Corrected => 2,
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
pub(crate) mod tests;
