//! Known services, and a configured provider with everything about it settled.

use std::{collections::BTreeMap, fmt, sync::LazyLock};

use serde::Deserialize;
use tidegate_core::{model::ModelRef, secret::Secret};

use crate::{
    fault::{Credentials, Failure},
    options::{Dialect, ProviderOptions, TokensField},
};

/// The table of known services.
const TABLE: &str = include_str!("providers.toml");
/// What is assumed of a server nobody has described: the efforts nearly every server knows.
const GENERIC_EFFORTS: [&str; 3] = ["low", "medium", "high"];
/// Reasoning efforts from least to most, as the contract orders them.
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// One row of the table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    base_url: String,
    dialect: Option<Dialect>,
    tokens_field: Option<TokensField>,
    native_tools: Option<bool>,
    context_tokens: Option<u64>,
    #[serde(default)]
    omit: Vec<String>,
    #[serde(default)]
    extra: Vec<String>,
    #[serde(default)]
    efforts: Vec<String>,
}

/// The rows by name. A test proves that the table can be read; were it not so, no service would be known.
static PROFILES: LazyLock<BTreeMap<String, Profile>> =
    LazyLock::new(|| toml::from_str(TABLE).unwrap_or_default());

/// The names of the known services.
pub fn profile_names() -> impl Iterator<Item = &'static str> {
    PROFILES.keys().map(String::as_str)
}

/// A provider with everything settled.
#[derive(Clone)]
pub(crate) struct Provider {
    pub(crate) name: String,
    /// Without a slash at its end.
    pub(crate) base_url: String,
    pub(crate) api_key: Option<Secret>,
    pub(crate) dialect: Dialect,
    pub(crate) model: Option<String>,
    /// The window, where the operator says.
    pub(crate) context_tokens: Option<u64>,
    /// The window that is used where neither the operator nor the server says, and where a window costs memory
    /// (Ollama) as long as a prompt needs no larger one.
    pub(crate) usual_tokens: Option<u64>,
    pub(crate) native_tools: Option<bool>,
    pub(crate) tokens_field: TokensField,
    pub(crate) tokens_max: Option<u64>,
    pub(crate) omit: Vec<String>,
    pub(crate) extra: Vec<String>,
    pub(crate) efforts: Vec<String>,
    pub(crate) headers: BTreeMap<String, Secret>,
    /// All of the above that is secret, as it may come back in an answer.
    credentials: Credentials,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("name", &self.name)
            .field("dialect", &self.dialect)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl Provider {
    /// Settles what a provider is; the error says which setting is missing or wrong.
    pub(crate) fn settle(name: &str, options: &ProviderOptions) -> Result<Self, String> {
        let profile = find_profile(name, options)?;
        let base_url = options
            .base_url
            .as_deref()
            .or(profile.map(|row| row.base_url.as_str()));
        let Some(base_url) = base_url else {
            return Err(format!(
                "provider `{name}` needs a base_url; known names that need none: {}",
                known_names()
            ));
        };
        if !(base_url.starts_with("http://") || base_url.starts_with("https://")) {
            return Err(format!(
                "the base_url of provider `{name}` must begin with http:// or https://"
            ));
        }
        let dialect = options
            .dialect
            .or(profile.and_then(|row| row.dialect))
            .unwrap_or(Dialect::Openai);
        Ok(Self {
            name: name.to_owned(),
            base_url: trim_base(base_url, dialect),
            api_key: options.api_key.clone().filter(|key| !key.expose().is_empty()),
            dialect,
            model: options.model.clone().filter(|model| !model.is_empty()),
            context_tokens: options.context_tokens,
            usual_tokens: profile.and_then(|row| row.context_tokens),
            native_tools: options.native_tools.or(profile.and_then(|row| row.native_tools)),
            tokens_field: options
                .tokens_field
                .or(profile.and_then(|row| row.tokens_field))
                .unwrap_or(TokensField::MaxTokens),
            tokens_max: options.tokens_max,
            omit: profile.map(|row| row.omit.clone()).unwrap_or_default(),
            extra: options
                .extra
                .clone()
                .or(profile.map(|row| row.extra.clone()))
                .unwrap_or_default(),
            efforts: profile.map_or_else(
                || GENERIC_EFFORTS.map(str::to_owned).to_vec(),
                |row| row.efforts.clone(),
            ),
            headers: options
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), Secret::new(value)))
                .collect(),
            credentials: credentials(base_url, options),
        })
    }

    /// The failure as it may leave this crate, its details noted for the operator.
    pub(crate) fn release(&self, failure: Failure) -> Failure {
        let failure = failure.without(&self.credentials);
        failure.note(&self.name);
        failure
    }

    /// Whether a request field must not be sent.
    pub(crate) fn omits(&self, field: &str) -> bool {
        self.omit.iter().any(|omitted| omitted == field)
    }

    /// The model as the engine carries it.
    pub(crate) fn model_ref(&self, requested: &str, model: &str, facts: ModelFacts) -> ModelRef {
        ModelRef {
            requested: requested.to_owned(),
            provider: self.name.clone(),
            name: model.to_owned(),
            native_tools: self.native_tools.or(facts.native_tools).unwrap_or(true),
            // The smaller where both are known: no window is larger than the model's own.
            context_tokens: [self.context_tokens, facts.context_tokens]
                .into_iter()
                .flatten()
                .min()
                .or(self.usual_tokens),
        }
    }

    /// The effort nearest to the requested one that this provider knows; the lesser of two equally near.
    pub(crate) fn effort(&self, requested: &str) -> Option<&str> {
        let rank = |word: &str| EFFORTS.iter().position(|known| *known == word);
        let wanted = rank(requested)?;
        let known = self
            .efforts
            .iter()
            .filter_map(|word| Some((rank(word)?, word.as_str())));
        known
            .min_by_key(|(at, _)| (at.abs_diff(wanted), *at))
            .map(|(_, word)| word)
    }
}

