//! Loopback peers for tests and benchmarks: real servers on real sockets that play a script.
//!
//! Nothing here is part of the product. The peers stand for the *outside* (a model server), so that a test
//! exercises our own code whole, from socket to socket.

pub mod chroma;
pub mod embeddings;
pub mod files;
pub mod upstream;

pub use chroma::{Chroma, ChromaFault};
pub use embeddings::Embeddings;
pub use files::{Files, Served};
pub use upstream::{Received, Reply, Upstream};

/// A TCP port of the loopback interface that was free a moment ago.
pub fn free_port() -> std::io::Result<u16> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    Ok(listener.local_addr()?.port())
}
