//! How much at once, and how often: requests under way, requests a minute and key, bytes promised.

use std::{
    collections::HashMap,
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use governor::{
    Quota, RateLimiter,
    clock::{Clock as _, DefaultClock},
    middleware::StateInformationMiddleware,
    state::{InMemoryState, NotKeyed},
};
use tidegate_core::id::KeyId;

use super::{AppState, auth, body::Holding, error::ApiError};

/// After a minute without a request a per-minute limiter is full again, and may be forgotten.
const MINUTE: Duration = Duration::from_mins(1);

type Limiter = RateLimiter<NotKeyed, InMemoryState, DefaultClock, StateInformationMiddleware>;

/// Refuses a request where as many are under way as may be, or the daemon is stopping. The permit is held until
/// the answer's body has ended: a stream is under way for as long as it streams. Health has no part in this.
pub(super) async fn shed(State(app): State<AppState>, request: Request, next: Next) -> Response {
    if auth::is_public(request.extensions().get::<MatchedPath>()) {
        return next.run(request).await;
    }
    if app.parts.shutdown.is_cancelled() {
        return ApiError::stopping().into_response();
    }
    let Ok(permit) = Arc::clone(&app.requests).try_acquire_owned() else {
        return ApiError::overloaded().into_response();
    };
    let response = next.run(request).await;
    response.map(|body| Holding::wrap(body, permit))
}

/// One limiter a key, made anew when the key's limit changes.
#[derive(Debug)]
pub(super) struct RequestLimits {
    keys: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    entries: HashMap<KeyId, Entry>,
    swept: Instant,
}

#[derive(Debug)]
struct Entry {
    per_minute: NonZeroU32,
    limiter: Arc<Limiter>,
    used: Instant,
}

/// How a key stands after a request was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Allowance {
    limit: u32,
    remaining: u32,
}

impl RequestLimits {
    pub(super) fn new() -> Self {
        Self {
            keys: Mutex::new(Table {
                entries: HashMap::new(),
                swept: Instant::now(),
            }),
        }
    }

    /// Counts one request of the key. Keys are counted after they were authenticated, so that the table is never
    /// larger than the table of keys.
    pub(super) fn check(&self, key: &KeyId, per_minute: u32) -> Result<Allowance, ApiError> {
        let Some(limit) = NonZeroU32::new(per_minute) else {
            return Err(ApiError::rate_limited(0, MINUTE.as_secs()));
        };
        let limiter = self.limiter(key, limit);
        match limiter.check() {
            Ok(state) => Ok(Allowance {
                limit: per_minute,
                remaining: state.remaining_burst_capacity(),
            }),
            Err(refusal) => {
                let wait = refusal.wait_time_from(DefaultClock::default().now());
                Err(ApiError::rate_limited(per_minute, wait.as_secs() + 1))
            }
        }
    }

    fn limiter(&self, key: &KeyId, per_minute: NonZeroU32) -> Arc<Limiter> {
        let now = Instant::now();
        let mut table = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if now.duration_since(table.swept) >= MINUTE {
            table.swept = now;
            table
                .entries
                .retain(|_, entry| now.duration_since(entry.used) < MINUTE);
            table.entries.shrink_to_fit();
        }
        let fresh = || Entry {
            per_minute,
            limiter: Arc::new(
                RateLimiter::direct(Quota::per_minute(per_minute))
                    .with_middleware::<StateInformationMiddleware>(),
            ),
            used: now,
        };
        let entry = table.entries.entry(key.clone()).or_insert_with(fresh);
        if entry.per_minute != per_minute {
            *entry = fresh();
        }
        entry.used = now;
        Arc::clone(&entry.limiter)
    }
}

impl Allowance {
    /// The `x-ratelimit-…-requests` headers.
    pub(super) fn write(self, headers: &mut HeaderMap) {
        headers.insert(
            HeaderName::from_static("x-ratelimit-limit-requests"),
            self.limit.into(),
        );
        headers.insert(
            HeaderName::from_static("x-ratelimit-remaining-requests"),
            self.remaining.into(),
        );
        if let Ok(reset) = HeaderValue::from_str(&self.reset()) {
            headers.insert(HeaderName::from_static("x-ratelimit-reset-requests"), reset);
        }
    }

    /// When the whole limit is there again, in the form `12ms`, `1s`, `6m0s`.
    fn reset(self) -> String {
        let used = u64::from(self.limit.saturating_sub(self.remaining));
        let wait_ms = used * 60_000 / u64::from(self.limit.max(1));
        match (wait_ms / 60_000, wait_ms / 1000 % 60) {
            (0, 0) => format!("{wait_ms}ms"),
            (0, seconds) => format!("{seconds}s"),
            (minutes, seconds) => format!("{minutes}m{seconds}s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_stopped_at_its_limit_and_no_other_with_it() {
        let limits = RequestLimits::new();
        let (a, b) = (KeyId::new("a"), KeyId::new("b"));
        assert_eq!(limits.check(&a, 2).unwrap().remaining, 1);
        assert_eq!(limits.check(&a, 2).unwrap().remaining, 0);
        let refused = limits.check(&a, 2).unwrap_err();
        assert_eq!(
            (refused.status(), refused.body().code),
            (429, Some("rate_limit_exceeded"))
        );
        assert!(limits.check(&b, 2).is_ok());
        assert!(limits.check(&a, 3).is_ok(), "a changed limit counts anew");
        assert!(limits.check(&a, 0).is_err());
    }

    #[test]
    fn the_reset_time_is_a_duration() {
        let table = [
            (60, 60, "0ms"),
            (600, 599, "100ms"),
            (60, 59, "1s"),
            (1, 0, "1m0s"),
        ];
        for (limit, remaining, text) in table {
            assert_eq!(Allowance { limit, remaining }.reset(), text);
        }
    }
}
