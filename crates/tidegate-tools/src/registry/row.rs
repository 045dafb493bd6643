//! One row, compiled: checked against itself, its templates read.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value};
use tidegate_core::tool::{Effect, Parameter, ParameterType, ToolMode, ToolSpec};

use super::{
    example_text,
    file::{RawParameter, RawRow},
};
use crate::{
    arguments::{Problem, Values, kind_in_words},
    runners,
    template::{CommandTemplate, HttpTemplate},
};

/// How long a call may take where its row does not say.
const TIMEOUT_MS_DEFAULT: u64 = 10_000;
/// The longest a row may allow a call to take.
const TIMEOUT_MS_MAX: u64 = 600_000;
/// Output of a call where its row does not say.
const OUTPUT_BYTES_DEFAULT: usize = 64 << 10;
/// The most output a row may allow.
const OUTPUT_BYTES_MAX: usize = 4 << 20;
/// The least output a row may allow: room for a sentence.
const OUTPUT_BYTES_MIN: usize = 256;
/// The longest description, in characters: it is sent to the model with every request.
const DESCRIPTION_CHARS_MAX: usize = 1000;
/// The longest name, as the model API has it.
const NAME_CHARS_MAX: usize = 64;

/// A tool.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) spec: Arc<ToolSpec>,
    pub(crate) template: Template,
    /// Calls that the check must let pass; the first is shown where a call is refused.
    pub(crate) accept: Vec<Map<String, Value>>,
    /// Calls that the check must refuse.
    pub(crate) refuse: Vec<Map<String, Value>>,
}

/// What a row's mode puts its arguments into.
#[derive(Debug, Clone)]
pub(crate) enum Template {
    /// Nothing: the runner reads them by name.
    None,
    /// A program's argv.
    Command(CommandTemplate),
    /// An HTTP request.
    Http(HttpTemplate),
}

impl Row {
    /// Checks a row as it is written. The error says what to change.
    pub(super) fn compile(raw: RawRow) -> Result<Self, String> {
        check_name(&raw.name)?;
        let mode = raw.mode.ok_or_else(|| {
            let modes: Vec<&str> = ToolMode::ALL.iter().map(|mode| mode.name()).collect();
            format!("`mode` is missing; it is one of {}", modes.join(", "))
        })?;
        let description = described(raw.description.as_deref(), "tool")?;
        let template = template(&raw, mode)?;
        let parameters = raw
            .parameters
            .into_iter()
            .map(parameter)
            .collect::<Result<Vec<_>, _>>()?;
        check_parameters(mode, &parameters)?;
        let spec = ToolSpec {
            name: raw.name,
            description,
            mode,
            effect: effect(mode, raw.effect)?,
            parameters,
            timeout_ms: raw.timeout_ms.unwrap_or(TIMEOUT_MS_DEFAULT),
            output_bytes_max: raw.output_bytes_max.unwrap_or(OUTPUT_BYTES_DEFAULT),
        };
        check_limits(&spec)?;
        check_placeholders(&spec, &template)?;
        let row = Self {
            spec: Arc::new(spec),
            template,
            accept: raw.accept,
            refuse: raw.refuse,
        };
        row.check_examples()?;
        Ok(row)
    }

    /// Holds the examples against the check.
    pub(super) fn check_examples(&self) -> Result<(), String> {
        if self.accept.is_empty() {
            return Err(
                "`accept` is missing; give at least one example call, such as `accept = [{}]`".to_owned(),
            );
        }
        for example in &self.accept {
            if let Err(problem) = self.check(example) {
                return Err(format!(
                    "the `accept` example {} is refused: {}",
                    example_text(example),
                    problem.message
                ));
            }
        }
        for example in &self.refuse {
            if self.check(example).is_ok() {
                return Err(format!(
                    "the `refuse` example {} is accepted; narrow the parameters or drop the example",
                    example_text(example)
                ));
            }
        }
        Ok(())
    }

    /// Whether a call fits the row and its templates.
    pub(crate) fn check(&self, arguments: &Map<String, Value>) -> Result<(), Problem> {
        let values = Values::from_object(arguments, &self.spec)?;
        match &self.template {
            Template::None => Ok(()),
            Template::Command(template) => template.render(&values).map(drop),
            Template::Http(template) => template.render(&values).map(drop),
        }
    }
}

