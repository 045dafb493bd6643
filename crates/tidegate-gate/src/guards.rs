//! Guards on text: what leaves the process, and what the model is given to read.
//!
//! They change text where floors refuse calls, and are as pure.

pub mod secrets;
pub mod untrusted;
