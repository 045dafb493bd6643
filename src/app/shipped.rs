//! The files that ship with tidegate, embedded, so that a container or an empty folder can be filled.

use std::{io, path::Path};

/// A shipped file.
#[derive(Debug, Clone, Copy)]
pub struct File {
    /// Where it belongs, relative to `home`.
    pub path: &'static str,
    /// What it says.
    pub text: &'static str,
}

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(File { path: $path, text: include_str!(concat!("../../", $path)) }),*]
    };
}

/// Every shipped file.
pub const FILES: &[File] = files![
    "AGENT.md",
    "skills/study-planner/SKILL.md",
    "skills/meeting-minutes/SKILL.md",
    "skills/policy-lookup/SKILL.md",
    "routing/patterns.txt",
    "routing/vocabulary.txt",
    "routing/examples.txt",
    "routing/counterexamples.txt",
    "knowledge-bank/handbook.md",
    "knowledge-bank/regulations/budget-adjustment.md",
    "knowledge-bank/summaries/budget-adjustment-summary.md",
    "knowledge-bank/syllabi/biology-grade-8.md",
    "knowledge-bank/syllabi/mathematics-grade-8.md",
    "knowledge-bank/syllabi/mathematics-grade-9.md",
    "mcp_servers.json",
    "memory-kinds.toml",
];

/// The settings of the preset `hardened`.
pub const HARDENED: File = File {
    path: "presets/hardened.toml",
    text: include_str!("../../presets/hardened.toml"),
};

/// Writes a file below `home` where there is none; whether it did.
pub fn write(home: &Path, file: &File) -> io::Result<bool> {
    let path = home.join(file.path);
    // A link that leads nowhere is something of the operator's, too.
    if path.symlink_metadata().is_ok() {
        return Ok(false);
    }
    if let Some(folder) = path.parent() {
        tidegate_io::files::create_private_dir(folder)?;
    }
    tidegate_io::files::write_private(&path, file.text.as_bytes())?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::PathBuf};

    use super::*;

    fn below(folder: &Path, found: &mut BTreeSet<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                below(&path, found);
            } else {
                found.insert(path);
            }
        }
    }

    #[test]
    fn everything_that_ships_is_embedded() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut on_disk: BTreeSet<PathBuf> = ["AGENT.md", "mcp_servers.json", "memory-kinds.toml"]
            .iter()
            .map(|name| root.join(name))
            .collect();
        for folder in ["skills", "routing", "knowledge-bank"] {
            below(&root.join(folder), &mut on_disk);
        }
        let embedded: BTreeSet<PathBuf> = FILES.iter().map(|file| root.join(file.path)).collect();
        assert_eq!(embedded, on_disk);
    }

    #[test]
    fn nothing_of_the_operators_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        assert!(FILES.iter().all(|file| write(home.path(), file).unwrap()));
        assert!(!FILES.iter().any(|file| write(home.path(), file).unwrap()));
        let text = std::fs::read_to_string(home.path().join("AGENT.md")).unwrap();
        assert_eq!(text, FILES[0].text);
    }
}
