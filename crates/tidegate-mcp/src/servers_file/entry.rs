//! One entry of the file, key by key.

mod nested;

use std::path::PathBuf;

use serde_json::{Map, Value};
use tidegate_core::{glob::Glob, secret::Secret};

use super::{Endpoint, Filter, Handshake, Note, References, Server, Wire, expand, shown_name};

/// The longest deadline, in milliseconds: an hour.
const TIMEOUT_MS_MAX: u64 = 3_600_000;
/// The most items of a list, and the most members of a map.
const ITEMS_MAX: usize = 256;

/// Keys of other clients that are understood and rightly do nothing here.
const IGNORED: [&str; 5] = ["description", "name", "icon", "$schema", "dev"];
/// Keys of other clients that would let calls pass unasked.
const APPROVALS: [&str; 4] = ["autoApprove", "alwaysAllow", "autoApproveTools", "trust_all"];
/// What is known.
const KNOWN: [&str; 26] = [
    "type",
    "transport",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "serverUrl",
    "httpUrl",
    "headers",
    "enabled",
    "disabled",
    "timeout",
    "timeout_ms",
    "connect_timeout",
    "connect_timeout_ms",
    "bearer_token_env",
    "bearer_token",
    "oauth",
    "trust",
    "trust_read_only",
    "sampling",
    "elicitation",
    "tools",
    "protocol",
    "limits",
];

