//! The command line, as a person and a script use it.

mod config;
mod doctor;
mod first_run;
mod keys;
