//! `tidegate doctor`: looks at everything the daemon needs, and says how to fix each line that fails. It changes
//! nothing: what is missing stays missing, and a database is neither made nor migrated.

mod knowledge;
mod memory;

use std::{
    io::ErrorKind,
    net::{SocketAddr, TcpListener},
    path::Path,
    sync::Arc,
    time::Duration,
};

use serde::Serialize;
use tidegate_core::port::{ChatModel, FileFault, KnowledgeBase, OperatorFiles};
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
    config::{self, Problem, Settings, discover::Source},
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
    let Some(settings) = configuration(place, &mut lines) else {
        return lines;
    };
    for (name, path, setting) in [
        ("data folder", &settings.data_dir, "data_dir"),
        ("log folder", &settings.logs, "logs.folder"),
    ] {
        lines.push(own_folder(name, path, setting));
    }
    let has_database = database(&settings, &mut lines).await;
    files(&settings, &mut lines);
    lines.extend(knowledge::lines(&settings, has_database).await);
    lines.push(memory::line(&settings, has_database).await);
    lines.extend(tools(&settings).await);
    lines.push(model(&settings, place).await);
    lines.push(port(settings.bind).await);
    lines
}

/// Every problem has a line of its own.
fn configuration(place: &Place<'_>, lines: &mut Vec<Line>) -> Option<Settings> {
    const NAME: &str = "configuration";
    let fix = "mend what is named; `tidegate config --reference` documents every setting";
    let warn =
        |problem: &Problem| Line::warning(NAME, problem.to_string(), "rename, change or remove the setting");
    match place.resolve() {
        Ok((loaded, settings)) => {
            lines.extend(settings.warnings.iter().map(warn));
            let file = loaded.file.map(|file| file.display().to_string());
            lines.push(Line::ok(
                NAME,
                file.unwrap_or_else(|| "defaults, no file".to_owned()),
            ));
            Some(settings)
        }
        Err(config::Error::Invalid { findings, .. }) => {
            let failed = |problem: &Problem| Line::failed(NAME, problem.to_string(), fix);
            lines.extend(findings.errors.iter().map(failed));
            lines.extend(findings.warnings.iter().map(warn));
            None
        }
        Err(error @ config::Error::Unreadable { .. }) => {
            lines.push(Line::failed(
                NAME,
                error.to_string(),
                "make the file readable for this user",
            ));
            None
        }
    }
}

/// Whether a folder of the server's own can be written to, or made where it is missing. Nothing is written to find
/// out.
fn own_folder(name: &'static str, path: &Path, setting: &'static str) -> Line {
    let shown = path.display();
    let fix = format!("make it a folder that this user can write to, or set `{setting}`");
    let existing = nearest_existing(path);
    match tidegate_io::files::check_writable_dir(existing) {
        Err(error) if existing == path => Line::failed(name, format!("{shown}: {error}"), fix),
        Err(error) => {
            let around = existing.display();
            Line::failed(
                name,
                format!("{shown} does not exist and cannot be made in {around}: {error}"),
                fix,
            )
        }
        Ok(()) if existing == path => Line::ok(name, shown.to_string()),
        Ok(()) => Line::ok(name, format!("{shown}, which the first start makes")),
    }
}

/// The path itself, or the first folder around it that is there.
fn nearest_existing(path: &Path) -> &Path {
    let exists = |path: &&Path| path.symlink_metadata().is_ok();
    path.ancestors().find(exists).unwrap_or(path)
}

/// Whether there is one that could be opened as it is.
async fn database(settings: &Settings, lines: &mut Vec<Line>) -> bool {
    let path = &settings.config.store.path;
    let check = match tidegate_store::inspect(path).await {
        Ok(check) => check,
        Err(error) => {
            let fix = "mend what is named, restore a backup of the data folder, or set `data_dir`";
            lines.push(Line::failed("database", error.to_string(), fix));
            return false;
        }
    };
    lines.push(match &check {
        Some(check) => judge(check),
        None => Line::ok(
            "database",
            format!("{}, which the first start makes", path.display()),
        ),
    });
    let has_keys = check.as_ref().is_some_and(|check| check.has_keys);
    lines.push(if has_keys {
        Line::ok("keys", "there are keys")
    } else {
        Line::warning(
            "keys",
            "there is no key yet",
            "`tidegate serve` makes and shows the first one; or `tidegate keys create --name NAME`",
        )
    });
    check.is_some_and(|check| {
        check.schema_version == check.known_version && check.faults.is_empty() && check.write_fault.is_none()
    })
}

fn judge(check: &tidegate_store::Inspection) -> Line {
    let path = check.path.display();
    if check.schema_version > check.known_version {
        return Line::failed(
            "database",
            format!(
                "{path} has schema {}, and this tidegate knows none after {}",
                check.schema_version, check.known_version
            ),
            "start the newer tidegate that made it, or set `data_dir`",
        );
    }
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
            "{path}, {} KiB, schema {}{}",
            check.size_bytes >> 10,
            check.schema_version,
            if check.schema_version < check.known_version {
                ", which the next start brings up to date"
            } else {
                ""
            }
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
            format!("{path} does not exist; without it there is none"),
            "`tidegate init` writes the ones that ship with tidegate; an empty folder will do, too",
        ),
        Err(fault @ FileFault::Unreadable { .. }) => {
            Line::failed(name, fault.to_string(), "make the folder readable for this user")
        }
    }
}

/// The tools over the knowledge bank; where that is missing over the folder around it, which is only opened.
async fn tools(settings: &Settings) -> Vec<Line> {
    let mut settings = settings.clone();
    let bank = &mut settings.config.tools.knowledge_bank;
    *bank = nearest_existing(bank).to_owned();
    let is_on = settings.config.kb.enabled;
    let base = is_on.then(|| Arc::new(knowledge::Unopened) as Arc<dyn KnowledgeBase>);
    match app::open_tools(&settings, &[], base) {
        Ok(tools) => {
            let count = tidegate_gate::ToolBox::specs(&tools).len();
            let mut lines = vec![Line::ok("tools", config::count(count, "tool"))];
            lines.extend(tools.sandbox().await.map(|(level, sentence)| match level {
                Some(_) => Line::ok("sandbox", sentence),
                None => Line::warning(
                    "sandbox",
                    sentence,
                    "until then no command, snippet or git tool runs; `sandbox.level_min` accepts a weaker level",
                ),
            }));
            lines
        }
        Err(error) => vec![Line::failed(
            "tools",
            error.to_string(),
            "mend what is named, or unset `tools.tools_file`",
        )],
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
