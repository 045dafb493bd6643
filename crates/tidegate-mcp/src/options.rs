//! The bounds of the client, one for all servers; a server's entry can set its own deadlines.

use serde::{Deserialize, Serialize};

/// How much of a server is taken, and how long it is waited for. `[mcp]` in `tidegate.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// How long one call may take where the server's entry says nothing, in milliseconds.
    pub timeout_ms: u64,
    /// How long a server may take from its start to the end of the handshake, in milliseconds.
    pub connect_timeout_ms: u64,
    /// How long one list (tools, resources, prompts) may take, in milliseconds.
    pub list_timeout_ms: u64,
    /// How many servers are read from the file; more are reported and not started.
    pub servers_max: usize,
    /// How many tools of one server are offered; more are reported and left out.
    pub tools_max: usize,
    /// The longest message taken from a server, in bytes. A longer one fails the call it answers.
    pub message_bytes_max: usize,
    /// How much text of one result is kept, in bytes. The model sees its beginning and asks for the rest.
    pub result_bytes_max: usize,
    /// The longest description of a tool that a model is shown, in characters.
    pub description_chars_max: usize,
    /// The largest schema of a tool's arguments that a model is shown, in bytes of JSON.
    pub schema_bytes_max: usize,
    /// How many calls of one server may be under way; one more is refused at once.
    pub calls_max: usize,
    /// How many failures in a row pause a server.
    pub breaker_failures: u32,
    /// How long such a pause lasts, in milliseconds.
    pub breaker_open_ms: u64,
    /// How long after its end a server is started again, in milliseconds; twice as long each time it ends early.
    pub restart_delay_ms: u64,
    /// The longest wait before a server is started again, in milliseconds.
    pub restart_delay_max_ms: u64,
    /// How often the file of servers is looked at for changes, in milliseconds; 0 is never.
    pub watch_ms: u64,
    /// How long calls that are under way may go on when their server is replaced or stopped, in milliseconds.
    pub drain_ms: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeout_ms: 30_000,
            connect_timeout_ms: 60_000,
            list_timeout_ms: 30_000,
            servers_max: 64,
            tools_max: 256,
            message_bytes_max: 16 << 20,
            result_bytes_max: 1 << 20,
            description_chars_max: 1024,
            schema_bytes_max: 16 << 10,
            calls_max: 32,
            breaker_failures: 3,
            breaker_open_ms: 60_000,
            restart_delay_ms: 500,
            restart_delay_max_ms: 300_000,
            watch_ms: 2_000,
            drain_ms: 60_000,
        }
    }
}
