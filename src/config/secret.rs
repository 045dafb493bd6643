//! Credentials by reference: `env:NAME`, `file:PATH`, or the text itself.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use tidegate_core::secret::Secret;

use super::env::Environment;

/// Bytes of a secret's file that are read; a longer one is not a secret.
const BYTES_MAX: u64 = 64 * 1024;

/// How a reference to a file begins.
const FILE: &str = "file:";

/// What a text stands for. The error names the variable or file, never a value.
pub fn resolve(text: &str, environment: &Environment, home: &Path) -> Result<Secret, String> {
    if let Some(name) = text.strip_prefix("env:") {
        return environment.get(name).map(|value| Secret::new(value.trim())).ok_or_else(|| {
            format!("the environment variable `{name}` is not set; set it, or write the secret another way (`file:PATH`)")
        });
    }
    if let Some(path) = text.strip_prefix(FILE) {
        return read(&home.join(path))
            .map(Secret::new)
            .map_err(|problem| format!("the file `{path}` {problem}; the secret is its first line"));
    }
    Ok(Secret::new(text))
}

/// The file that a text refers to, whether or not it is there.
pub fn file(text: &str, home: &Path) -> Option<PathBuf> {
    text.strip_prefix(FILE).map(|path| home.join(path))
}

fn read(path: &Path) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| format!("cannot be read ({error})"))?;
    let mut text = String::new();
    file.take(BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(|error| format!("cannot be read ({error})"))?;
    match text.lines().next().map(str::trim) {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        Some(_) | None => Err("is empty".into()),
    }
}

/// How a typed secret is shown: a reference as it is, the secret itself never.
pub fn shown(text: &str) -> &str {
    if text.is_empty() || text.starts_with("env:") || text.starts_with("file:") {
        text
    } else {
        "(hidden)"
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn references_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let mut file = std::fs::OpenOptions::new()
            .create_new(true)
            .write(true)
            .open(&path)
            .unwrap();
        file.write_all(b"sk-from-file\n").unwrap();
        let environment = Environment::from_pairs([("KEY", "sk-from-env")]);
        let resolve = |text: &str| resolve(text, &environment, folder.path());
        assert_eq!(resolve("env:KEY").unwrap().expose(), "sk-from-env");
        assert_eq!(resolve("file:key").unwrap().expose(), "sk-from-file");
        assert_eq!(resolve("sk-plain").unwrap().expose(), "sk-plain");
        assert_eq!(super::file("file:key", folder.path()), Some(path));
        assert_eq!(super::file("env:KEY", folder.path()), None);
        assert!(resolve("env:NOPE").unwrap_err().contains("`NOPE`"));
        assert!(resolve("file:nope").unwrap_err().contains("`nope`"));
    }

    #[test]
    fn only_references_are_shown() {
        assert_eq!(shown("env:KEY"), "env:KEY");
        assert_eq!(shown("file:key"), "file:key");
        assert_eq!(shown("sk-plain"), "(hidden)");
        assert_eq!(shown(""), "");
    }
}
