//! The HTTP front end's settings. `[server]` in `tidegate.toml`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Where the API listens, whom it answers, and every bound of the front door.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// The address and port to listen on. Another address than loopback also needs `allowed_hosts`.
    pub bind: String,
    /// Host names that a request may carry, without a port. Empty: the loopback names (`localhost`,
    /// `127.0.0.1`, `[::1]`), with any port. A page whose name was pointed at this machine is stopped here.
    pub allowed_hosts: Vec<String>,
    /// Web origins whose pages may call the API, such as `https://chat.example`. Every other origin gets 403.
    pub cors_origins: Vec<String>,
    /// The largest request body, in bytes; above it 413.
    pub body_bytes_max: usize,
    /// Bytes of memory that the bodies of requests under way may take together, each counted as four times its
    /// length; above it 503. One key has at most half, and one body at most half as well.
    pub bodies_bytes_max: usize,
    /// How long a whole request body may take to arrive, in milliseconds.
    pub body_timeout_ms: u64,
    /// How long a request head may take to arrive, in milliseconds; also how long a connection may idle.
    pub header_timeout_ms: u64,
    /// How long a client may take none of the bytes that wait for it, in milliseconds; then its connection is
    /// closed, of HTTP/2 the stream alone.
    pub write_timeout_ms: u64,
    /// Connections open at once; above it a connection is answered 503 and closed.
    pub connections_max: usize,
    /// Requests under way at once, streams included; above it 503.
    pub requests_max: usize,
    /// How often a silent stream carries a comment, in seconds, so that proxies keep it open.
    pub keepalive_comment_s: u64,
    /// A header that names the end user (such as `x-user-id`), for clients that cannot set `user` in the body.
    pub user_header: Option<String>,
    /// Whether pictures may be given as http(s) addresses for the model's server to fetch. Off: such a
    /// picture is 400.
    pub remote_images: bool,
    /// How long streams may go on after a stop was asked for, in milliseconds; then they end with an error event.
    pub stream_grace_ms: u64,
    /// How long a stop waits for open requests, in milliseconds; then their connections are closed.
    pub drain_timeout_ms: u64,
    /// How long a rotated key's old secret opens when the request names no time, in seconds.
    pub rotation_grace_s: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bind: "127.0.0.1:8088".to_owned(),
            allowed_hosts: Vec::new(),
            cors_origins: Vec::new(),
            body_bytes_max: 32 << 20,
            bodies_bytes_max: 256 << 20,
            body_timeout_ms: 30_000,
            header_timeout_ms: 10_000,
            write_timeout_ms: 60_000,
            connections_max: 8192,
            requests_max: 1024,
            keepalive_comment_s: 10,
            user_header: None,
            remote_images: false,
            stream_grace_ms: 5_000,
            drain_timeout_ms: 10_000,
            rotation_grace_s: 3_600,
        }
    }
}

impl Options {
    pub(crate) fn body_timeout(&self) -> Duration {
        Duration::from_millis(self.body_timeout_ms)
    }

    pub(crate) fn header_timeout(&self) -> Duration {
        Duration::from_millis(self.header_timeout_ms)
    }

    pub(crate) fn write_timeout(&self) -> Duration {
        Duration::from_millis(self.write_timeout_ms)
    }

    pub(crate) fn stream_grace(&self) -> Duration {
        Duration::from_millis(self.stream_grace_ms)
    }

    pub(crate) fn drain_timeout(&self) -> Duration {
        Duration::from_millis(self.drain_timeout_ms)
    }

    /// A comment at least every second, whatever was configured.
    pub(crate) fn keepalive(&self) -> Duration {
        Duration::from_secs(self.keepalive_comment_s.max(1))
    }
}
