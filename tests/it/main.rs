//! One integration binary: the real daemon, through its front door, with a scripted model server behind it.

mod cli;
mod engine;
mod http;
mod support;
mod tidy;
