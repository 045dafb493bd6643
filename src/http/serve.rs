//! The accept loop: connection permit, head timer, drain.
//!
//! `axum::serve` sets no timer on a request head, no bound on connections and leaves Nagle's algorithm on; a
//! front door needs all three. The loop owns every connection task and returns when they have ended.

mod head;
mod pace;
mod reason;
mod stall;
mod timer;
mod watched;

use std::{convert::Infallible, future, io, pin::pin, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{HeaderMap, HeaderValue, Uri, Version, header},
    response::Response,
};
use futures_util::FutureExt as _;
use hyper::body::{Body as _, Incoming};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt as _;
use tracing::{debug, warn};

use super::{Options, error::ApiError, refused};
use head::{Verdict, Watch};
use pace::Streams;
use stall::Stall;
use timer::HeadTimer;
use watched::Watched;

/// Header fields of one request; more are answered 431.
const HEADERS_MAX: usize = 64;
/// Bytes of one request head that are buffered; a longer head is answered 431.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Streams that one HTTP/2 connection may have open at once.
const H2_STREAMS_MAX: u32 = 128;
/// Bytes of one decoded HTTP/2 header list; a longer one is refused by the protocol, without a body. Above
/// [`HEAD_BYTES_MAX`], so that there is room to say why.
const H2_HEADERS_BYTES_MAX: u32 = 128 << 10;
/// What each field of an HTTP/2 header list counts besides its text (RFC 9113, section 10.5.1).
const H2_FIELD_BYTES: usize = 32;
/// How often an HTTP/2 peer is asked whether it is still there, and how long it may take to say so.
const H2_PING: Duration = Duration::from_secs(20);
/// How long to wait after a failed `accept`: it fails for lack of file handles, and those come back with time.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Files that the process keeps for other things than connections: the database, logs, programs, calls to models.
const FILES_KEPT: u64 = 256;

/// Serves `router` on `listener` until `shutdown` is cancelled, then drains: idle connections close, requests
/// under way may end, and what is still open after `drain_timeout_ms` is closed. Returns how many connections
/// had to be closed that way.
pub async fn run(
    listener: TcpListener,
    router: Router,
    options: &Options,
    shutdown: CancellationToken,
) -> usize {
    let door = Door {
        permits: Arc::new(Semaphore::new(permits(options))),
        router,
        head_timeout: options.header_timeout(),
        write_timeout: options.write_timeout(),
        shutdown: shutdown.clone(),
        kill: CancellationToken::new(),
        connections: TaskTracker::new(),
        streams: TaskTracker::new(),
    };
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => door.admit(stream),
            Err(error) if is_of_the_peer(&error) => {}
            Err(error) => {
                warn!(%error, "a connection could not be accepted");
                time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    door.drain(options.drain_timeout()).await
}

/// How many connections may be open: as many as were asked for, or as the process has files for.
fn permits(options: &Options) -> usize {
    let asked = options.connections_max.min(Semaphore::MAX_PERMITS);
    match tidegate_io::process::raise_file_limit() {
        Ok(files) => {
            let possible = connections_of(files);
            if possible < asked {
                warn!(
                    files,
                    connections = possible,
                    asked,
                    "`server.connections_max` is more than the process may have files open for; raise its limit \
                     (`ulimit -n`, `LimitNOFILE=`)"
                );
            }
            asked.min(possible)
        }
        Err(error) => {
            warn!(%error, "the limit of open files is not known; connections may fail before their bound is met");
            asked
        }
    }
}

/// The connections that so many files leave room for. Under a very low limit they get half of it.
fn connections_of(files: u64) -> usize {
    let connections = if files < 2 * FILES_KEPT {
        files / 2
    } else {
        files - FILES_KEPT
    };
    usize::try_from(connections).unwrap_or(usize::MAX)
}

/// The peer left before we looked; nothing is wrong here.
fn is_of_the_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}

