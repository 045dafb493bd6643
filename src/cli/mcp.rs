//! `tidegate mcp`: the server for other agents on standard input, and the servers whose tools the agent has.
//!
//! What concerns the file and what was accepted works on the disk itself, also while the daemon runs: it looks at both
//! every two seconds. `test`, `approve` and `login` connect by themselves.

mod desk;
mod file;
mod login;
mod reload;
mod serve;

use super::{Place, args::mcp::Mcp, error::Error, output::Out};
use crate::lifecycle::Lifecycle;

/// Runs a command.
pub async fn run(place: &Place<'_>, command: &Mcp, out: Out<'_>) -> Result<(), Error> {
    if let Mcp::Serve(command) = command {
        return Box::pin(serve::serve(place, command)).await;
    }
    let settings = place.settings()?;
    if !settings.config.mcp.enabled {
        let text = "MCP servers are switched off (`mcp.enabled`)";
        return Err(Error::Refused(text.to_owned()));
    }
    match command {
        Mcp::Serve(_) => Ok(()),
        Mcp::Add(add) => file::add(&settings.config.mcp.file, add, out),
        Mcp::Reload(output) => reload::reload(place, &settings, output.json, out).await,
        Mcp::List(_) | Mcp::Remove(_) | Mcp::Test(_) | Mcp::Approve(_) | Mcp::Login(_) | Mcp::Logout(_) => {
            let lifecycle = Lifecycle::new();
            let done = Box::pin(desk::run(place, settings, &lifecycle, command, out)).await;
            lifecycle.soft.cancel();
            lifecycle.close().await;
            done
        }
    }
}
