//! The reference page, written from the rows.

use tidegate_core::tool::Parameter;

use crate::{
    arguments::kind_in_words,
    output::add,
    registry::{Registry, Row, example_text},
};

/// The rows as a Markdown page.
pub(crate) fn markdown(registry: &Registry) -> String {
    let mut page = String::from(
        "# Tools\n\nArguments are a JSON object. What can only mean one thing is taken as that: a number in quotes \
         where a number is meant, a number where a text is meant, one text where a list is meant, `null` for an \
         optional argument that is left out. Everything else that does not fit is refused, and the answer says \
         which argument is wrong and shows a right call.\n",
    );
    for row in registry.rows() {
        section(&mut page, row);
    }
    page
}

fn section(page: &mut String, row: &Row) {
    let spec = &row.spec;
    let runs = if spec.mode.is_control() {
        "the engine"
    } else {
        "the tool box"
    };
    add(
        page,
        format_args!(
            "\n## `{}`\n\n{}\n\nMode `{}`, effect `{}`, run by {runs}, at most {} ms and {} bytes of output.\n",
            spec.name,
            spec.description,
            spec.mode.name(),
            spec.effect.name(),
            spec.timeout_ms,
            spec.output_bytes_max,
        ),
    );
    if !spec.parameters.is_empty() {
        page.push_str("\n| argument | what it is | |\n|---|---|---|\n");
        for parameter in &spec.parameters {
            let presence = if parameter.required { "needed" } else { "optional" };
            add(
                page,
                format_args!(
                    "| `{}` | {}{}. {} | {presence} |\n",
                    parameter.name,
                    kind_in_words(parameter.kind),
                    bounds(parameter),
                    parameter.description.replace('|', "\\|"),
                ),
            );
        }
    }
    page.push_str("\nExamples:\n\n");
    for example in &row.accept {
        add(page, format_args!("- `{}`\n", example_text(example)));
    }
}

fn bounds(parameter: &Parameter) -> String {
    let mut text = String::new();
    if !parameter.one_of.is_empty() {
        add(
            &mut text,
            format_args!(", one of {}", parameter.one_of.join(", ")),
        );
    }
    if let Some(min) = parameter.min {
        add(&mut text, format_args!(", at least {min}"));
    }
    if let Some(max) = parameter.max {
        add(&mut text, format_args!(", at most {max}"));
    }
    if let Some(chars_max) = parameter.chars_max {
        add(&mut text, format_args!(", at most {chars_max} characters"));
    }
    text
}
