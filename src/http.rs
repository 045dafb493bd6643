//! The OpenAI-compatible API. In reading order: the route table and the layer stack (here), who may come in
//! (`browser`, `auth`, `limits`), what they say (`extract`, `wire`), and what they hear (`sse`,
//! `fold`, `error`).

mod auth;
mod body;
mod browser;
mod documents;
mod error;
mod extract;
mod fold;
mod limits;
mod openapi;
mod options;
mod paths;
mod readiness;
mod refused;
mod routes;
pub mod serve;
mod source;
mod sse;
mod stamp;
mod wire;

use std::{path::PathBuf, sync::Arc};

use axum::{
    Router,
    extract::Request,
    middleware::from_fn_with_state,
    response::IntoResponse as _,
    routing::{get, put},
};
use tidegate_core::{
    clock::{Clock, Entropy},
    port::{ApprovalStore, AuditTrail, ChatModel, KeyStore, KnowledgeBase, Ledger, MemoryStore, RunStore},
};
use tidegate_engine::Engine;
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;
use tower::{ServiceBuilder, util::MapRequestLayer};
use tower_http::{
    catch_panic::CatchPanicLayer,
    sensitive_headers::SetSensitiveRequestHeadersLayer,
    trace::{DefaultOnResponse, TraceLayer},
};
use tracing::Level;
use utoipa::OpenApi as _;
use utoipa_axum::{router::OpenApiRouter, routes};

pub use auth::PUBLIC_ROUTES;
pub use documents::{DocumentDoor, NotStored, Stored, Uploader};
pub use openapi::document as openapi_document;
pub use options::Options;
pub use readiness::{ReadinessItem, ReadinessSource};

use crate::http::routes::{
    admin_keys, approvals, capabilities, chat_completions, docs, fallback, health, knowledge, memory, models,
    runs,
};

/// Everything the front end is plugged into.
#[derive(Debug)]
pub struct Parts {
    /// Runs turns.
    pub engine: Arc<Engine>,
    /// The keys.
    pub keys: Arc<dyn KeyStore>,
    /// Usage and quotas.
    pub ledger: Arc<dyn Ledger>,
    /// The journal of runs.
    pub runs: Arc<dyn RunStore>,
    /// Questions to a person.
    pub approvals: Arc<dyn ApprovalStore>,
    /// What is stored of people: who wants to be erased can be, also where memory is switched off.
    pub people: Arc<dyn MemoryStore>,
    /// Who answered them.
    pub audit: Arc<dyn AuditTrail>,
    /// How long an approval can be spent, in seconds.
    pub approval_s: u64,
    /// The documents; absent where they are switched off.
    pub knowledge: Option<Arc<dyn KnowledgeBase>>,
    /// The folder of the documents.
    pub knowledge_bank: PathBuf,
    /// The operator's way into that folder.
    pub documents: Arc<dyn DocumentDoor>,
    /// The models, for the list of models.
    pub models: Arc<dyn ChatModel>,
    /// What is missing.
    pub readiness: Arc<dyn ReadinessSource>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub entropy: Arc<dyn Entropy>,
    /// Bounds and names.
    pub options: Options,
    /// Cancelled when the daemon begins to stop: new requests get 503, streams end after their grace time.
    pub shutdown: CancellationToken,
}

/// What handlers and layers share.
#[derive(Debug, Clone)]
struct AppState(Arc<App>);

#[derive(Debug)]
struct App {
    parts: Parts,
    limits: limits::RequestLimits,
    /// The memory of bodies.
    bodies: Arc<body::budget::Budget>,
    /// Requests under way.
    requests: Arc<Semaphore>,
    /// Changes of keys go one after the other.
    admin: Mutex<()>,
    /// The OpenAPI document.
    document: String,
    /// The same as a page.
    page: String,
}

impl std::ops::Deref for AppState {
    type Target = App;

    fn deref(&self) -> &App {
        &self.0
    }
}