/// What an upstream says of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ModelFacts {
    pub(crate) native_tools: Option<bool>,
    pub(crate) context_tokens: Option<u64>,
    pub(crate) thinking: Option<Thinking>,
}

/// How a model can be told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thinking {
    /// Not at all: the word is an error.
    Never,
    /// On or off.
    OnOff,
    /// By a level.
    Levels,
}

fn known_names() -> String {
    profile_names().collect::<Vec<_>>().join(", ")
}

fn find_profile(name: &str, options: &ProviderOptions) -> Result<Option<&'static Profile>, String> {
    if let Some(profile) = &options.profile {
        let row = PROFILES.get(profile);
        return row.map(Some).ok_or_else(|| {
            format!(
                "provider `{name}` names the profile `{profile}`, which is not one of {}",
                known_names()
            )
        });
    }
    let Some(base_url) = &options.base_url else {
        return Ok(PROFILES.get(name));
    };
    // A loopback port says nothing about which server listens there; the name of a server that people run
    // themselves does, wherever it runs. A hosted service's name does not: its address would be its own.
    let hosted =
        |row: &&Profile| row.base_url.starts_with("https://") && host(&row.base_url) == host(base_url);
    let own = || {
        PROFILES
            .get(name)
            .filter(|row| row.base_url.starts_with("http://"))
    };
    Ok(PROFILES.values().find(hosted).or_else(own))
}

/// Everything that a provider is told in confidence: its key, its headers, a user and password in its URL.
fn credentials(base_url: &str, options: &ProviderOptions) -> Credentials {
    let key = options.api_key.as_ref().map(Secret::expose);
    let headers = options.headers.values().map(String::as_str);
    let authority = base_url
        .split_once("://")
        .and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
    let user = authority.and_then(|authority| Some(authority.rsplit_once('@')?.0));
    let password = user.and_then(|user| Some(user.split_once(':')?.1));
    Credentials::new(key.into_iter().chain(headers).chain(user).chain(password))
}

/// The host of an http(s) URL in lower case, with its port.
fn host(url: &str) -> Option<String> {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))?;
    let authority = rest.split(['/', '?', '#']).next()?;
    Some(authority.to_ascii_lowercase())
}

