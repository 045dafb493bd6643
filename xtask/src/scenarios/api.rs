//! The memory API, as a client with the rights of an administrator uses it.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::daemon::Daemon;

/// A person, as the caller names them; nobody is the key itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Who<'w>(pub(super) Option<&'w str>);

/// Facts of a page; the most there are.
const PAGE: usize = 500;
/// Pages that are read of one person.
const PAGES_MAX: usize = 100;

impl Who<'_> {
    /// The person as a query, with more behind it.
    fn query(self, more: &str) -> String {
        let user = match self.0.filter(|user| !user.trim().is_empty()) {
            Some(user) => format!("user={}", encoded(user)),
            None => String::new(),
        };
        let parts: Vec<&str> = [user.as_str(), more]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        if parts.is_empty() {
            String::new()
        } else {
            format!("?{}", parts.join("&"))
        }
    }
}

/// What is known of a person.
#[derive(Debug, Clone)]
pub(super) struct Known {
    /// Whose it is, as the daemon names them.
    pub(super) user: String,
    /// Every fact.
    pub(super) facts: Vec<Value>,
}

/// What is known of a person.
pub(super) fn memory(daemon: &Daemon, who: Who<'_>) -> Result<Known> {
    let mut known = Known {
        user: String::new(),
        facts: Vec::new(),
    };
    let mut after = String::new();
    for _ in 0..PAGES_MAX {
        let path = format!("/v1/memory{}", who.query(&format!("limit={PAGE}{after}")));
        let page = get(daemon, &path)?;
        let text = |name: &str| page[name].as_str().unwrap_or_default().to_owned();
        let facts = page["data"].as_array();
        known.user = text("user");
        known
            .facts
            .extend_from_slice(facts.with_context(|| format!("no facts in {page}"))?);
        if page["has_more"] != true {
            return Ok(known);
        }
        after = format!("&after={}", text("last_id"));
    }
    bail!("more than {PAGES_MAX} pages of facts");
}

/// How many turns of a person wait to be learned from.
pub(super) fn pending(daemon: &Daemon, who: Who<'_>) -> Result<u64> {
    let page = get(daemon, &format!("/v1/memory{}", who.query("limit=1")))?;
    page["pending"]
        .as_u64()
        .with_context(|| format!("no `pending` in {page}"))
}

/// Everything that is kept of a person.
pub(super) fn export(daemon: &Daemon, who: Who<'_>) -> Result<Value> {
    get(daemon, &format!("/v1/memory/export{}", who.query("")))
}

/// Forgets one fact.
pub(super) fn forget(daemon: &Daemon, who: Who<'_>, fact: &str) -> Result<()> {
    delete(daemon, &format!("/v1/memory/facts/{fact}{}", who.query("")))
}

/// Erases a person.
pub(super) fn erase(daemon: &Daemon, who: Who<'_>) -> Result<()> {
    delete(daemon, &format!("/v1/memory{}", who.query("")))
}

fn get(daemon: &Daemon, path: &str) -> Result<Value> {
    let answer = daemon.call("GET", path, &Value::Null)?;
    ensure!(
        answer.status == 200,
        "GET {path} was answered {}: {}",
        answer.status,
        answer.text()
    );
    Ok(answer.json())
}

fn delete(daemon: &Daemon, path: &str) -> Result<()> {
    let answer = daemon.call("DELETE", path, &Value::Null)?;
    ensure!(
        (200..300).contains(&answer.status),
        "DELETE {path} was answered {}: {}",
        answer.status,
        answer.text()
    );
    Ok(())
}

/// A value in a query.
fn encoded(text: &str) -> String {
    let bytes: Vec<String> = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
    bytes.concat()
}
