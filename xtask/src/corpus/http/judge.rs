//! Looks at what a line says must hold besides its outcome.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Map, Value};

use super::drive::Seen;
use super::fill::Places;

/// What was wrong, and which checks are not known.
pub(super) struct Findings {
    pub(super) failures: Vec<String>,
    pub(super) unchecked: Vec<String>,
}

/// Holds every check against what was seen.
pub(super) fn judge(checks: &Map<String, Value>, seen: &Seen, places: &Places) -> Findings {
    let mut findings = Findings {
        failures: Vec::new(),
        unchecked: Vec::new(),
    };
    for (name, value) in checks {
        match hold(name, value, seen, places) {
            Some(Ok(())) => {}
            Some(Err(failure)) => findings.failures.push(format!("{name}: {failure}")),
            None => findings.unchecked.push(format!("check `{name}`")),
        }
    }
    findings
}

/// One check; `None` where its name is not known.
fn hold(name: &str, value: &Value, seen: &Seen, places: &Places) -> Option<Result<(), String>> {
    answer(name, value, seen, places).or_else(|| daemon(name, value, seen))
}

fn must(holds: bool, failure: impl Into<String>) -> Result<(), String> {
    if holds { Ok(()) } else { Err(failure.into()) }
}

/// Checks of what came back.
fn answer(name: &str, value: &Value, seen: &Seen, places: &Places) -> Option<Result<(), String>> {
    let status = seen.status();
    Some(match name {
        "status_in" => must(contains(value, status), format!("{status} is not among {value}")),
        "status_in_or_closed" => must(
            status == 0 || contains(value, status),
            format!("{status} is not among {value}"),
        ),
        "body_absent" => {
            let body = seen.answer.text();
            let found = texts(value)
                .map(|text| places.fill(text))
                .find(|text| body.contains(text.as_str()));
            must(found.is_none(), "the body holds what must be absent")
        }
        "header_absent" => {
            let found = texts(value).find(|name| seen.answer.header(&name.to_lowercase()).is_some());
            must(found.is_none(), format!("the header {found:?} is there"))
        }
        "content_type_json" => {
            let kind = seen.answer.header("content-type").unwrap_or_default();
            must(
                kind.starts_with("application/json"),
                format!("the type is `{kind}`"),
            )
        }
        "no_forged_event" => must(
            !seen.answer.text().contains("\nevent:"),
            "the body holds an event of the client's",
        ),
        "second_request_not_executed" => must(!seen.second_served, "a second answer came"),
        "returns_within_ms" => within(value, seen.took),
        "closed_within_s" => {
            let limit = Duration::from_secs(value.as_u64().unwrap_or_default());
            let in_time = seen.closed && seen.took <= limit;
            must(
                in_time,
                format!("not closed after {:.1} s", seen.took.as_secs_f64()),
            )
        }
        "max_mean_difference_ms" => {
            let difference_ms = seen.mean_difference.as_secs_f64() * 1e3;
            let close = value.as_f64().is_some_and(|limit| difference_ms <= limit);
            must(close, format!("{difference_ms:.3} ms apart"))
        }
        _ => return None,
    })
}

/// Checks of what the daemon became.
fn daemon(name: &str, value: &Value, seen: &Seen) -> Option<Result<(), String>> {
    let at_most = |grown: u64| value.as_u64().is_some_and(|limit| grown <= limit);
    Some(match name {
        "server_alive" => must(seen.alive, "the daemon does not answer"),
        "other_client_served_within_ms" => match seen.other_client {
            Some(took) => within(value, took),
            None => must(false, "the other client was not served"),
        },
        "rss_growth_mb_max" => {
            let grown = seen.rss_growth_bytes >> 20;
            must(at_most(grown), format!("grew by {grown} MiB"))
        }
        "fd_growth_max" => must(
            at_most(seen.files_growth as u64),
            format!("{} more files are open", seen.files_growth),
        ),
        "no_task_left_after_s" => must(
            seen.files_growth <= FILES_SLACK,
            format!("{} connections are left", seen.files_growth),
        ),
        "no_file_created" => must(
            seen.new_files.is_empty(),
            format!("new files: {:?}", seen.new_files),
        ),
        "no_state_change" | "mode_unchanged" | "no_grant_created" => must(
            !seen.keys_changed && seen.new_files.is_empty(),
            "keys or files have changed",
        ),
        "log_one_record_per_line" => must(
            seen.bad_log_lines == 0,
            format!("{} log lines are no record", seen.bad_log_lines),
        ),
        _ => return None,
    })
}

/// Connections of the harness itself that the daemon may not have closed yet.
const FILES_SLACK: usize = 4;

fn within(limit_ms: &Value, took: Duration) -> Result<(), String> {
    let limit = Duration::from_millis(limit_ms.as_u64().unwrap_or_default());
    must(took <= limit, format!("took {} ms", took.as_millis()))
}

fn contains(list: &Value, status: u16) -> bool {
    list.as_array()
        .is_some_and(|list| list.iter().any(|known| known.as_u64() == Some(u64::from(status))))
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Every file below a folder but those the daemon itself keeps (database and logs).
pub(super) fn files(home: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![home.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let own = folder == home && matches!(entry.file_name().to_str(), Some("data" | "logs"));
            if path.is_dir() && !own {
                folders.push(path);
            } else if !own {
                found.push(path.display().to_string());
            }
        }
    }
    found.sort();
    found
}

/// Lines of the daemon's JSON logs that are not exactly one record.
pub(super) fn bad_log_lines(logs: &Path) -> usize {
    let mut bad = 0;
    let mut folders = vec![logs.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
        {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // The ends of the audit trail are kept beside it, in a form of their own.
            if path.extension().is_some_and(|ending| ending == "head") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            // The last line may be in the making.
            let complete = text.rfind('\n').map_or("", |end| &text[..end]);
            let records = complete.lines().filter(|line| !line.is_empty());
            bad += records.filter(|line| !is_record(line)).count();
        }
    }
    bad
}

/// A record of ours has more to it than what a message could forge.
fn is_record(line: &str) -> bool {
    let record: Value = serde_json::from_str(line).unwrap_or_default();
    record.as_object().is_some_and(|record| record.len() > 2)
}
