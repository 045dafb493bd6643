//! The real binary in a folder of its own, a scripted model server behind it, and a client in front.

mod client;
mod daemon;

pub(crate) use client::{Answer, Chat};
pub(crate) use daemon::{Daemon, Setup, outcome};
