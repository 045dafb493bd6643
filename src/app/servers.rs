//! Other MCP servers, plugged in: what the client needs from the house, and their tools beside the house's own.
//!
//! The daemon never waits for them. Until a server is connected its tools are not offered; where it goes, they go.

use std::{
    ffi::OsString,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_core::{
    caller::Mode,
    clock::{Clock, Entropy},
    port::OperatorFiles,
    secret::Secret,
    tool::{ToolCall, ToolResult, ToolSpec},
};
use tidegate_gate::{Authorized, Facts, ToolBox, ToolContext};
use tidegate_io::{guarded, http::OperatorClient, operator_files::Disk};
use tidegate_mcp::{Hub, McpTools, Parts, References, Worker};
use tidegate_store::{LOGIN_KEY_BYTES, SealedLogins, Store};

use super::{Error, Purpose, part};
use crate::config::{Environment, Settings, secret};

/// Where logins at other servers are sealed from: a file of the data folder that only the server's user can read.
const LOGIN_KEY_FILE: &str = "mcp-logins.key";
/// The largest file of servers that is looked through for secrets, in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;
/// Variables that every server's program gets: what programs need in order to be found, to write and to reach a proxy.
const BASE_VARIABLES: [&str; 18] = [
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "PATH",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "TZ",
    "USER",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Which other servers there are. `[mcp]` in `tidegate.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Whether other servers are connected to at all.
    pub enabled: bool,
    /// The file that lists them.
    pub file: PathBuf,
    /// How much of a server is taken, and how long it is waited for.
    #[serde(flatten)]
    pub client: tidegate_mcp::Options,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            enabled: true,
            file: PathBuf::from("mcp_servers.json"),
            client: tidegate_mcp::Options::default(),
        }
    }
}

/// Looks up what the file of servers refers to.
#[derive(Debug, Clone)]
pub struct Referred {
    /// The variables.
    pub environment: Environment,
    /// Where relative paths begin.
    pub home: PathBuf,
}

impl References for Referred {
    fn resolve(&self, reference: &str) -> Result<Secret, String> {
        secret::resolve(reference, &self.environment, &self.home)
    }
}

/// What the client is built from.
#[derive(Debug)]
pub struct House<'h> {
    /// Where pins and logins are kept.
    pub store: &'h Arc<Store>,
    /// The client of whatever a model steers.
    pub network: &'h guarded::Client,
    /// The variables.
    pub environment: &'h Environment,
    /// Reads the file of servers.
    pub files: &'h Arc<dyn OperatorFiles>,
    /// The time.
    pub clock: &'h Arc<dyn Clock>,
    /// Where nonces come from.
    pub entropy: &'h Arc<dyn Entropy>,
}

/// The same for an app of this purpose: one that only looks connects to nobody.
pub(super) fn opened(
    settings: &Settings,
    house: &House<'_>,
    purpose: Purpose,
) -> Result<Option<(Hub, Worker)>, Error> {
    if purpose.serves() {
        open(settings, house)
    } else {
        Ok(None)
    }
}

/// The client and what keeps it going; `None` where it is switched off. Nothing is started yet.
pub fn open(settings: &Settings, house: &House<'_>) -> Result<Option<(Hub, Worker)>, Error> {
    let options = &settings.config.mcp;
    if !options.enabled {
        return Ok(None);
    }
    let key = login_key(settings, &**house.entropy)?;
    let logins = SealedLogins::new(Arc::clone(house.store), &key, Arc::clone(house.entropy)).map_err(part)?;
    let http = OperatorClient::new(&settings.config.models.client_options()).map_err(part)?;
    let parts = Parts {
        file: options.file.clone(),
        files: Arc::clone(house.files),
        references: Arc::new(Referred {
            environment: house.environment.clone(),
            home: settings.home.clone(),
        }),
        http,
        network: house.network.clone(),
        environment: base_environment(house.environment),
        home: settings.home.clone(),
        logs: Some(settings.logs.clone()),
        logins: Arc::new(logins),
        pins: Arc::clone(house.store) as _,
        clock: Arc::clone(house.clock),
    };
    Ok(Some(Hub::new(parts, options.client.clone())))
}

/// The variables that every server's program gets.
fn base_environment(environment: &Environment) -> Vec<(OsString, OsString)> {
    BASE_VARIABLES
        .iter()
        .filter_map(|name| Some((OsString::from(name), OsString::from(environment.get(name)?))))
        .collect()
}

/// The key that logins are sealed with; made where there is none.
fn login_key(settings: &Settings, entropy: &dyn Entropy) -> Result<[u8; LOGIN_KEY_BYTES], Error> {
    let path = settings.data_dir.join(LOGIN_KEY_FILE);
    let failed = |problem: String| {
        Error::Part(format!(
            "the key of logins at MCP servers, `{}`: {problem}",
            path.display()
        ))
    };
    match std::fs::read(&path) {
        Ok(bytes) => bytes
            .try_into()
            .map_err(|_| failed("it is none; remove the file, and log in again".to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let mut key = [0; LOGIN_KEY_BYTES];
            entropy.fill(&mut key);
            tidegate_io::files::write_private(&path, &key).map_err(|error| failed(error.to_string()))?;
            Ok(key)
        }
        Err(error) => Err(failed(error.to_string())),
    }
}

/// What values of the file of servers refer to: secrets, that nothing may show or send. What cannot be looked up is
/// reported by the client.
pub(super) fn secrets(settings: &Settings, environment: &Environment) -> Vec<Secret> {
    let options = &settings.config.mcp;
    if !options.enabled {
        return Vec::new();
    }
    let text = Disk.read(&options.file, FILE_BYTES_MAX).unwrap_or_default();
    let mut found = Vec::new();
    if let Ok(value) = serde_json::from_str::<Value>(&text) {
        referred(&value, &mut |reference| {
            found.extend(secret::resolve(reference, environment, &settings.home).ok());
        });
    }
    found
}

fn referred(value: &Value, found: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) if text.starts_with("env:") || text.starts_with("file:") => found(text),
        Value::Array(items) => items.iter().for_each(|item| referred(item, found)),
        Value::Object(members) => members.values().for_each(|member| referred(member, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

type Specs = Arc<[Arc<ToolSpec>]>;

/// The house's own tools and those of other servers, as one box. The house's own come first, and a name of theirs is
/// nobody else's.
#[derive(Debug)]
pub(super) struct AllTools<T> {
    own: Arc<T>,
    others: Option<McpTools>,
    /// The list of the last time, beside the two that it was made of.
    whole: RwLock<Option<(Specs, Specs, Specs)>>,
}

impl<T: ToolBox> AllTools<T> {
    pub(super) fn new(own: &Arc<T>, servers: Option<&Hub>) -> Self {
        Self {
            own: Arc::clone(own),
            others: servers.map(Hub::tools),
            whole: RwLock::default(),
        }
    }

    /// Whose a tool of this name is.
    fn of(&self, name: &str) -> &dyn ToolBox {
        match &self.others {
            Some(others) if McpTools::is_ours(name) => others,
            Some(_) | None => &*self.own,
        }
    }
}

#[async_trait]
impl<T: ToolBox> ToolBox for AllTools<T> {
    fn specs(&self) -> Specs {
        let own = self.own.specs();
        let Some(others) = &self.others else {
            return own;
        };
        let others = others.specs();
        let kept = self.whole.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((of_own, of_others, whole)) = &*kept
            && Arc::ptr_eq(of_own, &own)
            && Arc::ptr_eq(of_others, &others)
        {
            return Arc::clone(whole);
        }
        drop(kept);
        let beside = others.iter().filter(|spec| McpTools::is_ours(&spec.name));
        let whole: Specs = own.iter().chain(beside).cloned().collect();
        let mut kept = self.whole.write().unwrap_or_else(PoisonError::into_inner);
        *kept = Some((own, others, Arc::clone(&whole)));
        whole
    }

    fn check(&self, call: &ToolCall, spec: &ToolSpec) -> Result<(), ToolResult> {
        self.of(&call.name).check(call, spec)
    }

    async fn facts(&self, call: &ToolCall, spec: &ToolSpec, mode: Mode) -> Facts {
        self.of(&call.name).facts(call, spec, mode).await
    }

    async fn run(&self, call: Authorized<ToolCall>, context: &ToolContext) -> ToolResult {
        match &self.others {
            Some(others) if McpTools::is_ours(&call.get().name) => others.run(call, context).await,
            Some(_) | None => self.own.run(call, context).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_found_wherever_they_stand() {
        let file = json!({"mcpServers": {"a": {"env": {"KEY": "env:KEY", "MODE": "plain"}, "args": ["file:token"]}}});
        let mut found = Vec::new();
        referred(&file, &mut |reference| found.push(reference.to_owned()));
        assert_eq!(found, ["env:KEY", "file:token"]);
    }

    #[test]
    fn programs_get_what_they_need_and_no_more() {
        let environment =
            Environment::from_pairs([("PATH", "/bin"), ("OPENAI_API_KEY", "sk-1"), ("HOME", "/root")]);
        let given = base_environment(&environment);
        assert_eq!(
            given,
            [("HOME".into(), "/root".into()), ("PATH".into(), "/bin".into())]
        );
    }
}
