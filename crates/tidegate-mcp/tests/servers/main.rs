//! The client against scripted servers, through its public face and the real gate.

// Always on here; it tells clippy that the helpers belong to tests, too.
#![cfg(test)]

mod desk;
mod hostile;
mod http;
mod oauth;
mod stdio;
