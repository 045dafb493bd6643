//! Streamable HTTP through the operator's client: the SDK speaks the protocol, every byte goes through our door.
//!
//! Redirects are not followed, bodies and events have bounds, and the address and its credentials are the operator's;
//! nothing that a server or a model says changes where a request goes.

use std::{collections::HashMap, sync::Arc};

use ::http::{HeaderName, HeaderValue};
use futures_util::stream::{self, BoxStream};
use rmcp::{
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::{
        common::http_header::{
            EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
        },
        streamable_http_client::{
            AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpError,
            StreamableHttpPostResponse, StreamableHttpResponseLimits,
        },
    },
};
use sse_stream::Sse;
use tidegate_core::secret::Secret;
use tidegate_io::http::{OperatorClient, Request, Response};

use super::{Fault, events::Events};
use crate::{oauth::Session, text};

/// How much of an error page is shown, in bytes and in characters.
const PAGE_BYTES_MAX: usize = 2048;
const PAGE_CHARS_MAX: usize = 200;
/// Both media types, as the protocol wants them accepted.
const ACCEPT: &str = "application/json, text/event-stream";

type Failure = StreamableHttpError<Fault>;

/// The way to one server: our client with its headers.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    client: OperatorClient,
    headers: Arc<[(String, Secret)]>,
    bearer: Bearer,
    bytes_max: usize,
}

/// What lets us in.
#[derive(Debug, Clone)]
pub(crate) enum Bearer {
    /// Nothing.
    None,
    /// A token of the operator's.
    Fixed(Secret),
    /// What a login has yielded, renewed when it is due.
    Login(Arc<Session>),
}

impl Door {
    pub(crate) fn new(
        client: OperatorClient,
        headers: &[(String, Secret)],
        bearer: Bearer,
        bytes_max: usize,
    ) -> Self {
        Self {
            client,
            headers: headers.into(),
            bearer,
            bytes_max,
        }
    }

    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub(crate) async fn get(&self, url: &str) -> Result<Request, Fault> {
        self.dressed(self.client.get(url)).await
    }

    pub(crate) async fn post(&self, url: &str) -> Result<Request, Fault> {
        self.dressed(self.client.post(url)).await
    }

    async fn dressed(&self, mut request: Request) -> Result<Request, Fault> {
        for (name, value) in self.headers.iter() {
            request = request.secret_header(name, value);
        }
        Ok(match &self.bearer {
            Bearer::None => request,
            Bearer::Fixed(token) => request.bearer(token),
            Bearer::Login(session) => request.bearer(&session.token().await?),
        })
    }
}

/// The fault of an answer that is no success, and the page that came with it.
pub(crate) async fn refusal(response: Response) -> Fault {
    let status = response.status();
    if (300..400).contains(&status) {
        return Fault::Redirect;
    }
    let page = match response.read_prefix(PAGE_BYTES_MAX).await {
        Ok((page, _)) => text::line(&String::from_utf8_lossy(&page), PAGE_CHARS_MAX),
        Err(_broken) => String::new(),
    };
    Fault::Status { status, text: page }
}

fn with(mut request: Request, session: Option<&str>, headers: &HashMap<HeaderName, HeaderValue>) -> Request {
    if let Some(session) = session {
        request = request.header(HEADER_SESSION_ID, session);
    }
    for (name, value) in headers {
        if let Ok(value) = value.to_str() {
            request = request.header(name.as_str(), value);
        }
    }
    request
}

/// A login that is missing is told apart, as a refusal by the server is.
fn login(fault: Fault) -> Failure {
    if fault == Fault::Login {
        Failure::AuthRequired(AuthRequiredError::new("Bearer".to_owned()))
    } else {
        Failure::Client(fault)
    }
}

fn client(error: tidegate_io::http::Error) -> Failure {
    Failure::Client(error.into())
}

fn is_type(response: &Response, wanted: &str) -> bool {
    let value = response.header("content-type").unwrap_or_default();
    value
        .split(';')
        .next()
        .is_some_and(|essence| essence.trim().eq_ignore_ascii_case(wanted))
}

/// 401 with a challenge is told apart: somebody has to log in.
fn challenge(response: &Response) -> Option<Failure> {
    (response.status() == 401).then(|| {
        let header = response.header("www-authenticate").unwrap_or("Bearer").to_owned();
        Failure::AuthRequired(AuthRequiredError::new(header))
    })
}

