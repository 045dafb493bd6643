//! The server's own configuration, data, keys and logs are nobody's material, in any mode, whether or not
//! they exist yet. Nor are the names under which it writes a file before it is whole: what bears one is not
//! listed and in time removed, so that a file written there would be lost.

use std::{ffi::OsStr, path::Component};

use super::{Asked, paths::shown};
use crate::{Access, Denial, PathFact};

const NAME: &str = "own_files";

/// How the name of a file that is not whole yet begins.
pub const TEMPORARY_PREFIX: &str = ".tidegate-";
/// How the name of a file that is not whole yet ends.
pub const TEMPORARY_SUFFIX: &str = ".tmp";

/// Whether a name is one of a file that is not whole yet.
pub fn is_temporary_name(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(TEMPORARY_PREFIX.as_bytes()) && name.ends_with(TEMPORARY_SUFFIX.as_bytes())
}

pub(super) fn check(asked: &Asked<'_>) -> Option<Denial> {
    let mut paths = asked.paths.iter();
    paths.find_map(|path| {
        own(asked, path)
            .or_else(|| blocked(asked, path))
            .or_else(|| temporary(asked, path))
    })
}

fn own(asked: &Asked<'_>, path: &PathFact) -> Option<Denial> {
    let resolved = path.resolved()?;
    asked
        .zones
        .is_own(&resolved.real)
        .then(|| Denial::new(NAME, format!("{} belongs to the server itself.", shown(path))))
}

/// The operator's own blocked zones are closed in the same way, under a name of their own.
fn blocked(asked: &Asked<'_>, path: &PathFact) -> Option<Denial> {
    let resolved = path.resolved()?;
    let reason = || format!("{} is in a folder that the operator has closed.", shown(path));
    asked
        .zones
        .is_blocked(&resolved.real)
        .then(|| Denial::new("blocked_path", reason()))
}

fn temporary(asked: &Asked<'_>, path: &PathFact) -> Option<Denial> {
    if path.access != Access::Write {
        return None;
    }
    let (below, _) = asked.zones.below_root(&path.resolved()?.real)?;
    let is_temporary = below.components().any(|component| match component {
        Component::Normal(name) => is_temporary_name(name),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => false,
    });
    is_temporary.then(|| {
        let reason = format!(
            "{} is a name for files that are not whole yet and are removed; choose another name.",
            shown(path)
        );
        Denial::new(NAME, reason)
    })
}
