//! The command line: a front end like any other. It finds the configuration, does one thing, and says in one
//! line on standard error what went wrong.

pub mod approvals;
pub mod args;
pub mod audit;
pub mod doctor;
pub mod embed;
pub mod error;
pub mod explain;
pub mod init;
pub mod kb;
pub mod keys;
pub mod mcp;
pub mod memory;
pub mod output;
pub mod prompt;
pub mod triage;
pub mod when;

use std::{
    convert::Infallible,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tidegate_core::clock::Clock;

use self::{
    args::{Arguments, Command, Common},
    error::Error,
    output::Out,
};
use crate::{
    app::{self, App, Purpose},
    clock::{OsEntropy, SystemClock},
    config::{self, Environment, Flags, Loaded, Problem, Settings},
    http,
    lifecycle::{Hangups, Lifecycle, Signals},
    telemetry,
};

/// What every command may need.
#[derive(Debug)]
pub struct Place<'e> {
    /// What the command line says about the configuration.
    pub flags: Flags,
    /// The environment.
    pub environment: &'e Environment,
    /// The working folder.
    pub folder: PathBuf,
}

impl Place<'_> {
    /// Reads the configuration.
    pub fn load(&self) -> Result<Loaded, config::Error> {
        config::load(&self.flags, self.environment)
    }

    /// Reads the configuration and looks everything in it up; the error lists all that is wrong.
    pub fn resolve(&self) -> Result<(Loaded, Settings), config::Error> {
        let loaded = config::read(&self.flags, self.environment)?;
        let settings = Settings::resolve(&loaded, self.environment, &self.folder)?;
        Ok((loaded, settings))
    }

    /// The same for a command that then runs: what only looks wrong is said on standard error.
    fn settings(&self) -> Result<Settings, Error> {
        let (_, settings) = self.resolve()?;
        warn(&settings.warnings);
        Ok(settings)
    }
}

/// Runs one command; the exit code where it did what it should.
pub async fn run(arguments: Arguments, environment: &Environment, out: Out<'_>) -> Result<u8, Error> {
    let place = Place {
        flags: flags(&arguments.common)?,
        environment,
        folder: std::env::current_dir().map_err(|error| {
            Error::Usage(format!(
                "the working folder cannot be read ({error}); change to another one"
            ))
        })?,
    };
    match arguments.command.unwrap_or(Command::Serve) {
        Command::Serve => Box::pin(serve(&place, out)).await?,
        Command::Keys(args::Keys::Generate) => keys::generate(&OsEntropy, out)?,
        Command::Keys(command) => Box::pin(with_keys(&place, &command, out)).await?,
        Command::Config(command) => return show_config(&place, &command, out),
        Command::Doctor(command) => return Box::pin(doctor::run(&place, command.output, out)).await,
        Command::Openapi => writeln!(out, "{}", http::openapi_document())?,
        Command::Prompt(command) => {
            Box::pin(prompt::run(place.settings()?, environment, &command, out)).await?;
        }
        Command::Explain(command) => {
            return Box::pin(explain::run(place.settings()?, environment, &command, out)).await;
        }
        Command::Approvals(command) => Box::pin(with_approvals(&place, &command, out)).await?,
        Command::Triage(command) => triage::run(&place, &command, &mut io::stdin().lock(), out)?,
        Command::Kb(command) => Box::pin(kb::run(place.settings()?, &command, out)).await?,
        Command::Memory(command) => {
            return Box::pin(memory::run(place.settings()?, environment, &command, out)).await;
        }
        Command::Mcp(command) => Box::pin(mcp::run(&place, &command, out)).await?,
        Command::Embed(command) => Box::pin(embed::run(place.settings()?, &command, out)).await?,
        Command::Audit(args::Audit::Verify) => return audit::verify(&place.settings()?, out),
        Command::Init(command) => init::run(&place, &command, out)?,
        Command::Version => writeln!(out, "tidegate {}", env!("CARGO_PKG_VERSION"))?,
    }
    Ok(0)
}

fn flags(common: &Common) -> Result<Flags, Error> {
    let mut settings = Vec::new();
    for pair in &common.settings {
        let (key, text) = pair
            .split_once('=')
            .ok_or_else(|| Error::Usage(format!("--set `{pair}` has no `=`; write --set KEY=VALUE")))?;
        settings.push(("--set".to_owned(), key.trim().to_owned(), text.to_owned()));
    }
    // The flags with a name of their own win over `--set`.
    for (flag, key, text) in [
        ("--data-dir", "data_dir", &common.data_dir),
        ("--bind", "server.bind", &common.bind),
    ] {
        settings.extend(
            text.iter()
                .map(|text| (flag.to_owned(), key.to_owned(), text.clone())),
        );
    }
    Ok(Flags {
        file: common.config.clone(),
        settings,
    })
}

