//! References inside of texts.

use tidegate_core::secret::Secret;

use super::References;

/// The text that a value stands for: a whole reference is replaced by what it refers to, and so are references inside.
pub(super) fn value(text: &str, references: &dyn References) -> Result<Secret, String> {
    if is_reference(text) {
        return references.resolve(text);
    }
    inside(text, references).map(Secret::new)
}

/// Whether the whole text is a reference. `file://…` is an address and means itself.
fn is_reference(text: &str) -> bool {
    text.starts_with("env:") || (text.starts_with("file:") && !text.starts_with("file://"))
}

/// The text with every `${…}` in it replaced.
pub(super) fn inside(text: &str, references: &dyn References) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((inner, after)) = after.split_once('}') else {
            return Err("`${` has no `}`; write `${NAME}`, or the text without it".to_owned());
        };
        out.push_str(&one(inner, references)?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn one(inner: &str, references: &dyn References) -> Result<String, String> {
    if let Some(id) = inner.strip_prefix("input:") {
        return Err(format!(
            "`${{input:{id}}}` would ask a person, and nobody is there; write `env:NAME` or `file:PATH`"
        ));
    }
    if matches!(
        inner,
        "workspaceFolder" | "workspaceFolderBasename" | "userHome" | "pathSeparator" | "/"
    ) {
        return match inner {
            "userHome" => reference("HOME", references),
            "pathSeparator" | "/" => Ok("/".to_owned()),
            _ => Err(format!(
                "`${{{inner}}}` is an editor's word; write the path itself"
            )),
        };
    }
    let name = inner.strip_prefix("env:").unwrap_or(inner);
    let (name, default) = match name.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (name, None),
    };
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(format!(
            "`${{{inner}}}` is not known; write `${{NAME}}` for a variable"
        ));
    }
    match (reference(name, references), default) {
        (Ok(value), _) => Ok(value),
        (Err(_unset), Some(default)) => Ok(default.to_owned()),
        (Err(problem), None) => Err(problem),
    }
}

fn reference(name: &str, references: &dyn References) -> Result<String, String> {
    references
        .resolve(&format!("env:{name}"))
        .map(|secret| secret.expose().to_owned())
}
