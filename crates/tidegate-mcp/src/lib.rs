//! The MCP client: tools of other servers, behind the same gate as the agent's own.
//!
//! [`Hub`] is the handle and [`Worker`] owns every connection: programs spoken to over their pipes, addresses spoken to
//! over HTTP. [`McpTools`] satisfies the tool box port and takes nothing but an `Authorized<ToolCall>`. A dead, slow or
//! hostile server never hurts a request: nothing waits for a server but a call of its own tool, and that has a
//! deadline, a breaker and a bound. Nothing that a server says about itself counts as permission.
//!
//! The way of a server: `servers_file` reads its entry, `slot` keeps it, `connection` opens it over one of `transport`,
//! `catalog` makes its tools into rows by `names` and `schema`, `registry` holds them all, `toolbox` runs calls.

mod addresses;
mod arguments;
mod breaker;
mod catalog;
mod client;
mod connection;
mod diff;
mod event;
mod hub;
mod library;
mod names;
mod oauth;
mod options;
mod registry;
mod results;
mod schema;
mod servers_file;
mod slot;
mod status;
mod stderr;
mod text;
mod toolbox;
mod transport;

pub use self::{
    catalog::Blocked,
    event::{EVENTS_KEPT, Event, Kind, TEXT_CHARS_MAX},
    hub::{Error, Hub, Parts, Reloaded, Worker},
    oauth::Login,
    options::Options,
    servers_file::{Endpoint, Filter, Handshake, Note, OAuth, References, Server, ServersFile, Wire},
    slot::State,
    status::Status,
    toolbox::McpTools,
};
