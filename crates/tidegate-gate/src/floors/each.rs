//! Every floor on its own, by name: for an explanation of what the first one alone decides.

use tidegate_core::tool::{ToolCall, ToolSpec};

use super::{Asked, PATH_FLOORS};
use crate::{Access, Denial, Facts, PathFact, Zones};

/// The names of [`PATH_FLOORS`], in the same order.
const NAMES: [&str; PATH_FLOORS.len()] = [
    "paths",
    "own_files",
    "special_file",
    "links",
    "credentials",
    "startup_files",
];

/// What a floor says: its name, and its refusal.
type Said = (&'static str, Option<Denial>);

/// Whether the call is a write that can be understood.
pub(crate) fn write_shape(call: &ToolCall, spec: &ToolSpec, facts: &Facts) -> Option<Denial> {
    super::write_shape::check(call, spec, facts)
}

/// What each floor on paths says.
pub(crate) fn each_path_floor(paths: &[PathFact], zones: &Zones) -> Vec<Said> {
    let asked = Asked { paths, zones };
    NAMES
        .into_iter()
        .zip(PATH_FLOORS)
        .map(|(name, floor)| (name, floor(&asked)))
        .collect()
}

/// The same for what a command touches, in the order of [`super::check_operands`]: reading outside the zones is no
/// refusal there.
pub(crate) fn each_operand_floor(paths: &[PathFact], zones: &Zones) -> Vec<Said> {
    let mut said = each_path_floor(paths, zones);
    said.remove(0);
    let written: Vec<PathFact> = paths
        .iter()
        .filter(|path| path.access == Access::Write)
        .filter(|path| {
            let real = path.resolved().map(|resolved| resolved.real.as_path());
            real.is_none_or(|real| !zones.is_inside(Access::Write, real))
        })
        .cloned()
        .collect();
    let outside = PATH_FLOORS.first().and_then(|floor| {
        floor(&Asked {
            paths: &written,
            zones,
        })
    });
    said.push(("paths", outside));
    said
}
