//! HTTP to addresses that a model can steer: the only client such an address may be given to.
//!
//! A [`Destination`] comes from the address policy alone. Before each hop the request is searched for secrets,
//! the name is looked up once, every address of the answer is judged, and the connection goes to one of the
//! judged addresses: nothing is resolved again behind the check. Redirects are followed by hand, a few times,
//! each through the whole check; credentials stay with the origin they were given for. There is no proxy, no
//! connection pool and no cookie jar, so that no request can use what another one has opened. Each wait and
//! each size has a bound; a packed body is unpacked within the bound of the body.
//!
//! Look-ups and connections go through the [`Resolver`] and [`Connector`] ports, so that a test can put its own
//! world behind this very client.

mod body;
mod dial;
mod exchange;
mod redirect;
mod resolve;

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use bytes::Bytes;
use tidegate_gate::{
    Denial,
    guards::{
        address::{self, Destination, Fault, Reachable},
        outbound::{self, Outgoing, Own},
    },
};
use tokio::time::{Instant, timeout, timeout_at};

pub use self::{
    dial::{Connector, Peer, Stream, Tcp},
    resolve::{LOOKUPS_MAX, Resolver, System},
};

/// How often a redirect is followed.
pub const REDIRECTS_MAX: usize = 5;
/// How many addresses of one host are tried.
pub const ATTEMPTS_MAX: usize = 4;
/// The default of [`Request::bytes_max`].
pub const BODY_BYTES_MAX: usize = 2 << 20;

/// How long things may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// One name look-up.
    pub dns_timeout_ms: u64,
    /// One connection, TLS included.
    pub connect_timeout_ms: u64,
    /// From the request's last byte to the head of the answer.
    pub first_byte_timeout_ms: u64,
    /// The whole request with its redirects, unless the request itself says less.
    pub total_timeout_ms: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dns_timeout_ms: 5_000,
            connect_timeout_ms: 10_000,
            first_byte_timeout_ms: 30_000,
            total_timeout_ms: 60_000,
        }
    }
}

/// What a request must pass.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Which addresses may be reached.
    pub address: address::Policy,
    /// What may not leave.
    pub secrets: outbound::Secrets,
}

