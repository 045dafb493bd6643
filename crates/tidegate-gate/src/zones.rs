//! Path zones: which real paths a call may touch. Blocked wins over everything.
//!
//! A zone is a folder with everything in it, or one file, and need not exist yet. Reads and writes are judged
//! alike for being allowed at all; a narrower list may then ask before reads, and lists of folders say where a
//! write asks and where it does not.

mod entries;

use std::path::{Component, Path, PathBuf};

pub use self::entries::ZoneEntries;

use crate::{Access, Facts, PathFact, ResolvedPath};

/// The operator's zones, all real absolute paths.
#[derive(Debug, Clone, Default)]
pub struct Zones {
    /// Roots inside which files may be read and listed (`allowed_paths`).
    pub readable: Vec<PathBuf>,
    /// Roots inside which files may be written, mode permitting.
    pub writable: Vec<PathBuf>,
    /// Where reading asks nothing (`read_paths`). Empty: everywhere that may be read at all.
    pub read: Vec<PathBuf>,
    /// Writes here need no approval even in `readonly` (`no_prompt_paths`); empty by default.
    pub no_prompt: Vec<PathBuf>,
    /// Writes here ask (`prompt_paths`), in a folder of a no-prompt zone too. Everything in neither asks as well.
    pub prompt: Vec<PathBuf>,
    /// Never touched: the operator's `blocked_paths`.
    pub blocked: Vec<PathBuf>,
    /// Never touched: the server's own data, configuration and logs.
    pub own: Vec<PathBuf>,
    /// Files exempt from the credential floor, each by its exact path. An entry that ends in `/` is a folder and
    /// exempts everything in it.
    pub allowed_sensitive: Vec<PathBuf>,
    /// Whether the machine is a container that is thrown away, and the floors on credentials and start-up files are
    /// off. Never a setting: see `TIDEGATE_DISPOSABLE_CONTAINER`.
    pub is_disposable: bool,
}

/// What the zones say about one path, from the freest answer to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ZoneVerdict {
    /// A write that needs no approval where the mode would ask for one.
    NoPrompt,
    /// Allowed; the mode decides.
    Inside,
    /// A person is asked where the mode asks at all: in every mode but `full-auto`. The code is stable:
    /// `read_zone` or `prompt_zone`.
    Ask(&'static str),
    /// Outside every allowed folder. No approval changes that.
    Outside,
    /// In a blocked zone, or no real path at all. No approval changes that.
    Blocked,
}

impl Zones {
    /// Judges one real path.
    pub fn judge(&self, access: Access, real: &Path) -> ZoneVerdict {
        if self.is_blocked(real) {
            return ZoneVerdict::Blocked;
        }
        if !self.is_inside(access, real) {
            return ZoneVerdict::Outside;
        }
        match access {
            Access::Read | Access::List if self.read.is_empty() || is_in_any(&self.read, real) => {
                ZoneVerdict::Inside
            }
            Access::Read | Access::List => ZoneVerdict::Ask("read_zone"),
            Access::Write => match (depth(&self.no_prompt, real), depth(&self.prompt, real)) {
                // The narrower entry decides; of two that are the same, the one that was put there on purpose.
                (Some(free), asking) if asking.is_none_or(|asking| free >= asking) => ZoneVerdict::NoPrompt,
                (_, Some(_)) => ZoneVerdict::Ask("prompt_zone"),
                (_, None) => ZoneVerdict::Inside,
            },
        }
    }

