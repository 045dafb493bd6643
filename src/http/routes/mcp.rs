//! `/mcp`: the Model Context Protocol over streamable HTTP, inside every layer of the API.
//!
//! The newer generation of the protocol has no sessions: each request stands for itself. The older one opens a
//! session, which belongs to the key and the user who opened it; for everybody else it does not exist.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Extension,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, request::Parts},
    response::{IntoResponse as _, Response},
};
use futures_util::StreamExt as _;
use http_body_util::Full;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use serde::Deserialize;
use tidegate_core::id::{KeyId, UserId};
use tidegate_engine::Lease;
use tokio_util::sync::CancellationToken;

use crate::{
    http::{
        AppState,
        auth::Identity,
        body::{self, budget::Share},
        error::ApiError,
    },
    mcp::{Asker, Handler, Server},
};

/// The header that names a session.
const SESSION: &str = "mcp-session-id";
/// One key has at most this part of all sessions.
const KEY_PARTS: usize = 4;
/// How long after the last answers had to end their streams are closed.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Whose a session is.
type Owner = (KeyId, UserId);

/// The protocol's service, and whose its sessions are.
pub(in crate::http) struct Mcp {
    service: StreamableHttpService<Handler, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    owners: Mutex<HashMap<String, Owner>>,
    sessions_max: usize,
    shutdown: CancellationToken,
    grace: Duration,
}

impl fmt::Debug for Mcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mcp")
    }
}

impl Mcp {
    /// The service for that server. Host and Origin have been looked at, and bodies are read, before it is asked.
    pub(in crate::http) fn new(server: &Server, body_bytes_max: usize, keepalive: Duration) -> Self {
        let options = server.options();
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(Duration::from_secs(options.session_idle_s.max(1)));
        let sessions = Arc::new(manager);
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(body_bytes_max)
            .with_sse_keep_alive(Some(keepalive));
        let handler = Handler::behind_layers(server.clone());
        Self {
            service: StreamableHttpService::new(move || Ok(handler.clone()), Arc::clone(&sessions), config),
            sessions,
            owners: Mutex::default(),
            sessions_max: options.sessions_max,
            shutdown: server.shutdown.clone(),
            grace: server.grace,
        }
    }

    /// Whether the session that a request names is its caller's own. One that names none is about no session.
    fn is_own(&self, headers: &HeaderMap, owner: &Owner) -> bool {
        let mut named = headers.get_all(SESSION).iter();
        let Some(first) = named.next() else {
            return true;
        };
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let is_own = first.to_str().is_ok_and(|id| owners.get(id) == Some(owner));
        is_own && named.next().is_none()
    }

    /// Whether the caller may open one more session. Forgets those that are over.
    async fn has_room(&self, owner: &Owner) -> bool {
        let open = self.sessions.sessions.read().await;
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|id, _| open.contains_key(id.as_str()));
        let own = owners.values().filter(|(key, _)| *key == owner.0).count();
        owners.len() < self.sessions_max && own < (self.sessions_max / KEY_PARTS).max(1)
    }

    /// Notes whose a session is that has just been opened.
    fn note(&self, headers: &HeaderMap, owner: Owner) {
        let Some(id) = headers.get(SESSION).and_then(|id| id.to_str().ok()) else {
            return;
        };
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.insert(id.to_owned(), owner);
    }

    /// An answer's body, which ends when the daemon can wait no longer. A stream on which nothing is owed ends at
    /// once.
    fn bounded(&self, body: Body, grace: Duration) -> Body {
        let shutdown = self.shutdown.clone();
        let stop = Box::pin(async move {
            shutdown.cancelled().await;
            tokio::time::sleep(grace).await;
        });
        Body::from_stream(body.into_data_stream().take_until(stop))
    }
}

/// What is looked at of a message before the SDK reads it.
#[derive(Deserialize)]
struct Opening<'m> {
    #[serde(borrow)]
    method: std::borrow::Cow<'m, str>,
}

fn opens_session(body: &Bytes) -> bool {
    serde_json::from_slice::<Opening<'_>>(body).is_ok_and(|message| message.method == "initialize")
}

/// One request of the protocol.
pub(in crate::http) async fn serve(
    State(app): State<AppState>,
    identity: Identity,
    share: Option<Extension<Arc<Share>>>,
    request: Request,
) -> Result<Response, ApiError> {
    let Some(mcp) = &app.mcp else {
        return Err(ApiError::unknown_url(
            request.method().as_str(),
            request.uri().path(),
        ));
    };
    let owner = (identity.caller.key_id.clone(), identity.caller.user.clone());
    if !mcp.is_own(request.headers(), &owner) {
        return Err(ApiError::not_found("session"));
    }
    let (mut head, body) = request.into_parts();
    let share = share.map(|Extension(share)| share);
    let bytes = body::read(&head.headers, body, &app.parts.options, share.as_ref()).await?;
    let may_open = !head.headers.contains_key(SESSION) && opens_session(&bytes);
    if may_open && !mcp.has_room(&owner).await {
        return Err(ApiError::overloaded());
    }
    head.extensions.insert(asker(&identity, share));
    let grace = if head.method == Method::GET {
        Duration::ZERO
    } else {
        mcp.grace + LAST_WORDS
    };
    let is_end = head.method == Method::DELETE;
    let mut response = mcp.service.handle(message(head, bytes)).await;
    if is_end && response.status() == StatusCode::ACCEPTED {
        // Not every client takes it for a success.
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    if may_open {
        mcp.note(response.headers(), owner);
    }
    Ok(response
        .map(|body| mcp.bounded(Body::new(body), grace))
        .into_response())
}

/// The request as the SDK takes it.
fn message(head: Parts, bytes: Bytes) -> Request<Full<Bytes>> {
    Request::from_parts(head, Full::new(bytes))
}

fn asker(identity: &Identity, share: Option<Arc<Share>>) -> Asker {
    Asker {
        caller: identity.caller.clone(),
        on_disconnect: identity.on_disconnect,
        mode: identity.mode,
        conversation: identity.conversation.clone(),
        lease: share.map_or_else(Lease::default, |share| Lease::of(share)),
    }
}
