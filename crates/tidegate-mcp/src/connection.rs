//! One open connection: requests with a deadline, and the way to one that is opened.

mod open;

use std::{sync::Arc, time::Duration};

use rmcp::{
    RoleClient,
    model::{
        CancelledNotification, CancelledNotificationParam, ClientRequest, ErrorCode, ErrorData, RequestId,
        ServerPeerInfo, ServerResult,
    },
    service::{Peer, PeerRequestOptions, RunningService, ServiceError},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use self::open::{Means, open};
use crate::{
    client::Client,
    text,
    transport::{
        Fault,
        watched::{Follow, Notices},
    },
};

/// How long telling a server that a request is called off may take.
const CANCEL: Duration = Duration::from_secs(5);
/// The longest message of an error that is shown, in characters.
const MESSAGE_CHARS_MAX: usize = 1000;

/// Why a request got no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestFault {
    /// The deadline passed.
    #[error("it did not answer within {0} ms")]
    TimedOut(u64),
    /// The connection is gone.
    #[error("the connection ended: {0}")]
    Closed(String),
    /// The server refuses the request, in its words, cleaned.
    #[error("{message} (code {code})")]
    Refused {
        /// The JSON-RPC code.
        code: i32,
        /// Its words.
        message: String,
    },
    /// It answered something else.
    #[error("its answer is none that the protocol knows")]
    Unexpected,
    /// Too many requests of this server are under way.
    #[error("as many calls of it as may be are under way ({0})")]
    Busy(usize),
}

impl RequestFault {
    /// Whether the server is at fault, rather than what it was asked.
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            Self::TimedOut(_) | Self::Closed(_) | Self::Unexpected => true,
            Self::Refused { .. } | Self::Busy(_) => false,
        }
    }
}

/// A connection, as those see it who use it. It stays open while its owner keeps the [`Open`] it came with.
#[derive(Debug)]
pub(crate) struct Connection {
    peer: Peer<RoleClient>,
    pub(crate) notices: Arc<Notices>,
    /// Cancelled when the transport is gone.
    closed: CancellationToken,
    /// Cancelled by whoever has found that it is of no use any more.
    broken: CancellationToken,
    /// Requests under way, and the notes that call some off.
    work: TaskTracker,
    permits: Arc<Semaphore>,
    calls_max: usize,
    /// Held by the one call that is under way, where the server may ask something during a call: it must be clear on
    /// whose behalf.
    alone: Option<Semaphore>,
}

/// A connection and what keeps it open.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) connection: Arc<Connection>,
    running: RunningService<RoleClient, Client>,
}

impl Open {
    /// Waits for the requests under way, at most `patience` and not once everything ends, and closes.
    pub(crate) fn close(
        self,
        patience: Duration,
        shutdown: &CancellationToken,
    ) -> impl Future<Output = ()> + Send + use<> {
        self.closed(patience, shutdown.clone())
    }

    async fn closed(mut self, patience: Duration, shutdown: CancellationToken) {
        self.connection.work.close();
        tokio::select! {
            () = self.connection.work.wait() => {}
            () = shutdown.cancelled() => {}
            () = tokio::time::sleep(patience) => {}
            () = self.connection.closed.cancelled() => {}
        }
        // Bounded by the SDK's own waits and the grace of the transport.
        drop(self.running.close().await);
    }
}

impl Connection {
    /// What the server has said of itself.
    pub(crate) fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// Resolves when the connection is gone or of no use.
    pub(crate) async fn ended(&self) {
        tokio::select! {
            () = self.closed.cancelled() => {}
            () = self.broken.cancelled() => {}
        }
    }

    /// Says that the connection is of no use any more.
    pub(crate) fn give_up(&self) {
        self.broken.cancel();
    }

    pub(crate) fn peer(&self) -> &Peer<RoleClient> {
        &self.peer
    }

    fn permit(&self) -> Result<OwnedSemaphorePermit, RequestFault> {
        Arc::clone(&self.permits)
            .try_acquire_owned()
            .map_err(|_full| RequestFault::Busy(self.calls_max))
    }

    /// Asks and waits, at most `limit`. Dropping the future, and its deadline, tell the server not to go on.
    pub(crate) async fn request(
        &self,
        request: ClientRequest,
        limit: Duration,
        follow: Option<Follow>,
    ) -> Result<ServerResult, RequestFault> {
        let _permit = self.permit()?;
        let _under_way = self.work.token();
        let _alone = match self.alone.as_ref().filter(|_| follow.is_some()) {
            None => None,
            Some(alone) => match tokio::time::timeout(limit, alone.acquire()).await {
                Ok(permit) => permit.ok(),
                // Others took their time, which is no fault of the server's.
                Err(_elapsed) => return Err(RequestFault::Busy(1)),
            },
        };
        let outcome = tokio::time::timeout(limit, self.ask(request, follow)).await;
        outcome.unwrap_or_else(|_elapsed| {
            Err(RequestFault::TimedOut(
                u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
            ))
        })
    }

    async fn ask(
        &self,
        request: ClientRequest,
        follow: Option<Follow>,
    ) -> Result<ServerResult, RequestFault> {
        let mut handle = self
            .peer
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await
            .map_err(fault)?;
        let _followed = follow.map(|call| self.notices.follow(&handle.progress_token, call));
        let mut call_off = CallOff {
            target: Some((self.peer.clone(), handle.id.clone())),
            work: self.work.clone(),
        };
        let answer = (&mut handle.rx).await;
        call_off.target = None;
        match answer {
            Ok(answer) => answer.map_err(fault),
            Err(_gone) => Err(RequestFault::Closed("the server has gone".to_owned())),
        }
    }
}

/// Tells the server that a request is called off, unless it was answered.
#[derive(Debug)]
struct CallOff {
    target: Option<(Peer<RoleClient>, RequestId)>,
    work: TaskTracker,
}

impl Drop for CallOff {
    fn drop(&mut self) {
        let Some((peer, id)) = self.target.take() else {
            return;
        };
        // Without a runtime the process is ending, and the connection with it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let reason = "the caller does not wait any longer".to_owned();
        let params = CancelledNotificationParam::new(Some(id), Some(reason));
        let note = CancelledNotification::new(params);
        self.work.spawn_on(
            async move {
                drop(tokio::time::timeout(CANCEL, peer.send_notification(note.into())).await);
            },
            &runtime,
        );
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "an enum of the SDK, which grows with the protocol"
)]
fn fault(error: ServiceError) -> RequestFault {
    match error {
        ServiceError::McpError(ErrorData { code, message, .. }) => RequestFault::Refused {
            code: code.0,
            message: text::lines(&message, MESSAGE_CHARS_MAX),
        },
        // The answer of one call, and no reason to end the connection.
        ServiceError::TransportSend(error)
            if matches!(
                open::our_fault(error.error.as_ref()),
                Some(Fault::Http(tidegate_io::http::Error::TooLarge { .. }))
            ) =>
        {
            RequestFault::Refused {
                code: ErrorCode::INTERNAL_ERROR.0,
                message: text::line(&error.error.to_string(), MESSAGE_CHARS_MAX),
            }
        }
        ServiceError::TransportSend(error) => {
            RequestFault::Closed(text::line(&error.error.to_string(), MESSAGE_CHARS_MAX))
        }
        ServiceError::TransportClosed => RequestFault::Closed("the server has gone".to_owned()),
        ServiceError::UnexpectedResponse => RequestFault::Unexpected,
        other => RequestFault::Closed(text::line(&other.to_string(), MESSAGE_CHARS_MAX)),
    }
}
