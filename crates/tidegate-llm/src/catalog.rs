//! What a provider says of its models, asked once and believed for a while.

use std::{
    collections::BTreeMap,
    sync::{self, Arc},
    time::Duration,
};

use serde_json::{Value, json};
use tidegate_core::{
    clock::Clock,
    model::{ModelError, ModelInfo},
};
use tidegate_io::http::{OperatorClient, Request};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

use crate::{
    exchange::{ERROR_BYTES_MAX, authorize},
    fault::{Failure, retry_after},
    options::Dialect,
    providers::{ModelFacts, Provider, Thinking},
};

/// How long a list may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a failure to list is believed: a provider that is down does not slow down every request.
const FAILURE_CACHE: Duration = Duration::from_secs(5);
/// The longest list that is read.
const LIST_BYTES_MAX: usize = 8 << 20;
/// The most models of one provider.
const MODELS_MAX: usize = 10_000;
/// How many models' facts are kept.
const FACTS_MAX: usize = 256;
/// Families of models that Ollama takes levels of thinking for.
const LEVEL_FAMILIES: [&str; 2] = ["gptoss", "gpt-oss"];

/// The models of one provider. A lock is held while asking, so that a burst of requests asks once.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    /// The list, and until when it is believed.
    listing: sync::Mutex<Option<(Instant, Arc<Listing>)>>,
    asking: Mutex<()>,
    facts: Mutex<BTreeMap<String, (Instant, ModelFacts)>>,
}

/// A provider's list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Listing(Vec<ModelInfo>);

/// Who is asked, and how long the answer is believed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) client: &'a OperatorClient,
    pub(crate) provider: &'a Provider,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) believed_for: Duration,
}

impl Listing {
    /// The models; none where the provider has no list, or cannot be reached.
    pub(crate) fn models(&self) -> &[ModelInfo] {
        &self.0
    }

    /// Whether nothing is known, so that any name may exist.
    pub(crate) fn is_unknown(&self) -> bool {
        self.0.is_empty()
    }

    /// The model of that name. Ollama's names have a tag that is `latest` where it is left out; Gemini
    /// lists its names with `models/` before them.
    pub(crate) fn find(&self, name: &str) -> Option<&ModelInfo> {
        self.0.iter().find(|model| {
            model.id == name
                || model.id.strip_suffix(":latest") == Some(name)
                || model.id.strip_prefix("models/") == Some(name)
        })
    }

    /// A model to talk to where none is configured: the first that is not for embedding.
    pub(crate) fn first_chat_model(&self) -> Option<&ModelInfo> {
        self.0.iter().find(|model| !model.id.contains("embed"))
    }
}

impl Catalog {
    /// The provider's list, asked for where it is too old. A list that cannot be refreshed stays; while one
    /// request refreshes it, the others take it as it was.
    pub(crate) async fn listing(&self, source: Source<'_>) -> Arc<Listing> {
        let earlier = match self.cached() {
            Some((until, listing)) if Instant::now() < until => return listing,
            cached => cached.map(|(_, listing)| listing),
        };
        let _asking = match (self.asking.try_lock(), &earlier) {
            (Ok(guard), _) => guard,
            (Err(_), Some(listing)) => return Arc::clone(listing),
            (Err(_), None) => self.asking.lock().await,
        };
        // Another request may have asked since the look above.
        if let Some((until, listing)) = self.cached()
            && Instant::now() < until
        {
            return listing;
        }
        let (listing, believed_for) = match fetch(source).await {
            Ok(models) => (Arc::new(Listing(models)), source.believed_for),
            Err(error) => {
                tracing::debug!(provider = source.provider.name, %error, "cannot list a provider's models");
                (
                    earlier.unwrap_or_default(),
                    FAILURE_CACHE.min(source.believed_for),
                )
            }
        };
        *self.lock() = Some((Instant::now() + believed_for, Arc::clone(&listing)));
        listing
    }

    fn cached(&self) -> Option<(Instant, Arc<Listing>)> {
        self.lock().clone()
    }

    fn lock(&self) -> sync::MutexGuard<'_, Option<(Instant, Arc<Listing>)>> {
        self.listing.lock().unwrap_or_else(sync::PoisonError::into_inner)
    }

    /// What is known of a model. Only Ollama is asked about each: the others say all in their list.
    pub(crate) async fn facts(&self, source: Source<'_>, model: &str) -> ModelFacts {
        match source.provider.dialect {
            Dialect::Openai => {
                if source.provider.context_tokens.is_some() {
                    return ModelFacts::default();
                }
                let listing = self.listing(source).await;
                ModelFacts {
                    native_tools: None,
                    thinking: None,
                    context_tokens: listing.find(model).and_then(|info| info.context_tokens),
                }
            }
            Dialect::Ollama => self.shown(source, model).await,
        }
    }

    /// What is remembered of how a model thinks, however old. Asks nobody.
    pub(crate) async fn thinking(&self, model: &str) -> Option<Thinking> {
        self.facts.lock().await.get(model)?.1.thinking
    }

    async fn shown(&self, source: Source<'_>, model: &str) -> ModelFacts {
        let mut cached = self.facts.lock().await;
        if let Some((until, facts)) = cached.get(model)
            && Instant::now() < *until
        {
            return *facts;
        }
        let (facts, believed_for) = match show(source, model).await {
            Ok(facts) => (facts, source.believed_for),
            Err(error) => {
                tracing::debug!(provider = source.provider.name, %error, "cannot ask about a model");
                (ModelFacts::default(), FAILURE_CACHE.min(source.believed_for))
            }
        };
        if cached.len() >= FACTS_MAX {
            cached.clear();
        }
        cached.insert(model.to_owned(), (Instant::now() + believed_for, facts));
        facts
    }
}

