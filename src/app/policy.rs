//! The operator's policy, as the gate takes it: zones, caps, network rules and command lists, and one digest over
//! all of it, so that a change of any part makes every approval void.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tidegate_core::{
    port::{KnowledgeBase, OperatorFiles},
    secret::Secret,
};
use tidegate_gate::{
    Policy, Zones,
    caps::Caps,
    guards::{address, outbound},
    hex, shell,
};
use tidegate_io::{
    files::View,
    guarded::{self, Client},
    operator_files::Disk,
};
use tidegate_tools::{Isolation, Outside};

use super::{Error, part, zones::real};
use crate::config::Settings;

/// The largest file of programs that is read, in bytes.
const PROGRAMS_FILE_BYTES_MAX: usize = 1 << 20;

/// What may be touched, run and reached. `[gate]` in `tidegate.toml`; the names are those people know from the
/// systems that tidegate takes the place of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Folders in which files may be touched at all; empty: the knowledge bank.
    pub allowed_paths: Vec<PathBuf>,
    /// Where reading asks nothing; empty: everywhere that may be read.
    pub read_paths: Vec<PathBuf>,
    /// Never touched; wins over everything.
    pub blocked_paths: Vec<PathBuf>,
    /// Where a `readonly` key may write without an approval.
    pub no_prompt_paths: Vec<PathBuf>,
    /// Where writing asks.
    pub prompt_paths: Vec<PathBuf>,
    /// Files exempt from the credential floor; an entry that ends in `/` is a folder.
    pub allowed_sensitive_files: Vec<PathBuf>,
    /// How many calls of one turn may write; 0: no bound.
    pub max_writes_per_turn: u32,
    /// How many bytes one call may write; 0: no bound beyond the tool's own.
    pub max_write_bytes: u64,
    /// If not empty, the only shell commands that may run.
    pub allow_commands: Vec<String>,
    /// Shell commands that may not run.
    pub deny_commands: Vec<String>,
    /// The longest shell command that is looked at, in characters.
    pub max_command_chars: usize,
    /// A file with more programs for the read-only list, or narrower rules.
    pub programs_file: Option<PathBuf>,
    /// If not empty, the only domains that may be reached.
    pub allowed_domains: Vec<String>,
    /// Domains that may not be reached; wins over everything.
    pub blocked_domains: Vec<String>,
    /// Hosts inside that may be reached, `host` or `host:port`.
    pub ssrf_allow_hosts: Vec<String>,
    /// Opens private addresses to everything.
    pub ssrf_allow_private: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            allowed_paths: Vec::new(),
            read_paths: Vec::new(),
            blocked_paths: Vec::new(),
            no_prompt_paths: Vec::new(),
            prompt_paths: Vec::new(),
            allowed_sensitive_files: Vec::new(),
            max_writes_per_turn: 0,
            max_write_bytes: 0,
            allow_commands: Vec::new(),
            deny_commands: Vec::new(),
            max_command_chars: 16_384,
            programs_file: None,
            allowed_domains: Vec::new(),
            blocked_domains: Vec::new(),
            ssrf_allow_hosts: Vec::new(),
            ssrf_allow_private: false,
        }
    }
}

/// The policy of these settings. What may be reached and what may not leave is what `network` was built with, so
/// that the gate and the client judge by the same, and `zones` are those that the tools were opened with.
pub(super) fn policy(settings: &Settings, network: &Client, zones: &Zones) -> Policy {
    let options = &settings.config.gate;
    let reach = network.policy();
    Policy {
        caps: Caps {
            writes_per_turn_max: options.max_writes_per_turn,
            write_bytes_max: options.max_write_bytes,
        },
        network: reach.address.clone(),
        secrets: Some(Arc::new(reach.secrets.clone())),
        digest: digest(settings, zones),
        zones: zones.clone(),
    }
}

/// What the tools reach beside the knowledge bank. `program` is this binary.
pub(super) fn outside(
    settings: &Settings,
    secrets: &[Secret],
    program: PathBuf,
    knowledge: Option<Arc<dyn KnowledgeBase>>,
) -> Result<Outside, Error> {
    let bank = real(&settings.config.tools.knowledge_bank);
    Ok(Outside {
        network: network(settings, secrets)?,
        shell: Arc::new(commands(settings)?),
        place: shell::Place::new(bank.to_string_lossy(), tidegate_io::sandbox::HOME),
        view: View::open(Path::new("/")).map_err(part)?,
        knowledge,
        isolation: Isolation::Sandbox {
            options: settings.config.sandbox.clone(),
            program,
        },
    })
}

fn commands(settings: &Settings) -> Result<shell::Policy, Error> {
    let options = &settings.config.gate;
    let programs = match &options.programs_file {
        Some(file) => Disk
            .read(&settings.home.join(file), PROGRAMS_FILE_BYTES_MAX)
            .map_err(|fault| Error::Part(format!("gate.programs_file cannot be read: {fault}")))?,
        None => String::new(),
    };
    let policy = shell::Policy::compile(&shell::Options {
        max_command_chars: options.max_command_chars,
        allow_commands: options.allow_commands.clone(),
        deny_commands: options.deny_commands.clone(),
        programs,
    })
    .map_err(part)?;
    Ok(if settings.disposable.is_on() {
        policy.for_disposable_container()
    } else {
        policy
    })
}

/// The client of every tool that a model can steer over the network.
fn network(settings: &Settings, secrets: &[Secret]) -> Result<Client, Error> {
    let policy = guarded::Policy {
        address: addresses(settings)?,
        secrets: outbound::Secrets::compile(secrets.iter().map(Secret::expose)).map_err(part)?,
    };
    Client::new(guarded::Options::default(), policy).map_err(part)
}

fn addresses(settings: &Settings) -> Result<address::Policy, Error> {
    let options = &settings.config.gate;
    address::Policy::compile(&address::Options {
        ssrf_allow_hosts: options.ssrf_allow_hosts.clone(),
        ssrf_allow_private: options.ssrf_allow_private,
        allowed_domains: options.allowed_domains.clone(),
        blocked_domains: options.blocked_domains.clone(),
        own_listeners: vec![settings.bind],
    })
    .map_err(|error| Error::Part(format!("gate.{error}")))
}

/// SHA-256 of everything that decisions rest on.
fn digest(settings: &Settings, zones: &Zones) -> String {
    let config = &settings.config;
    let options = serde_json::to_string(&(&config.gate, &config.sandbox, &config.hooks)).unwrap_or_default();
    let text = |file: Option<PathBuf>| {
        file.and_then(|file| Disk.read(&file, PROGRAMS_FILE_BYTES_MAX).ok())
            .unwrap_or_default()
    };
    let tools = text(config.tools.tools_file.clone());
    let programs = config.gate.programs_file.as_ref();
    let programs = text(programs.map(|file| settings.home.join(file)));
    let mut hash = Sha256::new();
    for part in [&options, &format!("{zones:?}"), &tools, &programs] {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hex(&hash.finalize())
}
