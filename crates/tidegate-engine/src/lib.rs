//! One turn, start to finish.
//!
//! [`Engine::run`] is the one entry every front end calls: it opens the run's journal, composes the prompt
//! from disk, asks the routing gate, and works in waves until the model has answered or a bound is met. What a
//! front end sees is the [`event::RunEvent`] stream; streaming and not streaming are two encoders of it.
//!
//! The engine knows words, authority and ports, and nothing else: no HTTP, no SQL, no way to run a tool but
//! `ToolBox::run(Authorized<ToolCall>)`.
//!
//! Reading order: [`run`] opens and closes a turn, `prepare` makes it out of a request, `merge` is the one
//! loop over waves, `planner` asks the model, `invoke` is the only path to a tool.

mod allowance;
mod approval;
mod budget;
pub mod call;
pub mod capabilities;
mod emitter;
pub mod event;
pub mod explain;
mod graph;
mod guard;
mod heard;
pub mod hooks;
mod host;
mod invoke;
pub mod memory;
mod merge;
mod meter;
mod model_log;
mod notes;
pub mod options;
pub mod parse;
mod planner;
mod prepare;
pub mod prompt;
pub mod request;
mod results;
pub mod routing;
pub mod run;
mod sampling;
pub mod sources;
mod tool_log;
mod toolset;
mod trail;
mod turn;
pub mod viewer;
pub mod waves;

pub use call::{CallEnd, CallRequest};
pub use event::{Finished, Outcome, RunError, RunEvent};
pub use memory::Memory;
pub use options::Options;
pub use request::{Lease, RunRequest};
pub use run::{Engine, Parts, SECRECY_REFUSAL};
pub use sources::Sources;
pub use viewer::Run;
