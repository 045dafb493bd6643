//! tidegate as a server of the Model Context Protocol, before the official clients: the Python and TypeScript SDKs, the
//! inspector's command line, the page for people as it stands, and the protocol's conformance suite, over HTTP and
//! standard input.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{Count, argument, counted};
use crate::{
    daemon::{self, Daemon, Start},
    model, process, scripted,
};

/// How long an install may take.
const INSTALL_TIMEOUT: Duration = Duration::from_mins(10);
/// Writes are offered, so that a person has something to approve.
const SETTINGS: &str = "[mcp_server]\nallow_writes = true\n";

/// A skill to list and to get.
const SKILL: &str = "---\nname: short-notes\ndescription: Takes notes.\nkeywords: [take notes]\n---\nWrite down decisions first.\n";
/// Tools by names that the conformance suite calls, so that more of it can be tried.
const TOOLS: &str = r#"
[[tool]]
name = "test_simple_text"
description = "Tells the time."
mode = "current_time"
accept = [{}]

[[tool]]
name = "test_error_handling"
description = "Fails without an expression."
mode = "calculate"
accept = [{ expression = "1 + 1" }]
refuse = [{}]

[[tool.parameters]]
name = "expression"
type = "string"
description = "What to calculate."
required = true
"#;

/// Both suites, in front of one daemon and one home for standard input.
pub(crate) fn run() -> Result<Count> {
    let (python, node) = (install_python()?, install_node()?);
    let runtime = Runtime::new()?;
    let upstream = runtime.block_on(scripted::start(0))?;
    let folder = TempDir::new()?;
    let door = tidegate_testkit::free_port()?;
    let mut start = Start::new(folder.path().join("home"), upstream.base_url(), scripted::NAME);
    // The conformance suite calls from a page of its own origin, which must be let in.
    start.settings = format!("{SETTINGS}\n[server]\ncors_origins = [\"http://127.0.0.1:{door}\"]\n");
    start.tools = Some(TOOLS.to_owned());
    give_skill(&start.home)?;
    let served = Daemon::start(&start)?;
    let local = Local::new(folder.path().join("local"), &upstream.base_url())?;
    let url = format!("http://{}/mcp", served.address);
    let mut count = counted(
        local.after(
            process::program(python.join("bin/python"))
                .arg("tests/sdk/mcp/suite.py")
                .args([&url, &served.key]),
        )?,
    )?;
    let mut suite = process::program("node");
    suite
        .arg("suite.mjs")
        .args([&url, &served.key, &door.to_string()])
        .arg(python.join("bin/python"))
        .arg("--")
        .current_dir(&node);
    count.merge(counted(local.after(&mut suite)?)?);
    let stopped = served.stop()?;
    runtime.block_on(upstream.stop());
    anyhow::ensure!(stopped, "the daemon did not end with success when asked to stop");
    Ok(count)
}

/// A home that no daemon has, for a server on standard input.
struct Local {
    home: PathBuf,
    key: String,
}

impl Local {
    fn new(home: PathBuf, model_url: &str) -> Result<Self> {
        daemon::prepare(&Start::new(home.clone(), model_url, scripted::NAME))?;
        give_skill(&home)?;
        let mut create = process::program(process::release_binary());
        create
            .args(["keys", "create", "--name", "suite", "--json"])
            .current_dir(&home);
        let created: Value = serde_json::from_str(&process::output(&mut create)?)?;
        let key = created["key"].as_str().context("no key was made")?.to_owned();
        Ok(Self { home, key })
    }

    /// The command with what starts the server behind its arguments.
    fn after<'c>(&self, command: &'c mut Command) -> Result<&'c mut Command> {
        let home = argument(&self.home)?;
        let config = self.home.join("tidegate.toml");
        Ok(command
            .arg(process::release_binary())
            .args(["mcp", "serve"])
            .env("TIDEGATE_CONFIG", config)
            .env("TIDEGATE_HOME", home)
            .env("TIDEGATE_KEY", &self.key))
    }
}

fn give_skill(home: &Path) -> Result<()> {
    let folder = home.join("skills/short-notes");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("SKILL.md"), SKILL)?;
    Ok(())
}

fn install_python() -> Result<PathBuf> {
    let environment = process::target().join("sdk/mcp-python");
    let requirements = process::root().join("tests/sdk/mcp/requirements.txt");
    let wanted = std::fs::read_to_string(&requirements)?;
    let done = environment.join("installed");
    if std::fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
        println!("the Python SDK is installed");
    } else {
        model::make_environment(&environment, &["--requirement", argument(&requirements)?])?;
        std::fs::write(done, wanted)?;
    }
    Ok(environment)
}

fn install_node() -> Result<PathBuf> {
    let folder = process::target().join("sdk/mcp-node");
    std::fs::create_dir_all(&folder)?;
    for entry in std::fs::read_dir(process::root().join("tests/sdk/mcp"))? {
        let source = entry?.path();
        if let Some(name) = source.file_name() {
            std::fs::copy(&source, folder.join(name))?;
        }
    }
    let page = process::root().join("docs/mcp-server.md");
    std::fs::copy(page, folder.join("mcp-server.md"))?;
    let mut install = process::program("npm");
    install
        .args(["install", "--no-progress", "--loglevel=error"])
        .current_dir(&folder);
    process::check(&mut install, INSTALL_TIMEOUT)?;
    Ok(folder)
}
