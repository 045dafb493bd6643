//! The OpenAPI document. Paths and shapes come from the handlers and the wire types; the table of routes is
//! [`super::routes_of_the_api`].

use utoipa::{
    Modify, OpenApi,
    openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
};

use super::{
    error::{Envelope, EnvelopeBody},
    routes::models,
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
    modifiers(&Keys),
    security(("key" = [])),
    paths(models::show),
    components(schemas(
        ChatCompletionChunk, Envelope, EnvelopeBody, Function, StreamOptions, Tool, WireCall, WireFunctionCall,
        WireMessage
    ))
)]
pub(super) struct Document;

struct Keys;

impl Modify for Keys {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("tg_…")
            .build();
        document
            .components
            .get_or_insert_with(utoipa::openapi::Components::new)
            .add_security_scheme("key", SecurityScheme::Http(bearer));
    }
}

/// The document as JSON text.
pub fn document() -> String {
    let (_, document) = super::routes_of_the_api().split_for_parts();
    document.to_pretty_json().unwrap_or_else(|error| {
        tracing::error!(%error, "the OpenAPI document cannot be written");
        "{}".to_owned()
    })
}
