//! Floors: refusals that no mode and no approval lifts, in the order in which they are asked.
//!
//! Each floor is a pure function in a file of its own and can only refuse. A runner asks them again about the
//! place it has opened, so that what was judged is what is used.

mod credentials;
mod each;
mod links;
mod own_files;
mod paths;
mod special_file;
mod spelling;
mod startup_files;
mod words;
mod write_shape;

use std::path::Path;

use tidegate_core::tool::{ToolCall, ToolSpec};

pub use self::{
    credentials::names_credential,
    own_files::{TEMPORARY_PREFIX, TEMPORARY_SUFFIX, is_temporary_name},
    startup_files::names_startup_file,
};

pub(crate) use self::{
    each::{each_operand_floor, each_path_floor, write_shape},
    paths::shown,
};

use crate::{Access, Denial, Facts, PathFact, PathKind, ResolvedPath, Zones};

/// What a floor on paths may look at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) paths: &'a [PathFact],
    pub(crate) zones: &'a Zones,
}

/// The floors on paths in order. Whether a path may be touched at all comes before anything is said about it.
const PATH_FLOORS: [fn(&Asked<'_>) -> Option<Denial>; 6] = [
    paths::check,
    own_files::check,
    special_file::check,
    links::check,
    credentials::check,
    startup_files::check,
];

/// The first floor that refuses the call.
pub fn check(call: &ToolCall, spec: &ToolSpec, facts: &Facts, zones: &Zones) -> Option<Denial> {
    write_shape::check(call, spec, facts).or_else(|| check_paths(&facts.paths, zones))
}

/// The first floor that refuses one of these paths, whatever the call is that touches them: a rename or a copy
/// has two, a shell line any number.
pub fn check_paths(paths: &[PathFact], zones: &Zones) -> Option<Denial> {
    let asked = Asked { paths, zones };
    PATH_FLOORS.iter().find_map(|floor| floor(&asked))
}

/// The floor that refuses reading what stands at a real path, but for being inside the zones: for what is read
/// beforehand, without a call.
pub fn check_reading(real: &Path, zones: &Zones) -> Option<Denial> {
    let fact = PathFact {
        argument: "path".to_owned(),
        requested: real.to_string_lossy().into_owned(),
        access: Access::Read,
        resolution: Ok(ResolvedPath {
            real: real.to_owned(),
            kind: PathKind::File,
            hard_links: 1,
            is_link: false,
        }),
    };
    let paths = [fact];
    let asked = Asked { paths: &paths, zones };
    PATH_FLOORS.iter().skip(1).find_map(|floor| floor(&asked))
}

/// The same for what a command touches, but for reading outside the zones: a person may allow that.
pub(crate) fn check_operands(paths: &[PathFact], zones: &Zones) -> Option<Denial> {
    let asked = Asked { paths, zones };
    let outside = |path: &&PathFact| {
        path.access == Access::Write
            && path
                .resolved()
                .is_none_or(|resolved| !zones.is_inside(Access::Write, &resolved.real))
    };
    PATH_FLOORS
        .iter()
        .skip(1)
        .find_map(|floor| floor(&asked))
        .or_else(|| {
            let written: Vec<PathFact> = paths.iter().filter(outside).cloned().collect();
            check_paths(&written, zones)
        })
}

#[cfg(test)]
mod tests;
