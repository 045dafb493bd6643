//! Memory: what a person said about themselves, and what follows from it.
//!
//! An [`Observation`] is evidence: what was said, word for word, when and where. A [`Fact`] is derived from all of a
//! person's observations by a pure function, and is never changed by hand.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::{
    clock::Timestamp,
    id::{FactId, ObservationId},
};

/// In which way something was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Voice {
    /// In passing: counts as one day's evidence.
    Stated,
    /// "Remember that …": believed at once.
    Remembered,
    /// By the person through the memory API or the terminal: believed at once, and takes the place of what was there.
    Corrected,
    /// In passing, and it came here by an import: counts as one day's evidence, of the day on which it was said.
    Imported,
}

/// Whether it was said that something is so, or that it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stance {
    /// It is so.
    #[default]
    Affirmed,
    /// It is not, or no longer.
    Retracted,
}

/// One piece of evidence: what one person said in one turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Its id.
    pub id: ObservationId,
    /// What it is about, by a name in the table of kinds.
    pub kind: String,
    /// The value as it is compared, such as `4` for "4th grade".
    pub value: String,
    /// The person's own words that say so.
    pub quote: String,
    /// Which turn it stood in: the same for a turn that is sent again or edited.
    pub turn: [u8; 32],
    /// The conversation, as a digest.
    pub conversation: String,
    /// The local day on which it was said.
    pub day: Date,
    /// When it was said.
    pub at: Timestamp,
    /// In which way.
    pub voice: Voice,
    /// Whether it is so or not.
    pub stance: Stance,
    /// Who found it in the turn: `rules`, or a model's name.
    pub extractor: String,
    /// Whether the person said it outright, instead of it following from what was said.
    pub is_explicit: bool,
    /// Whether the person said it of themselves.
    pub is_first_person: bool,
}

/// What is to be made of a fact now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactState {
    /// Said, and not yet often enough.
    Candidate,
    /// Believed.
    Stable,
    /// Believed until something else was said; neither is certain now.
    Contested,
    /// Another value has taken its place.
    Superseded,
    /// Too old to be believed without being said again.
    Expired,
    /// The person said that it is not so.
    Retracted,
}

impl FactState {
    /// The state's name on the wire, in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Candidate => "candidate",
            Self::Stable => "stable",
            Self::Contested => "contested",
            Self::Superseded => "superseded",
            Self::Expired => "expired",
            Self::Retracted => "retracted",
        }
    }
}

/// Why a fact is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// It was said on enough days.
    Days,
    /// The person said that it be remembered.
    Remembered,
    /// The person put it right.
    Corrected,
    /// It is not believed yet.
    None,
}

/// What follows from a person's observations of one kind and value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// Its id: the same whenever it is derived from the same person, kind and value.
    pub id: FactId,
    /// What it is about.
    pub kind: String,
    /// The value.
    pub value: String,
    /// What is to be made of it now.
    pub state: FactState,
    /// Why it is believed.
    pub basis: Basis,
    /// On how many days it was said, since it was last taken back or replaced.
    pub days: u32,
    /// Since when it holds: when it was first said, and where other values stood against it, when the days began that
    /// settled it.
    pub valid_from: Timestamp,
    /// Until when it held, where it no longer does.
    pub valid_to: Option<Timestamp>,
    /// When it was last said.
    pub last_at: Timestamp,
    /// What took its place, or stands against it.
    pub other: Option<FactId>,
    /// The observations it rests on, oldest first; what was sent again is not among them.
    pub evidence: Vec<ObservationId>,
}