fn trim_base(base_url: &str, dialect: Dialect) -> String {
    let base = base_url.trim().trim_end_matches('/');
    let base = match dialect {
        Dialect::Openai => base.strip_suffix("/chat/completions").unwrap_or(base),
        Dialect::Ollama => {
            let base = base.strip_suffix("/api/chat").unwrap_or(base);
            let base = base.strip_suffix("/api").unwrap_or(base);
            base.strip_suffix("/v1").unwrap_or(base)
        }
    };
    base.trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settle(name: &str, options: &ProviderOptions) -> Provider {
        Provider::settle(name, options).unwrap()
    }

    fn at(base_url: &str) -> ProviderOptions {
        ProviderOptions {
            base_url: Some(base_url.to_owned()),
            ..ProviderOptions::default()
        }
    }

    #[test]
    fn every_row_of_the_table_makes_a_provider() {
        let rows: BTreeMap<String, Profile> = toml::from_str(TABLE).unwrap();
        assert!(rows.len() >= 13);
        for (name, row) in rows {
            let provider = settle(&name, &ProviderOptions::default());
            assert_eq!(provider.base_url, row.base_url, "{name}");
            for effort in &row.efforts {
                assert!(EFFORTS.contains(&effort.as_str()), "{name}: {effort}");
            }
            assert!(
                row.efforts.is_empty() || !provider.omits("reasoning_effort"),
                "{name}"
            );
        }
    }

    #[test]
    fn a_row_is_found_by_profile_host_or_name() {
        let rows = [
            (
                "mine",
                at("https://API.openai.com/v1/"),
                TokensField::MaxCompletionTokens,
                "https://API.openai.com/v1",
            ),
            (
                "openai",
                at("http://127.0.0.1:9/v1"),
                TokensField::MaxTokens,
                "http://127.0.0.1:9/v1",
            ),
            (
                "openai",
                ProviderOptions::default(),
                TokensField::MaxCompletionTokens,
                "https://api.openai.com/v1",
            ),
            (
                "x",
                at("http://h/v1/chat/completions"),
                TokensField::MaxTokens,
                "http://h/v1",
            ),
        ];
        for (name, options, field, base_url) in rows {
            let provider = settle(name, &options);
            assert_eq!(
                (provider.tokens_field, provider.base_url.as_str()),
                (field, base_url),
                "{name}"
            );
        }
        let named = ProviderOptions {
            profile: Some("ollama".to_owned()),
            ..at("http://h:1/v1")
        };
        for (name, options) in [("x", named), ("ollama", at("http://h:1/v1"))] {
            let provider = settle(name, &options);
            assert_eq!(
                (provider.dialect, provider.base_url.as_str()),
                (Dialect::Ollama, "http://h:1"),
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        let unknown = ProviderOptions {
            profile: Some("nope".to_owned()),
            ..ProviderOptions::default()
        };
        for (options, word) in [
            (unknown, "nope"),
            (at("ftp://h"), "http://"),
            (ProviderOptions::default(), "base_url"),
        ] {
            let problem = Provider::settle("p", &options).unwrap_err();
            assert!(problem.contains(word) && problem.contains("`p`"), "{problem}");
        }
    }

    #[test]
    fn an_effort_moves_to_the_nearest_one_known() {
        let generic = settle("p", &at("http://h"));
        for (wanted, sent) in [
            ("none", Some("low")),
            ("medium", Some("medium")),
            ("max", Some("high")),
            ("so", None),
        ] {
            assert_eq!(generic.effort(wanted), sent, "{wanted}");
        }
        assert_eq!(settle("mistral", &ProviderOptions::default()).effort("low"), None);
    }

    #[test]
    fn a_provider_shows_no_secret() {
        let options = ProviderOptions {
            api_key: Some(Secret::new("sk-abc")),
            headers: BTreeMap::from([("x-key".to_owned(), "sk-def".to_owned())]),
            ..at("http://user:sk-ghi@h/v1")
        };
        let shown = format!("{:?}", settle("p", &options));
        assert!(!shown.contains("sk-"), "{shown}");
        let shown = format!("{options:?}");
        assert!(!shown.contains("sk-"), "{shown}");
    }
}
