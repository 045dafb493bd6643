//! HTTP/1.1 without encryption, driven by whoever waits for the answer.
//!
//! A model on the same machine or network answers in less time than it takes to hand each piece of its answer
//! from a connection's task to the task that waits for it. So these connections have no tasks: while an answer is
//! waited for, its connection is worked on in the same place, and between answers nobody works on it. One that its
//! peer has closed meanwhile is noticed when it is taken up again.

use std::{
    collections::HashMap,
    future::{Future as _, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    HeaderMap, Method, Uri,
    body::{Body as _, Incoming},
    client::conn::{TrySendError, http1},
    header::{ACCEPT, HOST, HeaderName, HeaderValue, USER_AGENT},
    http::request,
    service::Service as _,
};
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo, service::TowerToHyperService};
use tokio::net::TcpStream;

use super::{AGENT, Error, HEADERS_MAX, Options, POOL_IDLE_MS, POOL_IDLE_PER_HOST_MAX, root_cause};

/// How often the other side of a silent connection is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(15);

type Outgoing = hyper::Request<Full<Bytes>>;
type Connection = http1::Connection<TokioIo<TcpStream>, Full<Bytes>>;

/// Connections that wait for their next request, by host and port.
#[derive(Debug)]
pub(super) struct Pool {
    idle: Mutex<HashMap<String, Vec<Idle>>>,
    connector: TowerToHyperService<HttpConnector>,
    connect_timeout: Duration,
}

#[derive(Debug)]
struct Idle {
    link: Link,
    since: Instant,
}

impl Idle {
    fn is_fresh(&self) -> bool {
        self.since.elapsed() < Duration::from_millis(POOL_IDLE_MS)
    }
}

impl Pool {
    pub(super) fn new(options: &Options) -> Self {
        let connect_timeout = Duration::from_millis(options.connect_timeout_ms);
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_keepalive(Some(KEEPALIVE));
        connector.set_connect_timeout(Some(connect_timeout));
        Self {
            idle: Mutex::default(),
            connector: TowerToHyperService::new(connector),
            connect_timeout,
        }
    }

    /// One that can be used, if there is any.
    async fn take(&self, host: &str) -> Option<Link> {
        loop {
            let mut idle = {
                let mut all = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
                all.get_mut(host)?.pop()?
            };
            if idle.is_fresh() && poll_fn(|context| Poll::Ready(idle.link.is_free(context))).await {
                return Some(idle.link);
            }
        }
    }

    fn put(&self, host: String, link: Link) {
        let mut all = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let links = all.entry(host).or_default();
        links.retain(Idle::is_fresh);
        if links.len() < POOL_IDLE_PER_HOST_MAX {
            let since = Instant::now();
            links.push(Idle { link, since });
        }
    }

    async fn connect(&self, uri: Uri) -> Result<Link, Error> {
        let stream = tokio::time::timeout(self.connect_timeout, self.connector.call(uri))
            .await
            .map_err(|_elapsed| Error::ConnectTimeout)?
            .map_err(|problem| Error::Connect(root_cause(&problem)))?;
        let (sender, connection) = http1::Builder::new()
            .max_headers(HEADERS_MAX)
            .handshake(stream)
            .await
            .map_err(|problem| broken(&problem))?;
        Ok(Link {
            sender,
            connection: Box::pin(connection),
            has_ended: false,
        })
    }
}

fn broken(problem: &hyper::Error) -> Error {
    Error::Broken(root_cause(problem))
}

/// A connection and the way to hand it a request.
#[derive(Debug)]
struct Link {
    sender: http1::SendRequest<Full<Bytes>>,
    connection: Pin<Box<Connection>>,
    has_ended: bool,
}

impl Link {
    /// Works on the connection. How it fails, the answer that is waited for says.
    fn drive(&mut self, context: &mut Context<'_>) {
        self.has_ended = self.has_ended || self.connection.as_mut().poll(context).is_ready();
    }

    /// Whether it takes another request.
    fn is_free(&mut self, context: &mut Context<'_>) -> bool {
        self.drive(context);
        !self.has_ended && matches!(self.sender.poll_ready(context), Poll::Ready(Ok(())))
    }

