//! The programs of the fixed search path, looked up once.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use super::policy::PROGRAM_FOLDERS;

/// How many names one folder may have.
const NAMES_MAX: usize = 65_536;

/// Which program a bare name means.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    found: BTreeMap<String, PathBuf>,
}

impl Programs {
    /// Reads the folders of the fixed search path.
    pub fn find() -> Self {
        Self::find_in(PROGRAM_FOLDERS.iter().map(Path::new))
    }

    fn find_in<'f>(folders: impl Iterator<Item = &'f Path>) -> Self {
        let mut found = BTreeMap::new();
        for folder in folders {
            let entries = fs::read_dir(folder).into_iter().flatten().take(NAMES_MAX);
            for entry in entries.flatten() {
                if let Ok(name) = entry.file_name().into_string() {
                    found.entry(name).or_insert_with(|| entry.path());
                }
            }
        }
        found.retain(|_, path| is_executable(path));
        Self { found }
    }

    /// The absolute path of a program, by its bare name.
    pub fn get(&self, name: &str) -> Option<&Path> {
        self.found.get(name).map(PathBuf::as_path)
    }
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_folder_wins_and_only_programs_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let (first, second) = (folder.path().join("1"), folder.path().join("2"));
        for (folder, name, mode) in [
            (&first, "one", 0o755),
            (&second, "one", 0o755),
            (&second, "two", 0o755),
            (&second, "text", 0o644),
        ] {
            fs::create_dir_all(folder).expect("a folder");
            let file = fs::File::create_new(folder.join(name)).expect("a file");
            file.set_permissions(fs::Permissions::from_mode(mode))
                .expect("its mode");
        }
        let programs = Programs::find_in([first.as_path(), &second].into_iter());
        assert_eq!(programs.get("one"), Some(first.join("one").as_path()));
        assert_eq!(programs.get("two"), Some(second.join("two").as_path()));
        assert_eq!(programs.get("text"), None);
        assert_eq!(programs.get("1/one"), None);
        assert!(Programs::find().get("sh").is_some_and(Path::is_absolute));
    }
}
