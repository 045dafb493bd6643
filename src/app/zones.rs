//! Where tools may go: the knowledge bank, and never the server's own files, should they lie inside it.
//!
//! Its own is what it is configured by, what it keeps, and every program that it starts. Whoever could replace
//! such a program would have code run outside every check, so a name that nothing bears yet counts as well, and
//! so does the folder that a program lies in: interpreters load what lies beside a script.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs::File,
    io::Read,
    os::unix::fs::PermissionsExt,
    path::{Component, Path, PathBuf},
};

use serde::Deserialize;
use tidegate_core::port::OperatorFiles;
use tidegate_gate::{ZoneEntries, Zones};
use tidegate_io::{files::is_one_of, operator_files::Disk};

use crate::config::{FILE, Settings};

/// What the database puts beside itself, by the ending of its name.
const DATABASE_ENDINGS: [&str; 6] = ["", "-wal", "-shm", "-journal", ".lock", ".keys"];
/// Bytes of a tools file that are looked at; the tools refuse a longer one.
const TOOLS_FILE_BYTES_MAX: usize = 1 << 20;
/// Endings of files that an interpreter runs without their being marked as executable.
const SCRIPT_ENDINGS: [&str; 17] = [
    "bash", "cjs", "fish", "jar", "js", "ksh", "lua", "mjs", "php", "pl", "py", "pyc", "pyz", "rb", "sh",
    "ts", "zsh",
];

/// The zones of these settings.
pub(super) fn zones(settings: &Settings) -> Zones {
    let gate = &settings.config.gate;
    let bank = real(&settings.config.tools.knowledge_bank);
    let own: Vec<PathBuf> = Own::of(settings, bank.clone()).paths.into_iter().collect();
    let entries = ZoneEntries {
        allowed: &gate.allowed_paths,
        read: &gate.read_paths,
        blocked: &gate.blocked_paths,
        no_prompt: &gate.no_prompt_paths,
        prompt: &gate.prompt_paths,
        allowed_sensitive: &gate.allowed_sensitive_files,
        own: &own,
    };
    Zones {
        is_disposable: settings.disposable.is_on(),
        ..Zones::of(&bank, &entries, real)
    }
}

/// The files of the database, there or not, under every name that SQLite may give them.
pub(super) fn database(settings: &Settings) -> Vec<PathBuf> {
    let path = &settings.config.store.path;
    let mut files = BTreeSet::new();
    for path in names(path) {
        files.extend(DATABASE_ENDINGS.iter().map(|ending| {
            let mut file = path.as_os_str().to_owned();
            file.push(ending);
            PathBuf::from(file)
        }));
    }
    files.into_iter().collect()
}

/// The server's own files and folders, there or not.
struct Own {
    bank: PathBuf,
    database: Vec<PathBuf>,
    paths: BTreeSet<PathBuf>,
}

impl Own {
    fn of(settings: &Settings, bank: PathBuf) -> Self {
        let config = &settings.config;
        let mut own = Self {
            bank,
            database: database(settings),
            paths: BTreeSet::new(),
        };
        let files = [
            &settings.data_dir,
            &settings.logs,
            &config.prompt.agent_file,
            &config.prompt.skills_dir,
            &config.memory.kinds_file,
            &config.routing.patterns_file,
            &config.routing.vocabulary_file,
            &config.routing.examples_file,
            &config.routing.counterexamples_file,
            &config.mcp.file,
            &settings.home.join(FILE),
            // Read at the next start, where none is named.
            &settings.working_folder.join(FILE),
        ];
        let files = files
            .into_iter()
            .chain(&settings.file)
            .chain(&config.tools.tools_file)
            .chain(&settings.secret_files);
        files.for_each(|file| own.add(file));
        for file in own.database.clone() {
            own.add(&file);
        }
        for hook in &config.hooks {
            own.add_hook(&hook.command, settings);
        }
        for command in config.tools.tools_file.iter().flat_map(|file| commands(file)) {
            own.add_tool(&command);
        }
        own
    }

    /// Under the name it is known by, and under the one that leads to.
    fn add(&mut self, path: &Path) {
        self.paths.extend(names(path));
    }

