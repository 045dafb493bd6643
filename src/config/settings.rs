//! What a configuration means: addresses, real paths, a time zone, and no contradiction.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use jiff::tz::TimeZone;

use super::{
    Config, Environment, Error, Findings, Loaded, Problem, disposable::Disposable, env, providers, rules,
    secret, tree, tree::Origin,
};

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
    /// Whether this machine is thrown away.
    pub disposable: Disposable,
    /// What looks wrong and stops nothing.
    pub warnings: Vec<Problem>,
    /// The `PATH` in which the programs of hooks are found.
    pub search_path: Option<String>,
}

impl Settings {
    /// Looks everything up. Every problem is reported, not only the first, and those that reading found as well.
    pub fn resolve(loaded: &Loaded, environment: &Environment, working_folder: &Path) -> Result<Self, Error> {
        let mut config = loaded.config.clone();
        let mut problems = Problems::of(loaded);
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
        rules::check(&config, &mut problems);
        // Without the `.` of the default, so that paths read well.
        let home: PathBuf = working_folder.join(&config.home).components().collect();
        let secret_files = secret_files(&config, environment, &home);
        secrets(&mut config, &mut problems, environment, &home);
        variables(&mut problems, environment, &home);
        providers::check(&config, environment, &mut problems);
        at_home(&mut config, &home);
        match (bind, zone) {
            (Some(bind), Some(zone)) if problems.findings.errors.is_empty() => Ok(Self {
                bind,
                zone,
                data_dir: home.join(&config.data_dir),
                logs: home.join(&config.logs.folder),
                home,
                secret_files,
                working_folder: working_folder.to_owned(),
                disposable: Disposable::read(environment),
                search_path: environment.get("PATH").map(str::to_owned),
                file: loaded.file.as_ref().map(|file| working_folder.join(file)),
                warnings: problems.findings.warnings,
                config,
            }),
            (Some(_) | None, _) => Err(Error::Invalid {
                file: loaded.file.clone(),
                findings: problems.findings,
            }),
        }
    }
}

/// Problems as they are found.
pub(super) struct Problems<'l> {
    loaded: &'l Loaded,
    findings: Findings,
}

impl<'l> Problems<'l> {
    fn of(loaded: &'l Loaded) -> Self {
        Self {
            loaded,
            findings: loaded.findings.clone(),
        }
    }

    fn problem(&self, key: &str, message: String) -> Problem {
        Problem {
            key: Some(key.to_owned()),
            origin: self.loaded.tree.origin(key),
            message,
        }
    }

    /// Something is wrong with a setting.
    pub(super) fn add(&mut self, key: &str, message: String) {
        let problem = self.problem(key, message);
        self.findings.error(problem);
    }

    /// A setting that was typed does not go together with another one. Of a default nothing is said: whoever set the
    /// other one meant it.
    pub(super) fn warn(&mut self, key: &str, message: String) {
        let problem = self.problem(key, message);
        if problem.origin != Origin::Whole {
            self.findings.warnings.push(problem);
        }
    }

