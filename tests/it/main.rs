//! One integration binary: the real daemon, through its front door, with a scripted model server behind it.

// `cfg(test)` is always on here; it tells clippy that the helpers belong to tests, too.
#[cfg(test)]
mod cli;
#[cfg(test)]
mod engine;
#[cfg(test)]
mod gate;
#[cfg(test)]
mod http;
#[cfg(test)]
mod knowledge;
#[cfg(test)]
mod mcp_client;
#[cfg(test)]
mod mcp_server;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod sandbox;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tidy;
