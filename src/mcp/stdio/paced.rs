//! A connection that reads no faster than what it has read is worked on and answered, and ends when nobody reads what
//! it writes. The SDK bounds none of that.

use std::{borrow::Cow, sync::Arc, time::Duration};

use rmcp::{
    RoleServer,
    model::{ClientJsonRpcMessage, GetExtensions as _, JsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time,
};
use tokio_util::sync::CancellationToken;

/// Requests that are worked on at once; the next one is read when one has ended. More than a key may have turns under
/// way, so that an answer of its person is always read.
const REQUESTS_MAX: usize = 64;
/// Messages that wait to be written.
const UNWRITTEN_MAX: usize = 64;
/// How long the last messages may take.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// A transport with those bounds.
pub(super) struct Paced<T> {
    inner: T,
    requests: Arc<Semaphore>,
    /// The place of the next request.
    place: Option<OwnedSemaphorePermit>,
    unwritten: watch::Sender<usize>,
    /// Cancelled when a message could not be written.
    broken: CancellationToken,
}

impl<T> Paced<T> {
    /// Those bounds around that transport.
    pub(super) fn new(inner: T) -> Self {
        Self {
            inner,
            requests: Arc::new(Semaphore::new(REQUESTS_MAX)),
            place: None,
            unwritten: watch::Sender::new(0),
            broken: CancellationToken::new(),
        }
    }
}

/// A request's place, which goes with it until it has been worked on.
#[derive(Clone)]
struct Place(#[expect(dead_code, reason = "it is held, and looked at by nobody")] Arc<OwnedSemaphorePermit>);

/// A message that waits to be written.
struct Unwritten(watch::Sender<usize>);

impl Unwritten {
    fn one(count: &watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count.clone())
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Paced<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let unwritten = Unwritten::one(&self.unwritten);
        let broken = self.broken.clone();
        let written = self.inner.send(message);
        async move {
            let written = written.await;
            drop(unwritten);
            if written.is_err() {
                broken.cancel();
            }
            written
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let broken = self.broken.clone();
        let mut message = tokio::select! {
            biased;
            () = broken.cancelled() => None,
            message = self.next() => message,
        }?;
        if let JsonRpcMessage::Request(request) = &mut message
            && let Some(place) = self.place.take()
        {
            request.request.extensions_mut().insert(Place(Arc::new(place)));
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // A client that reads nothing is not waited for.
        time::timeout(CLOSE_WAIT, self.inner.close())
            .await
            .unwrap_or(Ok(()))
    }
}

impl<T: Transport<RoleServer>> Paced<T> {
    /// The next message, once there is room for it. Whoever stops waiting loses nothing.
    async fn next(&mut self) -> Option<ClientJsonRpcMessage> {
        if self.place.is_none() {
            self.place = Arc::clone(&self.requests).acquire_owned().await.ok();
        }
        let mut unwritten = self.unwritten.subscribe();
        drop(unwritten.wait_for(|count| *count < UNWRITTEN_MAX).await);
        self.inner.receive().await
    }
}
