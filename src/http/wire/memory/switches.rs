//! The switches of people and of keys.

use serde::{Deserialize, Serialize};
use tidegate_core::{
    id::UserId,
    port::{Switch, Switches},
};
use utoipa::ToSchema;

use crate::http::error::ApiError;

/// Which of the two things memory does are on.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(in crate::http) struct MemorySwitches {
    /// Whether anything is learned from finished turns.
    learning: bool,
    /// Whether the agent is told of what is remembered.
    recall: bool,
}

impl From<Switches> for MemorySwitches {
    fn from(Switches { learning, recall }: Switches) -> Self {
        Self { learning, recall }
    }
}

/// A person's switches, and those of the key.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct MemorySettings {
    /// `memory.settings`.
    object: &'static str,
    /// Whose: the key, or `key:user`.
    user: String,
    /// What holds: what either turns off is off.
    in_force: MemorySwitches,
    /// The person's own.
    own: MemorySwitches,
    /// Those of the key, which an administrator turns for all of its people.
    key: MemorySwitches,
}

impl MemorySettings {
    pub(in crate::http) fn of(user: &UserId, own: Switches, key: Switches) -> Self {
        Self {
            object: "memory.settings",
            user: user.to_string(),
            in_force: own.and(key).into(),
            own: own.into(),
            key: key.into(),
        }
    }
}

/// The switches of a key.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct KeyMemory {
    /// The key's public id.
    id: String,
    /// `memory.key_settings`.
    object: &'static str,
    learning: bool,
    recall: bool,
}

impl KeyMemory {
    pub(in crate::http) fn of(id: &str, Switches { learning, recall }: Switches) -> Self {
        Self {
            id: id.to_owned(),
            object: "memory.key_settings",
            learning,
            recall,
        }
    }
}

/// Which switches to turn; absent ones stay. One of them must be there.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct TurnSwitches {
    /// Whether anything is learned from finished turns.
    #[serde(default)]
    learning: Option<bool>,
    /// Whether the agent is told of what is remembered.
    #[serde(default)]
    recall: Option<bool>,
}

impl TurnSwitches {
    /// The switches to turn, and how.
    pub(in crate::http) fn wanted(&self) -> Result<Vec<(Switch, bool)>, ApiError> {
        let wanted: Vec<(Switch, bool)> = [
            self.learning.map(|is_on| (Switch::Learning, is_on)),
            self.recall.map(|is_on| (Switch::Recall, is_on)),
        ]
        .into_iter()
        .flatten()
        .collect();
        if wanted.is_empty() {
            return Err(ApiError::missing("learning"));
        }
        Ok(wanted)
    }
}
