//! The wires: a program's pipes, streamable HTTP, and the older transport of two connections.
//!
//! All stand behind the SDK's transport trait and in one wrapper ([`watched`]), which takes what a server says
//! unasked out of the stream before the SDK would start a task for it.

pub(crate) mod events;
pub(crate) mod http;
pub(crate) mod sse;
pub(crate) mod stdio;
pub(crate) mod watched;

/// Why a message could not be sent or a connection not be opened. Never holds a header or a body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// The pipe to the program broke.
    #[error("the program does not take what it is sent: {0}")]
    Pipe(String),
    /// The message cannot be put into JSON.
    #[error("the message cannot be written: {0}")]
    Message(String),
    /// No exchange came about.
    #[error(transparent)]
    Http(#[from] tidegate_io::http::Error),
    /// The server answered with a status that is none of success.
    #[error("the server answered with status {status}{}", said(.text))]
    Status {
        /// The status.
        status: u16,
        /// The beginning of what it said, cleaned.
        text: String,
    },
    /// The server sends elsewhere, which is not followed: the credentials would go along.
    #[error(
        "the server redirects to another address, which is not followed; write the final address in `url`"
    )]
    Redirect,
    /// Nobody has logged in, or the login has ended.
    #[error("it wants somebody to log in: `tidegate mcp login`")]
    Login,
    /// The server does not speak as it should.
    #[error("the server does not speak the protocol: {0}")]
    Protocol(String),
}

fn said(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(" ({text})")
    }
}
