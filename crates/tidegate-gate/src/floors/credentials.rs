//! Files that hold somebody's keys are neither read, listed nor written, in any mode.
//!
//! The names are a table, matched on whole components, extensions and word endings of the real path, under
//! every spelling that could mean the same file ([`super::spelling`]). The operator's exact exemptions are the
//! only way around it.

mod table;

use std::path::Path;

use super::{Asked, paths::shown, spelling, words};
use crate::{Access, Denial, PathFact, Zones};
use table::Judgement;

const NAME: &str = "credentials";

pub(super) fn check(asked: &Asked<'_>) -> Option<Denial> {
    if asked.zones.is_disposable {
        return None;
    }
    asked.paths.iter().find_map(|path| check_path(path, asked.zones))
}

/// Whether a word of a shell line, or a payload in it, names a file or folder of credentials: also behind a
/// revision (`HEAD:.env`), an option (`--file=.env`, `-f.env`) or inside code. Public keys do not count. The
/// answer is a stable code.
pub fn names_credential(text: &str) -> Option<&'static str> {
    words::names(text)
        .iter()
        .any(|name| table::judge(&spelling::components(Path::new(name))) == Judgement::Secret)
        .then_some("credential_file")
}

fn check_path(path: &PathFact, zones: &Zones) -> Option<Denial> {
    let judgement = match path.resolved() {
        Some(resolved) => {
            if zones.is_allowed_sensitive(&resolved.real) {
                return None;
            }
            // Folders count wherever they stand; other names only below the root, since the operator chose
            // the way to it.
            let below = zones
                .below_root(&resolved.real)
                .map_or(resolved.real.as_path(), |(below, _)| below);
            table::judge_folders(&spelling::components(&resolved.real))
                .worse(table::judge_names(&spelling::components(below)))
        }
        // Nothing was opened; the name alone may be enough to refuse.
        None => table::judge(&spelling::components(Path::new(&path.requested))),
    };
    let is_refused = match (judgement, path.access) {
        (Judgement::Harmless, _) | (Judgement::Public, Access::Read | Access::List) => false,
        (Judgement::Public, Access::Write) | (Judgement::Secret, _) => true,
    };
    is_refused.then(|| {
        Denial::new(
            NAME,
            format!(
                "{} is a file or folder of credentials by its name.{}",
                shown(path),
                way_out(path, zones)
            ),
        )
    })
}

/// The line that the operator would add. Only for paths that are inside anyway.
fn way_out(path: &PathFact, zones: &Zones) -> String {
    let Some(resolved) = path.resolved() else {
        return String::new();
    };
    let Some((below, is_first_root)) = zones.below_root(&resolved.real) else {
        return String::new();
    };
    let entry = if is_first_root {
        below
    } else {
        resolved.real.as_path()
    };
    format!(
        " If it holds none, the operator can exempt it: allowed_sensitive_files = [{:?}].",
        entry.to_string_lossy()
    )
}

#[cfg(test)]
mod tests;
