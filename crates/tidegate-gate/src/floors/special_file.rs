//! Pipes, sockets and devices block, never end or do something when they are touched; the kernel's own file
//! systems show processes and hardware as files.

use super::{Asked, paths::shown};
use crate::{Denial, PathKind};

const NAME: &str = "special_file";

/// Trees that hold no files of anybody's.
const KERNEL_TREES: [&str; 3] = ["/proc", "/sys", "/dev"];

pub(super) fn check(asked: &Asked<'_>) -> Option<Denial> {
    asked.paths.iter().find_map(|path| {
        let resolved = path.resolved()?;
        let is_special = match resolved.kind {
            PathKind::Special => true,
            PathKind::File | PathKind::Folder | PathKind::Missing => {
                KERNEL_TREES.iter().any(|tree| resolved.real.starts_with(tree))
            }
        };
        is_special.then(|| Denial::new(NAME, format!("{} is no regular file or folder.", shown(path))))
    })
}
