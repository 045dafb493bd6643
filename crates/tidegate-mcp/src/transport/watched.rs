//! What a server says unasked, taken out of the stream: progress and log lines go to the run whose call they belong
//! to, changed lists become a wake-up, and what comes too fast is dropped. The SDK, which starts a task for each
//! message, sees the rest.
//!
//! Progress names its call. A log line names nothing, so a run is shown it only while no other run has a call at the
//! server, nor had one just before: what a server logs may be somebody else's.

#![expect(
    deprecated,
    reason = "a later revision of the protocol drops log messages; servers of the earlier ones send them"
)]

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rmcp::{
    RoleClient,
    model::{
        ClientJsonRpcMessage, LoggingLevel, NumberOrString, ProgressNotificationParam, ProgressToken,
        ServerJsonRpcMessage, ServerNotification,
    },
    transport::Transport,
};
use tidegate_core::id::RunId;
use tidegate_gate::{CallHost, Notice};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::DropGuard;

use crate::{
    event::{Events, Kind, TEXT_CHARS_MAX},
    text,
};

/// Notifications that are taken in a second, and how many at once; a server that says more is not listened to.
const NOTIFICATIONS_PER_SECOND: f64 = 50.0;
const NOTIFICATIONS_BURST: f64 = 100.0;
/// The same for requests, all but pings of which are refused anyway.
const REQUESTS_PER_SECOND: f64 = 10.0;
const REQUESTS_BURST: f64 = 20.0;
/// How long after a run's last call a log line may still be about it.
const LATE: Duration = Duration::from_secs(1);

/// The call that a request belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Follow {
    /// The run that made it.
    pub(crate) run: RunId,
    /// The run, as the call sees it.
    pub(crate) host: Arc<dyn CallHost>,
}

/// Calls under way, and the runs that had one a moment ago.
#[derive(Debug, Default)]
struct Calls {
    by_token: HashMap<String, Follow>,
    left: Vec<(RunId, Instant)>,
}

/// What is listened for at one connection.
#[derive(Debug)]
pub(crate) struct Notices {
    server: String,
    events: Events,
    notifications: Bucket,
    requests: Bucket,
    calls: Mutex<Calls>,
    tools_changed: Notify,
    dropped: AtomicU64,
}

impl Notices {
    pub(crate) fn new(server: &str, events: Events) -> Self {
        Self {
            server: server.to_owned(),
            events,
            notifications: Bucket::new(NOTIFICATIONS_PER_SECOND, NOTIFICATIONS_BURST),
            requests: Bucket::new(REQUESTS_PER_SECOND, REQUESTS_BURST),
            calls: Mutex::default(),
            tools_changed: Notify::new(),
            dropped: AtomicU64::new(0),
        }
    }

    /// Resolves when the server has said that its tools have changed since the last time.
    pub(crate) async fn tools_changed(&self) {
        self.tools_changed.notified().await;
    }

    /// How many messages were dropped because they came too fast.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// From now on, progress under this token is that of this call, until the guard goes.
    pub(crate) fn follow(self: &Arc<Self>, token: &ProgressToken, call: Follow) -> Followed {
        let key = key(token);
        self.calls().by_token.insert(key.clone(), call);
        Followed {
            notices: Arc::clone(self),
            key,
        }
    }

    /// The only call under way; `None` where there is none, or where there are several and nobody can tell which.
    pub(crate) fn only_call(&self) -> Option<Arc<dyn CallHost>> {
        let calls = self.calls();
        let mut all = calls.by_token.values();
        let only = all.next()?;
        all.next().is_none().then(|| Arc::clone(&only.host))
    }

    /// A call of the only run that a log line can be about.
    fn only_run(&self) -> Option<Arc<dyn CallHost>> {
        let calls = self.calls();
        let call = calls.by_token.values().next()?;
        let is_alone = calls.by_token.values().all(|other| other.run == call.run)
            && calls
                .left
                .iter()
                .all(|(run, at)| *run == call.run || at.elapsed() > LATE);
        is_alone.then(|| Arc::clone(&call.host))
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What of a message the SDK is to see.
    fn pass(&self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match message {
            ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_) => Some(message),
            ServerJsonRpcMessage::Request(_) => self.within(&self.requests).then_some(message),
            ServerJsonRpcMessage::Notification(mut notification) => {
                match notification.notification {
                    // A flag, however often it is set.
                    ServerNotification::ToolListChangedNotification(_) => {
                        self.tools_changed.notify_one();
                        None
                    }
                    ServerNotification::ProgressNotification(progress) => {
                        if self.within(&self.notifications) {
                            self.progress(progress.params);
                        }
                        None
                    }
                    ServerNotification::LoggingMessageNotification(log) => {
                        if self.within(&self.notifications) {
                            let text = match log.params.data {
                                serde_json::Value::String(text) => text,
                                data @ (serde_json::Value::Null
                                | serde_json::Value::Bool(_)
                                | serde_json::Value::Number(_)
                                | serde_json::Value::Array(_)
                                | serde_json::Value::Object(_)) => data.to_string(),
                            };
                            let (level, text) = (level(log.params.level), text::line(&text, TEXT_CHARS_MAX));
                            if let Some(host) = self.only_run() {
                                host.notice(Notice::Log {
                                    level,
                                    text: text.clone(),
                                });
                            }
                            self.events.send(&self.server, Kind::Log { level, text });
                        }
                        None
                    }
                    // Of the SDK's own business: requests and subscriptions that end.
                    kept @ (ServerNotification::CancelledNotification(_)
                    | ServerNotification::SubscriptionsAcknowledgedNotification(_)) => {
                        notification.notification = kept;
                        self.within(&self.notifications)
                            .then_some(ServerJsonRpcMessage::Notification(notification))
                    }
                    // Nothing here follows these.
                    ServerNotification::ResourceUpdatedNotification(_)
                    | ServerNotification::ResourceListChangedNotification(_)
                    | ServerNotification::PromptListChangedNotification(_)
                    | ServerNotification::TaskStatusNotification(_)
                    | ServerNotification::CustomNotification(_)
                    | _ => None,
                }
            }
        }
    }

