//! The official SDKs against the release binary: exact cases in front of the scripted model server, and a short
//! conversation in front of a real small model.

use std::time::Duration;

use anyhow::Result;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{Count, argument, counted};
use crate::daemon::{Daemon, Start};
use crate::{demo, model, process, scripted};

/// The tools of the conversation with the real model, which does not choose well among many.
const TOOLS: [&str; 3] = ["calculate", "current_time", "list_files"];
/// How long an install may take.
const INSTALL_TIMEOUT: Duration = Duration::from_mins(5);

/// The Python SDK.
pub(crate) fn python() -> Result<Count> {
    let environment = process::target().join("sdk/python");
    let requirements = process::root().join("tests/sdk/python/requirements.txt");
    let wanted = std::fs::read_to_string(&requirements)?;
    let done = environment.join("installed");
    if std::fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
        println!("the SDK is installed");
    } else {
        model::make_environment(&environment, &["--requirement", argument(&requirements)?])?;
        std::fs::write(done, wanted)?;
    }
    let suite = |daemon: &Daemon, name: &str| {
        let mut command = process::program(environment.join("bin/python"));
        let base_url = format!("http://{}/v1", daemon.address);
        command.args(["tests/sdk/python/suite.py", &base_url, &daemon.key, name]);
        counted(&mut command)
    };
    let exact = with_scripted(|daemon| suite(daemon, "scripted"))?;
    let model = model::start()?;
    let folder = TempDir::new()?;
    let mut start = Start::new(folder.path().join("home"), &model.base_url, model::NAME);
    demo::SETTINGS.clone_into(&mut start.settings);
    start.tools = Some(demo::tools_file(&TOOLS)?);
    let daemon = Daemon::start(&start)?;
    let mut real = suite(&daemon, "real")?;
    let tools = demo::tools_used(&daemon.home);
    println!("tools that the real model used: {tools:?}");
    real.add(!tools.is_empty());
    Ok(Count {
        passed: exact.passed + real.passed,
        failed: exact.failed + real.failed,
    })
}

/// The Node SDK.
pub(crate) fn node() -> Result<Count> {
    let folder = process::target().join("sdk/node");
    std::fs::create_dir_all(&folder)?;
    for name in ["package.json", ".npmrc", "suite.mjs"] {
        std::fs::copy(
            process::root().join("tests/sdk/node").join(name),
            folder.join(name),
        )?;
    }
    let mut install = process::program("npm");
    install
        .args(["install", "--no-progress", "--loglevel=error"])
        .current_dir(&folder);
    process::check(&mut install, INSTALL_TIMEOUT)?;
    with_scripted(|daemon| {
        let mut command = process::program("node");
        command
            .arg("suite.mjs")
            .arg(format!("http://{}/v1", daemon.address))
            .arg(&daemon.key);
        counted(command.current_dir(&folder))
    })
}

/// Runs something in front of a daemon with the scripted model server behind it.
pub(super) fn with_scripted<T>(run: impl FnOnce(&Daemon) -> Result<T>) -> Result<T> {
    let runtime = Runtime::new()?;
    let upstream = runtime.block_on(scripted::start(0))?;
    let folder = TempDir::new()?;
    let daemon = Daemon::start(&Start::new(
        folder.path().join("home"),
        upstream.base_url(),
        scripted::NAME,
    ))?;
    let result = run(&daemon)?;
    let stopped = daemon.stop()?;
    runtime.block_on(upstream.stop());
    anyhow::ensure!(stopped, "the daemon did not end with success when asked to stop");
    Ok(result)
}
