//! `mcp reload`: the running daemon is asked over its own API.

use std::time::Duration;

use serde_json::Value;
use tidegate_io::http::OperatorClient;

use super::serve;
use crate::{
    app,
    cli::{
        Place,
        error::Error,
        output::{self, Out},
    },
    config::Settings,
};

/// How long the daemon may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;

pub(super) async fn reload(
    place: &Place<'_>,
    settings: &Settings,
    is_json: bool,
    out: Out<'_>,
) -> Result<(), Error> {
    let key = serve::key(place, settings)?;
    let client = OperatorClient::new(&tidegate_io::http::Options::default())
        .map_err(|error| app::Error::Part(error.to_string()))?;
    let url = format!("http://{}/v1/admin/mcp/reload", settings.bind);
    let asking = async {
        let response = client.post(&url).bearer(&key).send().await?;
        let is_success = response.is_success();
        Ok::<_, tidegate_io::http::Error>((is_success, response.read_bounded(ANSWER_BYTES_MAX).await?))
    };
    let answer = tokio::time::timeout(TIMEOUT, asking).await;
    let no_answer = |problem: String| {
        Error::Refused(format!(
            "no daemon answers at {url} ({problem}); without one there is nothing to reload: it reads the file when it starts"
        ))
    };
    let (is_success, body) = answer
        .map_err(|_elapsed| no_answer(format!("not within {} s", TIMEOUT.as_secs())))?
        .map_err(|error| no_answer(error.to_string()))?;
    let view: Value = serde_json::from_slice(&body)
        .map_err(|_| no_answer("its answer is none of tidegate's".to_owned()))?;
    if !is_success {
        let message = view["error"]["message"].as_str().unwrap_or("it says no reason");
        return Err(Error::Refused(format!(
            "the daemon refuses: {}",
            output::plain(message)
        )));
    }
    if is_json {
        return Ok(output::json(out, &view)?);
    }
    for (name, key) in [("Started", "started"), ("Stopped", "stopped"), ("Kept", "kept")] {
        writeln!(out, "{name:<8} {}", output::plain(&words(&view[key])))?;
    }
    for key in ["problems", "warnings"] {
        for note in view[key].as_array().into_iter().flatten() {
            writeln!(out, "{}", output::plain(note.as_str().unwrap_or_default()))?;
        }
    }
    Ok(())
}

fn words(list: &Value) -> String {
    let words: Vec<&str> = list
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if words.is_empty() {
        "none".to_owned()
    } else {
        words.join(", ")
    }
}
