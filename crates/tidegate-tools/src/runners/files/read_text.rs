//! `read_text`: a text file, whole or by lines.

use tidegate_core::tool::{FailureCode, ToolResult};
use tidegate_gate::Access;

use super::{Job, failed};
use crate::{
    arguments::Values,
    output::{add, prefix},
};

/// Room kept for the lines that say what is shown and how to go on, in bytes.
const NOTES_BYTES: usize = 160;

/// Runs the tool.
pub(crate) async fn run(job: Job, values: &Values<'_>) -> ToolResult {
    let path = values.text("path").unwrap_or_default().to_owned();
    let window = Window {
        start_line: values.count("start_line").unwrap_or(1).max(1),
        lines_max: values.count("lines_max").unwrap_or(usize::MAX),
        bytes_max: job.spec.output_bytes_max.saturating_sub(NOTES_BYTES),
    };
    job.run(move |job, _| {
        let place = match job.place(&path, Access::Read, 0) {
            Ok(place) => place,
            Err(result) => return result,
        };
        match place.read_text(job.files.options.read_bytes_max) {
            Ok(text) => page(&place.requested_name(), &text, &window),
            Err(error) => failed(&error),
        }
    })
    .await
}

/// Which lines are wanted, and how much of them fits.
#[derive(Debug, Clone, Copy)]
struct Window {
    start_line: usize,
    lines_max: usize,
    bytes_max: usize,
}

fn page(name: &str, text: &str, window: &Window) -> ToolResult {
    let total = text.lines().count();
    if total == 0 {
        return ToolResult::ok(format!("{name} is empty."));
    }
    if window.start_line > total {
        return ToolResult::failed(
            FailureCode::InvalidArguments,
            format!(
                "`start_line` is {}, but {name} has {total} lines.",
                window.start_line
            ),
        );
    }
    let room = window.bytes_max.saturating_sub(name.len());
    let mut shown = String::new();
    let mut next_line = window.start_line;
    let mut long_line = false;
    for line in text.lines().skip(window.start_line - 1).take(window.lines_max) {
        if shown.len() + line.len() + 1 > room {
            // A first line that does not fit by itself is cut: going on would never get past it.
            if shown.is_empty() {
                shown.push_str(prefix(line, room));
                shown.push('\n');
                next_line += 1;
                long_line = true;
            }
            break;
        }
        shown.push_str(line);
        shown.push('\n');
        next_line += 1;
    }
    let mut result = if window.start_line == 1 && next_line > total {
        format!("{name} ({total} lines):\n\n{shown}")
    } else {
        let (first, last) = (window.start_line, next_line - 1);
        format!("{name} (lines {first} to {last} of {total}):\n\n{shown}")
    };
    let mut note = |text: String| {
        add(&mut result, format_args!("\n[{text}]\n"));
    };
    if long_line {
        note(format!("line {} is too long and was cut", next_line - 1));
    }
    if next_line <= total {
        note(format!("not the end: go on with start_line {next_line}"));
    }
    ToolResult::ok(result)
}

#[cfg(test)]
mod tests {
    use tidegate_core::tool::{FailureCode, ToolResult};

    use super::{Window, page};

    fn shown(text: &str, start_line: usize, lines_max: usize, bytes_max: usize) -> String {
        let window = Window {
            start_line,
            lines_max,
            bytes_max,
        };
        match page("a.md", text, &window) {
            ToolResult::Ok { text, .. } => text,
            other @ (ToolResult::Failed { .. }
            | ToolResult::Refused { .. }
            | ToolResult::NeedsApproval { .. }
            | ToolResult::TimedOut { .. }
            | ToolResult::Cancelled) => panic!("{other:?}"),
        }
    }

    #[test]
    fn pages_at_lines() {
        assert_eq!(shown("a\nb\n", 1, 9, 99), "a.md (2 lines):\n\na\nb\n");
        assert_eq!(
            shown("a\nb\nc", 2, 1, 99),
            "a.md (lines 2 to 2 of 3):\n\nb\n\n[not the end: go on with start_line 3]\n"
        );
        assert_eq!(
            shown("aaaa\nbbbb\ncccc", 1, 9, 14),
            "a.md (lines 1 to 2 of 3):\n\naaaa\nbbbb\n\n[not the end: go on with start_line 3]\n"
        );
        let cut = shown("éééé\nb", 1, 9, 9);
        assert!(
            cut.contains("\n\néé\n") && cut.contains("line 1 is too long") && cut.contains("start_line 2")
        );
        assert_eq!(shown("", 1, 9, 99), "a.md is empty.");
        let beyond = page(
            "a.md",
            "a",
            &Window {
                start_line: 2,
                lines_max: 1,
                bytes_max: 9,
            },
        );
        assert!(matches!(
            beyond,
            ToolResult::Failed {
                code: FailureCode::InvalidArguments,
                ..
            }
        ));
    }
}
