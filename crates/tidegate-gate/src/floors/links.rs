//! A write never goes through a link: the name that is written is the name that was asked for.

use super::{Asked, paths::shown};
use crate::{Access, Denial};

const NAME: &str = "links";

pub(super) fn check(asked: &Asked<'_>) -> Option<Denial> {
    asked.paths.iter().find_map(|path| {
        let resolved = path.resolved()?;
        (path.access == Access::Write && resolved.is_link).then(|| {
            Denial::new(
                NAME,
                format!(
                    "{} is a symbolic link; write to the file it stands for by its own name.",
                    shown(path)
                ),
            )
        })
    })
}
