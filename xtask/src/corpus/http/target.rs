//! What a corpus is put to: a daemon of our own with a scripted model behind it, or one that runs already.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;
use tidegate_testkit::Upstream;
use tokio::runtime::Runtime;

use super::form::Input;
use crate::daemon::{Daemon, Start};
use crate::http::{Answer, Connection};

/// How long one answer may take, in general.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(75);
/// Bounds of the daemon that a line could otherwise stretch to minutes.
const SETTINGS: &str = "[engine]\nturn_timeout_ms = 50000\n";
/// Checks that look into the process or its folder.
const INSIDE: [&str; 7] = [
    "rss_growth_mb_max",
    "fd_growth_max",
    "no_task_left_after_s",
    "no_file_created",
    "no_state_change",
    "mode_unchanged",
    "no_grant_created",
];

/// The daemon under test.
pub(super) enum Target {
    /// Started here, and ended with this.
    Own(Box<Own>),
    /// Somebody else's; only what it answers can be seen.
    Running(Running),
}

/// A daemon in a folder of its own.
pub(super) struct Own {
    pub(super) daemon: Daemon,
    pub(super) upstream: Upstream,
    pub(super) runtime: Runtime,
    /// Dropped last, after the daemon that works in it.
    _folder: TempDir,
}

/// A daemon that runs already.
pub(super) struct Running {
    address: SocketAddr,
    host: String,
    key: String,
}

impl Target {
    /// Starts a daemon.
    pub(super) fn start() -> Result<Self> {
        let runtime = Runtime::new()?;
        let upstream = runtime.block_on(Upstream::start())?;
        upstream.record(false);
        let folder = tempfile::tempdir()?;
        let mut start = Start::new(folder.path().join("home"), upstream.base_url(), "scripted");
        SETTINGS.clone_into(&mut start.settings);
        let daemon = Daemon::start(&start)?;
        Ok(Self::Own(Box::new(Own {
            daemon,
            upstream,
            runtime,
            _folder: folder,
        })))
    }

    /// Finds the daemon that runs at the URL, and that the key opens.
    pub(super) fn find(url: &str, key: &str) -> Result<Self> {
        let host = host_of(url)?;
        let address = host
            .to_socket_addrs()
            .with_context(|| format!("the name in {url} is not known"))?
            .next()
            .with_context(|| format!("the name in {url} has no address"))?;
        let target = Self::Running(Running {
            address,
            host,
            key: key.to_owned(),
        });
        let answer = target.get("/v1/models").context("no daemon answers there")?;
        if answer.status != 200 {
            bail!("GET /v1/models is answered {}: {}", answer.status, answer.text());
        }
        Ok(target)
    }

    pub(super) fn address(&self) -> SocketAddr {
        match self {
            Self::Own(own) => own.daemon.address,
            Self::Running(running) => running.address,
        }
    }

    /// What stands in a Host header.
    pub(super) fn host(&self) -> String {
        match self {
            Self::Own(own) => own.daemon.address.to_string(),
            Self::Running(running) => running.host.clone(),
        }
    }

    pub(super) fn key(&self) -> &str {
        match self {
            Self::Own(own) => &own.daemon.key,
            Self::Running(running) => &running.key,
        }
    }

    /// The folder of its files, where it can be looked at.
    pub(super) fn home(&self) -> Option<&Path> {
        self.own().map(|own| own.daemon.home.as_path())
    }

    pub(super) fn own(&self) -> Option<&Own> {
        match self {
            Self::Own(own) => Some(own),
            Self::Running(_) => None,
        }
    }

    /// Why a line cannot be put to this daemon; `None` where it can.
    pub(super) fn lacks(&self, input: &Input) -> Option<&'static str> {
        (self.own().is_none() && matches!(input, Input::Model(_)))
            .then_some("needs a scripted model server behind the daemon")
    }

    /// Whether a check can be looked at here.
    pub(super) fn can_check(&self, name: &str) -> bool {
        self.own().is_some() || !(INSIDE.contains(&name) || name == "log_one_record_per_line")
    }

    /// Whether it answers its health check within the time, and its process runs.
    pub(super) fn alive(&mut self, timeout: Duration) -> bool {
        if let Self::Own(own) = self {
            return own.daemon.alive(timeout);
        }
        let answer = self.exchange(&self.request("GET", "/health/live", None, &Value::Null), timeout);
        answer.is_ok_and(|answer| answer.status == 200)
    }

    /// One GET with the key.
    pub(super) fn get(&self, path: &str) -> Result<Answer> {
        let bytes = self.request("GET", path, Some(self.key()), &Value::Null);
        self.exchange(&bytes, ANSWER_TIMEOUT)
    }

    fn exchange(&self, bytes: &[u8], timeout: Duration) -> Result<Answer> {
        let mut connection = Connection::open(self.address(), timeout)?;
        connection.send(bytes)?;
        connection.read()
    }

    /// The bytes of a proper request.
    pub(super) fn request(&self, method: &str, path: &str, key: Option<&str>, body: &Value) -> Vec<u8> {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let key = key
            .map(|key| format!("Authorization: Bearer {key}\r\n"))
            .unwrap_or_default();
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{key}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n\
             {body}",
            self.host(),
            body.len()
        )
        .into_bytes()
    }
}

/// The host and port of an `http://` URL.
fn host_of(url: &str) -> Result<String> {
    let Some(rest) = url.strip_prefix("http://") else {
        bail!(
            "`{url}` does not begin with http://; bytes are put to a daemon itself, not to a proxy before it"
        );
    };
    let host = rest.split_once('/').map_or(rest, |(host, _)| host);
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if host.is_empty() || host.contains('@') {
        bail!("`{url}` names no host; it reads http://127.0.0.1:8088");
    }
    Ok(if has_port {
        host.to_owned()
    } else {
        format!("{host}:80")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_host_and_a_port() {
        for (url, host) in [
            ("http://127.0.0.1:8088", Some("127.0.0.1:8088")),
            ("http://localhost:8088/v1", Some("localhost:8088")),
            ("http://[::1]:80/", Some("[::1]:80")),
            ("http://agent.example", Some("agent.example:80")),
            ("http://[::1]", Some("[::1]:80")),
            ("https://agent.example", None),
            ("agent.example:80", None),
            ("http://", None),
            ("http://user@host:1", None),
        ] {
            assert_eq!(host_of(url).ok().as_deref(), host, "{url}");
        }
    }
}
