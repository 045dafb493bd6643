//! The API's own surface: who is let in, what is refused and how, and the exact form of what goes out.

mod admin;
mod approvals_wire;
mod auth;
mod browser;
mod capabilities;
mod document;
mod envelope;
mod fields;
pub(crate) mod keys;
mod models;
mod no_model;
mod refusals;
mod secrecy;
mod settings;
mod stopping;
mod streaming;
mod upstream_faults;