async fn serve(place: &Place<'_>, out: Out<'_>) -> Result<(), Error> {
    let (_, settings) = place.resolve()?;
    let directives = place.environment.get("RUST_LOG");
    // Private where it is new; where it cannot be made, the console is all there is, and says so.
    drop(tidegate_io::files::create_private_dir(&settings.logs));
    let guard =
        telemetry::start(&settings.config.logs, &settings.logs, directives).map_err(app::Error::Part)?;
    guard.mask(Arc::new(app::redactor(&settings, place.environment)?));
    for warning in &settings.warnings {
        tracing::warn!("configuration: {warning}");
    }
    // Before anything is built: a signal during start-up ends it in good order, too.
    let mut signals = Signals::listen().map_err(app::Error::Signals)?;
    let mut hangups = Hangups::listen().map_err(app::Error::Signals)?;
    let lifecycle = Lifecycle::new();
    let outcome = Box::pin(serve_until(
        place,
        settings,
        &lifecycle,
        (&mut signals, &mut hangups),
        out,
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
    (signals, hangups): (&mut Signals, &mut Hangups),
    out: Out<'_>,
) -> Result<(), Error> {
    let drain_ms = settings.config.server.drain_timeout_ms;
    let app = App::build(settings, place.environment, lifecycle, Purpose::Serve).await?;
    app.serve(place.environment, out).await?;
    let ended = tokio::select! {
        ended = lifecycle.shut_down(async || signals.next().await, drain_ms) => ended,
        never = reload_on_hangup(place, &app, hangups) => match never {},
    };
    tracing::info!(?ended, "stopped");
    Ok(())
}

/// Reads the policy again as often as the operator asks for it.
async fn reload_on_hangup(place: &Place<'_>, app: &App, hangups: &mut Hangups) -> Infallible {
    loop {
        hangups.next().await;
        let fresh = place.resolve().map(|(_, settings)| settings);
        // What is wrong is in the log, and the last good policy in force.
        drop(Box::pin(app.reload_policy(fresh.map_err(|error| error.to_string()))).await);
    }
}

async fn with_keys(place: &Place<'_>, command: &args::Keys, out: Out<'_>) -> Result<(), Error> {
    let settings = place.settings()?;
    let clock = Arc::new(SystemClock::new(settings.zone.clone()));
    let lifecycle = Lifecycle::new();
    let store = app::open_store(&settings, Arc::clone(&clock) as Arc<dyn Clock>, &lifecycle).await?;
    let desk = keys::Desk {
        store: &store,
        clock: &*clock,
        entropy: &OsEntropy,
        rotation_grace: Duration::from_secs(settings.config.server.rotation_grace_s),
    };
    let outcome = desk.run(command, out).await;
    lifecycle.close().await;
    outcome
}

async fn with_approvals(place: &Place<'_>, command: &args::Approvals, out: Out<'_>) -> Result<(), Error> {
    let settings = place.settings()?;
    let clock = Arc::new(SystemClock::new(settings.zone.clone()));
    let lifecycle = Lifecycle::new();
    let store = app::open_store(&settings, Arc::clone(&clock) as Arc<dyn Clock>, &lifecycle).await?;
    let desk = approvals::Desk {
        store: &store,
        clock: &*clock,
        audit: &settings.config.audit,
        logs: &settings.logs,
        approval_s: settings.config.engine.approval_s,
    };
    let outcome = desk.run(command, out).await;
    lifecycle.close().await;
    outcome
}

fn show_config(place: &Place<'_>, command: &args::Config, out: Out<'_>) -> Result<u8, Error> {
    if let Some(preset) = command.preset {
        write!(out, "{}", init::preset(preset).text)?;
        return Ok(0);
    }
    if command.reference {
        write!(out, "{}", config::reference())?;
        return Ok(0);
    }
    let (loaded, settings) = place.resolve()?;
    warn(&settings.warnings);
    if command.check {
        let file = loaded.file.as_deref().map_or_else(
            || "no tidegate.toml, defaults only".to_owned(),
            |file| Path::display(file).to_string(),
        );
        let count = config::count(settings.warnings.len(), "warning");
        writeln!(out, "The configuration is good ({file}; {count}).")?;
        return Ok(0);
    }
    write!(out, "{}", loaded.shown())?;
    Ok(0)
}

/// Says on standard error what stops nothing.
fn warn(warnings: &[Problem]) {
    for warning in warnings {
        // Where standard error is closed there is nobody to tell.
        drop(writeln!(io::stderr(), "tidegate: warning: {warning}"));
    }
}