fn builder(streams: Streams, head_timeout: Duration, watch: &Watch) -> auto::Builder<Streams> {
    let mut builder = auto::Builder::new(streams);
    builder
        .http1()
        .timer(HeadTimer::new(watch.clone(), head_timeout))
        .header_read_timeout(head_timeout)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(H2_PING)
        .keep_alive_timeout(H2_PING)
        .max_concurrent_streams(H2_STREAMS_MAX)
        .max_header_list_size(H2_HEADERS_BYTES_MAX);
    builder
}

/// What every connection needs.
struct Door {
    permits: Arc<Semaphore>,
    router: Router,
    head_timeout: Duration,
    write_timeout: Duration,
    shutdown: CancellationToken,
    /// Closes what the drain deadline left open.
    kill: CancellationToken,
    connections: TaskTracker,
    /// The streams of HTTP/2 connections; they end with them.
    streams: TaskTracker,
}

impl Door {
    /// Gives the connection a task, or an answer if there are too many.
    fn admit(&self, stream: TcpStream) {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            // One attempt, without waiting: a peer that does not read is not worth a task.
            let told = full(self.router.clone()).now_or_never();
            if let Some(Err(error)) = told.map(|answer| stream.try_write(&answer)) {
                debug!(%error, "a connection above the bound could not be told so");
            }
            return;
        };
        // Without it a stream over a reused connection stalls for tens of milliseconds.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "TCP_NODELAY could not be set");
        }
        let stall = Stall::new(self.write_timeout);
        let stream = Watched::new(stream, Watch::default(), stall, self.router.clone());
        self.connections.spawn(connection(
            stream,
            permit,
            Streams::new(self.streams.clone(), self.write_timeout),
            self.router.clone(),
            self.head_timeout,
            self.shutdown.clone(),
            self.kill.clone(),
        ));
    }

    async fn drain(self, deadline: Duration) -> usize {
        self.connections.close();
        self.streams.close();
        let mut left = 0;
        if time::timeout(deadline, self.connections.wait()).await.is_err() {
            left = self.connections.len();
            warn!(
                connections = left,
                "closing connections that outlived the drain time"
            );
            self.kill.cancel();
            self.connections.wait().await;
        }
        self.streams.wait().await;
        left
    }
}

/// One connection, from its first byte to its end.
async fn connection(
    stream: Watched<TcpStream>,
    permit: OwnedSemaphorePermit,
    streams: Streams,
    router: Router,
    head_timeout: Duration,
    shutdown: CancellationToken,
    kill: CancellationToken,
) {
    let _permit = permit;
    let first_head = CancellationToken::new();
    let seen = first_head.clone();
    let watch = stream.watch();
    let builder = builder(streams.clone(), head_timeout, &watch);
    let silent = silence(first_head, head_timeout, watch.clone());
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        seen.cancel();
        let turn = Turn::of(&request, &watch);
        if matches!(turn, Turn::Refuse(_)) {
            watch.refuse();
        }
        answer(router.clone(), request, turn)
    });
    let idle = streams.clone().idle(head_timeout);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection, silent, idle);
    // Asked to end when the daemon stops, and when an HTTP/2 peer has had no stream for long; it gets as much
    // time again for its goodbye.
    let (mut ending, mut goodbye) = (false, pin!(future::pending().left_future()));
    let mut late = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    debug!(%error, "a connection ended with an error");
                }
                return;
            }
            () = shutdown.cancelled(), if !ending => {
                ending = true;
                connection.as_mut().graceful_shutdown();
            }
            () = idle.as_mut(), if !ending => {
                ending = true;
                connection.as_mut().graceful_shutdown();
                goodbye.set(streams.clone().quiet(head_timeout).right_future());
            }
            () = goodbye.as_mut() => return,
            has_begun = silent.as_mut(), if !late => {
                if !has_begun {
                    return;
                }
                // It hears why, as the stream is looked at again.
                late = true;
            }
            () = kill.cancelled() => return,
        }
    }
}

