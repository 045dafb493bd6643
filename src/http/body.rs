//! Request bodies on the way in, bounded in size and time; response bodies that hold a permit on the way out.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    http::{HeaderMap, header},
};
use bytes::BytesMut;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use tokio::time;

use super::{Options, error::ApiError};

/// Bytes of a refused body that are read and thrown away, so that a client that sends before it listens still
/// hears the answer; beyond them the connection is closed.
const DISCARD_BYTES_MAX: usize = 256 << 20;
/// How long a refused body is read.
const DISCARD_TIME: Duration = Duration::from_secs(2);
/// The first reservation for a body; more is reserved as bytes arrive, not as they are promised.
const FIRST_RESERVATION_BYTES: usize = 64 << 10;

/// Reads a whole body. A larger one is refused by what it promises, and by what it sends where it promises
/// nothing or lies.
pub(super) async fn read(headers: &HeaderMap, mut body: Body, options: &Options) -> Result<Bytes, ApiError> {
    let bytes_max = options.body_bytes_max;
    if promised(headers).is_some_and(|bytes| bytes > bytes_max as u64) {
        // A client that waits for leave to send has sent nothing, and must not be given leave.
        if !headers.contains_key(header::EXPECT) {
            discard(body).await;
        }
        return Err(ApiError::too_large(bytes_max));
    }
    match time::timeout(options.body_timeout(), collect(&mut body, bytes_max)).await {
        Ok(Ok(Some(bytes))) => Ok(bytes),
        Ok(Ok(None)) => {
            discard(body).await;
            Err(ApiError::too_large(bytes_max))
        }
        Ok(Err(_)) => Err(ApiError::bad_head("the request body broke off")),
        Err(_) => Err(ApiError::body_timeout(options.body_timeout_ms)),
    }
}

/// How many bytes the head promises.
pub(super) fn promised(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn collect(body: &mut Body, bytes_max: usize) -> Result<Option<Bytes>, axum::Error> {
    let mut whole = BytesMut::with_capacity(FIRST_RESERVATION_BYTES.min(bytes_max));
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        if data.len() > bytes_max - whole.len() {
            return Ok(None);
        }
        whole.extend_from_slice(&data);
    }
    Ok(Some(whole.freeze()))
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
