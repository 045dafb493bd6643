//! The OpenAPI document. Paths and shapes come from the handlers and the wire types, what the layers add from
//! [`contract`]; the table of routes is [`super::routes_of_the_api`].

mod contract;

use utoipa::OpenApi;

use super::{
    Options,
    error::{Envelope, EnvelopeBody},
    routes::{knowledge, models},
    wire::{
        answer::ChatCompletionChunk,
        chat::StreamOptions,
        messages::{WireCall, WireFunctionCall, WireMessage},
        tools::{Function, Tool},
    },
};

/// What the handlers do not say.
#[derive(Debug, OpenApi)]
#[openapi(
    info(
        title = "tidegate",
        description = "A self-hosted agent server that speaks the OpenAI API. Every route also answers without \
                       `/v1`, and every error has the same envelope."
    ),
    paths(models::show, knowledge::put, knowledge::remove),
    components(schemas(
        ChatCompletionChunk,
        Envelope,
        EnvelopeBody,
        Function,
        StreamOptions,
        Tool,
        WireCall,
        WireFunctionCall,
        WireMessage
    ))
)]
pub(super) struct Document;

/// The document as JSON text, for a daemon with the settings' defaults.
pub fn document() -> String {
    describe(&Options::default())
}

/// The document as JSON text.
pub(super) fn describe(options: &Options) -> String {
    let (_, document) = super::routes_of_the_api().split_for_parts();
    let text = serde_json::to_value(document).and_then(|mut document| {
        contract::complete(&mut document, options);
        serde_json::to_string_pretty(&document)
    });
    text.unwrap_or_else(|error| {
        tracing::error!(%error, "the OpenAPI document cannot be written");
        "{}".to_owned()
    })
}