/// The route table. A route is here or it does not exist; the document follows from it.
fn routes_of_the_api() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(openapi::Document::openapi())
        .routes(routes!(health::health))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(chat_completions::create))
        .routes(routes!(capabilities::show))
        .routes(routes!(models::list))
        // The id may hold slashes, which the document has no form for.
        .route("/v1/models/{*model}", get(models::show))
        .routes(routes!(runs::show))
        .routes(routes!(approvals::list))
        .routes(routes!(approvals::show))
        .routes(routes!(approvals::decide))
        .routes(routes!(admin_keys::create, admin_keys::list))
        .routes(routes!(
            admin_keys::show,
            admin_keys::update,
            admin_keys::update_by_post,
            admin_keys::delete
        ))
        .routes(routes!(admin_keys::disable))
        .routes(routes!(admin_keys::enable))
        .routes(routes!(admin_keys::rotate))
        .routes(routes!(admin_keys::usage))
        .routes(routes!(knowledge::status))
        .routes(routes!(knowledge::index))
        .routes(routes!(knowledge::documents))
        .routes(routes!(knowledge::search))
        .routes(routes!(knowledge::explain))
        // A path may hold slashes, too.
        .route(
            "/v1/admin/kb/documents/{*path}",
            put(knowledge::put).delete(knowledge::remove),
        )
        .routes(routes!(memory::list, memory::erase))
        .routes(routes!(memory::add))
        .routes(routes!(
            memory::show,
            memory::change,
            memory::change_by_post,
            memory::forget
        ))
        .routes(routes!(memory::export))
        .routes(routes!(memory::import))
        .routes(routes!(memory::search))
        .routes(routes!(memory::settings, memory::turn))
        .routes(routes!(memory::people))
        .routes(routes!(memory::key_settings, memory::turn_key))
        .routes(routes!(docs::document))
        .routes(routes!(docs::page))
}

/// The API as a service: the route table inside the layer stack.
pub fn router(parts: Parts) -> Router {
    let routes = routes_of_the_api().split_for_parts().0;
    let document = openapi::describe(&parts.options);
    let app = AppState(Arc::new(App {
        limits: limits::RequestLimits::new(),
        bodies: body::budget::Budget::new(&parts.options),
        requests: Arc::new(Semaphore::new(
            parts.options.requests_max.min(Semaphore::MAX_PERMITS),
        )),
        admin: Mutex::new(()),
        page: docs::render(&document),
        document,
        parts,
    }));
    let routes = routes
        .fallback(fallback::unknown_url)
        .method_not_allowed_fallback(fallback::wrong_method);
    // Outermost first. Everything above is inside; a route added below this line would be open to anyone.
    let layers = ServiceBuilder::new()
        .layer(from_fn_with_state(app.clone(), stamp::stamp))
        .layer(SetSensitiveRequestHeadersLayer::new(browser::CREDENTIALS.clone()))
        .layer(
            TraceLayer::new_for_http()
                .make_span_with(stamp::span)
                .on_request(())
                .on_response(DefaultOnResponse::new().level(Level::INFO))
                .on_failure(()),
        )
        .layer(CatchPanicLayer::custom(answer_to_a_panic))
        .layer(from_fn_with_state(app.clone(), browser::check))
        .layer(from_fn_with_state(app.clone(), limits::shed))
        .layer(from_fn_with_state(app.clone(), auth::authenticate))
        .layer(from_fn_with_state(app.clone(), body::budget::weigh));
    let inner = routes.layer(layers).with_state(app);
    // The address takes its one form before a route is looked for.
    let normalised = ServiceBuilder::new()
        .layer(MapRequestLayer::new(|mut request: Request| {
            if let Some(uri) = paths::normalise(request.uri()) {
                *request.uri_mut() = uri;
            }
            request
        }))
        .service(inner);
    Router::new().fallback_service(normalised)
}

/// The panic's own words may hold a caller's text; they are on the console already.
fn answer_to_a_panic(_panic: Box<dyn std::any::Any + Send>) -> axum::response::Response {
    error::ApiError::internal("a handler panicked").into_response()
}

#[cfg(test)]
mod tests;