/// Asks a provider for its models. A provider without a list has none.
pub(crate) async fn fetch(source: Source<'_>) -> Result<Vec<ModelInfo>, ModelError> {
    let provider = source.provider;
    let path = match provider.dialect {
        Dialect::Openai => "/models",
        Dialect::Ollama => "/api/tags",
    };
    let request = source.client.get(&format!("{}{path}", provider.base_url));
    match ask(authorize(request, provider), source).await? {
        None => Ok(Vec::new()),
        Some(value) => Ok(read_list(&value, provider)),
    }
}

async fn show(source: Source<'_>, model: &str) -> Result<ModelFacts, ModelError> {
    let provider = source.provider;
    let request = source.client.post(&format!("{}/api/show", provider.base_url));
    let request = authorize(request, provider).json(json!({"model": model}).to_string());
    let Some(value) = ask(request, source).await? else {
        return Ok(ModelFacts::default());
    };
    let capabilities = value.get("capabilities").and_then(Value::as_array);
    let info = value.get("model_info").and_then(Value::as_object);
    let context = info.and_then(|info| info.iter().find(|(key, _)| key.ends_with(".context_length")));
    let can = |what: &str| capabilities.map(|list| list.iter().any(|capability| capability == what));
    let has_levels = value
        .get("details")
        .and_then(|details| details.get("family")?.as_str())
        .is_some_and(|family| LEVEL_FAMILIES.contains(&family));
    Ok(ModelFacts {
        native_tools: can("tools"),
        context_tokens: context.and_then(|(_, tokens)| tokens.as_u64()),
        thinking: can("thinking").map(|thinks| match (thinks, has_levels) {
            (false, _) => Thinking::Never,
            (true, false) => Thinking::OnOff,
            (true, true) => Thinking::Levels,
        }),
    })
}

/// Sends, and reads JSON. `None`: the provider has no such address.
async fn ask(request: Request, source: Source<'_>) -> Result<Option<Value>, ModelError> {
    let exchange = async {
        let response = request.send().await.map_err(|error| Failure::transport(&error))?;
        let status = response.status();
        if matches!(status, 404 | 405 | 501) {
            // Read, so that the connection can be used for the question that follows.
            drop(response.read_prefix(ERROR_BYTES_MAX).await);
            return Ok(None);
        }
        let succeeded = response.is_success();
        let wait = retry_after(&response, source.clock);
        let body = response
            .read_bounded(LIST_BYTES_MAX)
            .await
            .map_err(|error| Failure::transport(&error))?;
        if !succeeded {
            return Err(Failure::status(status, &body, wait, ""));
        }
        let value =
            serde_json::from_slice(&body).map_err(|_| Failure::malformed("its model list is not JSON"))?;
        Ok(Some(value))
    };
    let result = timeout(LIST_TIMEOUT, exchange)
        .await
        .unwrap_or_else(|_| Err(Failure::timeout("listing its models")));
    result.map_err(|failure| source.provider.release(failure).error)
}

fn read_list(value: &Value, provider: &Provider) -> Vec<ModelInfo> {
    let list = value.get("data").or_else(|| value.get("models")).unwrap_or(value);
    let entries = list.as_array().into_iter().flatten();
    entries
        .filter_map(|entry| read_model(entry, provider))
        .take(MODELS_MAX)
        .collect()
}

fn read_model(entry: &Value, provider: &Provider) -> Option<ModelInfo> {
    let text = |key: &str| {
        entry
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let tokens = |key: &str| entry.get(key).and_then(Value::as_u64);
    let trained = entry
        .get("meta")
        .and_then(|meta| meta.get("n_ctx").or_else(|| meta.get("n_ctx_train")));
    Some(ModelInfo {
        id: text("id")
            .or_else(|| text("name"))
            .or_else(|| entry.as_str())?
            .to_owned(),
        created: entry.get("created").and_then(Value::as_i64).unwrap_or(0),
        owned_by: text("owned_by").unwrap_or(&provider.name).to_owned(),
        context_tokens: tokens("max_model_len")
            .or_else(|| tokens("context_length"))
            .or_else(|| tokens("context_window"))
            .or_else(|| trained.and_then(Value::as_u64)),
    })
}

#[cfg(test)]
mod tests;
