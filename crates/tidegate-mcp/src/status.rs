//! How a server stands, for tables.

use tokio::time::Instant;

use crate::{
    Blocked, Endpoint, State, Wire,
    slot::{Slot, millis},
    text,
};

/// The longest word of a server about itself in a table, in characters.
const SHOWN_CHARS_MAX: usize = 80;

/// One server in a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// Its name in the file.
    pub name: String,
    /// Where it stands.
    pub state: State,
    /// `stdio`, `http` or `sse`; `auto` where either of the last two may be.
    pub transport: &'static str,
    /// What it calls itself, and its version: text from outside, cleaned.
    pub software: Option<String>,
    /// The version of the protocol that is spoken.
    pub protocol: Option<String>,
    /// The tools that are offered, by the names that models know.
    pub tools: Vec<String>,
    /// The tools that are held back until their changed definition is approved.
    pub blocked: Vec<Blocked>,
    /// Tools that are left out, each with its reason.
    pub remarks: Vec<String>,
    /// How often it was started again.
    pub restarts: u32,
    /// For how many milliseconds its tools are paused after failures.
    pub paused_ms: Option<u64>,
    /// Messages that were dropped because they came too fast.
    pub dropped: u64,
    /// Whether its word is taken that a tool only reads.
    pub trusts_read_only: bool,
}

impl Status {
    pub(crate) fn of(slot: &Slot) -> Self {
        let catalog = slot.catalog();
        let connection = slot.connection();
        let info = connection.as_ref().and_then(|connection| connection.info());
        let software = info
            .as_ref()
            .and_then(|info| info.server_info.as_ref())
            .map(|software| {
                text::line(
                    &format!("{} {}", software.name, software.version),
                    SHOWN_CHARS_MAX,
                )
            });
        Self {
            name: slot.server.name.clone(),
            state: slot.state(),
            transport: match &slot.server.endpoint {
                Endpoint::Stdio { .. } => "stdio",
                Endpoint::Remote { wire: Wire::Any, .. } => "auto",
                Endpoint::Remote { wire: Wire::Http, .. } => "http",
                Endpoint::Remote { wire: Wire::Sse, .. } => "sse",
            },
            software,
            protocol: info.map(|info| text::line(info.protocol_version.as_str(), SHOWN_CHARS_MAX)),
            tools: catalog.tools.iter().map(|tool| tool.spec.name.clone()).collect(),
            blocked: catalog.blocked.clone(),
            remarks: catalog.remarks.clone(),
            restarts: slot.restarts(),
            paused_ms: slot.breaker.left(Instant::now()).map(millis),
            dropped: connection.map_or(0, |connection| connection.notices.dropped()),
            trusts_read_only: slot.server.trusts_read_only,
        }
    }
}
