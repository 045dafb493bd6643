//! Every configured model behind one door: names, lists, retries and fallbacks.

mod ask;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::join_all;
use tidegate_core::{
    clock::{Clock, Entropy},
    model::{ModelError, ModelInfo, ModelRef, ModelRequest},
    port::{ChatModel, ModelStream},
};
use tidegate_io::http::OperatorClient;

use crate::{
    breaker::Breaker,
    catalog::{self, Catalog, Source},
    options::{Options, Target},
    providers::Provider,
};

/// The name that always means the default model.
pub const DEFAULT_ALIAS: &str = "tidegate";

/// What people are told where nobody found better words.
const NOT_CONFIGURED: &str = "no model is configured: set OPENAI_BASE_URL (and OPENAI_API_KEY) or add a provider to \
                              tidegate.toml, then restart";

/// What is wrong with the settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// A provider's settings do not suffice, or contradict each other.
    #[error("{0}")]
    Provider(String),
    /// A setting names a provider that is not configured.
    #[error(
        "{setting} names the provider `{provider}`, which is not configured; add it under [models.providers.NAME]"
    )]
    UnknownProvider {
        /// The setting.
        setting: String,
        /// The name.
        provider: String,
    },
    /// A fallback is not written `provider:model`.
    #[error("the fallback `{0}` must be written `provider:model`")]
    Fallback(String),
}

/// How a provider is doing, for people who look after the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderReport {
    /// The provider.
    pub provider: String,
    /// The models it lists, or why it does not answer.
    pub models: Result<Vec<String>, ModelError>,
}

