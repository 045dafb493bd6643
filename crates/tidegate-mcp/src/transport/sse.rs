//! The older transport (MCP 2024-11-05, "HTTP with SSE"): answers come over one long stream, and the stream's first
//! event says where to send requests.
//!
//! That address comes from the server and the requests carry the operator's credentials, so it must be on the very
//! origin that the operator wrote.

use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
use tidegate_io::http::Response;
use url::Url;

use super::{
    Fault,
    events::Events,
    http::{Door, refusal},
};

/// How much of the answer to a request is read, in bytes: it says nothing.
const ANSWER_BYTES_MAX: usize = 4096;
/// Events before the one that names the address; more is no server of this kind.
const EVENTS_BEFORE_ENDPOINT_MAX: usize = 16;

/// An open stream and where its requests go.
#[derive(Debug)]
pub(crate) struct TwoWay {
    door: Door,
    endpoint: Url,
    stream: Option<Response>,
    events: Events,
}

impl TwoWay {
    /// Opens the stream and waits for its first event.
    pub(crate) async fn open(door: Door, url: &str) -> Result<Self, Fault> {
        let base = Url::parse(url).map_err(|error| Fault::Protocol(error.to_string()))?;
        let response = door
            .get(url)
            .await?
            .header("accept", "text/event-stream")
            .send()
            .await?;
        if !response.is_success() {
            return Err(refusal(response).await);
        }
        let mut stream = response;
        let mut events = Events::new(door.bytes_max());
        let mut seen = 0;
        loop {
            while let Some(event) = events.next() {
                seen += 1;
                if event.event.as_deref() == Some("endpoint") {
                    let endpoint = endpoint(&base, &event.data.unwrap_or_default())?;
                    return Ok(Self {
                        door,
                        endpoint,
                        stream: Some(stream),
                        events,
                    });
                }
                if seen > EVENTS_BEFORE_ENDPOINT_MAX {
                    return Err(Fault::Protocol("no event `endpoint` came first".to_owned()));
                }
            }
            let Some(piece) = stream.chunk().await? else {
                return Err(Fault::Protocol(
                    "the stream ended before the event `endpoint`".to_owned(),
                ));
            };
            events
                .push(&piece)
                .map_err(|too_long| Fault::Protocol(too_long.to_string()))?;
        }
    }
}

/// Where requests go: on the stream's own origin and nowhere else.
fn endpoint(base: &Url, text: &str) -> Result<Url, Fault> {
    let url = base
        .join(text.trim())
        .map_err(|_malformed| Fault::Protocol("the event `endpoint` holds no address".to_owned()))?;
    if url.origin() != base.origin() || !url.username().is_empty() || url.password().is_some() {
        return Err(Fault::Protocol(
            "the event `endpoint` names another host, which is not followed".to_owned(),
        ));
    }
    Ok(url)
}

impl Transport<RoleClient> for TwoWay {
    type Error = Fault;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Fault>> + Send + 'static {
        let door = self.door.clone();
        let endpoint = self.endpoint.clone();
        async move {
            let body = serde_json::to_vec(&item).map_err(|error| Fault::Message(error.to_string()))?;
            let response = door.post(endpoint.as_str()).await?.json(body).send().await?;
            if !response.is_success() {
                return Err(refusal(response).await);
            }
            // Read to its end, so that the connection can be used again.
            drop(response.read_prefix(ANSWER_BYTES_MAX).await);
            Ok(())
        }
    }

    /// Cancel safe: so is reading a piece, and what was read stays in `events`.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            while let Some(event) = self.events.next() {
                let is_message = matches!(event.event.as_deref(), None | Some("message"));
                let data = event.data.filter(|_| is_message).unwrap_or_default();
                if let Ok(message) = serde_json::from_str(&data) {
                    return Some(message);
                }
            }
            let piece = self.stream.as_mut()?.chunk().await.ok()??;
            self.events.push(&piece).ok()?;
        }
    }

    async fn close(&mut self) -> Result<(), Fault> {
        self.stream = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_stay_on_the_origin() {
        let base = Url::parse("https://mcp.example.org:8443/sse").unwrap();
        let go = |text: &str| endpoint(&base, text).map(|url| url.to_string());
        assert_eq!(
            go("/messages?id=1").unwrap(),
            "https://mcp.example.org:8443/messages?id=1"
        );
        assert_eq!(
            go("https://mcp.example.org:8443/m").unwrap(),
            "https://mcp.example.org:8443/m"
        );
        for text in [
            "http://mcp.example.org:8443/m",
            "https://mcp.example.org/m",
            "https://127.0.0.1:8443/m",
            "//evil.example/m",
            "https://mcp.example.org:8443@evil.example/m",
            "https://user@mcp.example.org:8443/m",
            "file:///etc/passwd",
        ] {
            assert!(go(text).is_err(), "{text}");
        }
    }
}
