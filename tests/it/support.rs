//! The real binary in a folder of its own, a scripted model server behind it, and a client in front.

mod client;
mod daemon;
mod home;
mod raw;

pub(crate) use client::{Answer, Chat, chunks, http_client};
pub(crate) use daemon::{Daemon, Setup, outcome, signal};
pub(crate) use home::{Home, Served};
pub(crate) use raw::Raw;
