//! What a client sends and hears.

use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use super::Daemon;

/// One HTTP client. The provider of cryptography is chosen once a process.
pub(crate) fn http_client() -> reqwest::Client {
    tidegate_io::http::install_crypto();
    #[expect(clippy::disallowed_methods, reason = "the test is the client")]
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    client
}

/// A chat completion that is about to be sent.
#[derive(Debug)]
pub(crate) struct Chat<'a> {
    daemon: &'a Daemon,
    key: String,
    headers: Vec<(String, String)>,
    /// The body.
    pub(crate) body: Value,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: u16,
    /// The headers.
    pub(crate) headers: HeaderMap,
    /// The body as it was sent.
    pub(crate) text: String,
}

impl<'a> Chat<'a> {
    /// One human sentence.
    pub(crate) fn new(daemon: &'a Daemon, text: &str) -> Self {
        Self {
            daemon,
            key: daemon.key.clone(),
            headers: Vec::new(),
            body: json!({"model": "tidegate", "messages": [{"role": "user", "content": text}]}),
        }
    }

    /// With another key.
    pub(crate) fn key(mut self, key: &str) -> Self {
        key.clone_into(&mut self.key);
        self
    }

    /// With a header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a field of the body.
    pub(crate) fn with(mut self, field: &str, value: Value) -> Self {
        self.body[field] = value;
        self
    }

    /// As a stream.
    pub(crate) fn stream(self) -> Self {
        self.with("stream", Value::Bool(true))
    }

    /// Sends it and hands over the open response.
    pub(crate) async fn open(self) -> reqwest::Response {
        let mut request = self
            .daemon
            .client
            .post(self.daemon.url("/v1/chat/completions"))
            .bearer_auth(&self.key)
            .json(&self.body);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.send().await.unwrap()
    }

    /// Sends it and reads the answer to its end.
    pub(crate) async fn send(self) -> Answer {
        Answer::of(self.open().await).await
    }
}

impl Answer {
    /// Reads a response to its end.
    pub(crate) async fn of(response: reqwest::Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Self {
            status,
            headers,
            text: response.text().await.unwrap(),
        }
    }

    /// A header as text, empty where it is absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The text of the answer, streamed or not.
    pub(crate) fn content(&self) -> String {
        assert_eq!(self.status, 200, "{}", self.text);
        if !self.is_stream() {
            return self.json()["choices"][0]["message"]["content"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
        }
        chunks(&self.text)
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
            .collect()
    }

    /// Why it ended.
    pub(crate) fn finish_reason(&self) -> String {
        if !self.is_stream() {
            return self.json()["choices"][0]["finish_reason"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
        }
        chunks(&self.text)
            .iter()
            .find_map(|chunk| chunk["choices"][0]["finish_reason"].as_str().map(str::to_owned))
            .unwrap_or_default()
    }

    /// The calls for the client: id, name, arguments.
    pub(crate) fn calls(&self) -> Vec<(String, String, String)> {
        let from = |call: &Value| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            (
                text(&call["id"]),
                text(&call["function"]["name"]),
                text(&call["function"]["arguments"]),
            )
        };
        if !self.is_stream() {
            return self.json()["choices"][0]["message"]["tool_calls"]
                .as_array()
                .map(|calls| calls.iter().map(from).collect())
                .unwrap_or_default();
        }
        let mut calls: Vec<(String, String, String)> = Vec::new();
        for chunk in chunks(&self.text) {
            for call in chunk["choices"][0]["delta"]["tool_calls"]
                .as_array()
                .into_iter()
                .flatten()
            {
                let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
                if index == calls.len() {
                    calls.push(from(call));
                } else {
                    calls[index]
                        .2
                        .push_str(call["function"]["arguments"].as_str().unwrap_or_default());
                }
            }
        }
        calls
    }

    /// The tokens it cost.
    pub(crate) fn usage(&self) -> Value {
        if !self.is_stream() {
            return self.json()["usage"].clone();
        }
        chunks(&self.text)
            .into_iter()
            .find(|chunk| chunk["choices"].as_array().is_some_and(Vec::is_empty))
            .map(|chunk| chunk["usage"].clone())
            .unwrap_or_default()
    }

    /// Asserts an error envelope.
    pub(crate) fn assert_error(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        let body = self.json();
        assert_eq!(body["error"]["code"], code, "{body}");
        body
    }

    fn is_stream(&self) -> bool {
        self.headers
            .get("content-type")
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.starts_with("text/event-stream"))
    }
}

/// The chunks of a stream that must end with `[DONE]`.
pub(crate) fn chunks(text: &str) -> Vec<Value> {
    let mut events: Vec<&str> = text
        .split("\n\n")
        .filter(|event| !event.is_empty() && !event.starts_with(':'))
        .map(|event| {
            event
                .strip_prefix("data: ")
                .unwrap_or_else(|| panic!("not a data line: {event:?}"))
        })
        .collect();
    assert_eq!(events.pop(), Some("[DONE]"), "{text}");
    events
        .into_iter()
        .map(|event| serde_json::from_str(event).unwrap_or_else(|error| panic!("{error}: {event}")))
        .collect()
}
