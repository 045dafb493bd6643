//! From the operator's lists to zones.

use std::path::{Component, Path, PathBuf};

use super::Zones;

/// The operator's lists as they are written: relative entries count from the workspace, an empty entry means
/// nothing, a slash at the end is allowed.
#[derive(Debug, Clone, Copy, Default)]
pub struct ZoneEntries<'a> {
    /// `allowed_paths`: where files may be touched at all. Empty: the workspace.
    pub allowed: &'a [PathBuf],
    /// `read_paths`.
    pub read: &'a [PathBuf],
    /// `blocked_paths`.
    pub blocked: &'a [PathBuf],
    /// `no_prompt_paths`.
    pub no_prompt: &'a [PathBuf],
    /// `prompt_paths`.
    pub prompt: &'a [PathBuf],
    /// `allowed_sensitive_files`: exact paths, or folders that end in `/`.
    pub allowed_sensitive: &'a [PathBuf],
    /// The server's own files and folders.
    pub own: &'a [PathBuf],
}

impl Zones {
    /// The zones of these lists. `workspace` is a real path; `real` follows every link of a path as far as it
    /// exists and keeps the names that do not.
    pub fn of(workspace: &Path, entries: &ZoneEntries<'_>, real: impl Fn(&Path) -> PathBuf) -> Self {
        let at = |entry: &PathBuf| tidy(&workspace.join(entry));
        let named = |list: &[PathBuf]| -> Vec<PathBuf> {
            list.iter()
                .filter(|entry| !entry.as_os_str().is_empty())
                .map(at)
                .collect()
        };
        let resolved =
            |list: &[PathBuf]| -> Vec<PathBuf> { named(list).iter().map(|path| real(path)).collect() };
        // What is closed is closed under the name that was written and under the one that leads to, as it is now.
        let closed = |list: &[PathBuf]| -> Vec<PathBuf> {
            let mut both = resolved(list);
            both.extend(named(list).iter().map(|path| real_parent(path, &real)));
            both.sort_unstable();
            both.dedup();
            both
        };
        let mut allowed = resolved(entries.allowed);
        if allowed.is_empty() {
            allowed.push(workspace.to_owned());
        }
        Self {
            readable: allowed.clone(),
            writable: allowed,
            read: resolved(entries.read),
            no_prompt: resolved(entries.no_prompt),
            prompt: resolved(entries.prompt),
            blocked: closed(entries.blocked),
            own: closed(entries.own),
            is_disposable: false,
            allowed_sensitive: entries
                .allowed_sensitive
                .iter()
                .filter(|entry| !entry.as_os_str().is_empty())
                .map(|entry| {
                    let is_folder = entry.as_os_str().as_encoded_bytes().ends_with(b"/");
                    // A link is not followed: what it leads to was not named.
                    let path = real_parent(&at(entry), &real);
                    if is_folder { path.join("") } else { path }
                })
                .collect(),
        }
    }
}

/// The path with the links on the way followed, and its last name as it is.
fn real_parent(path: &Path, real: impl Fn(&Path) -> PathBuf) -> PathBuf {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        (Some(_) | None, _) => path.to_owned(),
    }
}

/// Without `.` and doubled or closing slashes. `..` is taken by its name: an operator who writes it means the
/// folder around, and where a link stands before it, `real` is asked about what is left.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                tidy.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => tidy.push(component),
        }
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, ZoneVerdict};

    #[test]
    fn entries_count_from_the_workspace_and_empty_ones_mean_nothing() {
        let lists: [Vec<PathBuf>; 5] = [
            vec!["scratch".into(), "".into()],
            vec!["secret/".into(), "./link".into()],
            vec![
                "".into(),
                "fixtures/test.pem".into(),
                "keys/".into(),
                "a/../b.pem".into(),
            ],
            vec!["/h/data".into()],
            vec![".".into()],
        ];
        let entries = ZoneEntries {
            no_prompt: &lists[0],
            blocked: &lists[1],
            allowed_sensitive: &lists[2],
            own: &lists[3],
            prompt: &lists[4],
            ..ZoneEntries::default()
        };
        let zones = Zones::of(Path::new("/w"), &entries, |path| {
            if path == Path::new("/w/link") {
                "/w/target".into()
            } else {
                path.to_owned()
            }
        });
        for (path, expected) in [
            ("/w/scratch/a", ZoneVerdict::NoPrompt),
            ("/w/a", ZoneVerdict::Ask("prompt_zone")),
            ("/w/secret/a", ZoneVerdict::Blocked),
            ("/w/link", ZoneVerdict::Blocked),
            ("/w/target/a", ZoneVerdict::Blocked),
            ("/h/data/x", ZoneVerdict::Blocked),
            ("/h/x", ZoneVerdict::Outside),
        ] {
            assert_eq!(zones.judge(Access::Write, Path::new(path)), expected, "{path}");
        }
        for (path, is_exempt) in [
            ("/w/fixtures/test.pem", true),
            ("/w/keys/x.pem", true),
            ("/w/b.pem", true),
            ("/w/.env", false),
            ("/w", false),
        ] {
            assert_eq!(zones.is_allowed_sensitive(Path::new(path)), is_exempt, "{path}");
        }
    }
}
