//! `tidegate doctor`: looks at everything the daemon needs, and says how to fix each line that fails.

use std::{
    io::ErrorKind,
    net::{SocketAddr, TcpListener},
    path::Path,
    sync::Arc,
    time::Duration,
};

use serde::Serialize;
use tidegate_core::{
    clock::Clock,
    port::{ChatModel, FileFault, KeyStore, OperatorFiles, PageRequest},
};
use tidegate_engine::prompt::Composer;
use tidegate_io::{
    http::{self, OperatorClient},
    operator_files::Disk,
};

use super::{
    Place,
    args::Output,
    error::Error,
    output::{self, Out},
};
use crate::{
    app,
    clock::SystemClock,
    config::{Settings, discover::Source},
    lifecycle::Lifecycle,
};

/// How long a model's server may take to say which models it has, in milliseconds.
const MODELS_TIMEOUT_MS: u64 = 10_000;

/// How long a daemon on our port may take to answer, in milliseconds.
const DAEMON_TIMEOUT_MS: u64 = 2_000;

/// Room on the disk below which a warning is due, in bytes.
const FREE_BYTES_MIN: u64 = 256 << 20;

/// How a line came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    /// In place.
    Ok,
    /// Works, and deserves a look.
    Warning,
    /// The daemon does not start, or does not answer.
    Failed,
}

/// One line of the report.
#[derive(Debug, Serialize)]
struct Line {
    name: &'static str,
    status: Status,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Line {
    fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self {
            name,
            status: Status::Ok,
            message: message.into(),
            fix: None,
        }
    }

    fn warning(name: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            name,
            status: Status::Warning,
            message: message.into(),
            fix: Some(fix.into()),
        }
    }

    fn failed(name: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            name,
            status: Status::Failed,
            message: message.into(),
            fix: Some(fix.into()),
        }
    }
}

/// Looks at everything; 1 where a line failed.
pub async fn run(place: &Place<'_>, output: Output, out: Out<'_>) -> Result<u8, Error> {
    let lines = examine(place).await;
    let has_failed = lines.iter().any(|line| line.status == Status::Failed);
    if output.json {
        output::json(out, &serde_json::json!({"ok": !has_failed, "checks": lines}))?;
    } else {
        for line in &lines {
            let mark = match line.status {
                Status::Ok => "ok     ",
                Status::Warning => "warning",
                Status::Failed => "FAILED ",
            };
            writeln!(out, "{mark}  {:<14} {}", line.name, output::plain(&line.message))?;
            if let Some(fix) = &line.fix {
                writeln!(out, "         {:<14} fix: {}", "", output::plain(fix))?;
            }
        }
    }
    Ok(u8::from(has_failed))
}

async fn examine(place: &Place<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    let settings = match configuration(place, &mut lines) {
        Ok(settings) => settings,
        Err(problem) => {
            lines.push(Line::failed(
                "configuration",
                problem,
                "mend what is named; `tidegate config --reference` documents every setting",
            ));
            return lines;
        }
    };
    folders(&settings, &mut lines);
    let lifecycle = Lifecycle::new();
    database(&settings, &lifecycle, &mut lines).await;
    lifecycle.close().await;
    files(&settings, &mut lines);
    lines.push(match app::open_tools(&settings) {
        Ok(tools) => Line::ok(
            "tools",
            format!("{} tools", tidegate_gate::ToolBox::specs(&tools).len()),
        ),
        Err(error) => Line::failed(
            "tools",
            error.to_string(),
            "mend the line that is named, or unset `tools.tools_file`",
        ),
    });
    lines.push(model(&settings, place).await);
    lines.push(port(settings.bind).await);
    lines
}

fn configuration(place: &Place<'_>, lines: &mut Vec<Line>) -> Result<Settings, String> {
    let loaded = place.load().map_err(|error| error.to_string())?;
    for warning in &loaded.warnings {
        lines.push(Line::warning(
            "configuration",
            warning.to_string(),
            "rename or remove the setting",
        ));
    }
    let settings =
        Settings::resolve(&loaded, place.environment, &place.folder).map_err(|error| error.to_string())?;
    lines.push(Line::ok(
        "configuration",
        loaded.file.map_or_else(
            || "defaults, no file".to_owned(),
            |file| file.display().to_string(),
        ),
    ));
    Ok(settings)
}

/// Whether the folders can be made and written to.
fn folders(settings: &Settings, lines: &mut Vec<Line>) {
    for (name, path, setting) in [
        ("data folder", &settings.data_dir, "data_dir"),
        ("log folder", &settings.logs, "logs.folder"),
    ] {
        let fix = format!("make it writable for this user, or set `{setting}`");
        let probe = path.join(".tidegate-doctor");
        let written = tidegate_io::files::create_private_dir(path)
            .and_then(|()| tidegate_io::files::write_private(&probe, b""))
            .and_then(|()| std::fs::remove_file(&probe));
        lines.push(match written {
            Ok(()) => Line::ok(name, path.display().to_string()),
            Err(error) => Line::failed(name, format!("{}: {error}", path.display()), fix),
        });
    }
}

async fn database(settings: &Settings, lifecycle: &Lifecycle, lines: &mut Vec<Line>) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new(settings.zone.clone()));
    let store = match app::open_store(settings, clock, lifecycle).await {
        Ok(store) => store,
        Err(error) => {
            lines.push(Line::failed(
                "database",
                error.to_string(),
                "mend what is named, or set `data_dir`",
            ));
            return;
        }
    };
    match store.check().await {
        Err(error) => lines.push(Line::failed(
            "database",
            error.to_string(),
            "mend what is named, or set `data_dir`",
        )),
        Ok(check) => lines.push(judge(&check)),
    }
    let first = PageRequest {
        after: None,
        limit: 1,
        newest_first: false,
    };
    lines.push(match store.list(&first).await {
        Ok(page) if page.keys.is_empty() => Line::warning(
            "keys",
            "there is no key yet",
            "`tidegate serve` makes and shows the first one; or `tidegate keys create --name NAME`",
        ),
        Ok(_) => Line::ok("keys", "there are keys"),
        Err(error) => Line::failed("keys", error.to_string(), "see the database"),
    });
}

