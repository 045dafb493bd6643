//! What a configuration means: addresses, real paths, a time zone, and no contradiction.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use jiff::tz::TimeZone;

use super::{Config, Environment, Error, Loaded, Problem, env, secret, tree};

/// A configuration that something can be started with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What was typed, with paths made absolute and credentials in their places.
    pub config: Config,
    /// The file it came from.
    pub file: Option<PathBuf>,
    /// Where to listen.
    pub bind: SocketAddr,
    /// Where a day begins.
    pub zone: TimeZone,
    /// Folder of the operator's files, absolute.
    pub home: PathBuf,
    /// Folder of the database, absolute.
    pub data_dir: PathBuf,
    /// Folder of the logs, absolute.
    pub logs: PathBuf,
    /// The files that hold credentials, absolute. Collected here: afterwards their content stands in their place.
    pub secret_files: Vec<PathBuf>,
    /// Where the process was started, absolute.
    pub working_folder: PathBuf,
    /// The `PATH` in which the programs of hooks are found.
    pub search_path: Option<String>,
}

impl Settings {
    /// Looks everything up. Every problem is reported, not only the first.
    pub fn resolve(loaded: &Loaded, environment: &Environment, working_folder: &Path) -> Result<Self, Error> {
        let mut config = loaded.config.clone();
        let mut problems = Problems {
            loaded,
            list: Vec::new(),
        };
        let bind = problems.take("server.bind", address(&config.server.bind));
        let zone = problems.take("time_zone", crate::clock::time_zone(&config.time_zone));
        if let Some(bind) = bind {
            problems.take(
                "server.allowed_hosts",
                reachable(bind, &config.server.allowed_hosts),
            );
        }
        for (key, directives) in [
            ("logs.console", &config.logs.console),
            ("logs.file", &config.logs.file),
        ] {
            problems.take(key, crate::telemetry::filter(directives));
        }
        for (index, hook) in config.hooks.iter().enumerate() {
            for (name, fault) in hook.faults() {
                problems.add(&format!("hooks[{index}].{name}"), fault);
            }
        }
        // Without the `.` of the default, so that paths read well.
        let home: PathBuf = working_folder.join(&config.home).components().collect();
        let secret_files = secret_files(&config, environment, &home);
        secrets(&mut config, &mut problems, environment, &home);
        at_home(&mut config, &home);
        match (bind, zone) {
            (Some(bind), Some(zone)) if problems.list.is_empty() => Ok(Self {
                bind,
                zone,
                data_dir: home.join(&config.data_dir),
                logs: home.join(&config.logs.folder),
                home,
                secret_files,
                working_folder: working_folder.to_owned(),
                search_path: environment.get("PATH").map(str::to_owned),
                file: loaded.file.as_ref().map(|file| working_folder.join(file)),
                config,
            }),
            (Some(_) | None, _) => Err(Error::Invalid {
                file: loaded.file.clone(),
                problems: problems.list,
            }),
        }
    }
}

/// Problems as they are found.
struct Problems<'l> {
    loaded: &'l Loaded,
    list: Vec<Problem>,
}

impl Problems<'_> {
    fn add(&mut self, key: &str, message: String) {
        self.list.push(Problem {
            key: Some(key.to_owned()),
            origin: self.loaded.tree.origin(key),
            message,
        });
    }

    fn take<T>(&mut self, key: &str, result: Result<T, String>) -> Option<T> {
        result.map_err(|message| self.add(key, message)).ok()
    }
}

/// Makes the operator's own paths absolute.
fn at_home(config: &mut Config, home: &Path) {
    let Config {
        prompt,
        routing,
        tools,
        store,
        ..
    } = config;
    store.path = home.join(&config.data_dir).join(&store.path);
    for path in [
        &mut prompt.agent_file,
        &mut prompt.skills_dir,
        &mut routing.patterns_file,
        &mut routing.vocabulary_file,
        &mut routing.examples_file,
        &mut tools.knowledge_bank,
    ]
    .into_iter()
    .chain(&mut tools.tools_file)
    {
        *path = home.join(&*path);
    }
}

/// The files that references to credentials name, in the configuration and in the environment.
fn secret_files(config: &Config, environment: &Environment, home: &Path) -> Vec<PathBuf> {
    let providers = config.models.providers.values();
    let headers = providers.flat_map(|provider| provider.headers.values());
    let typed = config.api_keys.values().chain(headers).map(String::as_str);
    let variables = env::NOT_SETTINGS.iter().filter_map(|name| environment.get(name));
    typed
        .chain(variables)
        .filter_map(|text| secret::file(text, home))
        .collect()
}

