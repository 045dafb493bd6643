//! `mcp_servers.json`: which servers there are, in the forms people have already.
//!
//! The file is read as other clients write it: a map of servers under `mcpServers` or `servers`, each a program
//! (`command`, `args`, `env`, `cwd`) or an address (`url`, `headers`, `type`). A bad entry is reported with its
//! name, its key and what to write instead, and costs the others nothing. A key that is not known is a warning.
//! Values may refer to secrets: `env:NAME` and `file:PATH` as whole values, `${env:NAME}`, `${NAME}` and
//! `${NAME:-default}` inside of texts.

mod entry;
mod expand;

use std::{collections::BTreeSet, path::PathBuf};

use serde_json::{Map, Value};
use tidegate_core::{
    glob::{Glob, any_matches},
    secret::Secret,
};
use tidegate_io::child::Limits;

use crate::names::slug;

/// Resolves what a value refers to. The root knows the environment and where relative paths begin.
pub trait References: Send + Sync + std::fmt::Debug {
    /// The secret behind `env:NAME` or `file:PATH`. The error names the variable or the file, never a value, and
    /// says what to do.
    fn resolve(&self, reference: &str) -> Result<Secret, String>;
}

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A program that is started here and spoken to over its pipes.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables beside the base ones.
        env: Vec<(String, Secret)>,
        /// Its working folder; the home of the server where there is none.
        cwd: Option<PathBuf>,
        /// What the operating system grants it.
        limits: Limits,
    },
    /// An address.
    Remote {
        /// The address; `http` or `https`.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, Secret)>,
        /// What is sent as `authorization: Bearer …`.
        bearer: Option<Secret>,
        /// Whether somebody logs in there, and how.
        oauth: Option<OAuth>,
        /// How it is spoken to there.
        wire: Wire,
    },
}

/// How somebody logs in at a server (OAuth 2.1, as MCP 2025-06-18 and later use it).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OAuth {
    /// What is asked for; what the server suggests where there is nothing.
    pub scopes: Vec<String>,
    /// As whom, where the server knows us already; else we register by ourselves.
    pub client_id: Option<String>,
    /// The secret that belongs to it.
    pub client_secret: Option<Secret>,
}

/// How a server at an address is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Streamable HTTP; where that is refused, the older transport.
    Any,
    /// Streamable HTTP (MCP 2025-03-26 and later).
    Http,
    /// The older transport of two connections (MCP 2024-11-05).
    Sse,
}

/// How a connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    /// `initialize`, which nearly all know and which waits for slow starters; where that is refused, the newer way.
    Any,
    /// `initialize` alone (up to MCP 2025-11-25).
    Initialize,
    /// `server/discover` alone (MCP 2026-07-28).
    Discover,
}

/// Which tools of a server are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// A tool must match one of these; all do where there are none.
    pub allow: Vec<Glob>,
    /// And none of these.
    pub deny: Vec<Glob>,
}

impl Filter {
    /// Whether a tool of this name is wanted.
    pub fn wants(&self, tool: &str) -> bool {
        (self.allow.is_empty() || any_matches(&self.allow, tool)) && !any_matches(&self.deny, tool)
    }
}

/// One server, as the operator wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its name in the file.
    pub name: String,
    /// Whether it is connected to.
    pub enabled: bool,
    /// Where it is.
    pub endpoint: Endpoint,
    /// How a connection begins.
    pub handshake: Handshake,
    /// How long one call may take; the general bound where there is none.
    pub timeout_ms: Option<u64>,
    /// How long connecting may take; the general bound where there is none.
    pub connect_timeout_ms: Option<u64>,
    /// Whether its word is taken that a tool only reads.
    pub trusts_read_only: bool,
    /// Whether it may ask the run's model something during a call.
    pub allows_sampling: bool,
    /// Which of its tools are wanted.
    pub tools: Filter,
}

/// Something in the file that needs a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The server; empty where it is about the whole file.
    pub server: String,
    /// The key, as a path inside the entry; empty where it is about the whole entry.
    pub key: String,
    /// What is wrong and what to write instead.
    pub text: String,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.server.as_str(), self.key.as_str()) {
            ("", "") => f.write_str(&self.text),
            ("", key) => write!(f, "`{key}`: {}", self.text),
            (server, "") => write!(f, "server `{server}`: {}", self.text),
            (server, key) => write!(f, "server `{server}`, `{key}`: {}", self.text),
        }
    }
}

