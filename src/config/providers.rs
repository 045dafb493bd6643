//! Whether the models can be set up, checked piece by piece: the set-up itself stops at its first error, and whoever
//! mends a file wants all of them.

use std::collections::BTreeMap;

use tidegate_io::http::OperatorClient;
use tidegate_llm::{Options, ProviderOptions};

use super::{Config, Environment, discover, rules, settings::Problems, tree::join};
use crate::app;

/// Sets each part of `[models]` up by itself, asks nobody, and reports what does not work.
pub(super) fn check(config: &Config, environment: &Environment, problems: &mut Problems<'_>) {
    let models = &config.models;
    let client = |options: &Options| OperatorClient::new(&options.client_options());
    if client(models).is_err() && client(&Options::default()).is_ok() {
        // Not repeated: an address may have a password in it.
        let message = "this is no address of a proxy; write one such as `http://proxy.example.org:3128`";
        problems.add("models.proxy", message.to_owned());
    }
    for (name, provider) in &models.providers {
        let path = join("models.providers", name);
        let key = match (&provider.profile, &provider.base_url) {
            (Some(_), _) => join(&path, "profile"),
            (None, Some(_)) => join(&path, "base_url"),
            (None, None) => path.clone(),
        };
        if let Some(url) = &provider.base_url
            && !rules::is_url(url)
        {
            // Not repeated: an address may have a password in it.
            let message = "this is no address; write one such as `http://127.0.0.1:8000/v1`";
            problems.add(&join(&path, "base_url"), message.to_owned());
        } else if let Err(message) = set_up(with(name, provider.clone())) {
            problems.add(&key, message);
        }
    }
    names(models, &known_providers(config, environment), problems);
    if models.providers.is_empty()
        && let Some(url) = environment.get("OPENAI_BASE_URL")
        && !rules::is_url(url)
    {
        let message = "this is no address; write one such as `http://127.0.0.1:8000/v1`";
        problems.add_variable("OPENAI_BASE_URL", message.to_owned());
    }
}

/// Whatever names a provider names one that is there.
fn names(models: &Options, known: &Options, problems: &mut Problems<'_>) {
    let mut check = |key: &str, options: Options| {
        if let Err(message) = set_up(options) {
            problems.add(key, message);
        }
    };
    if models.default_provider.is_some() {
        let options = Options {
            default_provider: models.default_provider.clone(),
            ..known.clone()
        };
        check("models.default_provider", options);
    }
    for (alias, target) in &models.aliases {
        let options = Options {
            aliases: BTreeMap::from([(alias.clone(), target.clone())]),
            ..known.clone()
        };
        check(&join(&join("models.aliases", alias), "provider"), options);
    }
    for (index, fallback) in models.fallbacks.iter().enumerate() {
        let options = Options {
            fallbacks: vec![fallback.clone()],
            ..known.clone()
        };
        check(&format!("models.fallbacks[{index}]"), options);
    }
}

/// Stand-ins under every name that a provider has, or gets at the start: what is wrong with one of them is another
/// matter than whether it is there.
fn known_providers(config: &Config, environment: &Environment) -> Options {
    let configured = config.models.providers.keys().map(String::as_str);
    let found = discover::names(&config.discovery, environment);
    let names: Vec<&str> = if config.models.providers.is_empty() {
        found
    } else {
        configured.collect()
    };
    let stand_in = ProviderOptions {
        base_url: Some("http://127.0.0.1:9/v1".into()),
        ..ProviderOptions::default()
    };
    Options {
        providers: names
            .into_iter()
            .map(|name| (name.to_owned(), stand_in.clone()))
            .collect(),
        ..Options::default()
    }
}

fn with(name: &str, provider: ProviderOptions) -> Options {
    Options {
        providers: BTreeMap::from([(name.to_owned(), provider)]),
        ..Options::default()
    }
}

/// The same as the start does.
fn set_up(options: Options) -> Result<(), String> {
    app::open_models(options)
        .map(drop)
        .map_err(|error| error.to_string())
}
