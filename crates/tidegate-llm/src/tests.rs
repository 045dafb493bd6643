//! What the tests share, and the tests that need a server.

mod exchange;
mod names;
mod retries;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt;
use serde_json::{Value, json};
use tidegate_core::{
    clock::{Clock, Entropy, Timestamp},
    id::CallId,
    lenient::arguments_from_value,
    message::Message,
    model::{ModelError, ModelEvent, ModelRef, ModelRequest, Sampling, ToolChoice, ToolSchema},
    port::ChatModel,
    tool::ToolCall,
    usage::Role,
};
use tidegate_io::http::OperatorClient;
use tidegate_testkit::Upstream;

use crate::{Dialect, Models, Options, ProviderOptions, providers::Provider};

/// How long anything on the loopback may take before a test fails.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// Random bytes that count: the first fill is all 0, the next all 1.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU8);

impl From<u8> for Counter {
    fn from(next: u8) -> Self {
        Self(AtomicU8::new(next))
    }
}

impl Entropy for Counter {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(self.0.fetch_add(1, Ordering::Relaxed));
    }
}

/// A clock that stands: 2027-01-15 08:00:00 UTC.
#[derive(Debug)]
pub(crate) struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }
}

pub(crate) fn provider(name: &str) -> Provider {
    Provider::settle(name, &at("http://127.0.0.1:1/v1")).unwrap()
}

pub(crate) fn at(base_url: &str) -> ProviderOptions {
    ProviderOptions {
        base_url: Some(base_url.to_owned()),
        model: Some("m".to_owned()),
        ..ProviderOptions::default()
    }
}

pub(crate) fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        model: ModelRef {
            requested: "tidegate".to_owned(),
            provider: "x".to_owned(),
            name: "m".to_owned(),
            native_tools: true,
            context_tokens: None,
        },
        system: "sys".to_owned(),
        messages,
        tools: Arc::default(),
        tool_choice: ToolChoice::Auto,
        parallel_tool_calls: true,
        sampling: Sampling::default(),
        response_format: None,
        stream: false,
        role: Role::Main,
    }
}

pub(crate) fn question(stream: bool) -> ModelRequest {
    ModelRequest {
        stream,
        ..request(vec![Message::human("hi")])
    }
}

pub(crate) fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: CallId::new(id),
        name: name.to_owned(),
        arguments: arguments_from_value(arguments),
    }
}

pub(crate) fn schema(name: &str) -> Arc<ToolSchema> {
    Arc::new(ToolSchema {
        name: name.to_owned(),
        description: format!("does {name}"),
        parameters: json!({"type": "object"}).into(),
        strict: None,
    })
}

/// Settings with one provider `x`, and waits short enough for tests.
pub(crate) fn options(upstream: &Upstream, dialect: Dialect) -> Options {
    let provider = ProviderOptions {
        dialect: Some(dialect),
        ..at(&upstream.base_url())
    };
    Options {
        providers: [("x".to_owned(), provider)].into(),
        retry_initial_delay_ms: 1,
        ..Options::default()
    }
}

pub(crate) fn models(options: Options) -> Models {
    let client = OperatorClient::new(&options.client_options()).unwrap();
    Models::new(options, client, Arc::new(Stopped), Arc::new(Counter::default())).unwrap()
}

/// Asks, and reads the answer to its end or its error.
pub(crate) async fn answer(models: &Models, request: ModelRequest) -> Result<Vec<ModelEvent>, ModelError> {
    let mut stream = models.ask(request).await?;
    let mut events = Vec::new();
    while let Some(event) = tokio::time::timeout(SOON, stream.next()).await.unwrap() {
        events.push(event?);
    }
    Ok(events)
}

/// The visible text of an answer.
pub(crate) fn text(events: &[ModelEvent]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        ModelEvent::Text(text) => Some(text.as_str()),
        ModelEvent::AnsweredBy(_)
        | ModelEvent::Reasoning(_)
        | ModelEvent::Call(_)
        | ModelEvent::Finished { .. } => None,
    });
    texts.collect()
}
