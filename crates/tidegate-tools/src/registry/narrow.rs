//! Narrowing: an operator's row that extends another may only take away.

use std::sync::Arc;

use tidegate_core::tool::{Parameter, ToolSpec};

use super::{
    file::{RawParameter, RawRow},
    row::{self, Row, rank},
};
use crate::nearest::nearest;

/// The row, narrowed. The error says what may not be widened.
pub(super) fn narrowed(base: &Row, raw: RawRow) -> Result<Row, String> {
    let foreign = [
        ("mode", raw.mode.is_some()),
        ("command", raw.command.is_some()),
        ("dash_ok", raw.dash_ok.is_some()),
        ("url", raw.url.is_some()),
        ("headers", !raw.headers.is_empty()),
        ("body", raw.body.is_some()),
    ];
    if let Some((key, _)) = foreign.iter().find(|(_, is_given)| *is_given) {
        return Err(format!(
            "a row that extends another cannot change `{key}`; remove the tool and write a new one"
        ));
    }
    let mut spec = ToolSpec::clone(&base.spec);
    if raw.description.is_some() {
        spec.description = row::described(raw.description.as_deref(), "tool")?;
    }
    if let Some(effect) = raw.effect {
        if rank(effect) < rank(spec.effect) {
            return Err(format!("`effect` is `{}` and may only rise", spec.effect.name()));
        }
        spec.effect = row::effect(spec.mode, Some(effect))?;
    }
    lower("timeout_ms", &mut spec.timeout_ms, raw.timeout_ms)?;
    lower(
        "output_bytes_max",
        &mut spec.output_bytes_max,
        raw.output_bytes_max,
    )?;
    row::check_limits(&spec)?;
    for narrow in raw.parameters {
        let names: Vec<String> = spec.parameters.iter().map(|one| one.name.clone()).collect();
        let parameter = spec
            .parameters
            .iter_mut()
            .find(|one| one.name == narrow.name)
            .ok_or_else(|| {
                let hint = nearest(&narrow.name, names.iter().map(String::as_str))
                    .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                format!("there is no parameter `{}`{hint}", narrow.name)
            })?;
        narrow_parameter(parameter, narrow)?;
    }
    let mut narrowed = Row {
        spec: Arc::new(spec),
        template: base.template.clone(),
        accept: Vec::new(),
        refuse: base.refuse.clone(),
    };
    // What the row accepted may be what is taken away now; the operator's own examples must fit.
    let still_good = base
        .accept
        .iter()
        .filter(|example| narrowed.check(example).is_ok());
    let accept = raw.accept.into_iter().chain(still_good.cloned()).collect();
    narrowed.accept = accept;
    narrowed.refuse.extend(raw.refuse);
    narrowed.check_examples()?;
    Ok(narrowed)
}

fn narrow_parameter(parameter: &mut Parameter, narrow: RawParameter) -> Result<(), String> {
    let name = parameter.name.clone();
    let in_parameter = |problem: &str| format!("parameter `{name}`: {problem}");
    if narrow.kind.is_some_and(|kind| kind != parameter.kind) {
        return Err(in_parameter("`type` cannot change"));
    }
    if narrow.description.is_some() {
        parameter.description = row::described(narrow.description.as_deref(), "argument")
            .map_err(|problem| in_parameter(&problem))?;
    }
    match narrow.required {
        Some(true) => parameter.required = true,
        Some(false) if parameter.required => return Err(in_parameter("`required` may only become true")),
        Some(false) | None => {}
    }
    if let Some(one_of) = narrow.one_of {
        let is_subset =
            parameter.one_of.is_empty() || one_of.iter().all(|one| parameter.one_of.contains(one));
        if one_of.is_empty() || !is_subset {
            return Err(in_parameter(
                "`one_of` may only name some of the values there are",
            ));
        }
        parameter.one_of = one_of;
    }
    if let Some(min) = narrow.min {
        if parameter.min.is_some_and(|present| min < present) {
            return Err(in_parameter("`min` may only rise"));
        }
        parameter.min = Some(min);
    }
    if let Some(max) = narrow.max {
        if parameter.max.is_some_and(|present| max > present) {
            return Err(in_parameter("`max` may only sink"));
        }
        parameter.max = Some(max);
    }
    if let Some(chars_max) = narrow.chars_max {
        if parameter.chars_max.is_some_and(|present| chars_max > present) {
            return Err(in_parameter("`chars_max` may only sink"));
        }
        parameter.chars_max = Some(chars_max);
    }
    match narrow.free_text {
        Some(true) => parameter.free_text = true,
        Some(false) if parameter.free_text => return Err(in_parameter("`free_text` may only become true")),
        Some(false) | None => {}
    }
    row::check_bounds(parameter)
}

fn lower<T: PartialOrd + Copy + std::fmt::Display>(
    key: &str,
    present: &mut T,
    wanted: Option<T>,
) -> Result<(), String> {
    match wanted {
        Some(wanted) if wanted > *present => Err(format!("`{key}` is {present} and may only sink")),
        Some(wanted) => {
            *present = wanted;
            Ok(())
        }
        None => Ok(()),
    }
}
