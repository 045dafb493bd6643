//! The server's own configuration, data, keys and logs are nobody's material, in any mode, whether or not
//! they exist yet.

use super::{Asked, paths::shown};
use crate::Denial;

const NAME: &str = "own_files";

pub(super) fn check(asked: &Asked<'_>) -> Option<Denial> {
    asked.facts.paths.iter().find_map(|path| {
        let resolved = path.resolved()?;
        asked
            .zones
            .is_blocked(&resolved.real)
            .then(|| Denial::new(NAME, format!("{} belongs to the server itself.", shown(path))))
    })
}
