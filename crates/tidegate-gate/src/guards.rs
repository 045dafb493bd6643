//! Guards on text: what leaves the process, and what the model is given to read.
//!
//! Some change text (`secrets`, `untrusted`), some refuse what would go out (`address`, `egress`, `outbound`). All
//! are as pure as the floors.

pub mod address;
mod base32;
pub mod egress;
pub mod outbound;
pub mod prompt_leak;
pub mod secrets;
pub mod untrusted;
