//! Floors: refusals that no mode and no approval lifts, in the order in which they are asked.
//!
//! Each floor is a pure function in a file of its own and can only refuse. A runner asks them again about the
//! place it has opened, so that what was judged is what is used.

mod credentials;
mod links;
mod own_files;
mod paths;
mod special_file;
mod spelling;
mod startup_files;
mod write_shape;

use tidegate_core::tool::{ToolCall, ToolSpec};

pub use self::own_files::{TEMPORARY_PREFIX, TEMPORARY_SUFFIX, is_temporary_name};

use crate::{Denial, Facts, Zones};

/// What a floor may look at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) call: &'a ToolCall,
    pub(crate) spec: &'a ToolSpec,
    pub(crate) facts: &'a Facts,
    pub(crate) zones: &'a Zones,
}

/// The floors in order. Whether a path may be touched at all comes before anything is said about it.
const FLOORS: [fn(&Asked<'_>) -> Option<Denial>; 7] = [
    write_shape::check,
    paths::check,
    own_files::check,
    special_file::check,
    links::check,
    credentials::check,
    startup_files::check,
];

/// The first floor that refuses the call.
pub fn check(call: &ToolCall, spec: &ToolSpec, facts: &Facts, zones: &Zones) -> Option<Denial> {
    let asked = Asked {
        call,
        spec,
        facts,
        zones,
    };
    FLOORS.iter().find_map(|floor| floor(&asked))
}

#[cfg(test)]
mod tests;
