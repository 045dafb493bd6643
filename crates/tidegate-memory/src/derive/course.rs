//! What became of the values of one kind, moment by moment.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, civil::Date};
use tidegate_core::{
    clock::{Timestamp, after},
    id::{ObservationId, UserId},
    memory::{Basis, Fact, FactState, Voice},
};

use super::{Said, fact_id, is_affirmed, weight};
use crate::kinds::Kind;

/// How far the first and the last day of evidence must be apart.
const SPAN_LEAST: SignedDuration = SignedDuration::from_hours(24);

const DAY_SECONDS: u64 = 86_400;

/// Mentions of a value that nothing came between.
#[derive(Debug, Clone)]
struct Streak {
    first_at: Timestamp,
    last_at: Timestamp,
    days: BTreeSet<Date>,
}

/// Where a value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Standing {
    Said,
    Believed,
    Superseded { by: String },
    Retracted,
}

/// One value and what was said of it.
#[derive(Debug, Clone)]
struct Track {
    standing: Standing,
    basis: Basis,
    streak: Option<Streak>,
    days: BTreeSet<Date>,
    valid_from: Timestamp,
    valid_to: Option<Timestamp>,
    last_at: Timestamp,
    evidence: Vec<ObservationId>,
}

/// All values of one kind.
#[derive(Debug)]
pub(super) struct Course<'k> {
    kind: &'k Kind,
    tracks: BTreeMap<String, Track>,
    /// The believed value, where there is one at a time.
    held: Option<String>,
    /// What stands against it.
    challengers: BTreeSet<String>,
    /// The values that were said last, whose days may go on.
    running: Vec<String>,
}

impl<'k> Course<'k> {
    pub(super) fn new(kind: &'k Kind) -> Self {
        Self {
            kind,
            tracks: BTreeMap::new(),
            held: None,
            challengers: BTreeSet::new(),
            running: Vec::new(),
        }
    }

