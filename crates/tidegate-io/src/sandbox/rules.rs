//! From a policy to the paths that Landlock opens.
//!
//! Landlock only opens and never closes again: a right on a folder holds for everything below it. Where it
//! stands alone, a folder with something hidden in it is therefore not opened itself; its entries are, one by
//! one, without the hidden ones and without links. Behind bubblewrap the hidden things are not there at all, and
//! the folders are opened as they are.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use super::{
    Error,
    policy::{Policy, SYSTEM_DEVICES, SYSTEM_FILES, SYSTEM_FOLDERS, SYSTEM_PROC},
    wire::{Access, Rule},
};

/// The most paths that one run opens. A folder with more entries beside a hidden one needs bubblewrap.
const RULES_MAX: usize = 16_384;

/// The paths of the system.
fn system() -> Vec<Rule> {
    let read = SYSTEM_FOLDERS.iter().chain(&SYSTEM_FILES);
    read.map(|path| Rule::new(*path, Access::Read))
        .chain(SYSTEM_DEVICES.iter().map(|path| Rule::new(*path, Access::Device)))
        .collect()
}

/// The paths that are open behind bubblewrap.
pub(super) fn behind(policy: &Policy, temporary: &Path) -> Vec<Rule> {
    let mut rules = system();
    rules.push(Rule::new("/proc", Access::Read));
    rules.push(Rule::new("/dev", Access::Device));
    rules.push(Rule::new(temporary, Access::Write));
    rules.extend(policy.readable.iter().map(|path| Rule::new(path, Access::Read)));
    rules.extend(policy.writable.iter().map(|path| Rule::new(path, Access::Write)));
    rules
}

/// The paths that are open where Landlock stands alone.
pub(super) fn alone(policy: &Policy, temporary: &Path) -> Result<Vec<Rule>, Error> {
    let mut rules = system();
    rules.extend(SYSTEM_PROC.iter().map(|path| Rule::new(*path, Access::Read)));
    rules.push(Rule::new(temporary, Access::Write));
    let exceptions = Exceptions {
        hidden: policy
            .concealed()
            .map(|path| (path.as_path(), path.is_dir()))
            .collect(),
        protected: policy.protected.iter().map(PathBuf::as_path).collect(),
    };
    for path in &policy.readable {
        exceptions.open(path, Access::Read, &mut rules)?;
    }
    for path in &policy.writable {
        exceptions.open(path, Access::Write, &mut rules)?;
    }
    Ok(rules)
}

struct Exceptions<'p> {
    /// And whether each is a folder.
    hidden: Vec<(&'p Path, bool)>,
    protected: Vec<&'p Path>,
}

impl Exceptions<'_> {
    fn open(&self, path: &Path, access: Access, rules: &mut Vec<Rule>) -> Result<(), Error> {
        if self.hidden.iter().any(|(hidden, _)| path.starts_with(hidden)) {
            return Ok(());
        }
        let is_protected = self.protected.iter().any(|one| path.starts_with(one));
        let access = if is_protected { Access::Read } else { access };
        let is_above = |other: &Path| other != path && other.starts_with(path);
        let mut hidden = self.hidden.iter().filter(|(one, _)| is_above(one)).peekable();
        let has_hidden = hidden.peek().is_some();
        let has_protected = access == Access::Write && self.protected.iter().any(|one| is_above(one));
        if rules.len() >= RULES_MAX {
            return Err(Error::TooManyRules {
                folder: path.display().to_string(),
                max: RULES_MAX,
            });
        }
        if !has_hidden && !has_protected {
            rules.push(Rule::new(path, access));
            return Ok(());
        }
        // Names may be listed where no hidden folder would have its own listed with them.
        if !hidden.any(|(_, is_folder)| *is_folder) {
            rules.push(Rule::new(path, Access::List));
        }
        for entry in entries(path)? {
            self.open(&entry, access, rules)?;
        }
        Ok(())
    }
}

/// What stands in a folder, links left out: what they lead to is opened under its own name or not at all.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let unreadable = |problem: std::io::Error| Error::Folder {
        folder: folder.display().to_string(),
        problem,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => {}
            Ok(_) => found.push(entry.path()),
            Err(problem) if problem.kind() == ErrorKind::NotFound => {}
            Err(problem) => return Err(unreadable(problem)),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(policy: &Policy, root: &Path) -> Vec<(String, Access)> {
        let mut opened: Vec<_> = alone(policy, Path::new("/nowhere"))
            .expect("rules")
            .into_iter()
            .filter_map(|rule| {
                let below = rule.path.strip_prefix(root).ok()?;
                Some((below.display().to_string(), rule.access))
            })
            .collect();
        opened.sort_by(|one, other| one.0.cmp(&other.0));
        opened
    }

    #[test]
    fn a_folder_with_something_hidden_is_opened_entry_by_entry() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("its real path");
        for name in ["a/b", "c", "data"] {
            fs::create_dir_all(root.join(name)).expect("a folder");
        }
        for name in ["a/.env", "a/b/x", "c/y", "top", "data/db"] {
            drop(fs::File::create_new(root.join(name)).expect("a file"));
        }
        std::os::unix::fs::symlink(root.join("data/db"), root.join("a/link")).expect("a link");

        let mut policy = Policy {
            writable: vec![root.clone()],
            ..Policy::default()
        };
        assert_eq!(opened(&policy, &root), [(String::new(), Access::Write)]);

        policy.masked = vec![root.join("a/.env")];
        let entry = |name: &str, access| (name.to_owned(), access);
        let expected = [
            entry("", Access::List),
            entry("a", Access::List),
            entry("a/b", Access::Write),
            entry("c", Access::Write),
            entry("data", Access::Write),
            entry("top", Access::Write),
        ];
        assert_eq!(opened(&policy, &root), expected);

        // The names of a hidden folder are hidden with it.
        policy.hidden = vec![root.join("data")];
        policy.protected = vec![root.join("c/y")];
        let expected = [
            entry("a", Access::List),
            entry("a/b", Access::Write),
            entry("c", Access::List),
            entry("c/y", Access::Read),
            entry("top", Access::Write),
        ];
        assert_eq!(opened(&policy, &root), expected);

        // A root inside what is hidden opens nothing.
        policy.writable = vec![root.join("data")];
        assert_eq!(opened(&policy, &root), []);
    }
}