/// The events of a body, each bounded.
fn events(response: Response, bytes_max: usize) -> BoxStream<'static, Result<Sse, SseError>> {
    let start = Some((response, Events::new(bytes_max)));
    Box::pin(stream::unfold(start, |state| async move {
        let (mut response, mut events) = state?;
        loop {
            if let Some(event) = events.next() {
                return Some((Ok(event), Some((response, events))));
            }
            let problem: Box<dyn std::error::Error + Send + Sync> = match response.chunk().await {
                Ok(Some(piece)) => match events.push(&piece) {
                    Ok(()) => continue,
                    Err(too_long) => Box::new(too_long),
                },
                Ok(None) => return None,
                Err(error) => Box::new(error),
            };
            return Some((Err(SseError::Body(problem)), None));
        }
    }))
}

impl StreamableHttpClient for Door {
    type Error = Fault;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let body = serde_json::to_vec(&message)?;
        let request = self
            .post(&uri)
            .await
            .map_err(login)?
            .header("accept", ACCEPT)
            .json(body);
        let had_session = session_id.is_some();
        let response = with(request, session_id.as_deref(), &custom_headers)
            .send()
            .await
            .map_err(client)?;
        if let Some(failure) = challenge(&response) {
            return Err(failure);
        }
        match response.status() {
            202 | 204 => return Ok(StreamableHttpPostResponse::Accepted),
            404 if had_session => return Err(Failure::SessionExpired),
            _ => {}
        }
        let session = response.header(HEADER_SESSION_ID).map(str::to_owned);
        let wants_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        if !response.is_success() {
            if !is_type(&response, JSON_MIME_TYPE) {
                return Err(Failure::Client(refusal(response).await));
            }
            let status = response.status();
            let page = response.read_bounded(self.bytes_max).await.map_err(client)?;
            return match serde_json::from_slice(&page) {
                Ok(error @ ServerJsonRpcMessage::Error(_)) => {
                    Ok(StreamableHttpPostResponse::Json(error, session))
                }
                Ok(_) | Err(_) => Err(Failure::Client(Fault::Status {
                    status,
                    text: text::line(&String::from_utf8_lossy(&page), PAGE_CHARS_MAX),
                })),
            };
        }
        if is_type(&response, EVENT_STREAM_MIME_TYPE) {
            let events = events(response, self.bytes_max);
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        if !wants_answer {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !is_type(&response, JSON_MIME_TYPE) {
            let kind = response
                .header("content-type")
                .map(|kind| text::line(kind, PAGE_CHARS_MAX));
            return Err(Failure::UnexpectedContentType(kind));
        }
        let body = response.read_bounded(self.bytes_max).await.map_err(client)?;
        let message = parsed(body).await?;
        Ok(StreamableHttpPostResponse::Json(message, session))
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        _limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        // The bound is the door's own, for whichever way it is called.
        self.post_message(uri, message, session_id, auth_header, custom_headers)
            .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let request = self.dressed(self.client.delete(&uri)).await.map_err(login)?;
        let response = with(request, Some(&session_id), &custom_headers)
            .send()
            .await
            .map_err(client)?;
        match response.status() {
            405 => Ok(()),
            _ if response.is_success() => Ok(()),
            _ => Err(Failure::Client(refusal(response).await)),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let mut request = self.get(&uri).await.map_err(login)?.header("accept", ACCEPT);
        if let Some(id) = &last_event_id {
            request = request.header(HEADER_LAST_EVENT_ID, id);
        }
        let response = with(request, session_id.as_deref(), &custom_headers)
            .send()
            .await
            .map_err(client)?;
        if let Some(failure) = challenge(&response) {
            return Err(failure);
        }
        match response.status() {
            // What servers without a stream of their own say, each in its way; calls need none.
            400 | 404 | 405 | 501 => Err(Failure::ServerDoesNotSupportSse),
            _ if !response.is_success() => Err(Failure::Client(refusal(response).await)),
            _ if !is_type(&response, EVENT_STREAM_MIME_TYPE) => {
                let kind = response
                    .header("content-type")
                    .map(|kind| text::line(kind, PAGE_CHARS_MAX));
                Err(Failure::UnexpectedContentType(kind))
            }
            _ => Ok(events(response, self.bytes_max)),
        }
    }
}

/// Messages longer than this, in bytes, are read on a thread of their own.
const LONG_BYTES: usize = 128 << 10;

async fn parsed(body: bytes::Bytes) -> Result<ServerJsonRpcMessage, Failure> {
    if body.len() <= LONG_BYTES {
        return Ok(serde_json::from_slice(&body)?);
    }
    Ok(tokio::task::spawn_blocking(move || serde_json::from_slice(&body)).await??)
}
