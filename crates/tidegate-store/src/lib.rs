//! Keys, runs, the ledger, held turns, the knowledge base's documents and what is remembered of people in one SQLite file, behind the ports of
//! `tidegate-core`.
//!
//! **One writer, many readers.** SQLite has one writer at a time whatever we do, so all writes go through
//! one queue to one task ([`Worker`]), which puts every command that is waiting into one transaction and
//! answers each after the commit. The journal's short writes, which stand in the way of every request, are made on
//! the caller's own thread while the queue is at rest (`direct`), under the same right to write. Reads go to a small pool of read-only connections and never wait for a
//! write (WAL). A reader sees every commit made before it started, by whichever process, which is why a
//! revoked key is refused on the next request: there is no cache to go stale.
//!
//! **What survives what.** With `synchronous=NORMAL` a commit survives the end of the process at any point;
//! after a power cut the newest commits may be gone, and the file is never damaged. Quota and usage are the
//! exception to "write, then answer": see [`Ledger`](tidegate_core::port::Ledger) and the `ledger` module.
//!
//! **One daemon a file.** Recovery closes what a dead process left open, so it must know that the process is
//! dead: a daemon holds a lock beside the database ([`Store::lock_daemon`]). Other processes may open the
//! same file to manage keys while it runs.
//!
//! **Plain queries.** SQL stands here as static text, checked by tests that run every statement against a
//! real file, not by compile-time macros: a clone builds without a database, a prepared cache or a tool.
//! Parameters are written `$1`, because several statements may then share one list of arguments.
//!
//! A test double for these ports is not needed: open a `Store` in a temporary folder.

mod approvals;
mod direct;
mod erase;
mod error;
mod files;
mod held;
mod inspect;
mod key_cache;
mod keys;
mod knowledge;
mod ledger;
mod memory;
mod options;
mod row;
mod runs;
mod servers;
mod store;
mod writer;

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod tests;

pub use error::Error;
pub use inspect::{Inspection, inspect};
pub use options::Options;
pub use servers::{LOGIN_KEY_BYTES, SealedLogins};
pub use store::Store;
pub use tidegate_core::port::Erased;
pub use writer::Worker;