/// Reads one entry and collects what is wrong with it.
pub(super) struct Reader<'a> {
    name: &'a str,
    map: &'a Map<String, Value>,
    references: &'a dyn References,
    pub(super) problems: Vec<Note>,
    pub(super) warnings: Vec<Note>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(name: &'a str, map: &'a Map<String, Value>, references: &'a dyn References) -> Self {
        Self {
            name,
            map,
            references,
            problems: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// The server; what is wrong is in `problems`, and then it must not be used.
    pub(super) fn server(&mut self) -> Option<Server> {
        self.unknown_keys();
        let enabled = self.flag("enabled").unwrap_or(true) && !self.flag("disabled").unwrap_or(false);
        // What is switched off needs no secrets yet.
        if !enabled {
            self.references = &Unread;
        }
        let timeout_ms = self.duration("timeout_ms", "timeout");
        let connect_timeout_ms = self.duration("connect_timeout_ms", "connect_timeout");
        let trusts_read_only = self.trust();
        let allows_sampling = self.flag("sampling").unwrap_or(false);
        self.elicitation();
        let tools = self.filter();
        let handshake = self.handshake();
        let endpoint = self.endpoint();
        Some(Server {
            name: self.name.to_owned(),
            enabled,
            endpoint: endpoint?,
            handshake,
            timeout_ms,
            connect_timeout_ms,
            trusts_read_only,
            allows_sampling,
            tools,
        })
    }

    fn unknown_keys(&mut self) {
        for key in self.map.keys() {
            let text = if KNOWN.contains(&key.as_str()) || IGNORED.contains(&key.as_str()) {
                continue;
            } else if APPROVALS.contains(&key.as_str()) {
                "does nothing here: the permission gate decides about every call".to_owned()
            } else if key == "auth" {
                "does nothing here; write `oauth`, or `bearer_token_env` with the name of a variable that holds a token"
                    .to_owned()
            } else if key == "envFile" {
                "is not read; write the variables in `env`, as `env:NAME` or `file:PATH`".to_owned()
            } else {
                format!("is not known and does nothing; known are {}", KNOWN.join(", "))
            };
            self.warnings.push(self.note(key, text));
        }
    }

    fn endpoint(&mut self) -> Option<Endpoint> {
        let kind = self.kind();
        let url_key = ["url", "serverUrl", "httpUrl"]
            .into_iter()
            .find(|key| self.map.contains_key(*key));
        match (self.map.contains_key("command"), url_key) {
            (true, None) => {
                if !matches!(kind, None | Some(Kind::Stdio)) {
                    self.problem("type", "does not fit `command`; write \"stdio\" or leave it out");
                }
                self.stdio()
            }
            (false, Some(key)) => {
                let wire = match kind {
                    Some(Kind::Stdio) => {
                        self.problem(
                            "type",
                            "does not fit `url`; write \"http\" or \"sse\", or leave it out",
                        );
                        return None;
                    }
                    Some(Kind::Sse) => Wire::Sse,
                    Some(Kind::Http) => Wire::Http,
                    None => Wire::Any,
                };
                self.remote(key, wire)
            }
            (true, Some(key)) => {
                self.problem(
                    key,
                    "stands beside `command`; a server is a program or an address, so remove one",
                );
                None
            }
            (false, None) => {
                self.problem(
                    "command",
                    "is missing; write the program to start, or `url` for a server elsewhere",
                );
                None
            }
        }
    }

    fn kind(&mut self) -> Option<Kind> {
        let key = if self.map.contains_key("type") {
            "type"
        } else {
            "transport"
        };
        let text = self.plain(key)?;
        match text.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
            "stdio" | "local" => Some(Kind::Stdio),
            "http" | "streamablehttp" | "remote" => Some(Kind::Http),
            "sse" => Some(Kind::Sse),
            _ => {
                self.problem(key, "must be \"stdio\", \"http\" or \"sse\"");
                None
            }
        }
    }

    fn stdio(&mut self) -> Option<Endpoint> {
        let command = self.text("command");
        let args = self.texts("args");
        let env = self.secrets("env");
        if let Some((name, _)) = env
            .iter()
            .find(|(name, _)| name.is_empty() || name.contains(['=', '\0']))
        {
            let text = format!("`{}` is no name of a variable", shown_name(name));
            self.problem("env", &text);
        }
        for key in ["headers", "bearer_token", "bearer_token_env"] {
            if self.map.contains_key(key) {
                self.warnings
                    .push(self.note(key, "does nothing for a program".to_owned()));
            }
        }
        let cwd = self.text("cwd").map(PathBuf::from);
        let limits = self.limits();
        Some(Endpoint::Stdio {
            command: command?,
            args,
            env,
            cwd,
            limits,
        })
    }

    fn remote(&mut self, key: &str, wire: Wire) -> Option<Endpoint> {
        let url = self.text(key);
        let headers = self.secrets("headers");
        for key in ["args", "env", "cwd", "limits"] {
            if self.map.contains_key(key) {
                self.warnings
                    .push(self.note(key, "does nothing for an address".to_owned()));
            }
        }
        let bearer = match self.plain("bearer_token_env") {
            Some(name) => match self.references.resolve(&format!("env:{name}")) {
                Ok(token) => Some(token),
                Err(problem) => {
                    self.problem("bearer_token_env", &problem);
                    None
                }
            },
            None => self.text("bearer_token").map(Secret::new),
        };
        let oauth = self.oauth();
        if oauth.is_some() && bearer.is_some() {
            self.problem("oauth", "stands beside a bearer token; remove one");
        }
        let url = url?;
        match url::Url::parse(&url) {
            Ok(parsed) if !matches!(parsed.scheme(), "http" | "https") => {
                self.problem(key, "must begin with https:// or http://");
            }
            Ok(parsed) if !parsed.username().is_empty() || parsed.password().is_some() => {
                self.problem(key, "must hold no name and password; write them in `headers`");
            }
            Ok(_) => {}
            // A switched-off entry may hold references in its address.
            Err(_) if url.is_empty() => {}
            Err(problem) => self.problem(key, &format!("is no address ({problem})")),
        }
        Some(Endpoint::Remote {
            url,
            headers,
            bearer,
            oauth,
            wire,
        })
    }

    fn trust(&mut self) -> bool {
        let word = match self.map.get("trust") {
            None => false,
            Some(Value::Bool(trusts)) => *trusts,
            Some(Value::String(text)) if text == "read_only" => true,
            Some(Value::String(text)) if text == "none" => false,
            Some(Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_)) => {
                self.problem("trust", "must be \"read_only\" or \"none\"");
                false
            }
        };
        self.flag("trust_read_only").unwrap_or(false) || word
    }

    /// There is no way yet to ask a person in the middle of a call.
    fn elicitation(&mut self) {
        if self.flag("elicitation") == Some(true) {
            let text = "does nothing yet: nobody can be asked during a call, so such a question is declined; give what the server needs in `args` or `env`";
            self.warnings.push(self.note("elicitation", text.to_owned()));
        }
    }

    fn handshake(&mut self) -> Handshake {
        match self.plain("protocol").as_deref() {
            None | Some("auto") => Handshake::Any,
            Some("initialize") => Handshake::Initialize,
            Some("discover") => Handshake::Discover,
            Some(_) => {
                self.problem("protocol", "must be \"auto\", \"initialize\" or \"discover\"");
                Handshake::Any
            }
        }
    }

    fn filter(&mut self) -> Filter {
        let mut filter = Filter::default();
        match self.map.get("tools") {
            None => {}
            Some(Value::Array(_)) => filter.allow = self.globs("tools", self.map.get("tools")),
            Some(Value::Object(map)) => {
                for (key, value) in map {
                    let path = format!("tools.{key}");
                    match key.as_str() {
                        "include" | "allow" => filter.allow.extend(self.globs(&path, Some(value))),
                        "exclude" | "deny" => filter.deny.extend(self.globs(&path, Some(value))),
                        _ => self.problem(&path, "is not known; write `allow` and `deny`"),
                    }
                }
            }
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                self.problem(
                    "tools",
                    "must be an object such as {\"allow\": [\"read_*\"], \"deny\": []}",
                );
            }
        }
        filter
    }

    fn globs(&mut self, key: &str, value: Option<&Value>) -> Vec<Glob> {
        let mut globs = Vec::new();
        for text in self.list(key, value) {
            match Glob::new(&text) {
                Ok(glob) => globs.push(glob),
                Err(problem) => self.problem(key, &problem.to_string()),
            }
        }
        globs
    }

    fn duration(&mut self, key_ms: &str, key_seconds: &str) -> Option<u64> {
        let (key, factor) = if self.map.contains_key(key_ms) {
            (key_ms, 1.0)
        } else {
            (key_seconds, 1000.0)
        };
        let number = self.map.get(key)?.as_f64().map(|number| number * factor);
        match number {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "the guard holds it between 1 and an hour in milliseconds"
            )]
            Some(number) if number >= 1.0 && number <= TIMEOUT_MS_MAX as f64 => Some(number as u64),
            Some(_) | None => {
                let unit = if key == key_ms { "milliseconds" } else { "seconds" };
                self.problem(key, &format!("must be a number of {unit}, at most an hour"));
                None
            }
        }
    }

    fn flag(&mut self, key: &str) -> Option<bool> {
        let value = self.map.get(key)?;
        if value.as_bool().is_none() {
            self.problem(key, "must be true or false");
        }
        value.as_bool()
    }

    /// A text, references in it not resolved.
    fn plain(&mut self, key: &str) -> Option<String> {
        let value = self.map.get(key)?;
        if value.as_str().is_none_or(str::is_empty) {
            self.problem(key, "must be a text that is not empty");
        }
        value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// A text, references in it resolved.
    fn text(&mut self, key: &str) -> Option<String> {
        let text = self.plain(key)?;
        match expand::value(&text, self.references) {
            Ok(secret) => Some(secret.expose().to_owned()),
            Err(problem) => {
                self.problem(key, &problem);
                None
            }
        }
    }

    fn texts(&mut self, key: &str) -> Vec<String> {
        let list = self.list(key, self.map.get(key));
        let mut texts = Vec::with_capacity(list.len());
        for (index, text) in list.iter().enumerate() {
            // `env:` and `file:` begin ordinary arguments too; only what stands in `${}` is a reference here.
            match expand::inside(text, self.references) {
                Ok(text) => texts.push(text),
                Err(problem) => self.problem(&format!("{key}[{index}]"), &problem),
            }
        }
        texts
    }

    fn list(&mut self, key: &str, value: Option<&Value>) -> Vec<String> {
        let Some(value) = value else {
            return Vec::new();
        };
        let texts: Option<Vec<String>> = value
            .as_array()
            .filter(|items| items.len() <= ITEMS_MAX)
            .and_then(|items| {
                items
                    .iter()
                    .map(|item| item.as_str().map(str::to_owned))
                    .collect()
            });
        if texts.is_none() {
            self.problem(key, &format!("must be a list of at most {ITEMS_MAX} texts"));
        }
        texts.unwrap_or_default()
    }

    /// A map of texts, references in them resolved.
    fn secrets(&mut self, key: &str) -> Vec<(String, Secret)> {
        let Some(value) = self.map.get(key) else {
            return Vec::new();
        };
        let Some(map) = value.as_object().filter(|map| map.len() <= ITEMS_MAX) else {
            self.problem(key, &format!("must be an object of at most {ITEMS_MAX} texts"));
            return Vec::new();
        };
        let mut secrets = Vec::with_capacity(map.len());
        for (name, value) in map {
            let path = format!("{key}.{}", shown_name(name));
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                Value::Bool(flag) => flag.to_string(),
                Value::Null => continue,
                Value::Array(_) | Value::Object(_) => {
                    self.problem(&path, "must be a text");
                    continue;
                }
            };
            match expand::value(&text, self.references) {
                Ok(secret) => secrets.push((name.clone(), secret)),
                Err(problem) => self.problem(&path, &problem),
            }
        }
        secrets
    }

    fn note(&self, key: &str, text: String) -> Note {
        Note {
            server: shown_name(self.name),
            key: shown_name(key),
            text,
        }
    }

    fn problem(&mut self, key: &str, text: &str) {
        let note = self.note(key, text.to_owned());
        self.problems.push(note);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stdio,
    Http,
    Sse,
}

/// For entries that are switched off: nothing is looked up.
#[derive(Debug)]
struct Unread;

impl References for Unread {
    fn resolve(&self, _reference: &str) -> Result<Secret, String> {
        Ok(Secret::default())
    }
}
