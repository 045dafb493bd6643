//! Finds a local Ollama, where nothing is configured.

use std::time::Duration;

use serde_json::Value;
use tidegate_io::http::{OperatorClient, Options};

/// The longest answer that is read.
pub const PROBE_BYTES_MAX: usize = 1 << 20;

/// The models of the Ollama at `base_url` (such as `http://127.0.0.1:11434`), newest first as it lists them.
/// `None` where nothing answers within `timeout`, or what answers is no Ollama.
pub async fn probe_ollama(base_url: &str, timeout: Duration) -> Option<Vec<String>> {
    let options = Options {
        connect_timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        proxy: None,
    };
    let client = OperatorClient::new(&options).ok()?;
    let url = format!("{}/api/tags", base_url.trim_end_matches('/'));
    let answer = async {
        let response = client.get(&url).send().await.ok()?;
        if !response.is_success() {
            return None;
        }
        response.read_bounded(PROBE_BYTES_MAX).await.ok()
    };
    let body = tokio::time::timeout(timeout, answer).await.ok()??;
    let value: Value = serde_json::from_slice(&body).ok()?;
    let models = value.get("models")?.as_array()?;
    Some(
        models
            .iter()
            .filter_map(|model| Some(model.get("name")?.as_str()?.to_owned()))
            .collect(),
    )
}
