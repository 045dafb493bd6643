//! The files that a line is about.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;
use tempfile::TempDir;

use crate::corpus::case;

/// A workspace, a home and a folder beside them, below one temporary folder.
pub(super) struct World {
    pub(super) workspace: PathBuf,
    pub(super) home: PathBuf,
    other: PathBuf,
    /// What every file held when the world was made.
    originals: BTreeMap<PathBuf, Vec<u8>>,
    sockets: Vec<UnixListener>,
    _base: TempDir,
}

impl World {
    /// The standard files, and then the steps of a line.
    pub(super) fn new(setup: &Value) -> Result<Self> {
        let base = tempfile::tempdir()?;
        let real = base.path().canonicalize()?;
        let mut world = Self {
            workspace: real.join("work"),
            home: real.join("home"),
            other: real.join("other"),
            originals: BTreeMap::new(),
            sockets: Vec::new(),
            _base: base,
        };
        for file in [
            "{W}/notes.txt",
            "{W}/.env",
            "{W}/src/main.rs",
            "{O}/other.txt",
            "{H}/.ssh/id_rsa",
            "{H}/.bashrc",
        ] {
            put(&world.fill(file), format!("this is {file}\n").as_bytes())?;
        }
        for folder in ["scratch", "secret"] {
            std::fs::create_dir_all(world.workspace.join(folder))?;
        }
        for step in setup.as_array().into_iter().flatten() {
            world.step(step).with_context(|| step.to_string())?;
        }
        for path in files_below(&real) {
            // Pipes would wait for a writer, and a sparse file holds nothing to compare.
            let is_small = path
                .metadata()
                .is_ok_and(|meta| meta.is_file() && meta.len() < 1 << 20);
            if is_small && let Ok(bytes) = std::fs::read(&path) {
                world.originals.insert(path, bytes);
            }
        }
        Ok(world)
    }

    /// A text with its places filled in.
    pub(super) fn text(&self, value: &Value) -> Option<String> {
        case::text(value).map(|text| self.fill(&text))
    }

    pub(super) fn fill(&self, text: &str) -> String {
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        text.replace("{Wname}", &name(&self.workspace).unwrap_or_default())
            .replace("{Oname}", &name(&self.other).unwrap_or_default())
            .replace("{W}", &self.workspace.to_string_lossy())
            .replace("{H}", &self.home.to_string_lossy())
            .replace("{O}", &self.other.to_string_lossy())
    }

    /// The text that a file held at first, without blanks around.
    pub(super) fn original(&self, path: &str) -> Option<String> {
        let bytes = self.originals.get(Path::new(path))?;
        let text = String::from_utf8_lossy(bytes).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Files below a folder that were not there when the world was made.
    pub(super) fn new_below(&self, folder: &Path) -> Vec<PathBuf> {
        let files = files_below(folder).into_iter();
        files.filter(|path| !self.originals.contains_key(path)).collect()
    }

    fn step(&mut self, step: &Value) -> Result<()> {
        let (Some(what), Some(path)) = (step[0].as_str(), step[1].as_str()) else {
            bail!("a step is a name, a path and what belongs to it");
        };
        let path = self.fill(path);
        let text = || self.text(&step[2]).context("there is no text");
        match what {
            "file" => put(&path, text()?.as_bytes())?,
            "bytes" => put(&path, &bytes(&text()?)?)?,
            "dir" => std::fs::create_dir_all(path)?,
            "symlink" => {
                parent(&path)?;
                symlink(text()?, path)?;
            }
            "hardlink" => {
                parent(&path)?;
                std::fs::hard_link(text()?, path)?;
            }
            "fifo" => mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?,
            "socket" => self.sockets.push(UnixListener::bind(path)?),
            "sparse" => {
                put(&path, b"")?;
                let file = std::fs::OpenOptions::new().write(true).open(path)?;
                file.set_len(step[2].as_u64().unwrap_or_default())?;
            }
            other => bail!("the step `{other}` is not known"),
        }
        Ok(())
    }
}

fn parent(path: &str) -> Result<()> {
    if let Some(parent) = Path::new(path).parent() {
        std::fs::create_dir_all(parent)?;
    }
    Ok(())
}

fn put(path: &str, bytes: &[u8]) -> Result<()> {
    parent(path)?;
    Ok(std::fs::write(path, bytes)?)
}

fn bytes(digits: &str) -> Result<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = pairs.map(byte).collect();
    bytes.context("these are no hexadecimal digits")
}

/// Every file below a folder; links are not followed.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() {
                folders.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found
}