/// Ends when no request head came in time, and says whether one has begun. The HTTP/1 timer starts with the
/// first bytes that tell the protocol; a peer that sends nothing, or half of an HTTP/2 preface, is timed here.
async fn silence(first_head: CancellationToken, head_timeout: Duration, watch: Watch) -> bool {
    if time::timeout(head_timeout, first_head.cancelled()).await.is_ok() {
        future::pending::<()>().await;
    }
    watch.expire(head_timeout)
}

/// What is said to a connection above the bound, before it has sent a byte. Nothing in it waits.
async fn full(router: Router) -> Vec<u8> {
    let error = ApiError::overloaded()
        .explained("the server has as many connections as it may (`server.connections_max`); try again soon");
    let Ok(response) = refused::answer(router, error).await;
    watched::whole(response).await
}

/// What becomes of a request and of its connection.
#[derive(Debug)]
enum Turn {
    /// It is served.
    Serve,
    /// It is served as the last on its connection: where a body of unknown length ends, and a pipelined head
    /// begins, is not followed.
    ServeAsLast,
    /// It is refused, and what follows is not read.
    Refuse(ApiError),
}

impl Turn {
    fn of(request: &Request<Incoming>, watch: &Watch) -> Self {
        if request.version() >= Version::HTTP_2 {
            watch.end();
            return h2_head_fault(request.uri(), request.headers()).map_or(Self::Serve, Self::Refuse);
        }
        let framing = framing_fault(request.headers(), watch);
        let body_bytes = request.body().size_hint().exact();
        let verdict = watch.take(body_bytes);
        if let Some(fault) = framing {
            return Self::Refuse(fault);
        }
        match verdict {
            Verdict::Unsound => Self::Refuse(ApiError::bad_head(
                "the lines of a request head end with CR LF; here is a line feed alone",
            )),
            Verdict::Sound if body_bytes.is_none() => Self::ServeAsLast,
            Verdict::Sound => Self::Serve,
        }
    }
}

/// What a proxy in front may read otherwise than hyper (RFC 9112, section 6.1): codings under the chunks, which
/// are not undone here, and a length beside them.
fn framing_fault(headers: &HeaderMap, watch: &Watch) -> Option<ApiError> {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let coding = codings.next()?;
    if codings.next().is_some() || !coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
        return Some(ApiError::bad_head(reason::CHUNKED_ALONE));
    }
    // Hyper drops the length out of the headers; the bytes still have it.
    reason::names_length(&watch.unread().head).then(|| {
        ApiError::bad_head("a request has either Transfer-Encoding or Content-Length, and here are both")
    })
}

/// The bounds of a head that hyper holds for HTTP/1 alone.
fn h2_head_fault(uri: &Uri, headers: &HeaderMap) -> Option<ApiError> {
    if headers.len() > HEADERS_MAX {
        return Some(reason::too_many_fields());
    }
    let address = uri.path().len() + uri.query().map_or(0, str::len);
    let fields = headers.iter();
    let bytes = fields.fold(address, |sum, (name, value)| {
        sum + name.as_str().len() + value.len() + H2_FIELD_BYTES
    });
    (bytes > HEAD_BYTES_MAX).then(reason::too_many_bytes)
}

async fn answer(router: Router, request: Request<Incoming>, turn: Turn) -> Result<Response, Infallible> {
    let close = |mut response: Response| {
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    };
    let response = match turn {
        Turn::Serve => served(router, request).await?,
        Turn::ServeAsLast => close(served(router, request).await?),
        Turn::Refuse(error) => close(refused::answer(router, error).await?),
    };
    Ok(response.map(pace::paced))
}

async fn served(router: Router, request: Request<Incoming>) -> Result<Response, Infallible> {
    router.oneshot(request.map(Body::new)).await
}

#[cfg(test)]
mod tests;
