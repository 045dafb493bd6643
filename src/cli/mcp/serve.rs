//! `tidegate mcp serve`: the protocol on standard input and output. Standard output belongs to it alone; what is to be
//! logged goes to standard error and the logs folder.

use std::sync::Arc;

use tidegate_core::secret::Secret;

use crate::{
    app::{self, App, Purpose},
    cli::{Place, args::mcp::Serve, error::Error},
    config::{Settings, secret},
    lifecycle::{Lifecycle, Signals},
    mcp::stdio,
    telemetry,
};

/// Where the key stands.
const VARIABLE: &str = "TIDEGATE_KEY";

/// Serves until the client closes its end.
pub(super) async fn serve(place: &Place<'_>, command: &Serve) -> Result<(), Error> {
    let (_, settings) = place.resolve()?;
    if !settings.config.mcp_server.enabled {
        let text = "`mcp_server.enabled` is false: set it to true to serve other agents";
        return Err(Error::Refused(text.to_owned()));
    }
    let key = key(place, &settings)?;
    // Private where it is new; where it cannot be made, the console is all there is, and says so.
    drop(tidegate_io::files::create_private_dir(&settings.logs));
    let directives = place.environment.get("RUST_LOG");
    let guard =
        telemetry::start(&settings.config.logs, &settings.logs, directives).map_err(app::Error::Part)?;
    guard.mask(Arc::new(app::redactor(&settings, place.environment)?));
    let mut signals = Signals::listen().map_err(app::Error::Signals)?;
    let lifecycle = Lifecycle::new();
    let outcome = Box::pin(serve_until(
        place,
        settings,
        &lifecycle,
        &mut signals,
        (key, command),
    ))
    .await;
    lifecycle.close().await;
    drop(guard);
    outcome
}

async fn serve_until(
    place: &Place<'_>,
    settings: Settings,
    lifecycle: &Lifecycle,
    signals: &mut Signals,
    (key, command): (Secret, &Serve),
) -> Result<(), Error> {
    let drain_ms = settings.config.server.drain_timeout_ms;
    let bind = settings.bind;
    let built = App::build(settings, place.environment, lifecycle, Purpose::Serve).await;
    let app = built.map_err(|error| {
        let is_taken = matches!(
            error,
            app::Error::Database(tidegate_store::Error::DaemonRunning { .. })
        );
        if !is_taken {
            return Error::App(error);
        }
        let text = "another tidegate has the database; connect to its address instead";
        Error::Refused(format!("{text}, http://{bind}/mcp"))
    })?;
    app.attend();
    let door = app.mcp_door(key, command.user.clone());
    let serving = async {
        let ended = stdio::serve(app.mcp(), door).await;
        lifecycle.soft.cancel();
        ended
    };
    let (ended, _) = tokio::join!(
        serving,
        lifecycle.shut_down(async || signals.next().await, drain_ms)
    );
    ended.map_err(|error| Error::Refused(error.to_string()))
}

/// The key that the command acts with.
pub(super) fn key(place: &Place<'_>, settings: &Settings) -> Result<Secret, Error> {
    let text = place.environment.get(VARIABLE).ok_or_else(|| {
        Error::Usage(format!(
            "no key: set {VARIABLE} to one that `tidegate keys create` made, itself or as file:PATH"
        ))
    })?;
    // A key itself is no reference; only where it stands in a file is there something to look up.
    let resolved = if text.starts_with(crate::keys::PREFIX) {
        Ok(Secret::new(text.trim()))
    } else {
        secret::resolve(text, place.environment, &settings.home)
    };
    resolved.map_err(|problem| Error::Usage(format!("{VARIABLE}: {problem}")))
}
