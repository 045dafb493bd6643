//! HTTP to addresses that the operator chose: model providers and configured services. What a model can steer
//! goes through [`crate::guarded`].
//!
//! Such an address may be a loopback one, so there is no address check here. That makes the type matter: an
//! [`OperatorClient`] must never be given an address, or a host, that a model chose.
//!
//! Redirects are not followed (a redirect would carry the credentials elsewhere), the system's proxy settings
//! are not read, and a body is only ever read up to a bound the caller names. The client sets no time limit
//! beyond the one for connecting: how long an answer may take is known to the caller alone.

mod plain;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use reqwest::{
    Method,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue},
};
use tidegate_core::secret::Secret;

/// The default of [`Options::connect_timeout_ms`].
pub const CONNECT_TIMEOUT_MS: u64 = 10_000;
/// How long an unused connection is kept, in milliseconds. Shorter than the minute after which common
/// servers and proxies close theirs, so that a request rarely meets a connection that is about to go.
pub const POOL_IDLE_MS: u64 = 50_000;
/// How many unused connections are kept for one host.
pub const POOL_IDLE_PER_HOST_MAX: usize = 32;
/// How many response headers are read at most.
pub const HEADERS_MAX: usize = 100;
/// How we call ourselves.
const AGENT: &str = concat!("tidegate/", env!("CARGO_PKG_VERSION"));

/// Why a request failed. No variant holds a URL's query, a header or a body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The client could not be built.
    #[error("the HTTP client cannot start: {0} (are CA certificates installed?)")]
    Build(String),
    /// The URL, a header or the method cannot be sent.
    #[error("the request cannot be sent: {0}")]
    Request(String),
    /// No connection came about.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The connection came about too slowly.
    #[error("connecting took too long")]
    ConnectTimeout,
    /// The connection broke, or the peer spoke no HTTP.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The body is longer than the caller allows.
    #[error("the answer is longer than {bytes_max} bytes")]
    TooLarge {
        /// The bound.
        bytes_max: usize,
    },
}

/// How to build a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How long connecting may take, name lookup and TLS included.
    pub connect_timeout_ms: u64,
    /// A proxy for every request (`http://host:port`); none by default, and the environment is not asked.
    pub proxy: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect_timeout_ms: CONNECT_TIMEOUT_MS,
            proxy: None,
        }
    }
}

/// Makes ring the TLS provider of this process, unless one is set already. `main` calls it first; every
/// client calls it again, so that a test needs no set-up.
pub fn install_crypto() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have been faster; then the provider is set, which is all that is wanted.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
}

/// A client for addresses the operator chose. Clones share their connections.
#[derive(Debug, Clone)]
pub struct OperatorClient {
    client: reqwest::Client,
    /// For `http://`; `None` where a proxy stands between.
    plain: Option<Arc<plain::Pool>>,
}

impl OperatorClient {
    /// Builds a client.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that builds an operator's client"
    )]
    pub fn new(options: &Options) -> Result<Self, Error> {
        install_crypto();
        let mut builder = reqwest::Client::builder()
            .user_agent(AGENT)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .retry(reqwest::retry::never())
            .tcp_nodelay(true)
            .http1_max_headers(HEADERS_MAX)
            .connect_timeout(Duration::from_millis(options.connect_timeout_ms))
            .pool_idle_timeout(Duration::from_millis(POOL_IDLE_MS))
            .pool_max_idle_per_host(POOL_IDLE_PER_HOST_MAX);
        builder = match &options.proxy {
            None => builder.no_proxy(),
            Some(proxy) => builder.proxy(reqwest::Proxy::all(proxy).map_err(|error| build_error(&error))?),
        };
        let client = builder.build().map_err(|error| build_error(&error))?;
        let plain = options
            .proxy
            .is_none()
            .then(|| Arc::new(plain::Pool::new(options)));
        Ok(Self { client, plain })
    }

    /// Begins a GET.
    pub fn get(&self, url: &str) -> Request {
        self.request(Method::GET, url)
    }

    /// Begins a POST.
    pub fn post(&self, url: &str) -> Request {
        self.request(Method::POST, url)
    }

    /// Begins a DELETE.
    pub fn delete(&self, url: &str) -> Request {
        self.request(Method::DELETE, url)
    }

    fn request(&self, method: Method, url: &str) -> Request {
        let plain = self.plain.as_ref();
        let plain = plain.and_then(|pool| plain::Request::new(pool, method.clone(), url));
        Request {
            inner: match plain {
                Some(request) => Inner::Plain(request),
                None => Inner::Any(self.client.request(method, url)),
            },
            fault: None,
        }
    }
}

/// A request being put together. What is wrong with it is said by [`Request::send`].
#[derive(Debug)]
#[must_use]
pub struct Request {
    inner: Inner,
    fault: Option<Error>,
}

