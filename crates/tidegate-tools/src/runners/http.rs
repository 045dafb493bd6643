//! `http_get` and `http_post`: a request to a host that the row fixes.

use std::time::Duration;

use serde_json::Value;
use tidegate_core::{
    secret::Secret,
    tool::{FailureCode, ToolMode, ToolResult, ToolSpec},
};
use tidegate_io::http::{Error, OperatorClient};

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
    client: &OperatorClient,
    spec: &ToolSpec,
    values: &Values<'_>,
) -> ToolResult {
    let wanted = match template.render(values) {
        Ok(wanted) => wanted,
        Err(problem) => return ToolResult::failed(problem.code, problem.message),
    };
    let mut request = if spec.mode == ToolMode::HttpPost {
        client.post(&wanted.url)
    } else {
        client.get(&wanted.url)
    };
    for (name, value) in wanted.headers {
        // Any of them may hold the operator's credential.
        request = request.secret_header(&name, &Secret::new(value));
    }
    if spec.mode == ToolMode::HttpPost {
        request = request.json(wanted.body.unwrap_or(Value::Null).to_string());
    }
    // The client itself knows no limit beyond the one for connecting.
    let limit = Duration::from_millis(spec.timeout_ms);
    match tokio::time::timeout(limit, exchange(request, spec.output_bytes_max)).await {
        Err(_elapsed) => ToolResult::TimedOut {
            after_ms: spec.timeout_ms,
        },
        Ok(Ok(answer)) => answer.into_result(),
        Ok(Err(error)) => {
            tracing::warn!(tool = %spec.name, %error, "the service of `{}` did not answer", spec.name);
            let why = match error {
                Error::Connect(_) | Error::ConnectTimeout => "the service cannot be reached",
                Error::Broken(_) => "the connection to the service broke",
                Error::Build(_) | Error::Request(_) => "the request could not be sent",
                Error::TooLarge { .. } => "the answer is too long",
            };
            ToolResult::failed(FailureCode::Unsuccessful, format!("{why}."))
        }
    }
}

/// What the service said.
struct Answer {
    status: u16,
    is_success: bool,
    content_type: String,
    body: Vec<u8>,
    is_cut: bool,
}

async fn exchange(request: tidegate_io::http::Request, bytes_max: usize) -> Result<Answer, Error> {
    let response = request.send().await?;
    let status = response.status();
    let is_success = response.is_success();
    let content_type = response.header("content-type").unwrap_or("unknown").to_owned();
    let (body, is_cut) = response.read_prefix(bytes_max).await?;
    Ok(Answer {
        status,
        is_success,
        content_type,
        body: body.to_vec(),
        is_cut,
    })
}

impl Answer {
    fn into_result(self) -> ToolResult {
        let status = self.status;
        let text = text_of(&self.body, self.is_cut);
        if !self.is_success {
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
            return ToolResult::failed(
                FailureCode::NotText,
                format!(
                    "the service answered {status} with something that is not text ({}).",
                    self.content_type
                ),
            );
        };
        if self.is_cut {
            text.push_str("\n[cut: the answer is longer than is kept]");
        }
        ToolResult::Ok {
            text: format!("HTTP {status}\n\n{text}"),
        }
    }
}