fn judge(check: &tidegate_store::Check) -> Line {
    let path = check.path.display();
    if let Some(fault) = check.faults.first() {
        return Line::failed(
            "database",
            format!("{path} is damaged: {fault}"),
            "restore a backup of the data folder",
        );
    }
    if let Some(fault) = &check.write_fault {
        return Line::failed(
            "database",
            format!("{path} cannot be written: {fault}"),
            "make the data folder writable for this user, and free some disk",
        );
    }
    if check.is_exposed {
        return Line::warning(
            "database",
            format!("{path} can be read by other users of this machine"),
            format!("type `chmod 600 {path}`"),
        );
    }
    if let Some(free) = check.free_bytes.filter(|free| *free < FREE_BYTES_MIN) {
        return Line::warning(
            "database",
            format!("only {} MiB are free beside {path}", free >> 20),
            "free some disk, or move the data folder with `data_dir`",
        );
    }
    Line::ok(
        "database",
        format!(
            "{path}, {} KiB, schema {}",
            check.size_bytes >> 10,
            check.schema_version
        ),
    )
}

/// The operator's own files.
fn files(settings: &Settings, lines: &mut Vec<Line>) {
    let init = "`tidegate init` writes the one that ships with tidegate";
    let prompt = &settings.config.prompt;
    let composer = Composer::new(Arc::new(Disk), prompt.clone());
    match composer.check() {
        Ok(faults) if faults.is_empty() => {
            lines.push(Line::ok("instructions", prompt.agent_file.display().to_string()));
        }
        Ok(faults) => {
            lines.extend(faults.into_iter().map(|fault| {
                Line::warning("instructions", fault, "mend the file; the next request reads it")
            }));
        }
        Err(fault) => lines.push(Line::failed("instructions", fault.to_string(), init)),
    }
    for (name, folder) in [
        ("skills", &prompt.skills_dir),
        ("knowledge bank", &settings.config.tools.knowledge_bank),
    ] {
        lines.push(folder_line(name, folder));
    }
}

fn folder_line(name: &'static str, folder: &Path) -> Line {
    match Disk.list(folder) {
        Ok(entries) => Line::ok(name, format!("{}, {} entries", folder.display(), entries.len())),
        Err(FileFault::Missing(path)) => Line::warning(
            name,
            format!("{path} does not exist"),
            "`tidegate init` writes the ones that ship with tidegate; an empty folder will do, too",
        ),
        Err(fault @ FileFault::Unreadable { .. }) => {
            Line::failed(name, fault.to_string(), "make the folder readable for this user")
        }
    }
}

async fn model(settings: &Settings, place: &Place<'_>) -> Line {
    let found = match app::find_models(settings, place.environment).await {
        Ok(found) => found,
        Err(error) => return Line::failed("model", error.to_string(), "mend the setting that is named"),
    };
    if let Source::Nothing(sentence) = &found.source {
        let fix = sentence.trim_start_matches("no model is configured: ");
        return Line::failed("model", "no model is configured", fix);
    }
    let fix =
        "check that its server runs, its base_url and its credential; `tidegate config` shows what is set";
    let timeout = Duration::from_millis(MODELS_TIMEOUT_MS);
    let default = match tokio::time::timeout(timeout, found.models.resolve("tidegate")).await {
        Ok(Ok(default)) => default,
        Ok(Err(error)) => return Line::failed("model", error.to_string(), fix),
        Err(_) => return Line::failed("model", "its server does not answer", fix),
    };
    let name = format!("{} at {}", default.name, default.provider);
    // The list that clients see hides a server that is away; this asks.
    let Ok(reports) = tokio::time::timeout(timeout, found.models.check()).await else {
        return Line::failed("model", format!("{name}: its server does not answer"), fix);
    };
    let report = reports
        .into_iter()
        .find(|report| report.provider == default.provider);
    match report.map(|report| report.models) {
        Some(Err(error)) => Line::failed("model", format!("{name}: {error}"), fix),
        Some(Ok(list)) if !list.is_empty() && !list.contains(&default.name) => Line::warning(
            "model",
            format!("{name} is not in its server's list"),
            "check the model's name in the configuration, or download it there",
        ),
        Some(Ok(_)) | None => Line::ok("model", name),
    }
}

/// Whether the port is free, or taken by a daemon of ours.
async fn port(bind: SocketAddr) -> Line {
    match TcpListener::bind(bind) {
        Ok(_) => Line::ok("port", format!("{bind} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse && is_daemon(bind).await => {
            Line::ok("port", format!("a tidegate daemon answers on {bind}"))
        }
        Err(error) => Line::failed(
            "port",
            format!("{bind}: {error}"),
            "stop what uses it, or choose another with --bind or `server.bind`",
        ),
    }
}

async fn is_daemon(bind: SocketAddr) -> bool {
    let Ok(client) = OperatorClient::new(&http::Options::default()) else {
        return false;
    };
    let url = format!("{}/health/live", app::bootstrap::base_url(bind, &[]));
    let answer =
        tokio::time::timeout(Duration::from_millis(DAEMON_TIMEOUT_MS), client.get(&url).send()).await;
    // A daemon that allows only other host names refuses with 4xx, and is there all the same.
    matches!(answer, Ok(Ok(response)) if response.header("x-request-id").is_some())
}
