//! Starting and ending the daemon.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_testkit::Upstream;

/// How long the daemon may take to get ready on a busy machine.
const READY_TIMEOUT: Duration = Duration::from_mins(1);

/// The instructions that a test's agent gets.
pub(crate) const AGENT: &str = "You are the test agent.\n";

/// How a daemon is set up before it starts.
#[derive(Debug, Default)]
pub(crate) struct Setup {
    config: String,
    files: Vec<(String, String)>,
    environment: Vec<(String, String)>,
    no_model: bool,
}

impl Setup {
    /// Lines of `tidegate.toml`, after those every test needs. Begin with a section header.
    pub(crate) fn config(mut self, lines: &str) -> Self {
        self.config.push_str(lines);
        self.config.push('\n');
        self
    }

    /// A file in the daemon's home, there before it starts.
    pub(crate) fn file(mut self, path: &str, text: &str) -> Self {
        self.files.push((path.to_owned(), text.to_owned()));
        self
    }

    /// A variable of its environment.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// No model is configured, and none is looked for.
    pub(crate) fn without_model(mut self) -> Self {
        self.no_model = true;
        self
    }

    /// Starts it.
    pub(crate) async fn start(self) -> Daemon {
        let upstream = Upstream::start().await.unwrap();
        let home = tempfile::tempdir().unwrap();
        let port = tidegate_testkit::free_port().unwrap();
        let key = fresh_key();
        self.write(home.path(), port, &upstream);
        let mut daemon = Daemon {
            upstream,
            port,
            key,
            environment: self.environment,
            child: None,
            client: super::client::http_client(),
            home,
        };
        daemon.launch().await;
        daemon
    }

    fn write(&self, home: &Path, port: u16, upstream: &Upstream) {
        put(home, "AGENT.md", AGENT);
        put(home, "knowledge-bank/notes.txt", "alpha\nbeta\ngamma\n");
        for (path, text) in &self.files {
            put(home, path, text);
        }
        let model = if self.no_model {
            "[discovery]\nollama = false\n".to_owned()
        } else {
            format!(
                "[models.providers.test]\nbase_url = \"{}\"\nmodel = \"scripted\"\n",
                upstream.base_url()
            )
        };
        let config = format!(
            "[server]\nbind = \"127.0.0.1:{port}\"\n\n{model}\n{config}",
            config = self.config
        );
        put(home, "tidegate.toml", &merged(&config));
    }
}

/// TOML allows a table once; a test's `[server]` lines are put into the one that is there.
fn merged(config: &str) -> String {
    let mut sections: Vec<(String, Vec<String>)> = vec![(String::new(), Vec::new())];
    for line in config.lines() {
        if line.starts_with('[') && !line.starts_with("[[") {
            match sections.iter().position(|(header, _)| header == line) {
                Some(at) => {
                    let section = sections.remove(at);
                    sections.push(section);
                }
                None => sections.push((line.to_owned(), Vec::new())),
            }
        } else if line.starts_with("[[") {
            sections.push((line.to_owned(), Vec::new()));
        } else if let Some((_, lines)) = sections.last_mut() {
            lines.push(line.to_owned());
        }
    }
    sections
        .into_iter()
        .flat_map(|(header, lines)| std::iter::once(header).chain(lines))
        .collect::<Vec<_>>()
        .join("\n")
}

fn put(home: &Path, path: &str, text: &str) {
    let path = home.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a test sets the scene with plain files")]
    fs::write(path, text).unwrap();
}

/// A well-formed key.
pub(crate) fn fresh_key() -> String {
    tidegate::keys::generate(&tidegate::clock::OsEntropy)
        .1
        .expose()
        .to_owned()
}

/// A running daemon. Killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Daemon {
    /// The scripted model server.
    pub(crate) upstream: Upstream,
    /// The first key: every scope, ceiling `readonly`.
    pub(crate) key: String,
    /// For requests of a test's own.
    pub(crate) client: reqwest::Client,
    port: u16,
    environment: Vec<(String, String)>,
    child: Option<Child>,
    home: TempDir,
}