    /// Whether there is room for notifications, so that none need be dropped.
    pub(crate) fn is_calm(&self) -> bool {
        self.notifications.has_room(Instant::now())
    }

    /// Whether a notification of this name is dropped because there are too many, before anybody has read the rest of
    /// it.
    pub(crate) fn drops(&self, method: &str) -> bool {
        if self.is_calm() {
            return false;
        }
        if method == "notifications/tools/list_changed" {
            self.tools_changed.notify_one();
        }
        self.dropped.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn within(&self, bucket: &Bucket) -> bool {
        let fits = bucket.take(Instant::now());
        if !fits {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }

    fn progress(&self, progress: ProgressNotificationParam) {
        let key = key(&progress.progress_token);
        let Some(call) = self.calls().by_token.get(&key).cloned() else {
            return;
        };
        call.host.notice(Notice::Progress {
            progress: progress.progress,
            total: progress.total,
            message: progress
                .message
                .map(|message| text::line(&message, TEXT_CHARS_MAX)),
        });
    }
}

/// A call whose progress is followed.
#[derive(Debug)]
pub(crate) struct Followed {
    notices: Arc<Notices>,
    key: String,
}

impl Drop for Followed {
    fn drop(&mut self) {
        let mut calls = self.notices.calls();
        let Some(call) = calls.by_token.remove(&self.key) else {
            return;
        };
        // One place a run, and none for long.
        calls
            .left
            .retain(|(run, at)| *run != call.run && at.elapsed() <= LATE);
        calls.left.push((call.run, Instant::now()));
    }
}

fn key(token: &ProgressToken) -> String {
    match &token.0 {
        NumberOrString::Number(number) => number.to_string(),
        NumberOrString::String(text) => text.chars().take(64).collect(),
    }
}

fn level(level: LoggingLevel) -> &'static str {
    match level {
        LoggingLevel::Debug => "debug",
        LoggingLevel::Info => "info",
        LoggingLevel::Notice => "notice",
        LoggingLevel::Warning => "warning",
        LoggingLevel::Error => "error",
        LoggingLevel::Critical => "critical",
        LoggingLevel::Alert => "alert",
        LoggingLevel::Emergency => "emergency",
    }
}

/// So many a second, and so many at once.
#[derive(Debug)]
struct Bucket {
    per_second: f64,
    burst: f64,
    level: Mutex<Option<(f64, Instant)>>,
}

impl Bucket {
    fn new(per_second: f64, burst: f64) -> Self {
        Self {
            per_second,
            burst,
            level: Mutex::new(None),
        }
    }

    fn tokens(&self, level: Option<(f64, Instant)>, now: Instant) -> f64 {
        let (tokens, since) = level.unwrap_or((self.burst, now));
        let fresh = now.saturating_duration_since(since).as_secs_f64() * self.per_second;
        (tokens + fresh).min(self.burst)
    }

    fn has_room(&self, now: Instant) -> bool {
        let level = *self.level.lock().unwrap_or_else(PoisonError::into_inner);
        self.tokens(level, now) >= 1.0
    }

    fn take(&self, now: Instant) -> bool {
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let tokens = self.tokens(*level, now);
        let fits = tokens >= 1.0;
        *level = Some((if fits { tokens - 1.0 } else { tokens }, now));
        fits
    }
}

/// A transport whose unasked messages go to [`Notices`].
#[derive(Debug)]
pub(crate) struct Watched<T> {
    inner: T,
    notices: Arc<Notices>,
    /// Goes with the transport: whoever waits for the end of the connection is told.
    _closed: DropGuard,
}

impl<T> Watched<T> {
    pub(crate) fn new(inner: T, notices: Arc<Notices>, closed: DropGuard) -> Self {
        Self {
            inner,
            notices,
            _closed: closed,
        }
    }
}

impl<T: Transport<RoleClient> + 'static> Transport<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            // Messages that are there already must not keep the thread to themselves.
            tokio::task::consume_budget().await;
            let message = self.inner.receive().await?;
            if let Some(message) = self.notices.pass(message) {
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_a_rate_after_its_burst() {
        let bucket = Bucket::new(10.0, 5.0);
        let start = Instant::now();
        assert_eq!((0..100).filter(|_| bucket.take(start)).count(), 5);
        let later = start + Duration::from_secs(1);
        assert_eq!((0..100).filter(|_| bucket.take(later)).count(), 5);
        let fits = (0..1000)
            .filter(|step| bucket.take(later + Duration::from_millis(10 * step)))
            .count();
        assert!((95..=105).contains(&fits), "{fits}");
    }

    #[test]
    fn a_flood_is_dropped_and_counted_and_answers_pass() {
        let events = Events::new();
        let mut receiver = events.receiver();
        let notices = Notices::new("s", events);
        let log: ServerJsonRpcMessage = serde_json::from_str(
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#,
        )
        .unwrap();
        for _ in 0..10_000 {
            assert!(notices.pass(log.clone()).is_none());
        }
        assert!(notices.dropped() > 9_000);
        assert!(receiver.try_recv().is_ok());
        let answer: ServerJsonRpcMessage =
            serde_json::from_str(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).unwrap();
        assert!(notices.pass(answer).is_some());
    }
}
