//! The accept loop: connection permit, head timer, drain.
//!
//! `axum::serve` sets no timer on a request head, no bound on connections and leaves Nagle's algorithm on; a
//! front door needs all three. The loop owns every connection task and returns when they have ended.

mod head;
mod stall;

use std::{convert::Infallible, future, io, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{HeaderValue, Version, header},
    response::{IntoResponse as _, Response},
};
use hyper::body::{Body as _, Incoming};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::{Service, ServiceExt as _};
use tracing::{debug, warn};

use super::{Options, error::ApiError};
use head::{Verdict, Watch, Watched};
use stall::Stall;

/// Header fields of one request; more are answered 431.
const HEADERS_MAX: usize = 64;
/// Bytes of one request head that are buffered; a longer head is answered 431.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Streams that one HTTP/2 connection may have open at once.
const H2_STREAMS_MAX: u32 = 128;
/// Bytes of one decoded HTTP/2 header list.
const H2_HEADERS_BYTES_MAX: u32 = 64 << 10;
/// How often an HTTP/2 peer is asked whether it is still there, and how long it may take to say so.
const H2_PING: Duration = Duration::from_secs(20);
/// How long to wait after a failed `accept`: it fails for lack of file handles, and those come back with time.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Files that the process keeps for other things than connections: the database, logs, programs, calls to models.
const FILES_KEPT: u64 = 256;
/// Said to a connection above the bound, before it has sent a byte.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n\
connection: close\r\ncontent-length: 162\r\n\r\n{\"error\":{\"message\":\"the server has as many connections as it \
may; try again soon\",\"type\":\"service_unavailable_error\",\"param\":null,\"code\":\"server_is_overloaded\"}}";

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
        builder: builder(options),
        router,
        head_timeout: options.header_timeout(),
        write_timeout: options.write_timeout(),
        shutdown: shutdown.clone(),
        kill: CancellationToken::new(),
        connections: TaskTracker::new(),
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

fn builder(options: &Options) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_timeout())
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
    builder: auto::Builder<TokioExecutor>,
    router: Router,
    head_timeout: Duration,
    write_timeout: Duration,
    shutdown: CancellationToken,
    /// Closes what the drain deadline left open.
    kill: CancellationToken,
    connections: TaskTracker,
}

impl Door {
    /// Gives the connection a task, or an answer if there are too many.
    fn admit(&self, stream: TcpStream) {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            // One attempt, without waiting: a peer that does not read is not worth a task.
            if let Err(error) = stream.try_write(FULL) {
                debug!(%error, "a connection above the bound could not be told so");
            }
            return;
        };
        // Without it a stream over a reused connection stalls for tens of milliseconds.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "TCP_NODELAY could not be set");
        }
        let stream = Watched::new(stream, Watch::default(), Stall::new(self.write_timeout));
        self.connections.spawn(connection(
            stream,
            permit,
            self.builder.clone(),
            self.router.clone(),
            self.head_timeout,
            self.shutdown.clone(),
            self.kill.clone(),
        ));
    }

    async fn drain(self, deadline: Duration) -> usize {
        self.connections.close();
        if time::timeout(deadline, self.connections.wait()).await.is_ok() {
            return 0;
        }
        let left = self.connections.len();
        warn!(
            connections = left,
            "closing connections that outlived the drain time"
        );
        self.kill.cancel();
        self.connections.wait().await;
        left
    }
}

/// One connection, from its first byte to its end.
async fn connection(
    stream: Watched<TcpStream>,
    permit: OwnedSemaphorePermit,
    builder: auto::Builder<TokioExecutor>,
    router: Router,
    head_timeout: Duration,
    shutdown: CancellationToken,
    kill: CancellationToken,
) {
    let _permit = permit;
    let first_head = CancellationToken::new();
    let seen = first_head.clone();
    let watch = stream.watch();
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        seen.cancel();
        let turn = Turn::of(&request, &watch);
        answer(router.clone(), request, turn)
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let silent = silence(first_head, head_timeout);
    tokio::pin!(silent);
    let mut stopping = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    debug!(%error, "a connection ended with an error");
                }
                return;
            }
            () = shutdown.cancelled(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            () = silent.as_mut() => return,
            () = kill.cancelled() => return,
        }
    }
}

/// Ends when no request head came in time. The HTTP/1 timer starts with the first bytes that tell the
/// protocol; a peer that sends nothing, or half of an HTTP/2 preface, is timed here.
async fn silence(first_head: CancellationToken, head_timeout: Duration) {
    if time::timeout(head_timeout, first_head.cancelled()).await.is_ok() {
        future::pending::<()>().await;
    }
}

/// What becomes of a request and of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// It is served.
    Serve,
    /// It is served as the last on its connection: where a body of unknown length ends, and a pipelined head
    /// begins, is not followed.
    ServeAsLast,
    /// It is refused, and what follows is not read.
    Refuse,
}

impl Turn {
    fn of(request: &Request<Incoming>, watch: &Watch) -> Self {
        if request.version() >= Version::HTTP_2 {
            watch.end();
            return Self::Serve;
        }
        let body_bytes = request.body().size_hint().exact();
        match watch.take(body_bytes) {
            Verdict::Unsound => Self::Refuse,
            Verdict::Sound if body_bytes.is_none() => Self::ServeAsLast,
            Verdict::Sound => Self::Serve,
        }
    }
}

async fn answer(router: Router, request: Request<Incoming>, turn: Turn) -> Result<Response, Infallible> {
    let mut response = match turn {
        Turn::Serve | Turn::ServeAsLast => {
            let mut service = router.into_service::<Body>();
            let service = service.ready().await?;
            service.call(request.map(Body::new)).await?
        }
        Turn::Refuse => {
            debug!("a request head with a bare line feed was refused");
            ApiError::bad_head("the lines of a request head end with CR LF; here is a line feed alone")
                .into_response()
        }
    };
    match turn {
        Turn::Serve => {}
        Turn::ServeAsLast | Turn::Refuse => {
            let headers = response.headers_mut();
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
    Ok(response)
}

#[cfg(test)]
mod tests;
