//! `http_get` and `http_post`: a request to a host that the row fixes.
//!
//! The arguments are the model's, so the request goes through the guarded client. The row's own texts, a key in
//! a header among them, may go to the row's host and nowhere else; redirects are not followed, since the row
//! names one host.

use serde_json::Value;
use tidegate_core::tool::{FailureCode, ToolMode, ToolResult, ToolSpec};
use tidegate_gate::Denial;
use tidegate_io::guarded::{Client, Error, Response};

use crate::{
    arguments::Values,
    output::{prefix, text_of},
    template::HttpTemplate,
};

/// How much of an error's body the model sees, in bytes.
const ERROR_BODY_BYTES: usize = 2000;

/// Runs the tool.
pub(crate) async fn run(
    template: &HttpTemplate,
    client: &Client,
    spec: &ToolSpec,
    values: &Values<'_>,
) -> ToolResult {
    let wanted = match template.render(values) {
        Ok(wanted) => wanted,
        Err(problem) => return ToolResult::failed(problem.code, problem.message),
    };
    let policy = client.policy();
    let destination = match policy.address.check_named(&wanted.url, template.base()) {
        Ok(destination) => destination,
        Err(fault) => return refusal(fault.denial()),
    };
    let mut request = if spec.mode == ToolMode::HttpPost {
        client.post(destination)
    } else {
        client.get(destination)
    };
    for (name, value) in &wanted.headers {
        request = request.header(name, value);
    }
    if spec.mode == ToolMode::HttpPost {
        let body = wanted.body.unwrap_or(Value::Null).to_string();
        request = if wanted
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
        {
            request.raw_body(body)
        } else {
            request.body("application/json", body)
        };
    }
    let sent = request
        .own(template.own_texts())
        .bytes_max(spec.output_bytes_max)
        .redirects_max(0)
        .timeout_ms(spec.timeout_ms)
        .any_content_type()
        .send()
        .await;
    match sent {
        Ok(response) => result(&response),
        Err(error) => failure(&error, spec),
    }
}

/// A refusal by a layer.
pub(super) fn refusal(denial: Denial) -> ToolResult {
    ToolResult::Refused {
        floor: denial.floor.to_owned(),
        reason: denial.reason,
    }
}

/// What the model is told of a request that failed.
pub(super) fn failure(error: &Error, spec: &ToolSpec) -> ToolResult {
    if let Some(denial) = error.denial() {
        return refusal(denial);
    }
    tracing::warn!(tool = %spec.name, %error, "the service of `{}` did not answer", spec.name);
    let why = match error {
        Error::Timeout(_) => {
            return ToolResult::TimedOut {
                after_ms: spec.timeout_ms,
            };
        }
        Error::ContentType { .. } => {
            return ToolResult::failed(FailureCode::NotText, format!("{error}."));
        }
        Error::Connect(_) | Error::Lookup(_) => "the service cannot be reached",
        Error::Broken(_) => "the connection to the service broke",
        Error::Build(_) | Error::Request(_) => "the request could not be sent",
        Error::Redirect(_) => "the service sends the request elsewhere, where it is not followed",
        Error::Encoding => "the answer is packed in a way that cannot be read",
        Error::Refused(_) | Error::Outbound(_) => "the request was refused",
    };
    ToolResult::failed(FailureCode::Unsuccessful, format!("{why}."))
}

fn result(response: &Response) -> ToolResult {
    let status = response.status;
    let text = text_of(&response.body, response.is_cut);
    if !response.is_success() {
        let said = text.unwrap_or_default();
        let said = prefix(said.trim(), ERROR_BODY_BYTES);
        let message = match (status, said) {
            (300..400, _) => format!("the service answered {status}, a redirect, which is not followed."),
            (_, "") => format!("the service answered {status}."),
            (_, said) => format!("the service answered {status}:\n{said}"),
        };
        let code = if status == 404 {
            FailureCode::NotFound
        } else {
            FailureCode::Unsuccessful
        };
        return ToolResult::failed(code, message);
    }
    let Some(mut text) = text else {
        let content_type = match response.content_type.as_str() {
            "" => "unknown",
            named => named,
        };
        return ToolResult::failed(
            FailureCode::NotText,
            format!("the service answered {status} with something that is not text ({content_type})."),
        );
    };
    if response.is_cut {
        text.push_str("\n[cut: the answer is longer than is kept]");
    }
    ToolResult::ok(format!("HTTP {status}\n\n{text}"))
}