    async fn ask(&mut self, request: Outgoing) -> Result<hyper::Response<Incoming>, TrySendError<Outgoing>> {
        let mut answer = pin!(self.sender.try_send_request(request));
        poll_fn(|context| {
            let ended = self.has_ended || self.connection.as_mut().poll(context).is_ready();
            self.has_ended = ended;
            answer.as_mut().poll(context)
        })
        .await
    }
}

/// A request being put together.
#[derive(Debug)]
pub(super) struct Request {
    pool: Arc<Pool>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

impl Request {
    /// A request to `url`; `None` where that asks for more than a plain connection.
    pub(super) fn new(pool: &Arc<Pool>, method: Method, url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let host = uri.authority()?.as_str();
        if uri.scheme_str() != Some("http") || host.contains('@') {
            return None;
        }
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(HOST, HeaderValue::from_str(host).ok()?);
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        Some(Self {
            pool: Arc::clone(pool),
            method,
            uri,
            headers,
            body: Bytes::new(),
        })
    }

    pub(super) fn header(&mut self, name: HeaderName, value: HeaderValue) {
        self.headers.append(name, value);
    }

    pub(super) fn body(&mut self, body: Bytes) {
        self.body = body;
    }

    pub(super) async fn send(self) -> Result<Response, Error> {
        let Self { pool, uri, .. } = &self;
        let host = uri.authority().map(ToString::to_string).unwrap_or_default();
        let mut request = self.outgoing()?;
        // A connection that was used before may have been closed just now. What it did not begin to send goes
        // over the next one, and over a new one in the end.
        while let Some(mut link) = pool.take(&host).await {
            match link.ask(request).await {
                Ok(answer) => return Ok(Response::new(answer, link, Arc::clone(pool), host)),
                Err(mut fault) => match fault.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(broken(fault.error())),
                },
            }
        }
        let mut link = pool.connect(uri.clone()).await?;
        match link.ask(request).await {
            Ok(answer) => Ok(Response::new(answer, link, Arc::clone(pool), host)),
            Err(fault) => Err(broken(fault.error())),
        }
    }

    fn outgoing(&self) -> Result<Outgoing, Error> {
        let target = self.uri.path_and_query().map_or("/", |target| target.as_str());
        let (mut head, ()) = request::Builder::new()
            .method(self.method.clone())
            .uri(target)
            .body(())
            .map_err(|problem| Error::Request(problem.to_string()))?
            .into_parts();
        head.headers.clone_from(&self.headers);
        Ok(Outgoing::from_parts(head, Full::new(self.body.clone())))
    }
}

/// An answer whose body has not been read yet. Dropped before its end, it takes the connection with it.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    rest: Option<Rest>,
}

#[derive(Debug)]
struct Rest {
    body: Incoming,
    link: Link,
    pool: Arc<Pool>,
    host: String,
}

impl Response {
    fn new(answer: hyper::Response<Incoming>, link: Link, pool: Arc<Pool>, host: String) -> Self {
        let (head, body) = answer.into_parts();
        Self {
            status: head.status.as_u16(),
            headers: head.headers,
            rest: Some(Rest {
                body,
                link,
                pool,
                host,
            }),
        }
    }

    /// The next piece of the body; `None` at its end. Cancel safe.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let Some(rest) = &mut self.rest else {
            return Ok(None);
        };
        let piece = poll_fn(|context| rest.poll_piece(context)).await;
        if !matches!(piece, Ok(Some(_)))
            && let Some(rest) = self.rest.take()
            && piece.is_ok()
        {
            rest.give_back().await;
        }
        piece
    }
}

impl Rest {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        loop {
            self.link.drive(context);
            let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) else {
                return Poll::Pending;
            };
            match frame {
                None => return Poll::Ready(Ok(None)),
                Some(Err(problem)) => return Poll::Ready(Err(broken(&problem))),
                Some(Ok(frame)) => {
                    // Trailers say nothing that is asked for here.
                    if let Ok(piece) = frame.into_data() {
                        return Poll::Ready(Ok(Some(piece)));
                    }
                }
            }
        }
    }

    /// Keeps the connection, if it can be used again.
    async fn give_back(self) {
        let Self {
            mut link, pool, host, ..
        } = self;
        if poll_fn(|context| Poll::Ready(link.is_free(context))).await {
            pool.put(host, link);
        }
    }
}
