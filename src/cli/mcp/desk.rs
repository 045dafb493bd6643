//! What needs the database: which tools are accepted, and connections of the command's own.

use std::{io::Write as _, path::Path, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tidegate_core::{
    clock::{Clock, Entropy},
    port::{FileFault, OperatorFiles, ToolPins as _},
};
use tidegate_io::operator_files::Disk;
use tidegate_mcp::{Endpoint, Hub, Note, Server, ServersFile, State, Status, Wire, Worker};
use tidegate_store::Store;

use super::{file, login};
use crate::{
    app::{self, servers},
    cli::{
        Place,
        args::mcp::{Approve, Mcp, OneServer},
        error::Error,
        output::{self, Out},
    },
    clock::{OsEntropy, SystemClock},
    config::Settings,
    lifecycle::Lifecycle,
};

/// How often a server that is being connected to is looked at.
const TICK: Duration = Duration::from_millis(50);
/// The largest file of servers, in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;
/// What is typed to accept a change.
const CONFIRMATION: &str = "yes";

/// What the commands work with.
pub(super) struct Desk {
    settings: Settings,
    store: Arc<Store>,
    hub: Hub,
    references: servers::Referred,
}

/// Runs a command that needs the database.
pub(super) async fn run(
    place: &Place<'_>,
    settings: Settings,
    lifecycle: &Lifecycle,
    command: &Mcp,
    out: Out<'_>,
) -> Result<(), Error> {
    let (desk, worker) = Desk::open(place, settings, lifecycle).await?;
    match command {
        Mcp::List(output) => desk.list(output.json, out).await,
        Mcp::Remove(one) => desk.remove(one, out).await,
        Mcp::Test(one) => {
            desk.connect(&one.name, worker, lifecycle).await?;
            desk.test(one, out)
        }
        Mcp::Approve(approve) => {
            desk.connect(&approve.name, worker, lifecycle).await?;
            desk.approve(approve, out).await
        }
        Mcp::Login(one) => {
            lifecycle.tracker.spawn(worker.run(lifecycle.soft.clone()));
            desk.known(&one.name)?;
            desk.read_by_hub().await?;
            login::login(&desk.hub, &one.name, out).await
        }
        Mcp::Logout(one) => {
            desk.known(&one.name)?;
            let was_there = desk
                .hub
                .logout(&one.name)
                .await
                .map_err(|error| refused(&error))?;
            let text = if was_there {
                "The login is forgotten"
            } else {
                "There was no login"
            };
            Ok(writeln!(out, "{text} at `{}`.", output::plain(&one.name))?)
        }
        Mcp::Serve(_) | Mcp::Add(_) | Mcp::Reload(_) => Ok(()),
    }
}

fn refused(error: &tidegate_mcp::Error) -> Error {
    Error::Refused(error.to_string())
}

impl Desk {
    async fn open(
        place: &Place<'_>,
        settings: Settings,
        lifecycle: &Lifecycle,
    ) -> Result<(Self, Worker), Error> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new(settings.zone.clone()));
        let entropy: Arc<dyn Entropy> = Arc::new(OsEntropy);
        let store = Arc::new(app::open_store(&settings, Arc::clone(&clock), lifecycle).await?);
        let redactor = app::redactor(&settings, place.environment)?;
        let tools = app::open_tools(&settings, &redactor.values(), None)?;
        let files: Arc<dyn OperatorFiles> = Arc::new(Disk);
        let house = servers::House {
            store: &store,
            network: tools.network(),
            environment: place.environment,
            files: &files,
            clock: &clock,
            entropy: &entropy,
        };
        let (hub, worker) = servers::open(&settings, &house)?
            .ok_or_else(|| Error::Refused("MCP servers are switched off (`mcp.enabled`)".to_owned()))?;
        let references = servers::Referred {
            environment: place.environment.clone(),
            home: settings.home.clone(),
        };
        let desk = Self {
            settings,
            store,
            hub,
            references,
        };
        Ok((desk, worker))
    }

    fn path(&self) -> &Path {
        &self.settings.config.mcp.file
    }

    /// What the file says.
    fn file(&self) -> Result<ServersFile, Error> {
        let options = &self.settings.config.mcp;
        let text = match Disk.read(&options.file, FILE_BYTES_MAX) {
            Ok(text) => text,
            Err(FileFault::Missing(_)) => return Ok(ServersFile::default()),
            Err(fault @ FileFault::Unreadable { .. }) => return Err(Error::Refused(fault.to_string())),
        };
        ServersFile::parse(&text, options.client.servers_max, &self.references)
            .map_err(|note| Error::Refused(format!("`{}`: {note}", self.path().display())))
    }

    /// The entry of that name, or what is wrong with it.
    fn known(&self, name: &str) -> Result<Server, Error> {
        let file = self.file()?;
        if let Some(server) = file.servers.into_iter().find(|server| server.name == name) {
            return Ok(server);
        }
        if let Some(note) = file.problems.iter().find(|note| note.server == name) {
            return Err(Error::Refused(note.to_string()));
        }
        Err(Error::NotFound(format!(
            "`{}` has no server `{name}`; `tidegate mcp list` shows those there are",
            self.path().display()
        )))
    }

    async fn list(&self, is_json: bool, out: Out<'_>) -> Result<(), Error> {
        let file = self.file()?;
        let mut rows = Vec::new();
        let mut views = Vec::new();
        for server in &file.servers {
            let accepted = self.store.of_server(&server.name).await?.len();
            views.push(view(server, accepted));
            rows.push(vec![
                server.name.clone(),
                if server.enabled { "on" } else { "off" }.to_owned(),
                transport(server).to_owned(),
                if server.trusts_read_only {
                    "read-only"
                } else {
                    "none"
                }
                .to_owned(),
                accepted.to_string(),
                place_of(server),
            ]);
        }
        if is_json {
            let texts = |notes: &[Note]| notes.iter().map(Note::to_string).collect::<Vec<_>>();
            let whole = json!({"servers": views, "problems": texts(&file.problems), "warnings": texts(&file.warnings)});
            return Ok(output::json(out, &whole)?);
        }
        if rows.is_empty() {
            writeln!(
                out,
                "No server stands in {}; add one with `tidegate mcp add NAME -- PROGRAM ARGUMENTS`.",
                self.path().display()
            )?;
        } else {
            let head = ["NAME", "SWITCH", "TRANSPORT", "TRUST", "TOOLS ACCEPTED", "WHERE"];
            output::columns(out, &head, &rows)?;
        }
        for note in file.problems.iter().chain(&file.warnings) {
            writeln!(out, "{}", output::plain(&note.to_string()))?;
        }
        Ok(())
    }

    async fn remove(&self, one: &OneServer, out: Out<'_>) -> Result<(), Error> {
        let was_there = file::remove(self.path(), &one.name)?;
        let pins = self.store.forget_server(&one.name).await?;
        let had_login = self
            .hub
            .logout(&one.name)
            .await
            .map_err(|error| refused(&error))?;
        if !was_there && pins == 0 && !had_login {
            return Err(Error::NotFound(format!("there is no server `{}`", one.name)));
        }
        if one.output.json {
            let view = json!({"name": one.name, "removed": was_there, "tools_forgotten": pins, "login_forgotten": had_login});
            return Ok(output::json(out, &view)?);
        }
        Ok(writeln!(
            out,
            "The server `{}` is taken out.",
            output::plain(&one.name)
        )?)
    }

    /// Has the hub read the file.
    async fn read_by_hub(&self) -> Result<(), Error> {
        self.hub.reload().await.map(drop).map_err(|error| refused(&error))
    }

    /// Connects to one server, whether or not it is switched on, and waits until it is there or is not.
    async fn connect(&self, name: &str, worker: Worker, lifecycle: &Lifecycle) -> Result<(), Error> {
        let server = self.known(name)?;
        lifecycle
            .tracker
            .spawn(worker.only(name).run(lifecycle.soft.clone()));
        let options = &self.settings.config.mcp.client;
        let connect_ms = server.connect_timeout_ms.unwrap_or(options.connect_timeout_ms);
        let limit = Duration::from_millis(connect_ms.saturating_add(options.list_timeout_ms));
        let settled = tokio::time::timeout(limit, async {
            loop {
                match self.status(name).map(|status| status.state) {
                    Some(State::Ready) => return Ok(()),
                    Some(State::Down { reason, .. }) => {
                        return Err(Error::Refused(format!("the server `{name}` is down: {reason}")));
                    }
                    Some(State::Starting | State::Disabled) | None => tokio::time::sleep(TICK).await,
                }
            }
        });
        settled
            .await
            .map_err(|_elapsed| Error::Refused(format!("the server `{name}` did not answer in time")))?
    }

    fn status(&self, name: &str) -> Option<Status> {
        self.hub.status().into_iter().find(|status| status.name == name)
    }

    fn test(&self, one: &OneServer, out: Out<'_>) -> Result<(), Error> {
        let Some(status) = self.status(&one.name) else {
            return Err(Error::NotFound(format!("there is no server `{}`", one.name)));
        };
        let specs = self.hub.specs_of(&one.name);
        if one.output.json {
            let tools: Vec<Value> = specs
                .iter()
                .map(
                    |spec| json!({"name": spec.name, "effect": spec.effect, "description": spec.description}),
                )
                .collect();
            let blocked: Vec<Value> = status
                .blocked
                .iter()
                .map(|blocked| json!({"name": blocked.name, "diff": blocked.diff, "digest": blocked.digest}))
                .collect();
            let view = json!({
                "name": status.name, "software": status.software, "protocol": status.protocol,
                "transport": status.transport, "tools": tools, "blocked": blocked, "remarks": status.remarks,
            });
            return Ok(output::json(out, &view)?);
        }
        let software = status.software.as_deref().unwrap_or("a server without a name");
        writeln!(
            out,
            "{} answers: {}, protocol {}, {}.",
            output::plain(&status.name),
            output::plain(software),
            output::plain(status.protocol.as_deref().unwrap_or("unknown")),
            status.transport
        )?;
        let rows: Vec<Vec<String>> = specs
            .iter()
            .map(|spec| {
                let line = spec.description.lines().next().unwrap_or_default();
                vec![
                    spec.name.clone(),
                    spec.effect.name().to_owned(),
                    line.chars().take(72).collect(),
                ]
            })
            .collect();
        output::columns(out, &["TOOL", "EFFECT", "WHAT IT DOES"], &rows)?;
        for blocked in &status.blocked {
            writeln!(
                out,
                "{} has changed and waits for `tidegate mcp approve {}`.",
                output::plain(&blocked.name),
                output::plain(&one.name)
            )?;
        }
        for remark in &status.remarks {
            writeln!(out, "Left out: {}", output::plain(remark))?;
        }
        Ok(())
    }

    async fn approve(&self, approve: &Approve, out: Out<'_>) -> Result<(), Error> {
        let blocked = self
            .status(&approve.name)
            .map(|status| status.blocked)
            .unwrap_or_default();
        let wanted: Vec<_> = blocked
            .iter()
            .filter(|blocked| {
                let tool = approve.tool.as_deref();
                tool.is_none_or(|tool| tool == blocked.tool || tool == blocked.name)
            })
            .collect();
        if wanted.is_empty() {
            return Ok(writeln!(out, "Nothing has changed that waits for an approval.")?);
        }
        for blocked in &wanted {
            writeln!(out, "{}", output::plain(&blocked.name))?;
            for line in blocked.diff.lines() {
                writeln!(out, "  {}", output::plain(line))?;
            }
        }
        if !approve.yes {
            confirm()?;
        }
        for blocked in &wanted {
            let accepted = self
                .hub
                .approve(&approve.name, Some(&blocked.tool), Some(&blocked.digest));
            accepted.await.map_err(|error| refused(&error))?;
        }
        Ok(writeln!(
            out,
            "Accepted; a running daemon offers it within a few seconds."
        )?)
    }
}