/// What the file says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServersFile {
    /// The servers that can be used, those that are switched off among them, in the order of their names.
    pub servers: Vec<Server>,
    /// Entries that cannot be used, each with its reason.
    pub problems: Vec<Note>,
    /// What is not understood and changes nothing.
    pub warnings: Vec<Note>,
}

impl ServersFile {
    /// Reads the text of the file. `Err` where the whole of it cannot be used.
    ///
    /// # Errors
    /// It is no JSON object, or has no map of servers.
    pub fn parse(text: &str, servers_max: usize, references: &dyn References) -> Result<Self, Note> {
        let whole = |text: String| Note {
            server: String::new(),
            key: String::new(),
            text,
        };
        let value: Value = serde_json::from_str(text).map_err(|problem| {
            whole(format!(
                "it is no JSON ({problem}); comments and trailing commas are not allowed"
            ))
        })?;
        let Value::Object(top) = value else {
            return Err(whole(
                "it must be an object such as {\"mcpServers\": {}}".to_owned(),
            ));
        };
        let mut file = Self::default();
        let servers = file.top(&top)?;
        let mut slugs = BTreeSet::new();
        let mut names: Vec<&String> = servers.keys().collect();
        names.sort();
        for (index, name) in names.into_iter().enumerate() {
            if index >= servers_max {
                file.problem(
                    name,
                    "",
                    format!("the file has more than {servers_max} servers; raise `mcp.servers_max`"),
                );
                continue;
            }
            file.entry(name, servers.get(name), &mut slugs, references);
        }
        Ok(file)
    }

    /// The map of servers, under one of the names it goes by.
    fn top<'v>(&mut self, top: &'v Map<String, Value>) -> Result<&'v Map<String, Value>, Note> {
        let mut found = None;
        for (key, value) in top {
            let (key, map) = match key.as_str() {
                "mcpServers" | "servers" => (key.clone(), Some(value)),
                "mcp" => ("mcp.servers".to_owned(), value.get("servers")),
                "$schema" | "inputs" => continue,
                _ => {
                    self.warn(
                        "",
                        key,
                        "is not known and does nothing; servers stand in `mcpServers`",
                    );
                    continue;
                }
            };
            let Some(Value::Object(map)) = map else {
                return Err(Note {
                    server: String::new(),
                    key,
                    text: "must be an object that has a server's name before each entry".to_owned(),
                });
            };
            if found.is_some() {
                self.warn("", &key, "stands beside another map of servers and is not read");
                continue;
            }
            found = Some(map);
        }
        found.ok_or_else(|| Note {
            server: String::new(),
            key: "mcpServers".to_owned(),
            text: "is missing; write {\"mcpServers\": {}} where there are no servers".to_owned(),
        })
    }

    fn entry(
        &mut self,
        name: &str,
        value: Option<&Value>,
        slugs: &mut BTreeSet<String>,
        references: &dyn References,
    ) {
        if let Err(text) = check_name(name, slugs) {
            self.problem(name, "", text);
            return;
        }
        let Some(Value::Object(map)) = value else {
            self.problem(name, "", "must be an object with `command` or `url`".to_owned());
            return;
        };
        let mut reader = entry::Reader::new(name, map, references);
        let server = reader.server();
        self.warnings.append(&mut reader.warnings);
        if reader.problems.is_empty() {
            self.servers.extend(server);
        } else {
            self.problems.append(&mut reader.problems);
        }
    }

    fn problem(&mut self, server: &str, key: &str, text: String) {
        self.problems.push(Note {
            server: shown_name(server),
            key: key.to_owned(),
            text,
        });
    }

    fn warn(&mut self, server: &str, key: &str, text: &str) {
        self.warnings.push(Note {
            server: shown_name(server),
            key: shown_name(key),
            text: text.to_owned(),
        });
    }
}

/// The longest name of a server, in characters: tool names are made with it, and models take 64.
const NAME_CHARS_MAX: usize = 32;

fn check_name(name: &str, slugs: &mut BTreeSet<String>) -> Result<(), String> {
    let is_plain =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '-' | ' ' | '/' | '@');
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || !name.chars().all(is_plain) {
        return Err(format!(
            "the name must be 1 to {NAME_CHARS_MAX} letters, digits and `_.-`; rename it"
        ));
    }
    let short = slug(name);
    if short.is_empty() {
        return Err("the name needs a letter or a digit; rename it".to_owned());
    }
    if !slugs.insert(short.clone()) {
        return Err(format!(
            "another server's tools begin with `mcp__{short}__` already; rename one of them"
        ));
    }
    Ok(())
}

/// A name as it may be shown in a report, whoever wrote it.
fn shown_name(name: &str) -> String {
    name.chars().take(64).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests;