/// Looks up every credential, and puts it where it is used.
fn secrets(config: &mut Config, problems: &mut Problems<'_>, environment: &Environment, home: &Path) {
    for (name, provider) in &mut config.models.providers {
        let path = tree::join("models.providers", name);
        if let Some(text) = config.api_keys.get(name) {
            let resolved = secret::resolve(text, environment, home);
            provider.api_key = problems.take(&tree::join(&path, "api_key"), resolved);
        }
        let headers = tree::join(&path, "headers");
        for (header, value) in &mut provider.headers {
            let resolved = secret::resolve(value, environment, home);
            if let Some(secret) = problems.take(&tree::join(&headers, header), resolved) {
                secret.expose().clone_into(value);
            }
        }
    }
}

/// An address to listen on: `127.0.0.1:8088`, `[::1]:8088`, `localhost:8088`, `:8088`.
fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let local = text.strip_prefix("localhost:").or_else(|| text.strip_prefix(':'));
    local
        .and_then(|port| port.parse().ok())
        .map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
        .ok_or_else(|| {
            format!("`{text}` is no address with a port; write one such as `127.0.0.1:8088` or `[::1]:8088`")
        })
}

/// Whoever listens to other machines says under which names: that stops pages whose name was pointed here.
fn reachable(bind: SocketAddr, allowed_hosts: &[String]) -> Result<(), String> {
    if bind.ip().is_loopback() || !allowed_hosts.is_empty() {
        return Ok(());
    }
    Err(format!(
        "`server.bind` is {bind}, which other machines can reach, so the names they may use must be set, such as \
         `allowed_hosts = [\"agent.example.org\", \"{}\"]`; or bind to 127.0.0.1",
        if bind.ip().is_unspecified() {
            "192.0.2.7".to_owned()
        } else {
            bind.ip().to_string()
        }
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Flags, load};

    fn settings(pairs: &[(&str, &str)]) -> Result<Settings, Error> {
        let flags = Flags {
            file: None,
            settings: pairs
                .iter()
                .map(|(key, text)| ("--set".to_owned(), (*key).to_owned(), (*text).to_owned()))
                .collect(),
        };
        let environment = Environment::from_pairs([("UPSTREAM_KEY", "sk-from-env")]);
        Settings::resolve(&load(&flags, &environment)?, &environment, Path::new("/srv/tg"))
    }

    #[test]
    fn credentials_are_looked_up_and_never_shown() {
        let key = ("models.providers.mine.api_key", "env:UPSTREAM_KEY");
        let settings = settings(&[key]).unwrap();
        let provider = &settings.config.models.providers["mine"];
        assert_eq!(provider.api_key.as_ref().unwrap().expose(), "sk-from-env");
        assert!(!format!("{settings:?}").contains("sk-from-env"));
    }

    #[test]
    fn a_missing_credential_names_setting_and_variable() {
        let error = settings(&[("models.providers.mine.api_key", "env:NOT_THERE")])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("models.providers.mine.api_key") && error.contains("`NOT_THERE`"),
            "{error}"
        );
    }

    #[test]
    fn paths_begin_at_home() {
        let settings =
            settings(&[("home", "school"), ("data_dir", "/var/db"), ("time_zone", "UTC")]).unwrap();
        assert_eq!(settings.home, Path::new("/srv/tg/school"));
        assert_eq!(settings.data_dir, Path::new("/var/db"));
        assert_eq!(settings.logs, Path::new("/srv/tg/school/logs"));
        assert_eq!(
            settings.config.prompt.agent_file,
            Path::new("/srv/tg/school/AGENT.md")
        );
        assert_eq!(settings.config.store.path, Path::new("/var/db/tidegate.db"));
        assert_eq!(settings.zone, TimeZone::UTC);
    }

    #[test]
    fn addresses_have_several_spellings() {
        for (text, meaning) in [
            ("127.0.0.1:1", Some("127.0.0.1:1")),
            ("localhost:8088", Some("127.0.0.1:8088")),
            (":8088", Some("127.0.0.1:8088")),
            ("[::1]:8088", Some("[::1]:8088")),
            ("127.0.0.1", None),
            ("agent.example.org:80", None),
            ("localhost:99999", None),
        ] {
            assert_eq!(
                address(text).ok(),
                meaning.map(|text| text.parse().unwrap()),
                "{text}"
            );
        }
    }

    #[test]
    fn another_address_than_loopback_needs_names() {
        let error = settings(&[("server.bind", "0.0.0.0:8088")])
            .unwrap_err()
            .to_string();
        assert!(error.contains("allowed_hosts = ["), "{error}");
        assert!(
            settings(&[
                ("server.bind", "0.0.0.0:8088"),
                ("server.allowed_hosts", "agent.example.org")
            ])
            .is_ok()
        );
    }

    #[test]
    fn every_problem_is_reported() {
        let error = settings(&[
            ("server.bind", "here"),
            ("time_zone", "Mars"),
            ("logs.console", "a=b=c"),
        ])
        .unwrap_err()
        .to_string();
        for key in ["server.bind", "time_zone", "logs.console"] {
            assert!(error.contains(key), "{error}");
        }
    }
}
