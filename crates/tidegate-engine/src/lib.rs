//! One turn, start to finish.
//!
//! [`Engine::run`] is the one entry every front end calls: it opens the run's journal, composes the prompt
//! from disk, asks the routing gate, and works in waves until the model has answered or a bound is met. What a
//! front end sees is the [`event::RunEvent`] stream; streaming and not streaming are two encoders of it.
//!
//! The engine knows words, authority and ports, and nothing else: no HTTP, no SQL, no way to run a tool but
//! `ToolBox::run(Authorized<ToolCall>)`.

pub mod event;
pub mod hooks;
pub mod options;
pub mod parse;
pub mod prompt;
pub mod request;
pub mod routing;
pub mod run;

pub use event::{Finished, Outcome, RunError, RunEvent};
pub use options::Options;
pub use request::RunRequest;
pub use run::{Engine, Parts, Run};
