//! A home folder and the binary in it, with nothing decided for the daemon: for first runs and command lines.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tidegate_testkit::Upstream;

use super::{client::http_client, outcome};

/// How long the daemon may take to answer, or to end, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// A folder that a user has just made.
#[derive(Debug)]
pub(crate) struct Home {
    folder: TempDir,
    output: TempDir,
    environment: Vec<(String, String)>,
    /// The port that its configuration names.
    pub(crate) port: u16,
}

/// A daemon that was started there. Killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Served {
    child: Child,
    output: PathBuf,
}

impl Home {
    /// Instructions and a configuration with these lines after its `[server]` section.
    pub(crate) fn new(config: &str) -> Self {
        let home = Self::bare();
        home.write("AGENT.md", super::daemon::AGENT);
        home.configure(config);
        home
    }

    /// The same with a model behind it.
    pub(crate) fn with_model(upstream: &Upstream) -> Self {
        Self::new(&format!(
            "[models.providers.test]\nbase_url = \"{}\"\nmodel = \"scripted\"\n",
            upstream.base_url()
        ))
    }

    /// An empty folder.
    pub(crate) fn bare() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            output: tempfile::tempdir().unwrap(),
            environment: Vec::new(),
            port: tidegate_testkit::free_port().unwrap(),
        }
    }

    /// A variable of the environment.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes `tidegate.toml` anew.
    pub(crate) fn configure(&self, config: &str) {
        let text = format!("[server]\nbind = \"127.0.0.1:{}\"\n\n{config}", self.port);
        self.write("tidegate.toml", &text);
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file in it.
    #[expect(clippy::disallowed_methods, reason = "a test sets the scene with plain files")]
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.folder().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Where a daemon started here answers.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The binary with these arguments, and nothing of the surroundings but the path.
    #[expect(
        clippy::disallowed_methods,
        reason = "the test starts the product as a user would"
    )]
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command
            .args(arguments)
            .current_dir(self.folder())
            .env_clear()
            .env("PATH", "/usr/bin:/bin");
        command
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end: exit code, standard output, standard error.
    pub(crate) fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        outcome(&self.command(arguments).output().unwrap())
    }

    /// Starts the daemon and waits until it answers.
    pub(crate) async fn serve(&self) -> Served {
        let output = self.output.path().to_owned();
        let mut served = Served {
            child: self
                .command(&["serve"])
                .stdout(create(&output.join("stdout")))
                .stderr(create(&output.join("stderr")))
                .spawn()
                .unwrap(),
            output,
        };
        let (client, deadline) = (http_client(), Instant::now() + PATIENCE);
        while client.get(self.url("/health/live")).send().await.is_err() {
            assert!(
                served.child.try_wait().unwrap().is_none(),
                "it ended: {}",
                served.stderr()
            );
            assert!(
                Instant::now() < deadline,
                "the daemon does not answer: {}",
                served.stderr()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        served
    }
}

impl Served {
    /// What it has printed.
    pub(crate) fn stdout(&self) -> String {
        fs::read_to_string(self.output.join("stdout")).unwrap()
    }

    /// What it has logged to the console.
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.output.join("stderr")).unwrap()
    }

    /// Asks it to end, and waits until it has: so that nothing is left in a buffer.
    pub(crate) async fn stop(&mut self) {
        super::daemon::signal(self.child.id(), "TERM");
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "the daemon does not end");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // A process that is gone already is fine.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn create(path: &Path) -> fs::File {
    fs::OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .open(path)
        .unwrap()
}