/// Why a request failed. No variant holds a URL's path or query, a header or a body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The client could not be built.
    #[error("the HTTP client cannot start: {0} (are CA certificates installed?)")]
    Build(String),
    /// The destination, one of its addresses or the target of a redirect is refused.
    #[error("{0}")]
    Refused(#[from] Fault),
    /// The request would send a secret away.
    #[error("{}", .0.reason)]
    Outbound(Denial),
    /// A header or the method cannot be sent.
    #[error("the request cannot be sent: {0}")]
    Request(&'static str),
    /// The name could not be looked up.
    #[error("the look-up of the name failed: {0}")]
    Lookup(String),
    /// No connection came about.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The connection broke, or the peer spoke no HTTP.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// A step took too long.
    #[error("{0} took too long")]
    Timeout(&'static str),
    /// A redirect that is not followed.
    #[error("the server redirects {0}")]
    Redirect(&'static str),
    /// The answer is packed in a way that is not unpacked, or cannot be.
    #[error("the answer cannot be unpacked")]
    Encoding,
    /// The answer is no text.
    #[error("the answer is not text ({content_type})")]
    ContentType {
        /// What it is, as the server says.
        content_type: String,
    },
}

impl Error {
    /// The refusal, where a rule and not the network is the reason.
    pub fn denial(&self) -> Option<Denial> {
        match self {
            Self::Refused(fault) => Some(fault.denial()),
            Self::Outbound(denial) => Some(denial.clone()),
            Self::Build(_)
            | Self::Request(_)
            | Self::Lookup(_)
            | Self::Connect(_)
            | Self::Broken(_)
            | Self::Timeout(_)
            | Self::Redirect(_)
            | Self::Encoding
            | Self::ContentType { .. } => None,
        }
    }
}

/// The client. Clones share everything.
#[derive(Debug, Clone)]
pub struct Client {
    options: Options,
    policy: Arc<RwLock<Arc<Policy>>>,
    resolver: Arc<dyn Resolver>,
    connector: Arc<dyn Connector>,
}

impl Client {
    /// A client over the system's resolver and real connections.
    pub fn new(options: Options, policy: Policy) -> Result<Self, Error> {
        let connector = Arc::new(Tcp::new()?);
        Ok(Self::with(options, policy, Arc::new(System::new()), connector))
    }

    /// A client over another world.
    pub fn with(
        options: Options,
        policy: Policy,
        resolver: Arc<dyn Resolver>,
        connector: Arc<dyn Connector>,
    ) -> Self {
        Self {
            options,
            policy: Arc::new(RwLock::new(Arc::new(policy))),
            resolver,
            connector,
        }
    }

    /// Puts another policy in force for this client and its clones. Requests under way keep theirs.
    pub fn set_policy(&self, policy: Policy) {
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    /// The policy in force.
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads and judges a URL that a model gave.
    pub fn check(&self, url: &str) -> Result<Destination, Fault> {
        self.policy().address.check(url)
    }

    /// Begins a GET.
    pub fn get(&self, destination: Destination) -> Request {
        self.request(Method::Get, destination)
    }

    /// Begins a POST.
    pub fn post(&self, destination: Destination) -> Request {
        self.request(Method::Post, destination)
    }

    /// Looks a destination up and judges every address, without connecting: for programs that dial themselves
    /// and must be given the addresses.
    pub async fn reach(&self, destination: Destination) -> Result<Reachable, Error> {
        self.reach_under(&self.policy(), destination).await
    }

    async fn reach_under(&self, policy: &Policy, destination: Destination) -> Result<Reachable, Error> {
        let answers = match destination.name() {
            None => Vec::new(),
            Some(name) => {
                let limit = Duration::from_millis(self.options.dns_timeout_ms);
                timeout(limit, self.resolver.resolve(name))
                    .await
                    .map_err(|_elapsed| Error::Timeout("the look-up of the name"))?
                    .map_err(|problem| Error::Lookup(problem.to_string()))?
            }
        };
        Ok(policy.address.reach(destination, &answers)?)
    }

    fn request(&self, method: Method, destination: Destination) -> Request {
        Request {
            client: self.clone(),
            original: destination.as_str().to_owned(),
            destination,
            hop: Hop {
                method,
                headers: Vec::new(),
                body: None,
            },
            own: Vec::new(),
            bytes_max: BODY_BYTES_MAX,
            redirects_max: REDIRECTS_MAX,
            timeout_ms: self.options.total_timeout_ms,
            takes_text_only: true,
        }
    }

    /// A connection to one of the judged addresses.
    async fn dial(&self, policy: &Policy, reachable: &Reachable) -> Result<Box<dyn Stream>, Error> {
        let destination = reachable.destination();
        let limit = Duration::from_millis(self.options.connect_timeout_ms);
        let mut last = Error::Connect("there is no address".to_owned());
        for address in reachable.addresses().iter().take(ATTEMPTS_MAX) {
            let peer = Peer {
                address: *address,
                tls_name: destination.is_https().then(|| destination.host_text()),
                own_ports: policy.address.own_ports().collect(),
            };
            match timeout(limit, self.connector.connect(&peer)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(problem)) => last = Error::Connect(problem.to_string()),
                Err(_elapsed) => last = Error::Timeout("connecting"),
            }
        }
        Err(last)
    }
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Get,
    Post,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// What goes to one server.
#[derive(Clone)]
struct Hop {
    method: Method,
    headers: Vec<(String, String)>,
    body: Option<Bytes>,
}

/// A request being put together.
#[must_use]
pub struct Request {
    client: Client,
    /// The URL as the caller gave it.
    original: String,
    destination: Destination,
    hop: Hop,
    own: Vec<String>,
    bytes_max: usize,
    redirects_max: usize,
    timeout_ms: u64,
    takes_text_only: bool,
}

impl fmt::Debug for Request {
    /// Headers and body may hold the operator's credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("host", &self.destination.host_text())
            .finish_non_exhaustive()
    }
}

impl Request {
    /// Adds a header. Names that belong to the connection are refused when it is sent.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.hop.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets a body and its media type.
    pub fn body(mut self, content_type: &str, body: impl Into<Bytes>) -> Self {
        self.hop.body = Some(body.into());
        self.header("content-type", content_type)
    }

    /// Sets a body whose media type is given as a header.
    pub fn raw_body(mut self, body: impl Into<Bytes>) -> Self {
        self.hop.body = Some(body.into());
        self
    }

    /// Text of the operator's own row, credentials among it, that may go to this destination's host and to no
    /// other.
    pub fn own(mut self, texts: Vec<String>) -> Self {
        self.own = texts;
        self
    }

    /// How much of the answer is kept, in bytes, after unpacking.
    pub fn bytes_max(mut self, bytes_max: usize) -> Self {
        self.bytes_max = bytes_max;
        self
    }

    /// How often a redirect is followed, at most [`REDIRECTS_MAX`] times. With 0, a redirect is the answer.
    pub fn redirects_max(mut self, redirects_max: usize) -> Self {
        self.redirects_max = redirects_max.min(REDIRECTS_MAX);
        self
    }

    /// How long all of it may take.
    pub fn timeout_ms(mut self, timeout_ms: u64) -> Self {
        self.timeout_ms = timeout_ms;
        self
    }

    /// Takes an answer of any media type.
    pub fn any_content_type(mut self) -> Self {
        self.takes_text_only = false;
        self
    }

    /// Sends it, follows redirects and reads the answer. Dropping the future ends the exchange.
    pub async fn send(self) -> Result<Response, Error> {
        let deadline = Instant::now() + Duration::from_millis(self.timeout_ms);
        // On the heap: the state of a whole exchange is large, and callers hold it beside their own.
        timeout_at(deadline, Box::pin(self.run()))
            .await
            .map_err(|_elapsed| Error::Timeout("the request"))?
    }

    async fn run(mut self) -> Result<Response, Error> {
        let policy = self.client.policy();
        let row_host = self.destination.host_text();
        let mut redirects = 0;
        loop {
            self.search(&policy, &row_host)?;
            let reachable = self.client.reach_under(&policy, self.destination.clone()).await?;
            let stream = self.client.dial(&policy, &reachable).await?;
            let limits = exchange::Limits {
                bytes_max: self.bytes_max,
                first_byte: Duration::from_millis(self.client.options.first_byte_timeout_ms),
                takes_text_only: self.takes_text_only,
                reads_redirects: self.redirects_max == 0,
            };
            let answer = exchange::run(stream, reachable.destination(), &self.hop, &limits).await?;
            if !answer.is_redirect() || self.redirects_max == 0 {
                return Ok(Response {
                    status: answer.status,
                    content_type: answer.content_type,
                    url: self.destination.as_str().to_owned(),
                    redirects,
                    body: answer.body,
                    is_cut: answer.is_cut,
                });
            }
            if redirects == self.redirects_max {
                return Err(Error::Redirect("more often than is followed"));
            }
            redirects += 1;
            let next = policy.address.follow(&reachable, answer.location()?)?;
            self.hop = redirect::next(self.hop, answer.status, &self.destination, &next)?;
            self.original = next.as_str().to_owned();
            self.destination = next;
        }
    }

    /// Searches what is about to go out for secrets.
    fn search(&self, policy: &Policy, row_host: &str) -> Result<(), Error> {
        let host = self.destination.host_text();
        let outgoing = Outgoing {
            url: &self.original,
            host: &host,
            headers: &self.hop.headers,
            body: self.hop.body.as_deref().unwrap_or_default(),
            arguments: None,
            own: Some(Own {
                host: row_host,
                texts: &self.own,
            }),
        };
        outbound::check(&policy.secrets, &outgoing).map_err(Error::Outbound)
    }
}

/// An answer, read to its end or its bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// What the server says it is; empty where it says nothing.
    pub content_type: String,
    /// The URL that answered, after redirects.
    pub url: String,
    /// How many redirects were followed.
    pub redirects: usize,
    /// The unpacked body; empty where the answer is an error that is no text.
    pub body: Vec<u8>,
    /// Whether more was left unread.
    pub is_cut: bool,
}

impl Response {
    /// Whether the status is 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

#[cfg(test)]
mod tests;
