//! The memory API as a client calls it.

use serde_json::{Value, json};

use crate::support::Daemon;

/// A client with one key, and perhaps a user in the header that the operator has named.
#[derive(Debug, Clone)]
pub(super) struct Api<'d> {
    daemon: &'d Daemon,
    key: String,
    header: Option<String>,
}

/// The header that names users, where a test has one.
pub(super) const HEADER: &str = "x-user-id";

impl<'d> Api<'d> {
    /// With the first key, which has every scope.
    pub(super) fn new(daemon: &'d Daemon) -> Self {
        Self::with_key(daemon, &daemon.key)
    }

    pub(super) fn with_key(daemon: &'d Daemon, key: &str) -> Self {
        Self {
            daemon,
            key: key.to_owned(),
            header: None,
        }
    }

    /// With a fresh key of these scopes.
    pub(super) async fn of(daemon: &'d Daemon, scopes: Value) -> Self {
        let key = daemon.make_key(json!({"name": "client", "scopes": scopes})).await;
        Self::with_key(daemon, &key)
    }

    /// On behalf of a user.
    pub(super) fn on_behalf_of(mut self, user: &str) -> Self {
        self.header = Some(user.to_owned());
        self
    }

    /// The key.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// The key's public id.
    pub(super) fn key_id(&self) -> &str {
        self.key.split('_').nth(1).unwrap()
    }

    /// One request, with a body unless it is null: status and answer.
    pub(super) async fn call(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let mut request = self.daemon.ask(method, path).bearer_auth(&self.key);
        if let Some(user) = &self.header {
            request = request.header(HEADER, user);
        }
        if !body.is_null() {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or(Value::Null))
    }

    /// One that must succeed.
    pub(super) async fn ok(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.call(method, path, body).await;
        assert_eq!(status, 200, "{method} {path}: {answer}");
        answer
    }

    /// One that must be refused with this status and code; gives the error.
    pub(super) async fn refused(
        &self,
        method: &str,
        path: &str,
        body: Value,
        expected: (u16, &str),
    ) -> Value {
        let (status, answer) = self.call(method, path, body).await;
        let error = answer["error"].clone();
        assert_eq!(
            (status, error["code"].as_str().unwrap_or_default()),
            expected,
            "{method} {path}: {answer}"
        );
        error
    }

    /// Tells a fact about a user; gives it as it is then.
    pub(super) async fn tell(&self, user: &str, kind: &str, value: &str) -> Value {
        let path = format!("/v1/memory/facts{}", of_user(user));
        self.ok("POST", &path, json!({"kind": kind, "value": value}))
            .await
    }

    /// What is remembered of a user, as values in order.
    pub(super) async fn values(&self, user: &str) -> Vec<String> {
        let list = self
            .ok("GET", &format!("/v1/memory{}", of_user(user)), Value::Null)
            .await;
        let facts = list["data"].as_array().unwrap();
        facts.iter().map(|fact| text(&fact["value"])).collect()
    }
}

/// The user as a query string; the caller's own where the name is empty.
pub(super) fn of_user(user: &str) -> String {
    if user.is_empty() {
        return String::new();
    }
    format!("?user={}", encoded(user))
}

/// Every byte as a percent escape.
pub(super) fn encoded(text: &str) -> String {
    use std::fmt::Write as _;

    text.bytes().fold(String::new(), |mut all, byte| {
        write!(all, "%{byte:02X}").unwrap();
        all
    })
}

/// A JSON text as it is.
pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
