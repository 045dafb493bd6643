//! Every path must lead into the zones that its access asks for.

use super::Asked;
use crate::{Access, Denial, PathFact, PathFault};

const NAME: &str = "paths";

pub(super) fn check(asked: &Asked<'_>) -> Option<Denial> {
    asked.paths.iter().find_map(|path| {
        let reason = match &path.resolution {
            Ok(resolved) if asked.zones.is_inside(path.access, &resolved.real) => return None,
            // Something that leads nowhere gives a reader nothing; the runner says so.
            Err(PathFault::Missing) if path.access != Access::Write => return None,
            Ok(_) | Err(PathFault::Outside) => outside(path),
            Err(PathFault::Malformed(problem)) => {
                format!("`{}` is no usable path: {problem}.", path.argument)
            }
            Err(PathFault::Missing) => {
                format!("{} leads through something that is no folder.", shown(path))
            }
            Err(PathFault::Unreadable(problem)) => format!("{} cannot be checked: {problem}.", shown(path)),
        };
        Some(Denial::new(NAME, reason))
    })
}

/// Says nothing about where the path leads, nor whether anything is there.
fn outside(path: &PathFact) -> String {
    match path.access {
        Access::Read => format!("{} is outside the folders that may be read.", shown(path)),
        Access::List => format!("{} is outside the folders that may be listed.", shown(path)),
        Access::Write => format!("{} is outside the folders that may be written.", shown(path)),
    }
}

/// The longest part of a path that a reason repeats, in characters.
const SHOWN_CHARS_MAX: usize = 200;

/// The path as the model wrote it: that alone may be repeated to it.
pub(crate) fn shown(path: &PathFact) -> String {
    let mut text: String = path
        .requested
        .chars()
        .filter(|letter| !letter.is_control() && *letter != '`')
        .take(SHOWN_CHARS_MAX)
        .collect();
    if text.len() < path.requested.len() && text.chars().count() == SHOWN_CHARS_MAX {
        text.push('…');
    }
    format!("`{text}`")
}
