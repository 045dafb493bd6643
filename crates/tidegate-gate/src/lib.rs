//! Authority, as pure functions. No I/O of any kind, no clock, and never the model's opinion.
//!
//! [`PermissionGate::decide`] is asked before every tool call and is the only maker of [`Authorized`]; the
//! [`ToolBox`] port takes nothing less, so no code in the loop, however written, can reach a runner any other
//! way. What the gate must know about the world (real paths, link counts) is resolved by the caller and handed
//! in as [`Facts`]; the runner asserts again what it must never see.
//!
//! Layers are asked in a fixed order and each can only refuse: a layer added later never turns a refusal into
//! an allow. To add one, write a pure function in `floors/` or `guards/` with its own tests and name it in the
//! ordered list there.

pub mod authorized;
pub mod caps;
pub mod facts;
pub mod floors;
pub mod gate;
pub mod grant;
pub mod guards;
pub mod host;
pub mod mode;
pub mod shell;
pub mod toolbox;
pub mod zones;

#[cfg(test)]
mod testing;

pub use authorized::Authorized;
pub use facts::{Access, Facts, PathFact, PathFault, PathKind, ResolvedPath};
pub use gate::explain::{Explanation, FLOORS, Outlook, Step, StepVerdict};
pub use gate::{Basis, Decision, Denial, PermissionGate, Policy, Question, Session};
pub use grant::{Fingerprint, Grant, hex};
pub use host::{CallHost, NoHost, Notice, Sample, SampleMessage, SampleRefusal, SampleRequest};
pub use toolbox::{Learner, ToolBox, ToolContext};
pub use zones::{ZoneEntries, ZoneVerdict, Zones};
