//! `write_text`: a whole text file, put in place in one step.

use tidegate_core::tool::{FailureCode, ToolResult};
use tidegate_gate::Access;

use super::{Job, failed};
use crate::arguments::Values;

/// Runs the tool.
pub(crate) async fn run(job: Job, values: &Values<'_>) -> ToolResult {
    let path = values.text("path").unwrap_or_default().to_owned();
    let content = values.text("content").unwrap_or_default().to_owned();
    let bytes_max = job.files.options.write_bytes_max;
    if content.len() > bytes_max {
        return ToolResult::failed(
            FailureCode::TooLarge,
            format!(
                "`content` holds {} bytes, more than the {bytes_max} that may be written at once; nothing was written.",
                content.len()
            ),
        );
    }
    job.run(move |job, abandoned| {
        let bytes = content.as_bytes();
        let place = match job.place(
            &path,
            Access::Write,
            u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        ) {
            Ok(place) => place,
            Err(result) => return result,
        };
        if abandoned.is_set() {
            return ToolResult::Cancelled;
        }
        match place.write_atomic(bytes) {
            Ok(written) => ToolResult::ok(format!(
                "{} `{}` ({} bytes).",
                if written.is_new { "Created" } else { "Replaced" },
                place.requested_name(),
                bytes.len()
            )),
            Err(error) => failed(&error),
        }
    })
    .await
}
