//! Floors: refusals that no mode and no approval lifts, in the order in which they are asked.

use tidegate_core::tool::{ToolCall, ToolSpec};

use crate::{Denial, Facts, Zones};

/// The first floor that refuses the call.
pub fn check(call: &ToolCall, spec: &ToolSpec, facts: &Facts, zones: &Zones) -> Option<Denial> {
    let _ = (call, spec, facts, zones);
    None
}
