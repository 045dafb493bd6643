//! The command line, as a person and a script use it.

mod audit;
mod config;
mod doctor;
mod documents;
mod explain;
mod first_run;
mod keys;
mod preset;
mod settings;
mod triage;
