//! The edge of tidegate, and the wiring. In reading order:

pub mod app; // composition root: options → stores, model, tools, gate, engine → App
pub mod audit; // the audit trail: who was allowed to do what
pub mod cli; // front end: the command line
pub mod clock; // time and chance, as the operating system gives them
pub mod config; // one options struct an area, read once from file, environment and flags
pub mod hooks; // external commands as hooks
pub mod http; // front end: the OpenAI-compatible API
pub mod keys; // the key format: generate, parse, hash, compare
pub mod lifecycle; // signals, soft and hard shutdown, tracked tasks
pub mod mcp; // front end: the Model Context Protocol, over HTTP and standard input
pub mod parse_child; // the hidden re-exec entry: read one document inside walls
pub mod sandbox_child; // the hidden re-exec entry: confine this process, then run
pub mod telemetry; // tracing to the console and logs/
#[cfg(feature = "testing")]
pub mod testing; // a scripted clock, in builds for tests only