/// Asks whether a change is accepted.
fn confirm() -> Result<(), Error> {
    use std::io::{BufRead as _, Read as _};
    let mut stderr = std::io::stderr();
    write!(stderr, "Type `{CONFIRMATION}` to accept: ")?;
    stderr.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().take(64).read_line(&mut answer)?;
    if answer.trim() == CONFIRMATION {
        return Ok(());
    }
    Err(Error::Refused(format!(
        "nothing was accepted; type `{CONFIRMATION}` when asked, or say --yes"
    )))
}

fn transport(server: &Server) -> &'static str {
    match &server.endpoint {
        Endpoint::Stdio { .. } => "stdio",
        Endpoint::Remote { wire: Wire::Any, .. } => "auto",
        Endpoint::Remote { wire: Wire::Http, .. } => "http",
        Endpoint::Remote { wire: Wire::Sse, .. } => "sse",
    }
}

/// The program with its arguments, or the address. What values refer to is not shown.
fn place_of(server: &Server) -> String {
    match &server.endpoint {
        Endpoint::Stdio { command, args, .. } => std::iter::once(command)
            .chain(args)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" "),
        Endpoint::Remote { url, .. } => url.clone(),
    }
}

fn view(server: &Server, accepted: usize) -> Value {
    json!({
        "name": server.name, "enabled": server.enabled, "transport": transport(server),
        "trusts_read_only": server.trusts_read_only, "tools_accepted": accepted, "where": place_of(server),
    })
}
