//! `curl` against the release binary: what a person types first must work as it is printed.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Count;
use super::sdk::with_scripted;
use crate::daemon::Daemon;
use crate::process;

/// One call and what must come of it.
struct Case {
    name: &'static str,
    method: &'static str,
    path: &'static str,
    with_key: bool,
    headers: &'static [&'static str],
    body: Option<fn() -> Value>,
    status: u16,
    /// Text that the answer must hold.
    holds: &'static str,
}

const fn case(
    name: &'static str,
    method: &'static str,
    path: &'static str,
    status: u16,
    holds: &'static str,
) -> Case {
    Case {
        name,
        method,
        path,
        with_key: true,
        headers: &[],
        body: None,
        status,
        holds,
    }
}

fn question() -> Value {
    json!({"model": "tidegate", "messages": [{"role": "user", "content": "hello"}]})
}

fn streamed() -> Value {
    let mut body = question();
    body["stream"] = true.into();
    body
}

fn no_messages() -> Value {
    json!({"model": "tidegate"})
}

const CASES: [Case; 14] = [
    Case {
        with_key: false,
        ..case("health", "GET", "/health", 200, "")
    },
    Case {
        with_key: false,
        ..case("live", "GET", "/health/live", 200, "")
    },
    Case {
        with_key: false,
        ..case("ready", "GET", "/health/ready", 200, "")
    },
    case("models", "GET", "/v1/models", 200, "\"tidegate\""),
    case("models without /v1", "GET", "/models", 200, "\"tidegate\""),
    Case {
        with_key: false,
        ..case("no key", "GET", "/v1/models", 401, "invalid_request_error")
    },
    case(
        "an address that does not exist",
        "GET",
        "/v1/nothing",
        404,
        "\"error\"",
    ),
    case(
        "a method that does not fit",
        "DELETE",
        "/v1/chat/completions",
        405,
        "\"error\"",
    ),
    Case {
        body: Some(question),
        ..case(
            "chat",
            "POST",
            "/v1/chat/completions",
            200,
            "Hello from the scripted model.",
        )
    },
    Case {
        body: Some(streamed),
        ..case("stream", "POST", "/v1/chat/completions", 200, "data: [DONE]")
    },
    Case {
        body: Some(no_messages),
        ..case("no messages", "POST", "/v1/chat/completions", 400, "messages")
    },
    Case {
        headers: &["Origin: https://evil.test"],
        ..case("a page of another origin", "GET", "/v1/models", 403, "\"error\"")
    },
    Case {
        headers: &["Host: evil.test"],
        ..case("another host name", "GET", "/v1/models", 403, "\"error\"")
    },
    case("the OpenAPI document", "GET", "/openapi.json", 200, "\"openapi\""),
];

/// Runs the calls.
pub(crate) fn run() -> Result<Count> {
    super::ensure_program("curl", "curl")?;
    with_scripted(|daemon| {
        let mut count = Count::default();
        for case in &CASES {
            let (status, body) = curl(daemon, case)?;
            let held = status == case.status && body.contains(case.holds);
            println!("{} {} ({status})", if held { "ok  " } else { "FAIL" }, case.name);
            if !held {
                println!(
                    "     wanted {} with {:?}, got: {body:.400}",
                    case.status, case.holds
                );
            }
            count.add(held);
        }
        Ok(count)
    })
}

fn curl(daemon: &Daemon, case: &Case) -> Result<(u16, String)> {
    let mut command = process::program("curl");
    command.args([
        "--silent",
        "--show-error",
        "--no-buffer",
        "--max-time",
        "30",
        "--request",
        case.method,
    ]);
    command.args(["--write-out", "\n%{http_code}"]);
    if case.with_key {
        command
            .arg("--header")
            .arg(format!("Authorization: Bearer {}", daemon.key));
    }
    for header in case.headers {
        command.args(["--header", header]);
    }
    if let Some(body) = case.body {
        command.args([
            "--header",
            "Content-Type: application/json",
            "--data",
            &body().to_string(),
        ]);
    }
    command.arg(format!("http://{}{}", daemon.address, case.path));
    let output = process::output(&mut command)?;
    let (body, status) = output.rsplit_once('\n').context("curl printed no status")?;
    Ok((status.parse()?, body.to_owned()))
}
