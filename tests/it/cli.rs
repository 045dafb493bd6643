//! The command line, as a person and a script use it.

mod config;
mod doctor;
mod documents;
mod first_run;
mod keys;
mod settings;
