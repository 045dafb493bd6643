//! The only doors out of the process: files, programs, logs and HTTP.
//!
//! Nothing else in the workspace opens a file of the model's choosing, starts a program or dials a peer. Each
//! door decides on the thing that is used, in the form in which it is used: the opened handle and not the
//! path, the argv and not a command text. Deciding whether something *may* be used is the gate's work
//! (`tidegate-gate`); this crate makes sure that what was judged is what is touched.

pub mod chain;
pub mod child;
pub mod files;
pub mod guarded;
pub mod http;
pub mod lines;
pub mod operator_files;
pub mod process;
pub mod sandbox;
pub mod terminal;
