//! Path zones: which real paths a call may touch. Blocked wins over everything.

use std::path::{Component, Path, PathBuf};

use crate::{Access, Facts, PathFact, ResolvedPath};

/// The operator's zones, all real absolute paths.
#[derive(Debug, Clone, Default)]
pub struct Zones {
    /// Roots inside which files may be read and listed.
    pub readable: Vec<PathBuf>,
    /// Roots inside which files may be written, mode permitting.
    pub writable: Vec<PathBuf>,
    /// Writes here need no approval even in `readonly`; empty by default.
    pub no_prompt: Vec<PathBuf>,
    /// Never touched: the server's own data, configuration and logs.
    pub blocked: Vec<PathBuf>,
    /// Files exempt from the credential floor, each by its exact path. An entry that ends in `/` is a folder and
    /// exempts everything in it.
    pub allowed_sensitive: Vec<PathBuf>,
}

impl Zones {
    /// Whether every path the call would write stands in a no-prompt zone, is not blocked, and there is one.
    pub fn is_no_prompt(&self, facts: &Facts) -> bool {
        let mut written = facts
            .paths
            .iter()
            .filter(|path| path.access == Access::Write)
            .peekable();
        written.peek().is_some()
            && written.all(|path| {
                path.resolution.as_ref().is_ok_and(|resolved| {
                    is_in_any(&self.no_prompt, &resolved.real) && !self.is_blocked(&resolved.real)
                })
            })
    }

    /// Whether the path may be read, listed or written as asked, blocked zones aside.
    pub fn is_inside(&self, access: Access, real: &Path) -> bool {
        match access {
            Access::Read | Access::List => is_in_any(&self.readable, real),
            Access::Write => is_in_any(&self.writable, real),
        }
    }

    /// Whether the path stands in a blocked zone, or cannot be a real path at all.
    pub fn is_blocked(&self, real: &Path) -> bool {
        !is_real(real) || is_in_any(&self.blocked, real)
    }

    /// Whether the operator has exempted exactly this path, or a folder it stands in, from the credential
    /// floor.
    pub fn is_allowed_sensitive(&self, real: &Path) -> bool {
        self.allowed_sensitive.iter().any(|entry| {
            if entry.as_os_str().as_encoded_bytes().ends_with(b"/") {
                is_in(entry, real)
            } else {
                is_real(entry) && entry == real
            }
        })
    }

    /// The part of a path below the innermost root it stands in, and whether that root is the first one, from
    /// which relative paths are counted.
    pub(crate) fn below_root<'a>(&self, real: &'a Path) -> Option<(&'a Path, bool)> {
        self.readable
            .iter()
            .chain(&self.writable)
            .enumerate()
            .filter(|(_, root)| is_in(root, real))
            .max_by_key(|(index, root)| (root.components().count(), std::cmp::Reverse(*index)))
            .and_then(|(index, root)| Some((real.strip_prefix(root).ok()?, index == 0)))
    }
}

impl PathFact {
    /// Where the path leads, for a path that leads anywhere.
    pub(crate) fn resolved(&self) -> Option<&ResolvedPath> {
        self.resolution.as_ref().ok()
    }
}

fn is_in_any(zones: &[PathBuf], real: &Path) -> bool {
    zones.iter().any(|zone| is_in(zone, real))
}

/// Containment by whole components. A zone that is no absolute path contains nothing: an empty one would
/// otherwise contain everything.
fn is_in(zone: &Path, real: &Path) -> bool {
    is_real(zone) && is_real(real) && real.starts_with(zone)
}

fn is_real(path: &Path) -> bool {
    path.is_absolute()
        && path
            .components()
            .all(|component| matches!(component, Component::RootDir | Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{resolved, write_fact};

    fn zones() -> Zones {
        Zones {
            readable: vec!["/w".into(), "/w/deep/er".into()],
            writable: vec!["/w/out".into()],
            no_prompt: vec!["/w/out/scratch".into()],
            blocked: vec!["/w/data".into(), "/w/out/scratch/locked".into()],
            allowed_sensitive: vec!["/w/fixtures/test.pem".into(), "/w/keys/".into(), "".into()],
        }
    }

    #[test]
    fn containment_is_by_whole_components_of_real_paths() {
        let zones = zones();
        for (real, is_inside) in [
            ("/w", true),
            ("/w/a/b", true),
            ("/w-beside/a", false),
            ("/", false),
            ("/w/../etc/passwd", false),
            ("w/a", false),
            ("", false),
        ] {
            assert_eq!(
                zones.is_inside(Access::Read, Path::new(real)),
                is_inside,
                "{real}"
            );
        }
        assert!(!zones.is_inside(Access::Write, Path::new("/w/a")));
        assert!(zones.is_inside(Access::Write, Path::new("/w/out/a")));
        let odd = Zones {
            readable: vec!["".into(), "w".into(), "/x/..".into()],
            ..Zones::default()
        };
        assert!(!odd.is_inside(Access::Read, Path::new("/w/a")));
        assert!(odd.is_blocked(Path::new("a")) && !odd.is_blocked(Path::new("/a")));
    }

    #[test]
    fn an_exemption_is_one_file_or_a_folder_that_says_so() {
        let zones = zones();
        for (real, is_exempt) in [
            ("/w/fixtures/test.pem", true),
            ("/w/fixtures/TEST.PEM", false),
            ("/w/fixtures/test.pem/x", false),
            ("/w/fixtures", false),
            ("/w/other/test.pem", false),
            ("/w/keys/a/b.pem", true),
            ("/w/keys2/b.pem", false),
            ("/w/.env", false),
        ] {
            assert_eq!(zones.is_allowed_sensitive(Path::new(real)), is_exempt, "{real}");
        }
    }

    #[test]
    fn the_innermost_root_counts() {
        let zones = zones();
        let below = |real| zones.below_root(Path::new(real));
        assert_eq!(below("/w/a/b"), Some((Path::new("a/b"), true)));
        assert_eq!(below("/w/deep/er/b"), Some((Path::new("b"), false)));
        assert_eq!(below("/x"), None);
    }

    #[test]
    fn no_prompt_needs_every_written_path_and_at_least_one() {
        let zones = zones();
        let inside = || write_fact("a", resolved("/w/out/scratch/a"));
        let outside = || write_fact("b", resolved("/w/out/b"));
        let blocked = || write_fact("c", resolved("/w/out/scratch/locked/c"));
        let unresolved = || write_fact("d", Err(crate::PathFault::Missing));
        let facts = |paths| Facts {
            paths,
            write_bytes: 1,
        };
        assert!(zones.is_no_prompt(&facts(vec![inside()])));
        for paths in [
            vec![],
            vec![outside()],
            vec![blocked()],
            vec![inside(), outside()],
            vec![inside(), unresolved()],
        ] {
            assert!(!zones.is_no_prompt(&facts(paths.clone())), "{paths:?}");
        }
        assert!(!Zones::default().is_no_prompt(&facts(vec![inside()])));
    }
}
