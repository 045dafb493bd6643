//! The words everyone in tidegate uses, and the ports the engine needs.
//!
//! Floor 0: nothing of ours lies below. This crate promises plain data, no I/O and no runtime: it knows
//! no tokio, no HTTP, no SQL and no files. An adapter satisfies a trait of [`port`]; a front end builds a
//! request out of the words; the engine moves between the two.
//!
//! Reading order: who ([`caller`]), what they say ([`message`]), what the agent may do ([`tool`]), what it
//! costs ([`usage`]), what can go wrong ([`error`]), and what the engine needs from outside ([`port`]).

pub mod approval;
pub mod caller;
pub mod clock;
pub mod embedding;
pub mod error;
pub mod glob;
pub mod id;
pub mod key;
pub mod knowledge;
pub mod lenient;
pub mod markup;
pub mod memory;
pub mod message;
pub mod model;
pub mod port;
pub mod run;
pub mod secret;
pub mod tool;
pub mod usage;
