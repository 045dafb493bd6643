//! The configuration: one options struct an area, read once from file, environment and flags.
//!
//! What was typed ([`Config`], kept as text and numbers) and what it means ([`Settings`]: real paths, a time
//! zone, secrets that have been looked up) are two types; only the second one starts anything.

pub mod check;
pub mod discover;
pub mod disposable;
pub mod env;
pub mod error;
mod guess;
mod providers;
pub mod reference;
mod rules;
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

pub use self::{
    env::Environment,
    error::{Error, Findings, Problem, count},
    settings::Settings,
};
use self::{
    table::Setting,
    tree::{Origin, Tree},
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
    /// The documents.
    pub kb: crate::app::knowledge::Options,
    /// What is remembered of people.
    pub memory: tidegate_engine::memory::Options,
    /// Other MCP servers.
    pub mcp: crate::app::servers::Options,
    /// What other agents are offered.
    pub mcp_server: crate::mcp::Options,
    /// Where vectors come from.
    pub embeddings: crate::app::knowledge::EmbeddingOptions,
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
    /// What may be touched, run and reached.
    pub gate: crate::app::policy::Options,
    /// How programs are confined.
    pub sandbox: tidegate_io::sandbox::Options,
    /// The audit trail.
    pub audit: crate::audit::Options,
    /// Commands of the operator's own.
    pub hooks: Vec<crate::hooks::Options>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            home: ".".into(),
            data_dir: "data".into(),
            time_zone: "system".into(),
            server: crate::http::Options::default(),
            engine: tidegate_engine::Options::default(),
            prompt: tidegate_engine::prompt::Options::default(),
            routing: tidegate_engine::routing::Options::default(),
            tools: tidegate_tools::Options::default(),
            kb: crate::app::knowledge::Options::default(),
            memory: tidegate_engine::memory::Options::default(),
            mcp: crate::app::servers::Options::default(),
            mcp_server: crate::mcp::Options::default(),
            embeddings: crate::app::knowledge::EmbeddingOptions::default(),
            models: tidegate_llm::Options::default(),
            api_keys: BTreeMap::new(),
            discovery: discover::Options::default(),
            store: tidegate_store::Options {
                path: "tidegate.db".into(),
                ..tidegate_store::Options::default()
            },
            retention: Retention::default(),
            logs: crate::telemetry::Options::default(),
            gate: crate::app::policy::Options::default(),
            sandbox: tidegate_io::sandbox::Options::default(),
            audit: crate::audit::Options::default(),
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
    /// What is wrong so far. With an error in it nothing may be started; [`Settings::resolve`] sees to that.
    pub findings: Findings,
    /// The layers, for errors that are found later.
    pub tree: Tree,
}

/// Reads file, environment and flags, in rising precedence. The error lists everything that is wrong with them.
pub fn load(flags: &Flags, environment: &Environment) -> Result<Loaded, Error> {
    let loaded = read(flags, environment)?;
    if loaded.findings.errors.is_empty() {
        return Ok(loaded);
    }
    Err(Error::Invalid {
        file: loaded.file,
        findings: loaded.findings,
    })
}

/// Like [`load`], but goes on after an error with what is left, so that the next check can find more. An error
/// only where the file cannot be read at all.
pub fn read(flags: &Flags, environment: &Environment) -> Result<Loaded, Error> {
    let file = find(flags, environment);
    let mut tree = match &file {
        Some(path) => Tree::parse(&text(path)?),
        None => Tree::default(),
    };
    tree.lay_environment(environment);
    for (flag, key, text) in &flags.settings {
        tree.lay(key, text, &Origin::Flag(flag.clone()));
    }
    let mut findings = check::check(&mut tree);
    let mut config = typed(&mut tree, &mut findings);
    config.api_keys = api_keys(&tree);
    Ok(Loaded {
        config,
        file,
        findings,
        tree,
    })
}

/// The values as options. What they refuse is reported and taken out.
fn typed(tree: &mut Tree, findings: &mut Findings) -> Config {
    /// Refusals that are reported; each takes a value out, so that this many is a broken file.
    const REFUSALS_MAX: usize = 100;
    for _ in 0..REFUSALS_MAX {
        let read = serde_path_to_error::deserialize(Value::Object(tree.values.clone()));
        let error: serde_path_to_error::Error<serde_json::Error> = match read {
            Ok(config) => return config,
            Err(error) => error,
        };
        let parts: Vec<_> = error.path().iter().map(Part::from).collect();
        let key = parts.iter().fold(String::new(), |key, part| part.join_to(&key));
        let setting = table::find(&key);
        let value = taken_out(&mut tree.values, &parts);
        let problem = match (setting, &value) {
            (Some(setting), Some(value)) if !setting.accepts(value) => {
                check::wrong(tree, setting, &key, value)
            }
            (setting, _) => Problem {
                origin: tree.origin(&key),
                message: refusal(error.inner(), setting),
                key: Some(key),
            },
        };
        findings.error(problem);
        if value.is_none() {
            break;
        }
    }
    Config::default()
}

/// What the options say of a value, with an example.
fn refusal(error: &serde_json::Error, setting: Option<&Setting>) -> String {
    match setting {
        Some(setting) => format!("{error}; an example: `{}`", setting.example_line()),
        None => format!("{error}; `tidegate config --reference` shows what belongs there"),
    }
}

/// A step on the way to a value.
enum Part {
    Name(String),
    Index(usize),
}

impl From<&serde_path_to_error::Segment> for Part {
    fn from(segment: &serde_path_to_error::Segment) -> Self {
        use serde_path_to_error::Segment;
        match segment {
            Segment::Seq { index } => Self::Index(*index),
            Segment::Map { key } => Self::Name(key.clone()),
            Segment::Enum { variant } => Self::Name(variant.clone()),
            Segment::Unknown => Self::Name("?".to_owned()),
        }
    }
}

impl Part {
    fn join_to(&self, path: &str) -> String {
        match self {
            Self::Name(name) => tree::join(path, name),
            Self::Index(index) => format!("{path}[{index}]"),
        }
    }
}

/// Takes a value out; of a list the whole of it, because the others would change their numbers.
fn taken_out(values: &mut serde_json::Map<String, Value>, parts: &[Part]) -> Option<Value> {
    let (first, rest) = parts.split_first()?;
    let Part::Name(name) = first else { return None };
    match (values.get_mut(name), rest) {
        (Some(Value::Object(inner)), [Part::Name(_), ..]) => taken_out(inner, rest),
        (Some(Value::Array(items)), [Part::Index(index), rest @ ..]) if !rest.is_empty() => {
            taken_out(items.get_mut(*index)?.as_object_mut()?, rest)
        }
        (Some(_) | None, _) => values.remove(name),
    }
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

fn text(path: &Path) -> Result<String, Error> {
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
