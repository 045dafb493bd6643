//! What the fuzz targets run.
//!
//! `cargo +nightly fuzz run shell fuzz/seeds/shell` (or `url`, `redactor`, `path`) from the top folder. The tests
//! of the product feed the same seeds, and mutations of them, through the same functions without a fuzzer.

pub mod targets;