    /// The strictest answer for the paths of a call, and the path it is about; `None` where no path leads
    /// anywhere. A path that could not be resolved is the floors' business and says nothing here.
    pub fn judge_all<'a>(&self, facts: &'a Facts) -> Option<(ZoneVerdict, &'a PathFact)> {
        facts
            .paths
            .iter()
            .filter_map(|path| Some((self.judge(path.access, &path.resolved()?.real), path)))
            .max_by_key(|(verdict, _)| *verdict)
    }

    /// Whether every path the call would write stands in a no-prompt zone, is not blocked, and there is one.
    pub fn is_no_prompt(&self, facts: &Facts) -> bool {
        let mut written = facts
            .paths
            .iter()
            .filter(|path| path.access == Access::Write)
            .peekable();
        written.peek().is_some()
            && written.all(|path| {
                path.resolution
                    .as_ref()
                    .is_ok_and(|resolved| self.judge(Access::Write, &resolved.real) == ZoneVerdict::NoPrompt)
            })
    }

    /// Whether the path may be read, listed or written as asked, blocked zones aside.
    pub fn is_inside(&self, access: Access, real: &Path) -> bool {
        match access {
            Access::Read | Access::List => is_in_any(&self.readable, real),
            Access::Write => is_in_any(&self.writable, real),
        }
    }

    /// Whether the path stands in a blocked zone, is the server's own, or cannot be a real path at all.
    pub fn is_blocked(&self, real: &Path) -> bool {
        !is_real(real) || is_in_any(&self.blocked, real) || self.is_own(real)
    }

    /// Whether the path is the server's own.
    pub fn is_own(&self, real: &Path) -> bool {
        is_in_any(&self.own, real)
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

/// How many components the innermost of the zones has that the path stands in.
fn depth(zones: &[PathBuf], real: &Path) -> Option<usize> {
    zones
        .iter()
        .filter(|zone| is_in(zone, real))
        .map(|zone| zone.components().count())
        .max()
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
            ..Zones::default()
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
    fn the_narrowest_entry_decides_and_blocked_wins() {
        let zones = Zones {
            readable: vec!["/w".into()],
            writable: vec!["/w".into()],
            read: vec!["/w/src".into(), "/w/out".into()],
            no_prompt: vec!["/w/out".into(), "/elsewhere".into()],
            prompt: vec!["/w".into(), "/w/out/slow".into(), "/w/out".into()],
            blocked: vec!["/w/out/locked".into()],
            own: vec!["/w/data".into()],
            ..Zones::default()
        };
        for (access, real, expected) in [
            (Access::Read, "/w/src/a", ZoneVerdict::Inside),
            (Access::List, "/w/src", ZoneVerdict::Inside),
            (Access::Read, "/w/notes", ZoneVerdict::Ask("read_zone")),
            (Access::List, "/w", ZoneVerdict::Ask("read_zone")),
            (Access::Read, "/w/src2/a", ZoneVerdict::Ask("read_zone")),
            (Access::Read, "/elsewhere/a", ZoneVerdict::Outside),
            (Access::Write, "/w/out/a", ZoneVerdict::NoPrompt),
            (Access::Write, "/w/outer/a", ZoneVerdict::Ask("prompt_zone")),
            (Access::Write, "/w/out/slow/a", ZoneVerdict::Ask("prompt_zone")),
            (Access::Write, "/w/out/locked/a", ZoneVerdict::Blocked),
            (Access::Read, "/w/out/locked", ZoneVerdict::Blocked),
            (Access::Read, "/w/data/token", ZoneVerdict::Blocked),
            (Access::Write, "/elsewhere/a", ZoneVerdict::Outside),
            (Access::Write, "/w/../etc/a", ZoneVerdict::Blocked),
        ] {
            assert_eq!(
                zones.judge(access, Path::new(real)),
                expected,
                "{access:?} {real}"
            );
        }
        let facts = Facts {
            paths: vec![
                write_fact("a", resolved("/w/out/a")),
                write_fact("b", resolved("/w/b")),
                write_fact("c", Err(crate::PathFault::Outside)),
            ],
            ..Facts::default()
        };
        let (verdict, path) = zones.judge_all(&facts).expect("a verdict");
        assert_eq!(
            (verdict, path.requested.as_str()),
            (ZoneVerdict::Ask("prompt_zone"), "b")
        );
        assert_eq!(zones.judge_all(&Facts::default()), None);
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
            ..Facts::default()
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
