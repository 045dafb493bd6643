//! `cargo xtask audit`: licences, banned and doubled crates, sources, and dependencies that nobody uses.
//!
//! The database of known advisories lies outside the package registry and is not asked here; where it can be
//! reached, `cargo deny check advisories` reads the same `deny.toml`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use crate::process;
use crate::suites::Count;

/// The tools and their versions.
const TOOLS: [(&str, &str); 2] = [("cargo-deny", "0.20.2"), ("cargo-machete", "0.9.2")];
/// How long building a tool may take.
const BUILD_TIMEOUT: Duration = Duration::from_mins(25);
/// How long a check may take.
const CHECK_TIMEOUT: Duration = Duration::from_mins(5);

/// Runs the checks.
pub(crate) fn run() -> Result<Count> {
    let mut count = Count::default();
    for check in ["licenses", "bans", "sources"] {
        let mut command = process::program(tool("cargo-deny")?);
        command.args([
            "--log-level",
            "warn",
            "--locked",
            "check",
            "--hide-inclusion-graph",
            check,
        ]);
        count.add(process::run(&mut command, CHECK_TIMEOUT)?.success);
    }
    let mut command = process::program(tool("cargo-machete")?);
    count.add(process::run(&mut command, CHECK_TIMEOUT)?.success);
    println!(
        "advisories are not checked: their database lies outside the package registry and is not reachable \
         where this is built; elsewhere: cargo deny check advisories"
    );
    Ok(count)
}

/// A tool's program; built into the target folder where the machine has none.
fn tool(name: &str) -> Result<PathBuf> {
    if process::exists(name) {
        return Ok(name.into());
    }
    let root = process::target().join("tools");
    let program = root.join("bin").join(name);
    if !program.is_file() {
        let version = TOOLS
            .iter()
            .find(|(known, _)| *known == name)
            .map_or("*", |(_, version)| version);
        println!("building {name} {version} (some minutes, once)");
        let mut command = process::cargo(&["install", "--quiet", "--locked", name, "--version", version]);
        command
            .arg("--root")
            .arg(&root)
            .env("CARGO_TARGET_DIR", root.join("build"));
        process::check(&mut command, BUILD_TIMEOUT)?;
    }
    Ok(program)
}