/// By which client it goes.
#[derive(Debug)]
enum Inner {
    Plain(plain::Request),
    /// Also what is no address at all; that client says so.
    Any(reqwest::RequestBuilder),
}

impl Request {
    /// Adds a header.
    pub fn header(self, name: &str, value: &str) -> Self {
        self.add(name, value, false)
    }

    /// Adds a header whose value is never shown in logs.
    pub fn secret_header(self, name: &str, value: &Secret) -> Self {
        self.add(name, value.expose(), true)
    }

    /// Adds `authorization: Bearer …`.
    pub fn bearer(self, token: &Secret) -> Self {
        self.add(
            AUTHORIZATION.as_str(),
            &format!("Bearer {}", token.expose()),
            true,
        )
    }

    /// Sets a body and its media type.
    pub fn body(self, content_type: &str, body: impl Into<Bytes>) -> Self {
        let mut request = self.add(CONTENT_TYPE.as_str(), content_type, false);
        request.inner = match request.inner {
            Inner::Plain(mut plain) => {
                plain.body(body.into());
                Inner::Plain(plain)
            }
            Inner::Any(builder) => Inner::Any(builder.body(body.into())),
        };
        request
    }

    /// Sets a body that is JSON text already.
    pub fn json(self, body: impl Into<Bytes>) -> Self {
        self.body("application/json", body)
    }

    fn add(mut self, name: &str, value: &str, sensitive: bool) -> Self {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(sensitive);
                self.inner = match self.inner {
                    Inner::Plain(mut plain) => {
                        plain.header(name, value);
                        Inner::Plain(plain)
                    }
                    Inner::Any(builder) => Inner::Any(builder.header(name, value)),
                };
            }
            _ => {
                // A wrong name may itself be a secret pasted into the wrong field, so it is not repeated.
                self.fault = Some(Error::Request(
                    "a header holds characters that HTTP does not allow".to_owned(),
                ));
            }
        }
        self
    }

    /// Sends it and waits for the status line and headers. No time limit but that for connecting: wrap it.
    /// Dropping the future, or later the response, ends the exchange at the peer.
    pub async fn send(self) -> Result<Response, Error> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        Ok(match self.inner {
            Inner::Plain(plain) => Response(Answer::Plain(plain.send().await?)),
            Inner::Any(builder) => Response(Answer::Any(builder.send().await.map_err(classify)?)),
        })
    }
}

/// An answer whose body has not been read yet.
#[derive(Debug)]
pub struct Response(Answer);

/// By which client it came.
#[derive(Debug)]
enum Answer {
    Plain(plain::Response),
    Any(reqwest::Response),
}

impl Response {
    /// The status.
    pub fn status(&self) -> u16 {
        match &self.0 {
            Answer::Plain(response) => response.status,
            Answer::Any(response) => response.status().as_u16(),
        }
    }

    /// Whether the status is 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status())
    }

    /// A header's first value, where it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let headers = match &self.0 {
            Answer::Plain(response) => &response.headers,
            Answer::Any(response) => response.headers(),
        };
        headers.get(name)?.to_str().ok()
    }

    /// The next piece of the body; `None` at its end. Cancel safe.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        match &mut self.0 {
            Answer::Plain(response) => response.chunk().await,
            Answer::Any(response) => response.chunk().await.map_err(classify),
        }
    }

    /// The whole body.
    pub async fn read_bounded(mut self, bytes_max: usize) -> Result<Bytes, Error> {
        match self.read(bytes_max).await? {
            (_, true) => Err(Error::TooLarge { bytes_max }),
            (body, false) => Ok(body),
        }
    }

    /// The body up to `bytes_max`, and whether more was left unread.
    pub async fn read_prefix(mut self, bytes_max: usize) -> Result<(Bytes, bool), Error> {
        self.read(bytes_max).await
    }

    async fn read(&mut self, bytes_max: usize) -> Result<(Bytes, bool), Error> {
        let mut body = BytesMut::new();
        while let Some(piece) = self.chunk().await? {
            let room = bytes_max - body.len();
            if piece.len() > room {
                body.extend_from_slice(piece.get(..room).unwrap_or_default());
                return Ok((body.freeze(), true));
            }
            body.extend_from_slice(&piece);
        }
        Ok((body.freeze(), false))
    }
}

fn build_error(error: &reqwest::Error) -> Error {
    Error::Build(root_cause(error))
}

fn classify(error: reqwest::Error) -> Error {
    let error = error.without_url();
    let cause = root_cause(&error);
    if error.is_connect() && error.is_timeout() {
        Error::ConnectTimeout
    } else if error.is_connect() {
        Error::Connect(cause)
    } else if error.is_builder() {
        Error::Request(cause)
    } else {
        Error::Broken(cause)
    }
}

/// The innermost message: the outer ones say "error sending request" and no more.
pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