/// Reads the templates of a row; a key that its mode does not have is refused, not ignored.
fn template(raw: &RawRow, mode: ToolMode) -> Result<Template, String> {
    let command = ("command", raw.command.is_some());
    let dash_ok = ("dash_ok", raw.dash_ok.is_some());
    let url = ("url", raw.url.is_some());
    let headers = ("headers", !raw.headers.is_empty());
    let body = ("body", raw.body.is_some());
    match mode {
        ToolMode::Command => {
            only(mode, &[url, headers, body])?;
            let command = raw
                .command
                .as_deref()
                .ok_or("`command` is missing; write `command = [\"/usr/bin/program\", \"{argument}\"]`")?;
            let template = CommandTemplate::parse(command, raw.dash_ok.unwrap_or(false))?;
            Ok(Template::Command(template))
        }
        ToolMode::HttpGet | ToolMode::HttpPost => {
            only(mode, &[command, dash_ok])?;
            if mode == ToolMode::HttpGet && raw.body.is_some() {
                return Err("a GET has no `body`; remove it or write `mode = \"http_post\"`".to_owned());
            }
            let url = raw
                .url
                .as_deref()
                .ok_or("`url` is missing; write `url = \"https://host/path/{argument}\"`")?;
            let template = HttpTemplate::parse(url, &raw.headers, raw.body.as_ref())?;
            Ok(Template::Http(template))
        }
        ToolMode::ReadText
        | ToolMode::ListFiles
        | ToolMode::WriteText
        | ToolMode::Calculate
        | ToolMode::CurrentTime
        | ToolMode::StudyPlan
        | ToolMode::SearchKnowledge
        | ToolMode::ReadDocument
        | ToolMode::ListDocuments
        | ToolMode::PageTitle
        | ToolMode::Shell
        | ToolMode::Sandbox
        | ToolMode::GitRead
        | ToolMode::GitClone
        | ToolMode::GitCommit
        | ToolMode::GitPush
        | ToolMode::LastOutput
        | ToolMode::Introspect => {
            only(mode, &[command, dash_ok, url, headers, body])?;
            Ok(Template::None)
        }
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let good = (1..=NAME_CHARS_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if good {
        Ok(())
    } else {
        Err(format!(
            "a name is 1 to {NAME_CHARS_MAX} of the characters A-Z a-z 0-9 _ -"
        ))
    }
}

pub(super) fn described(description: Option<&str>, what: &str) -> Result<String, String> {
    match description.map(str::trim) {
        None | Some("") => Err(format!(
            "`description` is missing; the model chooses by it: say what the {what} is for"
        )),
        Some(text) if text.chars().count() > DESCRIPTION_CHARS_MAX => Err(format!(
            "`description` is longer than {DESCRIPTION_CHARS_MAX} characters; shorten it"
        )),
        Some(text) => Ok(text.to_owned()),
    }
}

fn parameter(raw: RawParameter) -> Result<Parameter, String> {
    check_name(&raw.name)?;
    let name = raw.name;
    let kind = raw.kind.ok_or_else(|| {
        format!(
            "parameter `{name}`: `type` is missing; it is string, integer, number, boolean or string_list"
        )
    })?;
    let description = described(raw.description.as_deref(), "argument")
        .map_err(|problem| format!("parameter `{name}`: {problem}"))?;
    let one_of = raw.one_of.unwrap_or_default();
    // Unless a row says that a text is a name, an address or a command, it may be anything.
    let is_open = holds_texts(kind) && one_of.is_empty();
    if raw.free_text == Some(true) && !is_open {
        return Err(format!(
            "parameter `{name}`: `free_text` is for texts without `one_of`; leave it out"
        ));
    }
    let parameter = Parameter {
        name,
        kind,
        description,
        required: raw.required.unwrap_or(false),
        one_of,
        min: raw.min,
        max: raw.max,
        chars_max: raw.chars_max,
        free_text: raw.free_text.unwrap_or(is_open),
    };
    check_bounds(&parameter)?;
    Ok(parameter)
}

/// Whether a parameter of this type takes texts.
fn holds_texts(kind: ParameterType) -> bool {
    match kind {
        ParameterType::String | ParameterType::StringList => true,
        ParameterType::Integer | ParameterType::Number | ParameterType::Boolean => false,
    }
}

/// Whether the bounds of a parameter are ones that its type has.
pub(super) fn check_bounds(parameter: &Parameter) -> Result<(), String> {
    let (has_texts, has_numbers) = match parameter.kind {
        ParameterType::String => (true, false),
        ParameterType::Integer | ParameterType::Number => (false, true),
        ParameterType::Boolean => (false, false),
        ParameterType::StringList => (true, true),
    };
    let name = &parameter.name;
    if !has_texts && (!parameter.one_of.is_empty() || parameter.chars_max.is_some()) {
        return Err(format!(
            "parameter `{name}`: `one_of` and `chars_max` are for texts; use `min` and `max`"
        ));
    }
    if !has_numbers && (parameter.min.is_some() || parameter.max.is_some()) {
        return Err(format!(
            "parameter `{name}`: `min` and `max` are for numbers; use `chars_max` or `one_of`"
        ));
    }
    if parameter
        .min
        .zip(parameter.max)
        .is_some_and(|(min, max)| min > max)
    {
        return Err(format!("parameter `{name}`: `min` is above `max`"));
    }
    Ok(())
}

fn check_parameters(mode: ToolMode, parameters: &[Parameter]) -> Result<(), String> {
    let mut names = BTreeSet::new();
    if let Some(twice) = parameters.iter().find(|one| !names.insert(one.name.as_str())) {
        return Err(format!("parameter `{}` stands twice", twice.name));
    }
    let Some(slots) = runners::slots(mode) else {
        return Ok(());
    };
    for parameter in parameters {
        let slot = slots
            .iter()
            .find(|slot| slot.name == parameter.name)
            .ok_or_else(|| {
                let known: Vec<&str> = slots.iter().map(|slot| slot.name).collect();
                format!(
                    "mode `{}` takes no parameter `{}`; it takes {}",
                    mode.name(),
                    parameter.name,
                    if known.is_empty() {
                        "none".to_owned()
                    } else {
                        known.join(", ")
                    }
                )
            })?;
        if slot.kind != parameter.kind {
            return Err(format!(
                "parameter `{}` must be {}",
                parameter.name,
                kind_in_words(slot.kind)
            ));
        }
    }
    for slot in slots.iter().filter(|slot| slot.required) {
        if !parameters.iter().any(|one| one.name == slot.name && one.required) {
            return Err(format!(
                "mode `{}` needs a parameter `{}` with `required = true`",
                mode.name(),
                slot.name
            ));
        }
    }
    Ok(())
}

/// A row's effect: its mode's, or more.
pub(super) fn effect(mode: ToolMode, declared: Option<Effect>) -> Result<Effect, String> {
    match declared {
        Some(effect) if rank(effect) < rank(mode.effect()) => Err(format!(
            "`effect = \"{}\"` is less than what mode `{}` does (`{}`); it may only be more",
            effect.name(),
            mode.name(),
            mode.effect().name()
        )),
        // The gate lets no call change a file unless it names the file.
        Some(Effect::Write) if mode.effect() == Effect::Read => Err(format!(
            "mode `{}` writes no file; to have it asked for, write `effect = \"external\"`",
            mode.name()
        )),
        Some(effect) => Ok(effect),
        None => Ok(mode.effect()),
    }
}

/// The order of effects, least first.
pub(super) fn rank(effect: Effect) -> u8 {
    match effect {
        Effect::Read => 0,
        Effect::Write => 1,
        Effect::Network => 2,
        Effect::External => 3,
    }
}

/// Whether the limits of a row are ones that can be kept.
pub(super) fn check_limits(spec: &ToolSpec) -> Result<(), String> {
    within("timeout_ms", spec.timeout_ms, 1, TIMEOUT_MS_MAX)?;
    within(
        "output_bytes_max",
        spec.output_bytes_max,
        OUTPUT_BYTES_MIN,
        OUTPUT_BYTES_MAX,
    )
}

fn within<T: PartialOrd + Copy + std::fmt::Display>(
    key: &str,
    value: T,
    min: T,
    max: T,
) -> Result<(), String> {
    if value < min || value > max {
        return Err(format!("`{key}` must be from {min} to {max}, not {value}"));
    }
    Ok(())
}

fn only(mode: ToolMode, foreign: &[(&str, bool)]) -> Result<(), String> {
    match foreign.iter().find(|(_, is_given)| *is_given) {
        Some((key, _)) => Err(format!("mode `{}` has no `{key}`; remove it", mode.name())),
        None => Ok(()),
    }
}

fn check_placeholders(spec: &ToolSpec, template: &Template) -> Result<(), String> {
    let (used, needed, takes_lists) = match template {
        Template::None => return Ok(()),
        Template::Command(template) => (template.placeholders(), BTreeSet::new(), false),
        Template::Http(template) => (
            template.placeholders(),
            template.path_placeholders(),
            template.has_body(),
        ),
    };
    for name in &used {
        let parameter = spec
            .parameters
            .iter()
            .find(|one| one.name == *name)
            .ok_or_else(|| {
                format!("the placeholder `{{{name}}}` is no parameter; declare it in a `[[tool.parameters]]`")
            })?;
        if parameter.kind == ParameterType::StringList && !takes_lists {
            return Err(format!(
                "parameter `{name}` is a list, which fits into a JSON body only"
            ));
        }
        if needed.contains(name) && !parameter.required {
            return Err(format!(
                "parameter `{name}` stands in the path of `url`: write `required = true`"
            ));
        }
    }
    match spec
        .parameters
        .iter()
        .find(|one| !used.contains(one.name.as_str()))
    {
        Some(unused) => Err(format!(
            "parameter `{}` stands nowhere in the template; use it or remove it",
            unused.name
        )),
        None => Ok(()),
    }
}
