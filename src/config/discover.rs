//! Which model: what is configured, else the environment that every OpenAI SDK reads, else an Ollama on this
//! machine, else nothing. Nothing is an answer too: the daemon starts and says what to type.

use std::{fmt, future::Future, time::Duration};

use serde::{Deserialize, Serialize};
use tidegate_core::secret::Secret;
use tidegate_llm::{Options as Models, ProviderOptions};

use super::Environment;

/// How long a local Ollama may take to answer, in milliseconds. Start-up waits for it, and only where nothing
/// else is configured.
pub const PROBE_MS: u64 = 150;

/// The model that is asked for where only `OPENAI_API_KEY` is set.
pub const OPENAI_MODEL: &str = "gpt-5-mini";

/// The variables that describe a provider.
const VARIABLES: [&str; 3] = ["OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL"];

/// The name of the provider that the environment describes.
const FROM_ENVIRONMENT: &str = "openai";

/// The name of the provider that was found on this machine.
const FOUND: &str = "ollama";

/// `[discovery]` in `tidegate.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Whether a local Ollama is looked for.
    pub ollama: bool,
    /// Where.
    pub ollama_url: String,
    /// Which of its models to use; unset, the first that can chat.
    pub ollama_model: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ollama: true,
            ollama_url: "http://127.0.0.1:11434".into(),
            ollama_model: None,
        }
    }
}

/// How the model was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// In the configuration.
    Configured,
    /// In the variables that every OpenAI SDK reads.
    Environment {
        /// Those that are set.
        variables: Vec<&'static str>,
    },
    /// An Ollama that answered.
    Ollama {
        /// The model that was picked.
        model: String,
    },
    /// Not at all; the sentence says what is missing and what to type.
    Nothing(String),
}

/// What the start-up line says of it.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured => f.write_str("configured"),
            Self::Environment { variables } => match variables.as_slice() {
                [] => f.write_str("from the environment"),
                [one] => write!(f, "from {one}"),
                [first @ .., last] => write!(f, "from {} and {last}", first.join(", ")),
            },
            Self::Ollama { model } => write!(f, "{model}, from the Ollama on this machine"),
            Self::Nothing(_) => f.write_str("none"),
        }
    }
}

/// The names that providers may get where none is configured.
pub fn names(options: &Options, environment: &Environment) -> Vec<&'static str> {
    if from_environment(environment).is_some() {
        return vec![FROM_ENVIRONMENT];
    }
    options.ollama.then_some(FOUND).into_iter().collect()
}

/// Settles the providers in `models`. `probe` asks an Ollama for the names of its chat models.
pub async fn discover<P>(
    models: &mut Models,
    options: &Options,
    environment: &Environment,
    probe: impl FnOnce(String, Duration) -> P,
) -> Source
where
    P: Future<Output = Option<Vec<String>>>,
{
    if !models.providers.is_empty() {
        return Source::Configured;
    }
    if let Some(provider) = from_environment(environment) {
        models.providers.insert(FROM_ENVIRONMENT.to_owned(), provider);
        let variables = VARIABLES
            .into_iter()
            .filter(|name| environment.get(name).is_some());
        return Source::Environment {
            variables: variables.collect(),
        };
    }
    let found = if options.ollama {
        probe(options.ollama_url.clone(), Duration::from_millis(PROBE_MS)).await
    } else {
        None
    };
    let found: Option<Vec<String>> =
        found.map(|names| names.into_iter().filter(|name| can_chat(name)).collect());
    let picked = found
        .as_ref()
        .and_then(|names| options.ollama_model.clone().or_else(|| names.first().cloned()));
    if let Some(model) = picked {
        let provider = ProviderOptions {
            profile: Some("ollama".into()),
            base_url: Some(options.ollama_url.clone()),
            model: Some(model.clone()),
            ..ProviderOptions::default()
        };
        models.providers.insert(FOUND.to_owned(), provider);
        return Source::Ollama { model };
    }
    let sentence = what_to_type(options, found.is_some());
    if models.not_configured_hint.trim().is_empty() {
        models.not_configured_hint.clone_from(&sentence);
    }
    Source::Nothing(models.not_configured_hint.clone())
}

/// Whether a model of that name chats. Ollama's list does not say; embedding models do so by their names.
fn can_chat(name: &str) -> bool {
    let name = name.to_lowercase();
    !["embed", "minilm", "bge-", "rerank"]
        .iter()
        .any(|word| name.contains(word))
}

/// The provider that the SDKs' own variables describe.
fn from_environment(environment: &Environment) -> Option<ProviderOptions> {
    let base_url = environment.get("OPENAI_BASE_URL");
    let api_key = environment.get("OPENAI_API_KEY");
    if base_url.is_none() && api_key.is_none() {
        return None;
    }
    let is_openai =
        base_url.is_none_or(|url| url.trim_start_matches("https://").starts_with("api.openai.com"));
    let default_model = is_openai.then_some(OPENAI_MODEL);
    Some(ProviderOptions {
        base_url: base_url.map(|url| url.trim().to_owned()),
        api_key: api_key.map(|key| Secret::new(key.trim())),
        model: environment
            .get("OPENAI_MODEL")
            .or(default_model)
            .map(str::to_owned),
        ..ProviderOptions::default()
    })
}

