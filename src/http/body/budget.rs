//! How much memory the bodies of all requests under way may take.
//!
//! A bound on one body and a bound on requests do not make a bound on memory: their product is gigabytes. So a
//! request takes its share before its body is read, from what its head promises; where it promises nothing the
//! share grows with what arrives. It is given back when the answer has ended and nobody holds the body.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    body::Bytes,
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use hyper::body::Body as _;
use tidegate_core::id::KeyId;

use super::{FIRST_RESERVATION_BYTES, Holding, refuse};
use crate::http::{AppState, Options, auth::Identity, error::ApiError};

/// A body is there as bytes, as the messages that were read from it, as their copy for a model call and as the
/// text of that call.
const COPIES: u64 = 4;
/// One key has at most one part in this many.
const KEY_PARTS: u64 = 2;

/// What the bodies under way have taken.
#[derive(Debug)]
pub(in crate::http) struct Budget {
    bytes_max: u64,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    bytes: u64,
    /// The same by key; a key that has nothing is not here.
    keys: HashMap<KeyId, u64>,
}

/// What one request has taken; given back when the last clone of its `Arc` is dropped.
#[derive(Debug)]
pub(in crate::http) struct Share {
    budget: Arc<Budget>,
    key: KeyId,
    bytes: Mutex<u64>,
}

/// There is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

impl From<Full> for ApiError {
    fn from(_: Full) -> Self {
        Self::overloaded().explained(
            "the server has as many bytes of requests in memory as it may (`server.bodies_bytes_max`), or this \
             key has its part of them; try again soon",
        )
    }
}

impl Budget {
    pub(in crate::http) fn new(options: &Options) -> Arc<Self> {
        Arc::new(Self {
            bytes_max: options.bodies_bytes_max as u64,
            taken: Mutex::default(),
        })
    }

    /// Room for a body of so many bytes.
    fn take(self: &Arc<Self>, key: &KeyId, body_bytes: usize) -> Result<Arc<Share>, Full> {
        let share = Share {
            budget: Arc::clone(self),
            key: key.clone(),
            bytes: Mutex::new(0),
        };
        share.resize(body_bytes)?;
        Ok(Arc::new(share))
    }

    /// Exchanges what a request of the key has for something else.
    fn exchange(&self, key: &KeyId, old: u64, new: u64) -> Result<(), Full> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let all = taken.bytes.saturating_sub(old).saturating_add(new);
        let of_key = taken.keys.get(key).copied().unwrap_or_default();
        let of_key = of_key.saturating_sub(old).saturating_add(new);
        if new > old && (all > self.bytes_max || of_key > self.bytes_max / KEY_PARTS) {
            return Err(Full);
        }
        taken.bytes = all;
        if of_key == 0 {
            taken.keys.remove(key);
        } else {
            taken.keys.insert(key.clone(), of_key);
        }
        Ok(())
    }
}

impl Share {
    /// Makes it the share of a body of so many bytes. Where there is no room it stays as it was; a smaller one
    /// always fits.
    pub(super) fn resize(&self, body_bytes: usize) -> Result<(), Full> {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let new = COPIES.saturating_mul(body_bytes as u64);
        self.budget.exchange(&self.key, *bytes, new)?;
        *bytes = new;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Giving back cannot fail.
        let (Ok(()) | Err(Full)) = self.budget.exchange(&self.key, bytes, 0);
    }
}

/// The longest body that is read: no longer than a key's part of the budget has room for.
pub(super) fn longest(options: &Options) -> usize {
    let room = options.bodies_bytes_max as u64 / KEY_PARTS / COPIES;
    usize::try_from(room).map_or(options.body_bytes_max, |room| options.body_bytes_max.min(room))
}

/// The layer: takes a share for a request with a body, from what its head promises, and holds it until the
/// answer has ended. Lies inside of authentication, as shares are counted by key.
pub(in crate::http) async fn weigh(
    State(app): State<AppState>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(identity) = request.extensions().get::<Identity>() else {
        // A public route; none of them reads a body.
        return next.run(request).await;
    };
    let longest = longest(&app.parts.options);
    let body_bytes = match request.body().size_hint().exact() {
        Some(0) => return next.run(request).await,
        // A longer one is refused where it would be read.
        Some(bytes) => usize::try_from(bytes).map_or(0, |bytes| if bytes > longest { 0 } else { bytes }),
        None => FIRST_RESERVATION_BYTES.min(longest),
    };
    let share = match app.bodies.take(&identity.caller.key_id, body_bytes) {
        Ok(share) => share,
        Err(full) => {
            let (head, body) = request.into_parts();
            return refuse(&head.headers, body, full.into()).await.into_response();
        }
    };
    request.extensions_mut().insert(Arc::clone(&share));
    let response = next.run(request).await;
    response.map(|body| Holding::wrap(body, share))
}

/// Bytes that hold the share that was taken for them, whoever has them and for however long.
pub(super) fn weighed(bytes: Bytes, share: Arc<Share>) -> Bytes {
    struct Weighed {
        bytes: Bytes,
        _share: Arc<Share>,
    }

    impl AsRef<[u8]> for Weighed {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }

    Bytes::from_owner(Weighed { bytes, _share: share })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(bytes_max: usize) -> Arc<Budget> {
        Budget::new(&Options {
            bodies_bytes_max: bytes_max,
            ..Options::default()
        })
    }

    #[test]
    fn a_key_has_half_and_all_have_the_whole() {
        let budget = budget(800);
        let (a, b, c) = (KeyId::new("a"), KeyId::new("b"), KeyId::new("c"));
        let first = budget.take(&a, 100).unwrap();
        assert_eq!(budget.take(&a, 1).unwrap_err(), Full, "the key has its half");
        let second = budget.take(&b, 60).unwrap();
        assert!(budget.take(&c, 41).is_err(), "all have the whole");
        assert!(budget.take(&c, 40).is_ok(), "what was refused took nothing");
        drop(first);
        assert!(budget.take(&c, 100).is_ok());
        assert!(budget.take(&a, 100).is_ok());
        drop(second);
        let taken = budget.taken.lock().unwrap();
        assert_eq!((taken.bytes, taken.keys.len()), (0, 0), "nothing is left behind");
    }

    #[test]
    fn a_share_grows_into_what_room_there_is_and_stays_where_there_is_none() {
        let budget = budget(800);
        let key = KeyId::new("a");
        let share = budget.take(&key, 10).unwrap();
        assert!(share.resize(90).is_ok());
        assert!(share.resize(101).is_err());
        assert!(budget.take(&key, 11).is_err(), "it is as large as it was");
        assert!(share.resize(20).is_ok());
        assert!(budget.take(&key, 80).is_ok());
    }

    #[test]
    fn bytes_hold_their_share() {
        let budget = budget(800);
        let share = budget.take(&KeyId::new("a"), 100).unwrap();
        let bytes = weighed(Bytes::from_static(b"abc"), share);
        let part = bytes.slice(1..);
        drop(bytes);
        assert_eq!(budget.taken.lock().unwrap().bytes, 400);
        assert_eq!(part, b"bc".as_slice());
        drop(part);
        assert_eq!(budget.taken.lock().unwrap().bytes, 0);
    }

    #[test]
    fn no_body_is_longer_than_its_key_has_room_for() {
        let options = Options::default();
        assert_eq!(longest(&options), options.body_bytes_max);
        let tight = Options {
            bodies_bytes_max: 8000,
            ..options
        };
        assert_eq!(longest(&tight), 1000);
    }
}
