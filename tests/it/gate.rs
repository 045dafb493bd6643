//! The gate in the running daemon: what the worst model could do, and what broken input does to its parts.

mod fuzz_seeds;
mod masked;
mod reload;
mod worst_case;
