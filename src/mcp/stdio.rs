//! The server on standard input and output, for a client that starts it as its own process.

mod paced;

use std::{
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use rmcp::{ErrorData, service::ServerInitializeError, transport::async_rw::AsyncRwTransport};
use tidegate_core::{
    caller::Scope,
    clock::Clock,
    id::{UserId, UserIdFault},
    port::KeyStore,
    secret::Secret,
};
use tidegate_engine::Lease;

use paced::Paced;

use super::{Asker, Handler, Server};
use crate::keys::admit::{self, NotAdmitted};

/// The longest message, in bytes; a longer one is dropped.
const LINE_BYTES_MAX: usize = 4 << 20;

/// Why nobody is served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The key does not open.
    #[error("{0}; TIDEGATE_KEY holds a key as `tidegate keys create` makes one, itself or as file:PATH")]
    Key(#[from] NotAdmitted),
    /// It opens nothing of this.
    #[error("the key in TIDEGATE_KEY has neither the scope `tools` nor `chat`")]
    Scope,
    /// It has made as many requests as it may.
    #[error("the key has made its {0} requests of this minute; wait and try again")]
    Rate(NonZeroU32),
    /// The end user's name is none.
    #[error(transparent)]
    User(#[from] UserIdFault),
    /// The client said something else than it must at the beginning.
    #[error(
        "the client did not open the protocol: its first message must be `initialize`, or a request of the newer \
         generation"
    )]
    Opening,
}

/// Who speaks on standard input: a key, looked at again for every message.
#[derive(Debug)]
pub struct Door {
    /// The keys.
    keys: Arc<dyn KeyStore>,
    /// The wall clock.
    clock: Arc<dyn Clock>,
    /// The key.
    key: Secret,
    /// The person behind it, where the command line names one.
    user: Option<String>,
    /// The key's requests a minute, as long as the key's limit stays the same.
    limiter: Mutex<Option<(NonZeroU32, DefaultDirectRateLimiter)>>,
}

impl Door {
    /// A door for that key.
    pub fn new(keys: Arc<dyn KeyStore>, clock: Arc<dyn Clock>, key: Secret, user: Option<String>) -> Self {
        Self {
            keys,
            clock,
            key,
            user,
            limiter: Mutex::default(),
        }
    }

    /// The key as it is now.
    pub(super) async fn admit(self: Arc<Self>) -> Result<Asker, ErrorData> {
        self.look().await.map_err(|error| {
            let Error::Key(NotAdmitted::Store(problem)) = &error else {
                return ErrorData::invalid_request(error.to_string(), None);
            };
            tracing::error!(%problem, "a key could not be looked up");
            ErrorData::internal_error("the key cannot be looked up at the moment", None)
        })
    }

    async fn look(self: &Arc<Self>) -> Result<Asker, Error> {
        let now = self.clock.now();
        let record = admit::admit(&*self.keys, self.key.expose(), now).await?;
        let opens = |scope| record.policy.scopes.contains(&scope);
        if !opens(Scope::Chat) && !opens(Scope::Tools) {
            return Err(Error::Scope);
        }
        if let Some(limit) = record.policy.requests_per_minute.and_then(NonZeroU32::new) {
            self.count(limit)?;
        }
        self.keys.touch(&record.id, now);
        let user = UserId::of(&record.id, self.user.as_deref())?;
        Ok(Asker {
            on_disconnect: record.policy.on_disconnect,
            caller: admit::caller(record, user),
            mode: None,
            conversation: None,
            lease: Lease::default(),
            door: Some(Arc::clone(self)),
        })
    }

    fn count(&self, limit: NonZeroU32) -> Result<(), Error> {
        let mut limiter = self.limiter.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || (limit, RateLimiter::direct(Quota::per_minute(limit)));
        let (of, counter) = limiter.get_or_insert_with(fresh);
        if *of != limit {
            (*of, *counter) = fresh();
        }
        counter.check().map_err(|_| Error::Rate(limit))
    }
}

/// Serves until the client closes its end, or the process is to stop.
pub async fn serve(server: Server, door: Door) -> Result<(), Error> {
    let door = Arc::new(door);
    door.look().await?;
    let stop = server.shutdown.clone();
    let (read, write) = rmcp::transport::stdio_pipes();
    let transport = AsyncRwTransport::new_server(read, write).with_max_line_length(LINE_BYTES_MAX);
    let transport = Paced::new(transport);
    let running = rmcp::service::serve_server_with_ct(Handler::at(server, door), transport, stop).await;
    match running {
        Ok(running) => {
            if let Err(problem) = running.waiting().await {
                tracing::error!(%problem, "the connection broke");
            }
            Ok(())
        }
        // It left, or was told to, before it began.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(problem) => {
            // It may repeat what the client said.
            tracing::debug!(%problem, "a client did not open the protocol");
            Err(Error::Opening)
        }
    }
}
