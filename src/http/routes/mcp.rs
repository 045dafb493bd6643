//! `/mcp`: the Model Context Protocol over streamable HTTP, inside every layer of the API.
//!
//! The newer generation of the protocol has no sessions: each request stands for itself. The older one opens a
//! session, which belongs to the key and the user who opened it; for everybody else it does not exist.

mod sessions;

use std::{fmt, sync::Arc, time::Duration};

use axum::{
    Extension, Json,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header, request::Parts},
    response::{IntoResponse as _, Response},
};
use futures_util::StreamExt as _;
use http_body_util::{Full, combinators::BoxBody};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, ErrorCode, JsonRpcMessage},
    transport::streamable_http_server::{
        SessionManager as _, StreamableHttpServerConfig, StreamableHttpService,
        session::local::LocalSessionManager,
    },
};
use serde_json::json;
use sessions::{Connected, Owner, Sessions};
use tidegate_engine::Lease;
use tokio::time;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

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
/// How long after the last answers had to end their streams are closed.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long a session may take to take a message; one that nobody reads the answers of takes none.
const TAKEN_WITHIN: Duration = Duration::from_secs(30);

/// What the SDK answers with.
type Answer = axum::http::Response<BoxBody<Bytes, std::convert::Infallible>>;

/// The protocol's service, and whose its sessions are.
pub(in crate::http) struct Mcp {
    service: StreamableHttpService<Handler, LocalSessionManager>,
    manager: Arc<LocalSessionManager>,
    sessions: Arc<Sessions>,
    tracker: TaskTracker,
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
        let manager = Arc::new(manager);
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(body_bytes_max)
            .with_sse_keep_alive(Some(keepalive));
        let handler = Handler::behind_layers(server.clone());
        Self {
            service: StreamableHttpService::new(move || Ok(handler.clone()), Arc::clone(&manager), config),
            manager,
            sessions: Sessions::new(options.sessions_max),
            tracker: server.tracker.clone(),
            shutdown: server.shutdown.clone(),
            grace: server.grace,
        }
    }

    /// A message of the newer generation: whoever leaves cancels it.
    async fn pass(&self, message: axum::http::Request<Full<Bytes>>) -> Answer {
        self.service.handle(message).await
    }

    /// A message of a session, passed on whole even where its client leaves meanwhile: the SDK keeps what it has begun
    /// for a client that it does not know to be gone.
    async fn pass_whole(&self, message: axum::http::Request<Full<Bytes>>) -> Result<Answer, ApiError> {
        let service = self.service.clone();
        self.whole(async move { time::timeout(TAKEN_WITHIN, service.handle(message)).await.ok() })
            .await
    }

    /// A message that opens a session, in which its opener's name stands before anybody can use it.
    async fn open(
        &self,
        message: axum::http::Request<Full<Bytes>>,
        owner: &Owner,
    ) -> Result<Answer, ApiError> {
        let (seat, leaves) = {
            let open = self.manager.sessions.read().await;
            let seat = self.sessions.seat(owner, |id| open.contains_key(id));
            seat.ok_or_else(ApiError::overloaded)?
        };
        let (service, manager) = (self.service.clone(), Arc::clone(&self.manager));
        let opened = async move {
            if let Some(id) = leaves {
                // Without an answer it is forgotten all the same.
                drop(manager.close_session(&id.into()).await);
            }
            let answer = service.handle(message).await;
            if let Some(id) = answer.headers().get(SESSION).and_then(|id| id.to_str().ok()) {
                seat.take(id);
            }
            answer
        };
        self.whole(async move { time::timeout(TAKEN_WITHIN, opened).await.ok() })
            .await
    }

    /// Does it in a task of its own, which shutdown waits for.
    async fn whole(
        &self,
        work: impl Future<Output = Option<Answer>> + Send + 'static,
    ) -> Result<Answer, ApiError> {
        let done = self.tracker.spawn(work).await;
        done.ok().flatten().ok_or_else(ApiError::overloaded)
    }

    /// An answer's body, which ends when the daemon can wait no longer. A stream on which nothing is owed ends at
    /// once.
    fn bounded(&self, body: Body, grace: Duration, connected: Option<Connected>) -> Body {
        let shutdown = self.shutdown.clone();
        let stop = Box::pin(async move {
            shutdown.cancelled().await;
            time::sleep(grace).await;
            drop(connected);
        });
        Body::from_stream(body.into_data_stream().take_until(stop))
    }
}

/// The session that a request names. `Err`: it names several, or none that could be.
fn named(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut named = headers.get_all(SESSION).iter();
    let first = named.next().map(|id| id.to_str());
    match (first, named.next()) {
        (None, _) => Ok(None),
        (Some(Ok(id)), None) => Ok(Some(id)),
        (Some(_), _) => Err(ApiError::not_found("session")),
    }
}

/// Whether the message opens a session, read as the SDK reads it.
fn opens_session(body: &Bytes) -> bool {
    match serde_json::from_slice(body) {
        Ok(ClientJsonRpcMessage::Request(message)) => {
            matches!(message.request, ClientRequest::InitializeRequest(_))
        }
        Ok(JsonRpcMessage::Response(_) | JsonRpcMessage::Notification(_) | JsonRpcMessage::Error(_))
        | Err(_) => false,
    }
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
    let connected = match named(request.headers())? {
        Some(id) => Some(
            mcp.sessions
                .enter(id, &owner)
                .ok_or_else(|| ApiError::not_found("session"))?,
        ),
        None => None,
    };
    let (mut head, body) = request.into_parts();
    let share = share.map(|Extension(share)| share);
    let bytes = body::read(&head.headers, body, &app.parts.options, share.as_ref()).await?;
    head.extensions.insert(asker(&identity, share));
    let method = head.method.clone();
    let grace = if method == Method::GET {
        Duration::ZERO
    } else {
        mcp.grace + LAST_WORDS
    };
    let is_json = is_json(&head.headers);
    let opens = connected.is_none() && opens_session(&bytes);
    let message = message(head, bytes);
    let mut answer = if opens {
        mcp.open(message, &owner).await?
    } else if connected.is_some() {
        mcp.pass_whole(message).await?
    } else {
        mcp.pass(message).await
    };
    if answer.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && is_json {
        return Ok(no_message());
    }
    if method == Method::DELETE && answer.status() == StatusCode::ACCEPTED {
        // Not every client takes it for a success.
        *answer.status_mut() = StatusCode::NO_CONTENT;
    }
    Ok(answer
        .map(|body| mcp.bounded(Body::new(body), grace, connected))
        .into_response())
}

/// Whether the body says that it is JSON.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let essence = kind.and_then(|kind| kind.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

/// The answer to JSON, or what should be, that is no message. The SDK blames the body's type.
fn no_message() -> Response {
    let error = json!({
        "jsonrpc": "2.0",
        "id": null,
        "error": {
            "code": ErrorCode::INVALID_REQUEST.0,
            "message": "the body is no message of the protocol: one JSON-RPC 2.0 object, and no batch",
        },
    });
    (StatusCode::BAD_REQUEST, Json(error)).into_response()
}

/// The request as the SDK takes it.
fn message(head: Parts, bytes: Bytes) -> axum::http::Request<Full<Bytes>> {
    axum::http::Request::from_parts(head, Full::new(bytes))
}

fn asker(identity: &Identity, share: Option<Arc<Share>>) -> Asker {
    Asker {
        caller: identity.caller.clone(),
        on_disconnect: identity.on_disconnect,
        mode: identity.mode,
        conversation: identity.conversation.clone(),
        lease: share.map_or_else(Lease::default, |share| Lease::of(share)),
        door: None,
    }
}