/// What is missing and what to type, in one sentence without a path, a host or a secret: strangers may read it.
fn what_to_type(options: &Options, is_empty_ollama: bool) -> String {
    if is_empty_ollama {
        return "no model is configured: Ollama runs here but has no chat model; type `ollama pull qwen3:4b` and \
                restart tidegate"
            .into();
    }
    let ollama = if options.ollama {
        "start Ollama and type `ollama pull qwen3:4b`, or "
    } else {
        ""
    };
    format!(
        "no model is configured: {ollama}set OPENAI_API_KEY (for another server than OpenAI's, OPENAI_BASE_URL), or \
         add `[models.providers.NAME]` to tidegate.toml; then restart tidegate"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn found(options: &Options, pairs: &[(&str, &str)], ollama: Option<&[&str]>) -> (Source, Models) {
        let mut models = Models::default();
        let names = ollama.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let environment = Environment::from_pairs(pairs.iter().copied());
        let source = discover(&mut models, options, &environment, |_, _| async { names }).await;
        (source, models)
    }

    #[tokio::test]
    async fn what_is_configured_wins() {
        let mut models = Models::default();
        models.providers.insert("mine".into(), ProviderOptions::default());
        let environment = Environment::from_pairs([("OPENAI_API_KEY", "sk-x")]);
        let probe = |_, _| async { panic!("nobody asks Ollama where a provider is configured") };
        let source = discover(&mut models, &Options::default(), &environment, probe).await;
        assert_eq!(source, Source::Configured);
        assert_eq!(models.providers.len(), 1);
    }

    #[tokio::test]
    async fn a_key_alone_means_openai() {
        let (source, models) = found(&Options::default(), &[("OPENAI_API_KEY", "sk-x")], None).await;
        assert_eq!(source.to_string(), "from OPENAI_API_KEY");
        let provider = &models.providers["openai"];
        assert_eq!(provider.base_url, None);
        assert_eq!(provider.model.as_deref(), Some(OPENAI_MODEL));
        assert_eq!(provider.api_key.as_ref().unwrap().expose(), "sk-x");
    }

    #[tokio::test]
    async fn another_server_says_itself_which_models_it_has() {
        let base = ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
        let (_, models) = found(&Options::default(), &[base], Some(&["qwen3:8b"])).await;
        assert_eq!(models.providers["openai"].model, None);
        let (source, models) = found(&Options::default(), &[base, ("OPENAI_MODEL", "m")], None).await;
        assert_eq!(source.to_string(), "from OPENAI_BASE_URL and OPENAI_MODEL");
        assert_eq!(models.providers["openai"].model.as_deref(), Some("m"));
    }

    #[tokio::test]
    async fn ollama_is_used_where_it_answers() {
        let (source, models) = found(&Options::default(), &[], Some(&["a", "b"])).await;
        assert_eq!(source, Source::Ollama { model: "a".into() });
        assert_eq!(models.providers["ollama"].model.as_deref(), Some("a"));
        let mixed = ["nomic-embed-text:latest", "all-minilm", "qwen3:8b"];
        let (source, _) = found(&Options::default(), &[], Some(&mixed)).await;
        assert_eq!(
            source,
            Source::Ollama {
                model: "qwen3:8b".into()
            }
        );
        let named = Options {
            ollama_model: Some("b".into()),
            ..Options::default()
        };
        assert_eq!(
            found(&named, &[], Some(&["a", "b"])).await.0,
            Source::Ollama { model: "b".into() }
        );
    }

    #[tokio::test]
    async fn with_nothing_the_sentence_says_what_to_type() {
        let off = Options {
            ollama: false,
            ..Options::default()
        };
        for (options, ollama, words) in [
            (Options::default(), None, "start Ollama"),
            (Options::default(), Some([].as_slice()), "ollama pull"),
            (Options::default(), Some(["bge-m3"].as_slice()), "ollama pull"),
            (off, None, "OPENAI_API_KEY"),
        ] {
            let (source, models) = found(&options, &[], ollama).await;
            let Source::Nothing(sentence) = source else {
                panic!("{source:?}")
            };
            assert!(sentence.contains(words), "{sentence}");
            assert_eq!(models.not_configured_hint, sentence);
            assert!(models.providers.is_empty());
        }
    }

    #[tokio::test]
    async fn a_sentence_of_the_operators_own_is_what_is_said() {
        let mut models = Models {
            not_configured_hint: "ask the IT office".into(),
            ..Models::default()
        };
        let nobody = |_, _| async { None };
        let source = discover(&mut models, &Options::default(), &Environment::default(), nobody).await;
        assert_eq!(source, Source::Nothing("ask the IT office".into()));
    }
}
