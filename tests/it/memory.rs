//! What is remembered of people, through the daemon's front door.

mod api;
mod capture;
mod cli;
mod clock;
mod crash;
mod document;
mod http;
mod isolation;
mod person;
mod poison;
mod recall;
mod rights;
mod settings;
