//! The real binary in a folder of its own, a scripted model server behind it, and a client in front.

mod client;
mod daemon;

pub use client::{Answer, Chat, chunks};
pub use daemon::{Daemon, Setup, fresh_key, outcome};
