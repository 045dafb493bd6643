//! `command`: a fixed program with the arguments of the call as argv elements.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use tidegate_core::tool::{FailureCode, ToolResult, ToolSpec};
use tidegate_io::process::{self, Exit, ProcessError, Program};

use crate::{arguments::Values, template::CommandTemplate};

/// The whole environment of a program. It holds no credential and nothing of the server's own.
const ENVIRONMENT: [(&str, &str); 2] = [
    (
        "PATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ),
    ("LANG", "C.UTF-8"),
];

/// Runs the tool in `folder`.
pub(crate) async fn run(
    template: &CommandTemplate,
    folder: PathBuf,
    spec: &ToolSpec,
    values: &Values<'_>,
) -> ToolResult {
    let argv = match template.render(values) {
        Ok(argv) => argv,
        Err(problem) => return ToolResult::failed(problem.code, problem.message),
    };
    let program = Program {
        program: PathBuf::from(template.program()),
        arguments: argv.into_iter().map(OsString::from).collect(),
        folder,
        environment: ENVIRONMENT
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        stdin: None,
        output_bytes_max: spec.output_bytes_max,
        timeout: Duration::from_millis(spec.timeout_ms),
    };
    match Box::pin(process::run(program)).await {
        Ok(finished) => {
            let mut text = String::from_utf8_lossy(&finished.stdout.bytes).into_owned();
            if !finished.stderr.bytes.is_empty() {
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
                text.push_str(&String::from_utf8_lossy(&finished.stderr.bytes));
            }
            if finished.stdout.is_cut || finished.stderr.is_cut {
                text.push_str("\n[cut: the program said more than is kept]");
            }
            match finished.exit {
                Exit::Code(0) => ToolResult::ok(text),
                Exit::Code(code) => unsuccessful(&format!("the program ended with status {code}"), &text),
                Exit::Signal(signal) => {
                    unsuccessful(&format!("the program was ended by signal {signal}"), &text)
                }
            }
        }
        Err(ProcessError::TimedOut { after_ms, .. }) => ToolResult::TimedOut { after_ms },
        Err(error @ (ProcessError::NotStarted { .. } | ProcessError::Lost { .. })) => {
            tracing::error!(tool = %spec.name, %error, "the program of `{}` did not run", spec.name);
            ToolResult::failed(FailureCode::Internal, format!("{error}."))
        }
    }
}

fn unsuccessful(why: &str, output: &str) -> ToolResult {
    let message = if output.trim().is_empty() {
        format!("{why} and said nothing.")
    } else {
        format!("{why} and said:\n{output}")
    };
    ToolResult::failed(FailureCode::Unsuccessful, message)
}