    /// A hook's command runs in the home folder. Every part of it may be a path, and is taken for one.
    fn add_hook(&mut self, command: &[String], settings: &Settings) {
        let home = &settings.home;
        if let Some(program) = command.first().filter(|program| !program.contains('/')) {
            let folders = settings.search_path.as_deref().unwrap_or_default().split(':');
            folders.for_each(|folder| self.add_inside(&home.join(folder).join(program)));
        }
        for part in command {
            let value = part.split_once('=').map(|(_, value)| value);
            for path in [Some(part.as_str()), value].into_iter().flatten() {
                if !path.is_empty() && !path.starts_with('-') {
                    self.add_inside(&home.join(path));
                }
            }
            self.add_programs(part, home);
        }
    }

    /// A tool's command runs in the knowledge bank. Its arguments may name what the tool is there to read; of
    /// them only programs count.
    fn add_tool(&mut self, command: &[String]) {
        let folder = self.bank.clone();
        if let Some(program) = command.first().filter(|program| program.contains('/')) {
            self.add_inside(&folder.join(program));
        }
        for part in command {
            self.add_programs(part, &folder);
        }
    }

    /// The programs that a part of a command names: by itself, or among the words of a shell's command.
    fn add_programs(&mut self, part: &str, folder: &Path) {
        let words =
            part.split(|letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'' | ';' | '='));
        for word in words.chain([part]).filter(|word| !word.is_empty()) {
            let path = folder.join(word);
            if !self.is_program(&path) {
                continue;
            }
            self.add_inside(&path);
            for parent in names(&path).iter().filter_map(|name| name.parent()) {
                self.add_inside(parent);
            }
        }
    }

    /// What does not lie inside the knowledge bank cannot be reached anyway, and a command that names the bank
    /// itself, or a folder around it, does not make it the server's own.
    fn add_inside(&mut self, path: &Path) {
        let inside = names(path)
            .into_iter()
            .filter(|name| *name != self.bank && name.starts_with(&self.bank));
        self.paths.extend(inside.collect::<Vec<_>>());
    }

    /// Whether something would be run rather than read. A script that is not there yet is known by its name. The
    /// database is never opened for it, by whichever name: that would drop the locks that SQLite holds in this process.
    fn is_program(&self, path: &Path) -> bool {
        let ending = path.extension().and_then(OsStr::to_str);
        let is_script =
            ending.is_some_and(|ending| SCRIPT_ENDINGS.contains(&ending.to_ascii_lowercase().as_str()));
        let Ok(metadata) = path.metadata() else {
            return is_script;
        };
        let begins_as_script = || {
            let mut start = [0_u8; 2];
            File::open(path)
                .and_then(|mut file| file.read_exact(&mut start))
                .is_ok_and(|()| &start == b"#!")
        };
        metadata.is_file()
            && (is_script
                || metadata.permissions().mode() & 0o111 != 0
                || (!is_one_of(&self.database, &metadata) && begins_as_script()))
    }
}

/// A path under its own name, and under the one that it leads to.
fn names(path: &Path) -> [PathBuf; 2] {
    let own = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        (Some(_) | None, _) => real(path),
    };
    [own, real(path)]
}

/// The commands in a tools file. One that cannot be read names none: the tools then do not start.
fn commands(file: &Path) -> Vec<Vec<String>> {
    #[derive(Deserialize)]
    struct Rows {
        #[serde(default)]
        tool: Vec<Row>,
    }
    #[derive(Deserialize)]
    struct Row {
        #[serde(default)]
        command: Vec<String>,
    }
    let text = Disk.read(file, TOOLS_FILE_BYTES_MAX).unwrap_or_default();
    let rows: Vec<Row> = toml::from_str(&text).map_or_else(|_| Vec::new(), |rows: Rows| rows.tool);
    rows.into_iter().map(|row| row.command).collect()
}

/// The real path: links followed as far as the path exists.
pub(super) fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.components().next_back()) {
        (Some(parent), Some(Component::Normal(name))) => real(parent).join(name),
        (Some(parent), Some(Component::ParentDir)) => {
            let mut around = real(parent);
            around.pop();
            around
        }
        (Some(_) | None, _) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests;
