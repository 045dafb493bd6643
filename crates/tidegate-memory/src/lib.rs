//! Memory: what may be kept about a person, and what follows from it.
//!
//! Pure functions over words, without I/O, clock or model. Only what a person said in their own words can become an
//! observation ([`boundary`]); facts are derived from observations and never promoted in place ([`mod@derive`]); what the
//! agent is told are notes about a person, never instructions ([`briefing`]). Nothing here is read by the gate.

pub mod boundary;
pub mod briefing;
pub mod derive;
pub mod evidence;
pub mod export;
pub mod extract;
pub mod kinds;
pub mod recall;