    /// Takes everything that was said at one moment, so that the order of rows decides nothing.
    pub(super) fn take(&mut self, moment: &[Said<'_>]) {
        // Each value with the heaviest voice that said it.
        let mut values: BTreeMap<&str, Voice> = BTreeMap::new();
        for said in moment.iter().filter(|said| is_affirmed(said.observation)) {
            let voice = values.entry(&said.value).or_insert(said.observation.voice);
            if weight(said.observation.voice) > weight(*voice) {
                *voice = said.observation.voice;
            }
        }
        if self.kind.is_single && !values.is_empty() {
            self.interrupt(&values);
        }
        for said in moment.iter().filter(|said| is_affirmed(said.observation)) {
            self.mention(said);
        }
        let is_settled = self.believe(&values);
        if self.kind.is_single && !is_settled {
            self.challenge(&values);
        }
        // What was affirmed and taken back in one breath is taken back.
        for said in moment.iter().filter(|said| !is_affirmed(said.observation)) {
            self.retract(said);
        }
    }

    /// Ends the days in a row of every value but the one that is said now. Two values at one moment are no evidence for
    /// either against the other.
    fn interrupt(&mut self, values: &BTreeMap<&str, Voice>) {
        for value in std::mem::take(&mut self.running) {
            let goes_on = values.len() == 1 && values.contains_key(value.as_str());
            if let Some(track) = self.tracks.get_mut(&value).filter(|_| !goes_on) {
                track.streak = None;
            }
        }
        self.running
            .extend(values.keys().map(|value| (*value).to_owned()));
    }

    /// Counts one mention.
    fn mention(&mut self, said: &Said<'_>) {
        let observation = said.observation;
        let track = self
            .tracks
            .entry(said.value.clone())
            .or_insert_with(|| Track::new(observation.at));
        match track.standing {
            Standing::Said | Standing::Believed => {}
            Standing::Superseded { .. } | Standing::Retracted => track.begin_again(observation.at),
        }
        let gap_seconds_max = reconfirm_seconds(self.kind);
        let is_far = |streak: &Streak| {
            gap_seconds_max.is_some_and(|most| after(streak.last_at, most) < observation.at)
        };
        if track.streak.as_ref().is_some_and(is_far) {
            track.streak = None;
        }
        let streak = track.streak.get_or_insert_with(|| Streak {
            first_at: observation.at,
            last_at: observation.at,
            days: BTreeSet::new(),
        });
        streak.last_at = observation.at;
        streak.days.insert(observation.day);
        track.days.insert(observation.day);
        track.last_at = observation.at;
        track.evidence.push(observation.id.clone());
    }

    /// Believes what has its days now, or is to be believed at once. Whether that settled which value it is.
    fn believe(&mut self, values: &BTreeMap<&str, Voice>) -> bool {
        let heaviest = values
            .values()
            .map(|voice| weight(*voice))
            .max()
            .unwrap_or_default();
        let heavy = values
            .values()
            .filter(|voice| weight(**voice) == heaviest)
            .count();
        let mut is_settled = false;
        for (value, voice) in values {
            let at_once = match voice {
                Voice::Corrected => Basis::Corrected,
                Voice::Remembered => Basis::Remembered,
                Voice::Stated | Voice::Imported => Basis::None,
            };
            // Of two that are to be believed at once, the heavier is; of two that weigh the same, neither.
            let is_heard = !self.kind.is_single || (weight(*voice) == heaviest && heavy == 1);
            let is_alone = !self.kind.is_single || values.len() == 1;
            if at_once != Basis::None && is_heard {
                self.promote(value, at_once);
                is_settled = true;
            } else if is_alone && self.has_its_days(value) {
                self.promote(value, Basis::Days);
                is_settled = true;
            }
        }
        is_settled
    }

    fn has_its_days(&self, value: &str) -> bool {
        let Some(streak) = self.tracks.get(value).and_then(|track| track.streak.as_ref()) else {
            return false;
        };
        let needed = usize::try_from(self.kind.days_to_stable.max(1)).unwrap_or(usize::MAX);
        streak.days.len() >= needed
            && (needed == 1 || streak.last_at.duration_since(streak.first_at) >= SPAN_LEAST)
    }

    fn promote(&mut self, value: &str, basis: Basis) {
        let Some(track) = self.tracks.get_mut(value) else {
            return;
        };
        let since = track
            .streak
            .as_ref()
            .map_or(track.last_at, |streak| streak.first_at);
        match track.standing {
            Standing::Believed => track.basis = stronger(track.basis, basis),
            Standing::Said | Standing::Superseded { .. } | Standing::Retracted => {
                track.standing = Standing::Believed;
                track.basis = basis;
                track.valid_from = since;
                track.valid_to = None;
            }
        }
        if !self.kind.is_single {
            return;
        }
        self.challengers.clear();
        if let Some(old) = self.held.replace(value.to_owned()).filter(|old| old != value)
            && let Some(track) = self.tracks.get_mut(&old)
        {
            track.standing = Standing::Superseded { by: value.to_owned() };
            track.valid_to = Some(since.max(track.valid_from));
            track.streak = None;
        }
    }

    /// Another value than the believed one was said.
    fn challenge(&mut self, values: &BTreeMap<&str, Voice>) {
        if let Some(held) = &self.held {
            let others = values.keys().filter(|value| *value != held);
            self.challengers.extend(others.map(|value| (*value).to_owned()));
        }
    }

    /// Takes a value back. What was never said is not there to be taken back.
    fn retract(&mut self, said: &Said<'_>) {
        let Some(track) = self.tracks.get_mut(&said.value) else {
            return;
        };
        let at = said.observation.at;
        track.evidence.push(said.observation.id.clone());
        track.streak = None;
        if track.standing != Standing::Retracted {
            track.valid_to = track.valid_to.or(Some(at));
            track.standing = Standing::Retracted;
        }
        self.challengers.remove(&said.value);
        if self.held.as_ref() == Some(&said.value) {
            self.held = None;
            self.challengers.clear();
        }
    }

    /// Everything as facts at `now`.
    pub(super) fn facts(self, user: &UserId, now: Timestamp) -> Vec<Fact> {
        let is_live = |track: &Track| self.expiry(track, now).is_none();
        let challenger = self
            .latest(|value, track| self.challengers.contains(value) && is_live(track))
            .next();
        // Of values of which none is believed, the latest one stands against the others, and the one before against it.
        let candidates: Vec<&str> = self
            .latest(|_, track| track.standing == Standing::Said && is_live(track))
            .take(2)
            .collect();
        let rival_of = |value: &str| match &self.held {
            Some(held) => Some(held.as_str()),
            None => candidates.iter().copied().find(|rival| *rival != value),
        };
        let mut facts = Vec::with_capacity(self.tracks.len());
        for (value, track) in &self.tracks {
            let (mut state, mut other) = match &track.standing {
                Standing::Retracted => (FactState::Retracted, None),
                Standing::Superseded { by } => (FactState::Superseded, Some(by.as_str())),
                Standing::Believed if challenger.is_some() => (FactState::Contested, challenger),
                Standing::Believed => (FactState::Stable, None),
                Standing::Said if self.kind.is_single => (FactState::Candidate, rival_of(value)),
                Standing::Said => (FactState::Candidate, None),
            };
            let mut valid_to = track.valid_to;
            if let (FactState::Candidate | FactState::Stable | FactState::Contested, Some(end)) =
                (state, self.expiry(track, now))
            {
                (state, other, valid_to) = (FactState::Expired, None, Some(end));
            }
            facts.push(Fact {
                id: fact_id(user, &self.kind.name, value),
                kind: self.kind.name.clone(),
                value: value.clone(),
                state,
                basis: track.basis,
                days: u32::try_from(track.days.len()).unwrap_or(u32::MAX),
                valid_from: track.valid_from,
                valid_to,
                last_at: track.last_at,
                other: other.map(|other| fact_id(user, &self.kind.name, other)),
                evidence: track.evidence.clone(),
            });
        }
        facts
    }

    /// The values that `is_meant` picks, latest first.
    fn latest(&self, is_meant: impl Fn(&str, &Track) -> bool) -> impl Iterator<Item = &str> {
        let mut latest: Vec<(Timestamp, &str)> = self
            .tracks
            .iter()
            .filter(|(value, track)| is_meant(value, track))
            .map(|(value, track)| (track.last_at, value.as_str()))
            .collect();
        latest.sort_unstable();
        latest.into_iter().rev().map(|(_, value)| value)
    }

    /// Since when a value is too old to be believed, where it is.
    fn expiry(&self, track: &Track, now: Timestamp) -> Option<Timestamp> {
        let end = after(track.last_at, reconfirm_seconds(self.kind)?);
        (end < now).then_some(end)
    }
}

impl Track {
    fn new(at: Timestamp) -> Self {
        Self {
            standing: Standing::Said,
            basis: Basis::None,
            streak: None,
            days: BTreeSet::new(),
            valid_from: at,
            valid_to: None,
            last_at: at,
            evidence: Vec::new(),
        }
    }

    /// As if it had never been said; what was said before stays as evidence.
    fn begin_again(&mut self, at: Timestamp) {
        let evidence = std::mem::take(&mut self.evidence);
        *self = Self {
            evidence,
            ..Self::new(at)
        };
    }
}

/// How long a value is believed without being said, where there is an end to it.
fn reconfirm_seconds(kind: &Kind) -> Option<u64> {
    (kind.reconfirm_after_days > 0).then(|| u64::from(kind.reconfirm_after_days) * DAY_SECONDS)
}

fn stronger(left: Basis, right: Basis) -> Basis {
    let rank = |basis: Basis| match basis {
        Basis::None => 0,
        Basis::Days => 1,
        Basis::Remembered => 2,
        Basis::Corrected => 3,
    };
    if rank(right) > rank(left) { right } else { left }
}
