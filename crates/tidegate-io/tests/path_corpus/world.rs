//! The files that a line is about.

use std::{
    os::unix::{fs::symlink, net::UnixListener},
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;
use tempfile::TempDir;
use tidegate_io::files::write_private;

/// A workspace, a home and a folder beside them, below one temporary folder.
pub(crate) struct World {
    pub(crate) workspace: PathBuf,
    home: PathBuf,
    other: PathBuf,
    sockets: Vec<UnixListener>,
    _base: TempDir,
}

impl World {
    pub(crate) fn new(setup: &Value) -> Self {
        let base = tempfile::tempdir().unwrap();
        let real = base.path().canonicalize().unwrap();
        let mut world = Self {
            workspace: real.join("work"),
            home: real.join("home"),
            other: real.join("other"),
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
            Self::put(&world.fill(file), file.as_bytes());
        }
        for folder in ["scratch", "secret"] {
            std::fs::create_dir_all(world.workspace.join(folder)).unwrap();
        }
        for step in setup.as_array().into_iter().flatten() {
            world.step(step);
        }
        world
    }

    /// A text with its places filled in; long ones are written as a generator.
    pub(crate) fn text(&self, value: &Value) -> String {
        if let Some(text) = value.as_str() {
            return self.fill(text);
        }
        let generator = &value["gen"];
        let plain = |name: &str| generator[name].as_str().unwrap_or_default().to_owned();
        let repeated = |name: &str| {
            let count = usize::try_from(generator[name][1].as_u64().unwrap_or(0)).unwrap();
            generator[name][0].as_str().unwrap_or_default().repeat(count)
        };
        let text = [
            plain("prefix"),
            repeated("repeat"),
            plain("middle"),
            repeated("suffix_repeat"),
            plain("suffix"),
        ];
        self.fill(&text.concat())
    }

    pub(crate) fn fill(&self, text: &str) -> String {
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        text.replace("{W}", self.workspace.to_str().unwrap())
            .replace("{H}", self.home.to_str().unwrap())
            .replace("{O}", self.other.to_str().unwrap())
            .replace("{Wname}", &name(&self.workspace))
            .replace("{Oname}", &name(&self.other))
    }

    pub(crate) fn list(&self, value: &Value) -> Vec<PathBuf> {
        let items = value.as_array().into_iter().flatten();
        items
            .map(|item| self.fill(item.as_str().unwrap()).into())
            .collect()
    }

    fn put(path: &str, bytes: &[u8]) {
        std::fs::create_dir_all(Path::new(path).parent().unwrap()).unwrap();
        write_private(Path::new(path), bytes).unwrap();
    }

    fn step(&mut self, step: &Value) {
        let path = self.fill(step[1].as_str().unwrap());
        let text = || self.fill(step[2].as_str().unwrap());
        match step[0].as_str().unwrap() {
            "file" => Self::put(&path, text().as_bytes()),
            "bytes" => {
                let digits = text();
                let bytes: Vec<u8> = (0..digits.len() / 2)
                    .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap())
                    .collect();
                Self::put(&path, &bytes);
            }
            "dir" => std::fs::create_dir_all(path).unwrap(),
            "symlink" => symlink(text(), path).unwrap(),
            "hardlink" => std::fs::hard_link(text(), path).unwrap(),
            "fifo" => mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap(),
            "socket" => self.sockets.push(UnixListener::bind(path).unwrap()),
            "sparse" => {
                Self::put(&path, b"");
                let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
                file.set_len(step[2].as_u64().unwrap()).unwrap();
            }
            other => panic!("unknown step {other}"),
        }
    }
}
