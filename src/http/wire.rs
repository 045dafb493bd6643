//! The shapes of the OpenAI API. They never leave `http`: a request becomes a `RunRequest`, and answers are
//! made out of `RunEvent`s.

pub(super) mod answer;
pub(super) mod approvals;
pub(super) mod capabilities;
pub(super) mod chat;
pub(super) mod json;
pub(super) mod keys;
pub(super) mod knowledge;
pub(super) mod memory;
pub(super) mod messages;
pub(super) mod sampling;
pub(super) mod servers;
pub(super) mod sources;
pub(super) mod tools;