impl Daemon {
    /// With nothing special.
    pub(crate) async fn start() -> Self {
        Setup::default().start().await
    }

    /// Where it answers, without a trailing slash.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// A path in its home.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }

    /// The text of a file in its home.
    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Writes a file in its home.
    pub(crate) fn write(&self, path: &str, text: &str) {
        put(self.home.path(), path, text);
    }

    /// Starts the process and waits until it answers.
    pub(crate) async fn launch(&mut self) {
        let mut command = self.command(&["serve"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        self.child = Some(command.spawn().unwrap());
        self.wait_live().await;
    }

    async fn wait_live(&mut self) {
        let deadline = Instant::now() + READY_TIMEOUT;
        loop {
            let answer = self.client.get(self.url("/health/live")).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                return;
            }
            let child = self.child.as_mut().unwrap();
            if let Some(status) = child.try_wait().unwrap() {
                let text: Vec<String> = child
                    .stderr
                    .take()
                    .map(|stderr| BufReader::new(stderr).lines().map_while(Result::ok).collect())
                    .unwrap_or_default();
                panic!("the daemon ended with {status}:\n{}", text.join("\n"));
            }
            assert!(
                Instant::now() < deadline,
                "the daemon did not answer in {READY_TIMEOUT:?}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The binary with these arguments, in the daemon's home and with its environment.
    #[expect(
        clippy::disallowed_methods,
        reason = "the test starts the product as a user would"
    )]
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command
            .args(arguments)
            .current_dir(self.home.path())
            .env_remove("OPENAI_BASE_URL")
            .env_remove("OPENAI_API_KEY")
            .env("TIDEGATE_BOOTSTRAP_KEY", &self.key)
            .stdin(Stdio::null());
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Ends the process the hard way, as a power cut would.
    pub(crate) fn kill(&mut self) {
        let child = self.child.as_mut().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        self.child = None;
    }

    /// Asks the process to end, and waits for it; returns whether it ended by itself in time.
    pub(crate) async fn terminate(&mut self, timeout: Duration) -> bool {
        let pid = self.pid();
        signal(pid, "TERM");
        let mut child = self.child.take().unwrap();
        let deadline = Instant::now() + timeout;
        while Instant::now() < deadline {
            if child.try_wait().unwrap().is_some() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        false
    }

    /// Makes a key with this policy over the admin API and returns the raw key.
    pub(crate) async fn make_key(&self, policy: Value) -> String {
        let answer = self
            .client
            .post(self.url("/v1/admin/keys"))
            .bearer_auth(&self.key)
            .json(&policy)
            .send()
            .await
            .unwrap();
        let status = answer.status();
        let body: Value = answer.json().await.unwrap();
        assert!(status.is_success(), "{status}: {body}");
        body["value"]
            .as_str()
            .unwrap_or_else(|| panic!("no value in {body}"))
            .to_owned()
    }

    /// A key that may write.
    pub(crate) async fn writer_key(&self) -> String {
        self.make_key(json!({"name": "writer", "scopes": ["chat", "tools"], "mode_ceiling": "full-auto"}))
            .await
    }

    /// A request without a key.
    pub(crate) fn ask(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method.parse().unwrap(), self.url(path))
    }

    /// A request of an administrator, with a body unless it is null: status and answer.
    pub(crate) async fn admin(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let mut request = self.ask(method, path).bearer_auth(&self.key);
        if !body.is_null() {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or(Value::Null))
    }

    /// A GET with the first key.
    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        let answer = self
            .client
            .get(self.url(path))
            .bearer_auth(&self.key)
            .send()
            .await
            .unwrap();
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or(Value::Null))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The test is over either way; a process that is already gone is fine.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test sends a signal as an operator would"
)]
pub(crate) fn signal(pid: u32, name: &str) {
    let status = Command::new("kill")
        .args([format!("-{name}"), pid.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

/// Exit code, standard output and standard error of a command.
pub(crate) fn outcome(output: &Output) -> (Option<i32>, String, String) {
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}
