//! Request bodies on the way in, bounded in size and time; response bodies that hold a permit on the way out.

pub(super) mod budget;

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    http::{HeaderMap, HeaderValue, header},
};
use bytes::BytesMut;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use tokio::time;

use super::{Options, error::ApiError};
use budget::Share;

/// Bytes of a refused body that are read and thrown away, so that a client that sends before it listens still
/// hears the answer; beyond them the connection is closed.
const DISCARD_BYTES_MAX: usize = 256 << 20;
/// How long a refused body is read.
const DISCARD_TIME: Duration = Duration::from_secs(2);
/// The first reservation for a body that promises no length; more is reserved as bytes arrive.
const FIRST_RESERVATION_BYTES: usize = 64 << 10;

/// Reads a whole body. A larger one is refused by what it promises, and by what it sends where it promises
/// nothing or lies. `share` is the memory that was taken for it; the bytes hold it from here on.
pub(super) async fn read(
    headers: &HeaderMap,
    mut body: Body,
    options: &Options,
    share: Option<&Arc<Share>>,
) -> Result<Bytes, ApiError> {
    let bytes_max = budget::longest(options);
    if promised(headers).is_some_and(|bytes| bytes > bytes_max as u64) {
        return Err(refuse(headers, body, too_large(bytes_max, options)).await);
    }
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    // Fails closed: a route that was added outside of the layer reads no body.
    let share =
        share.ok_or_else(|| ApiError::internal("a route lies outside of the layer that weighs bodies"))?;
    match time::timeout(options.body_timeout(), collect(&mut body, bytes_max, share)).await {
        Ok(Ok(bytes)) => Ok(budget::weighed(bytes, Arc::clone(share))),
        Ok(Err(Fault::TooLarge)) => {
            discard(body).await;
            Err(too_large(bytes_max, options))
        }
        Ok(Err(Fault::Full(full))) => {
            discard(body).await;
            Err(full.into())
        }
        Ok(Err(Fault::BrokenOff)) => Err(ApiError::bad_head(
            "the request body broke off before its end, or its chunks are malformed",
        )),
        Err(_) => Err(ApiError::body_timeout(options.body_timeout_ms)),
    }
}

/// The error for a body that is not read, once the client can be expected to listen.
async fn refuse(headers: &HeaderMap, body: Body, error: ApiError) -> ApiError {
    // A client that waits for leave to send has sent nothing, and must not be given leave.
    if !headers.contains_key(header::EXPECT) {
        discard(body).await;
    }
    error.with(header::CONNECTION, HeaderValue::from_static("close"))
}

fn too_large(bytes_max: usize, options: &Options) -> ApiError {
    let error = ApiError::too_large(bytes_max);
    if bytes_max == options.body_bytes_max {
        return error;
    }
    error.explained(&format!(
        "a request body has at most {bytes_max} bytes (an eighth of `server.bodies_bytes_max`)"
    ))
}

/// How many bytes the head promises.
pub(super) fn promised(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Why a body was not read to its end.
enum Fault {
    TooLarge,
    Full(budget::Full),
    BrokenOff,
}

async fn collect(body: &mut Body, bytes_max: usize, share: &Share) -> Result<Bytes, Fault> {
    let promised = body
        .size_hint()
        .exact()
        .and_then(|bytes| usize::try_from(bytes).ok());
    let is_promised = promised.is_some();
    let mut weighed_bytes = FIRST_RESERVATION_BYTES.min(bytes_max);
    // What is promised has been weighed. At its full size from the start: a buffer that grows is there twice
    // while it moves, and leaves holes behind. Memory that nothing is written to costs nothing.
    let mut whole = BytesMut::with_capacity(promised.unwrap_or(weighed_bytes).min(bytes_max));
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Fault::BrokenOff)?.into_data() else {
            continue;
        };
        if data.len() > bytes_max - whole.len() {
            return Err(Fault::TooLarge);
        }
        let bytes = whole.len() + data.len();
        if !is_promised && bytes > weighed_bytes {
            // As the buffer itself grows.
            weighed_bytes = (2 * bytes).min(bytes_max);
            share.resize(weighed_bytes).map_err(Fault::Full)?;
        }
        whole.extend_from_slice(&data);
    }
    if !is_promised {
        share.resize(whole.len()).map_err(Fault::Full)?;
    }
    Ok(whole.freeze())
}

async fn discard(mut body: Body) {
    let reading = async {
        let mut left = DISCARD_BYTES_MAX;
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            let Some(rest) = left.checked_sub(bytes) else {
                return;
            };
            left = rest;
        }
    };
    // Either way the answer goes out next.
    drop(time::timeout(DISCARD_TIME, reading).await);
}

/// A body that keeps `held` for as long as it is being sent.
pub(super) struct Holding<T> {
    body: Body,
    _held: T,
}

impl<T: Send + Unpin + 'static> Holding<T> {
    /// `body`, with something that is let go when it ends or is dropped.
    pub(super) fn wrap(body: Body, held: T) -> Body {
        Body::new(Self { body, _held: held })
    }
}

impl<T: Unpin> HttpBody for Holding<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