/// The configured models.
#[derive(Debug)]
pub struct Models {
    entries: BTreeMap<String, Arc<Entry>>,
    default_provider: Option<String>,
    aliases: BTreeMap<String, Target>,
    fallbacks: Vec<Target>,
    options: Options,
    client: OperatorClient,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

/// One provider and what is remembered of it.
#[derive(Debug)]
struct Entry {
    provider: Provider,
    breaker: Breaker,
    catalog: Catalog,
}

impl Models {
    /// Settles the settings. No provider at all is no error: every question is then answered with
    /// [`ModelError::NotConfigured`].
    pub fn new(
        mut options: Options,
        client: OperatorClient,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, SetupError> {
        let mut entries = BTreeMap::new();
        for (name, provider) in std::mem::take(&mut options.providers) {
            let entry = Entry {
                provider: Provider::settle(&name, &provider).map_err(SetupError::Provider)?,
                breaker: Breaker::new(
                    options.breaker_failures,
                    Duration::from_millis(options.breaker_open_ms),
                ),
                catalog: Catalog::default(),
            };
            entries.insert(name, Arc::new(entry));
        }
        let check = |setting: &str, provider: &str| {
            if entries.contains_key(provider) {
                return Ok(());
            }
            Err(SetupError::UnknownProvider {
                setting: setting.to_owned(),
                provider: provider.to_owned(),
            })
        };
        if let Some(provider) = &options.default_provider {
            check("default_provider", provider)?;
        }
        let aliases = std::mem::take(&mut options.aliases);
        for (alias, target) in &aliases {
            check(&format!("the alias `{alias}`"), &target.provider)?;
        }
        let fallbacks = options
            .fallbacks
            .iter()
            .map(|text| fallback(text))
            .collect::<Result<Vec<_>, _>>()?;
        for target in &fallbacks {
            check("a fallback", &target.provider)?;
        }
        let default_provider = options
            .default_provider
            .clone()
            .or_else(|| entries.keys().next().cloned());
        Ok(Self {
            entries,
            default_provider,
            aliases,
            fallbacks,
            options,
            client,
            clock,
            entropy,
        })
    }

    /// Whether there is any provider.
    pub fn is_configured(&self) -> bool {
        !self.entries.is_empty()
    }

    /// What to tell people while there is none.
    pub fn not_configured_hint(&self) -> &str {
        let hint = self.options.not_configured_hint.trim();
        if hint.is_empty() { NOT_CONFIGURED } else { hint }
    }

    /// Asks every provider for its models now, whatever is remembered.
    pub async fn check(&self) -> Vec<ProviderReport> {
        join_all(self.entries.values().map(|entry| async {
            let models = catalog::fetch(self.source(entry)).await;
            ProviderReport {
                provider: entry.provider.name.clone(),
                models: models.map(|models| models.into_iter().map(|model| model.id).collect()),
            }
        }))
        .await
    }

    fn source<'a>(&'a self, entry: &'a Entry) -> Source<'a> {
        Source {
            client: &self.client,
            provider: &entry.provider,
            clock: &*self.clock,
            believed_for: Duration::from_secs(self.options.models_cache_s),
        }
    }

    fn not_configured(&self) -> ModelError {
        ModelError::NotConfigured(self.not_configured_hint().to_owned())
    }

    fn default_entry(&self) -> Option<&Arc<Entry>> {
        self.entries.get(self.default_provider.as_ref()?)
    }

    async fn refer(&self, entry: &Entry, requested: &str, model: &str) -> ModelRef {
        let facts = entry.catalog.facts(self.source(entry), model).await;
        entry.provider.model_ref(requested, model, facts)
    }

    async fn resolve_default(&self, entry: &Entry) -> Result<ModelRef, ModelError> {
        if let Some(model) = &entry.provider.model {
            return Ok(self.refer(entry, DEFAULT_ALIAS, model).await);
        }
        let listing = entry.catalog.listing(self.source(entry)).await;
        let Some(model) = listing.first_chat_model() else {
            let name = &entry.provider.name;
            return Err(ModelError::NotConfigured(format!(
                "the provider `{name}` has no model set and lists none: set `model` for it, or check its base_url"
            )));
        };
        Ok(self.refer(entry, DEFAULT_ALIAS, &model.id).await)
    }
}

#[async_trait]
impl ChatModel for Models {
    async fn resolve(&self, requested: &str) -> Result<ModelRef, ModelError> {
        let default = self.default_entry().ok_or_else(|| self.not_configured())?;
        if let Some(target) = self.aliases.get(requested) {
            let entry = self
                .entries
                .get(&target.provider)
                .ok_or_else(|| self.not_configured())?;
            return Ok(self.refer(entry, requested, &target.model).await);
        }
        if requested == DEFAULT_ALIAS {
            return self.resolve_default(default).await;
        }
        let listing = default.catalog.listing(self.source(default)).await;
        if let Some(model) = listing.find(requested) {
            return Ok(self.refer(default, requested, &model.id).await);
        }
        if let Some((provider, model)) = requested.split_once('/')
            && let Some(entry) = self.entries.get(provider)
            && !model.is_empty()
        {
            let listing = entry.catalog.listing(self.source(entry)).await;
            return match listing.find(model) {
                Some(known) => Ok(self.refer(entry, requested, &known.id).await),
                None if listing.is_unknown() => Ok(self.refer(entry, requested, model).await),
                None => Err(ModelError::NotFound(requested.to_owned())),
            };
        }
        if listing.is_unknown() && !requested.is_empty() {
            return Ok(self.refer(default, requested, requested).await);
        }
        Err(ModelError::NotFound(requested.to_owned()))
    }

    async fn ask(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        self.ask_anyone(request).await
    }

    async fn list(&self) -> Result<Vec<ModelInfo>, ModelError> {
        let Some(default) = self.default_entry() else {
            return Ok(Vec::new());
        };
        let own = |id: &str| ModelInfo {
            id: id.to_owned(),
            created: 0,
            owned_by: DEFAULT_ALIAS.to_owned(),
            context_tokens: None,
        };
        let mut models = vec![own(DEFAULT_ALIAS)];
        models.extend(
            self.aliases
                .keys()
                .filter(|alias| *alias != DEFAULT_ALIAS)
                .map(|alias| own(alias)),
        );
        let listings = join_all(
            self.entries
                .values()
                .map(|entry| async move { (entry, entry.catalog.listing(self.source(entry)).await) }),
        )
        .await;
        for (entry, listing) in listings {
            let is_default = Arc::ptr_eq(entry, default);
            for model in listing.models() {
                let id = if is_default {
                    model.id.clone()
                } else {
                    format!("{}/{}", entry.provider.name, model.id)
                };
                if !self.aliases.contains_key(&id) && id != DEFAULT_ALIAS {
                    models.push(ModelInfo { id, ..model.clone() });
                }
            }
        }
        Ok(models)
    }
}

fn fallback(text: &str) -> Result<Target, SetupError> {
    match text.split_once(':') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => Ok(Target {
            provider: provider.to_owned(),
            model: model.to_owned(),
        }),
        Some(_) | None => Err(SetupError::Fallback(text.to_owned())),
    }
}
