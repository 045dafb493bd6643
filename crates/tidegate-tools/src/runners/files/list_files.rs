//! `list_files`: the entries of one folder, written so that each can be handed to `read_text` as it stands.

use tidegate_core::tool::ToolResult;
use tidegate_gate::Access;
use tidegate_io::files::{Entry, EntryKind};

use super::{Job, failed};
use crate::{arguments::Values, output::add};

/// The folder that is listed where the call names none.
pub(crate) const TOP: &str = ".";

/// The most entries a pattern is held against.
const SEARCHED_MAX: usize = 10_000;

/// Runs the tool.
pub(crate) async fn run(job: Job, values: &Values<'_>) -> ToolResult {
    let path = match values.text("path") {
        None | Some("") => TOP.to_owned(),
        Some(path) => path.to_owned(),
    };
    let pattern = values
        .text("pattern")
        .filter(|text| !text.is_empty())
        .map(str::to_lowercase);
    job.run(move |job, _| {
        let place = match job.place(&path, Access::List, 0) {
            Ok(place) => place,
            Err(result) => return result,
        };
        let entries_max = job.files.options.list_entries_max;
        let looked_at = if pattern.is_some() {
            SEARCHED_MAX
        } else {
            entries_max
        };
        match place.list(looked_at) {
            Ok(listing) => {
                let mut entries = listing.entries;
                let mut left_out = listing.left_out;
                if let Some(pattern) = &pattern {
                    entries.retain(|entry| entry.name.to_lowercase().contains(pattern));
                }
                left_out += entries.len().saturating_sub(entries_max);
                entries.truncate(entries_max);
                ToolResult::ok(shown(
                    &place.requested_name(),
                    &entries,
                    left_out,
                    pattern.as_deref(),
                ))
            }
            Err(error) => failed(&error),
        }
    })
    .await
}

fn shown(folder: &str, entries: &[Entry], left_out: usize, pattern: Option<&str>) -> String {
    let place = if folder == TOP {
        "the top folder".to_owned()
    } else {
        format!("`{folder}`")
    };
    if entries.is_empty() {
        return match pattern {
            Some(pattern) => format!("Nothing in {place} has `{pattern}` in its name."),
            None => format!("Nothing is in {place}."),
        };
    }
    let prefix = if folder == TOP {
        String::new()
    } else {
        format!("{folder}/")
    };
    let mut text = format!("In {place}:\n");
    for entry in entries {
        // A name with a line break in it must not look like two entries.
        let name = format!("{prefix}{}", entry.name.replace(char::is_control, "\u{fffd}"));
        let what = match entry.kind {
            EntryKind::File => format!(" ({} bytes)", entry.bytes),
            EntryKind::Folder => "/ (folder)".to_owned(),
            EntryKind::Link => " (link)".to_owned(),
            EntryKind::Other => " (not a file)".to_owned(),
        };
        add(&mut text, format_args!("- {name}{what}\n"));
    }
    if left_out > 0 {
        add(
            &mut text,
            format_args!("[{left_out} more are not shown; narrow with pattern]\n"),
        );
    }
    text
}
