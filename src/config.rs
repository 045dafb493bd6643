//! The configuration: one options struct an area, read once from file, environment and flags.
//!
//! What was typed ([`Config`], kept as text and numbers) and what it means ([`Settings`]: real paths, a time
//! zone, secrets that have been looked up) are two types; only the second one starts anything.

pub mod check;
pub mod discover;
pub mod env;
pub mod error;
pub mod reference;
pub mod secret;
pub mod settings;
pub mod table;
pub mod tree;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::tree::{Origin, Tree};
pub use self::{
    env::Environment,
    error::{Error, Problem},
    settings::Settings,
};

/// The file that is read where none is named.
pub const FILE: &str = "tidegate.toml";

/// Bytes of a configuration file; a longer one is some other file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Everything that can be set, as it was typed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Folder of the operator's files.
    pub home: String,
    /// Folder of the database.
    pub data_dir: String,
    /// Where a day begins.
    pub time_zone: String,
    /// Files exempt from the credential floor.
    pub allowed_sensitive_files: Vec<String>,
    /// Folders in which a `readonly` key may write.
    pub no_prompt_folders: Vec<String>,
    /// The HTTP API.
    pub server: crate::http::Options,
    /// Bounds of a turn.
    pub engine: tidegate_engine::Options,
    /// Instructions and skills.
    pub prompt: tidegate_engine::prompt::Options,
    /// Questions about the agent itself.
    pub routing: tidegate_engine::routing::Options,
    /// What the agent can do.
    pub tools: tidegate_tools::Options,
    /// Models and their providers. Credentials stand apart, in `api_keys`.
    pub models: tidegate_llm::Options,
    /// Credentials by provider, as they were typed: references mostly.
    #[serde(skip)]
    pub api_keys: BTreeMap<String, String>,
    /// How a model is found where none is configured.
    pub discovery: discover::Options,
    /// The database.
    pub store: tidegate_store::Options,
    /// How long things are kept.
    pub retention: Retention,
    /// Logs.
    pub logs: crate::telemetry::Options,
    /// Commands of the operator's own.
    pub hooks: Vec<crate::hooks::Options>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            home: ".".into(),
            data_dir: "data".into(),
            time_zone: "system".into(),
            allowed_sensitive_files: Vec::new(),
            no_prompt_folders: Vec::new(),
            server: crate::http::Options::default(),
            engine: tidegate_engine::Options::default(),
            prompt: tidegate_engine::prompt::Options::default(),
            routing: tidegate_engine::routing::Options::default(),
            tools: tidegate_tools::Options::default(),
            models: tidegate_llm::Options::default(),
            api_keys: BTreeMap::new(),
            discovery: discover::Options::default(),
            store: tidegate_store::Options {
                path: "tidegate.db".into(),
                ..tidegate_store::Options::default()
            },
            retention: Retention::default(),
            logs: crate::telemetry::Options::default(),
            hooks: Vec::new(),
        }
    }
}

/// How long things are kept. `[retention]` in `tidegate.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Retention {
    /// Days for which ended runs and their journals are kept; 0 means for ever.
    pub runs_days: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self { runs_days: 30 }
    }
}

/// What the command line says about the configuration.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// The file to read.
    pub file: Option<PathBuf>,
    /// Settings: the flag, the key, the text.
    pub settings: Vec<(String, String, String)>,
}

/// A configuration, and how it came about.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What was typed, with defaults for the rest.
    pub config: Config,
    /// The file that was read.
    pub file: Option<PathBuf>,
    /// What looks wrong and stops nothing.
    pub warnings: Vec<Problem>,
    /// The layers, for errors that are found later.
    pub tree: Tree,
}

/// Reads file, environment and flags, in rising precedence.
pub fn load(flags: &Flags, environment: &Environment) -> Result<Loaded, Error> {
    let file = find(flags, environment);
    let invalid = |problems| Error::Invalid {
        file: file.clone(),
        problems,
    };
    let mut tree = match &file {
        Some(path) => Tree::parse(&read(path)?).map_err(|problem| invalid(vec![problem]))?,
        None => Tree::default(),
    };
    tree.lay_environment(environment);
    for (flag, key, text) in &flags.settings {
        tree.lay(key, text, &Origin::Flag(flag.clone()));
    }
    let findings = check::check(&mut tree);
    if !findings.errors.is_empty() {
        return Err(invalid(findings.errors));
    }
    let mut config: Config =
        serde_path_to_error::deserialize(Value::Object(tree.values.clone())).map_err(|error| {
            let key = error.path().to_string();
            invalid(vec![Problem {
                origin: tree.origin(&key),
                key: Some(key),
                message: error.inner().to_string(),
            }])
        })?;
    config.api_keys = api_keys(&tree);
    Ok(Loaded {
        config,
        file,
        warnings: findings.warnings,
        tree,
    })
}

impl Loaded {
    /// The configuration in effect as a `tidegate.toml`, without secrets.
    pub fn shown(&self) -> String {
        let mut values = serde_json::to_value(&self.config).unwrap_or_default();
        for (provider, key) in &self.config.api_keys {
            if let Some(Value::Object(map)) = values
                .pointer_mut("/models/providers")
                .and_then(|map| map.get_mut(provider))
            {
                map.insert("api_key".into(), key.clone().into());
            }
        }
        reference::effective(&values)
    }
}

/// Every setting with its default.
pub fn reference() -> String {
    reference::reference(&serde_json::to_value(Config::default()).unwrap_or_default())
}

/// The credentials that were typed. The providers' own options never hold them as text.
fn api_keys(tree: &Tree) -> BTreeMap<String, String> {
    let providers = tree
        .values
        .get("models")
        .and_then(|models| models.get("providers"));
    providers
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(name, provider)| {
            let key = provider.get("api_key")?.as_str().filter(|key| !key.is_empty())?;
            Some((name.clone(), key.to_owned()))
        })
        .collect()
}

/// The file to read: a flag's, the environment's, or the usual one where it exists.
fn find(flags: &Flags, environment: &Environment) -> Option<PathBuf> {
    flags
        .file
        .clone()
        .or_else(|| environment.get("TIDEGATE_CONFIG").map(PathBuf::from))
        .or_else(|| Some(PathBuf::from(FILE)).filter(|path| path.exists()))
}

fn read(path: &Path) -> Result<String, Error> {
    use std::io::Read;
    let unreadable = |problem: String| Error::Unreadable {
        path: path.to_owned(),
        problem,
    };
    let file = std::fs::File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(|error| unreadable(error.to_string()))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(unreadable(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