    /// Something is wrong with a variable that is no setting.
    pub(super) fn add_variable(&mut self, name: &str, message: String) {
        self.findings.error(Problem {
            key: None,
            origin: Origin::Variable(name.to_owned()),
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
        mcp,
        memory,
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
        &mut memory.kinds_file,
        &mut routing.patterns_file,
        &mut routing.vocabulary_file,
        &mut routing.examples_file,
        &mut routing.counterexamples_file,
        &mut tools.knowledge_bank,
        &mut mcp.file,
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
    let embeddings = config.embeddings.api_key.iter();
    let chroma = config.kb.chroma_token.iter();
    let typed = config
        .api_keys
        .values()
        .chain(headers)
        .chain(embeddings)
        .chain(chroma)
        .map(String::as_str);
    let variables = env::NOT_SETTINGS.iter().filter_map(|name| environment.get(name));
    typed
        .chain(variables)
        .filter_map(|text| secret::file(text, home))
        .collect()
}

/// Looks up every credential, and puts it where it is used.
fn secrets(config: &mut Config, problems: &mut Problems<'_>, environment: &Environment, home: &Path) {
    if let Some(text) = config.embeddings.api_key.take() {
        let resolved = secret::resolve(&text, environment, home);
        config.embeddings.secret = problems.take("embeddings.api_key", resolved);
    }
    if let Some(text) = config.kb.chroma_token.take() {
        let resolved = secret::resolve(&text, environment, home);
        config.kb.chroma_secret = problems.take("kb.chroma_token", resolved);
    }
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

/// The variables that are no settings, and would stop the start.
fn variables(problems: &mut Problems<'_>, environment: &Environment, home: &Path) {
    if let Some(Err(message)) = environment.get("RUST_LOG").map(crate::telemetry::filter) {
        problems.add_variable("RUST_LOG", message);
    }
    let name = crate::app::bootstrap::VARIABLE;
    let key = environment
        .get(name)
        .map(|text| secret::resolve(text, environment, home));
    match key {
        Some(Err(message)) => problems.add_variable(name, message),
        Some(Ok(key)) => {
            if let Err(fault) = crate::keys::parse(key.expose().trim()) {
                problems.add_variable(
                    name,
                    format!("this is no key: {fault}; `tidegate keys generate` makes one"),
                );
            }
        }
        None => {}
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
        let pairs = [
            ("models.providers.mine.api_key", "env:UPSTREAM_KEY"),
            ("models.providers.mine.base_url", "http://127.0.0.1:9/v1"),
        ];
        let settings = settings(&pairs).unwrap();
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
    fn what_reading_found_and_what_looking_up_found_is_one_list() {
        let flags = Flags {
            file: None,
            settings: [
                ("engine.rounds_max", "none"),
                ("engine.calls_per_turn_max", "8"),
                ("engine.calls_per_round_max", "9"),
                ("server.bind", "here"),
                ("server.allowed_hosts", "https://a.example"),
                ("server.cors_origins", "*, https://b.example/x"),
                ("server.user_header", "x user"),
                ("models.providers.a.base_url", "no url"),
                ("models.providers.b.profile", "nope"),
                ("models.providers.c.api_key", "env:NOPE"),
                ("models.providers.c.headers", "{ \"x y\" = 'file:nope' }"),
                ("models.default_provider", "nobody"),
                ("models.aliases.fast.provider", "nobody"),
                ("models.aliases.fast.model", "m"),
                ("models.aliases.slow.provider", "c"),
                ("models.fallbacks", "nothing, x:y"),
                ("models.proxy", "::"),
                ("hooks", "[{ name = 'h', when = 'never' }]"),
                ("discovery.ollama_url", "localhost"),
                ("bogus", "1"),
            ]
            .map(|(key, text)| ("--set".to_owned(), key.to_owned(), text.to_owned()))
            .into(),
        };
        let environment = Environment::from_pairs([
            ("RUST_LOG", "a=b=c"),
            ("TIDEGATE_BOOTSTRAP_KEY", "tg_not-a-key"),
            ("TIDEGATE_SERVER__REQUEST_MAX", "3"),
        ]);
        let loaded = crate::config::read(&flags, &environment).unwrap();
        let error = Settings::resolve(&loaded, &environment, Path::new("/srv/tg")).unwrap_err();
        let shown = error.to_string();
        for part in [
            "error: flag --set: `engine.rounds_max`",
            "error: flag --set: `server.bind`",
            "error: flag --set: `server.allowed_hosts[0]`",
            "error: flag --set: `server.cors_origins[0]`",
            "error: flag --set: `server.cors_origins[1]`",
            "error: flag --set: `server.user_header`",
            "error: flag --set: `models.providers.a.base_url`",
            "error: flag --set: `models.providers.b.profile`",
            "error: flag --set: `models.providers.c`: provider `c` needs a base_url",
            "error: flag --set: `models.providers.c.api_key`",
            "error: flag --set: `models.providers.c.headers.\"x y\"`",
            "error: flag --set: `models.default_provider`",
            "error: flag --set: `models.aliases.fast.provider`",
            "error: flag --set: `models.aliases.slow`: missing field `model`",
            "error: flag --set: `models.fallbacks[0]`",
            "error: flag --set: `models.fallbacks[1]`",
            "error: flag --set: `models.proxy`",
            "error: flag --set: `hooks[0].when`",
            "error: flag --set: `hooks[0].command`",
            "error: flag --set: `discovery.ollama_url`",
            "error: environment variable RUST_LOG",
            "error: environment variable TIDEGATE_BOOTSTRAP_KEY",
            "warning: flag --set: `bogus`: no such setting; `tidegate config --reference`",
            "warning: flag --set: `engine.calls_per_round_max`: one reply may have more calls",
            "did you mean TIDEGATE_SERVER__REQUESTS_MAX (`server.requests_max`)",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("not-a-key"), "{shown}");
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
