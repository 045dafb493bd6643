//! `search_tools`, as the engine answers it, and how a turn that is taken up again comes to what it had found.

use serde_json::{Map, Value};
use tidegate_core::{
    message::Message,
    tool::{FailureCode, ToolMode, ToolResult, ToolSpec},
};

use super::{Toolset, search};

/// Tools that one search finds where the call names no number, and at most.
const FOUND: usize = 5;
const FOUND_MAX: usize = 10;
/// The longest description in an answer, in characters.
const DESCRIPTION_CHARS_MAX: usize = 300;
/// Arguments that an answer names.
const ARGUMENTS_MAX: usize = 16;
/// Searches of a history that are made again, the newest ones.
const SEARCHES_MAX: usize = 16;

impl Toolset {
    /// Answers a search. What it finds is shown from the next question on.
    pub(crate) fn search(&self, arguments: &Map<String, Value>) -> ToolResult {
        let Some(query) = query(arguments) else {
            return ToolResult::failed(FailureCode::MissingArgument, "`query` is missing");
        };
        let (places, more) = self.hits(query, number(arguments));
        if places.is_empty() {
            let (count, of) = self.rest();
            return ToolResult::ok(format!(
                "No tool fits these words. Try others; there are {count} tools besides yours: {of}."
            ));
        }
        let rows = self.selection.catalogue.rows();
        let lines: Vec<String> = places
            .iter()
            .filter_map(|place| rows.get(*place))
            .map(|row| line(&row.spec))
            .collect();
        let rest = match more {
            0 => String::new(),
            more => format!("\n{more} more fit less well; other words find them."),
        };
        self.want(places.iter().copied().rev());
        ToolResult::ok(format!(
            "Found; you can call these from now on:\n{}{rest}",
            lines.join("\n")
        ))
    }

    /// What a call gets of a tool that the model was not shown: it cannot have known the arguments.
    pub(crate) fn shown_now(&self, name: &str) -> ToolResult {
        self.find(name);
        let line = self.get(name).map(|spec| line(spec)).unwrap_or_default();
        ToolResult::failed(
            FailureCode::InvalidArguments,
            format!("the call was not made: `{name}` was not among your tools yet. It is now; look at its arguments and call it again.\n{line}"),
        )
    }

    /// Finds again what the calls of a history found or used. The same words find the same among the same tools.
    pub(crate) fn find_again(&mut self, messages: &[Message]) {
        if self.core.rest == 0 {
            return;
        }
        let calls = messages.iter().rev().flat_map(|message| match message {
            Message::Assistant { calls, .. } => calls.as_slice(),
            Message::Human { .. }
            | Message::ClientSystem { .. }
            | Message::Tool { .. }
            | Message::Harness { .. }
            | Message::Recalled { .. } => &[],
        });
        let mut newest_first = Vec::new();
        let mut searches = 0;
        for call in calls {
            match self.get(&call.name).map(|spec| spec.mode) {
                Some(ToolMode::SearchTools) if searches < SEARCHES_MAX => {
                    searches += 1;
                    let arguments = call.arguments.object();
                    if let Some((query, arguments)) = arguments.and_then(|all| Some((query(all)?, all))) {
                        newest_first.extend(self.hits(query, number(arguments)).0);
                    }
                }
                Some(_) => newest_first.extend(self.place(&call.name)),
                None => {}
            }
        }
        self.want(newest_first.into_iter().rev());
        self.take_in();
    }

    /// The best tools for these words, as many as were asked for and there is room for, and how many more fit.
    fn hits(&self, query: &str, count: usize) -> (Vec<usize>, usize) {
        let is_wanted = |place| {
            let row = self.selection.catalogue.rows().get(place);
            self.selection.holds(place) && row.is_some_and(|row| row.spec.mode != ToolMode::SearchTools)
        };
        let all = self.selection.catalogue.index().find(query, is_wanted);
        let (mut hits, mut fresh) = (Vec::new(), Vec::new());
        for place in all.iter().copied().take(count) {
            if self.core.shown.binary_search(&place).is_err() {
                fresh.push(place);
                // The first always: what was found before makes room.
                if fresh.len() > 1 && !self.has_room_for(&fresh) {
                    break;
                }
            }
            hits.push(place);
        }
        let more = all.len().saturating_sub(hits.len());
        (hits, more)
    }
}

fn query(arguments: &Map<String, Value>) -> Option<&str> {
    let query = arguments.get("query").and_then(Value::as_str);
    query.filter(|query| !query.trim().is_empty())
}

/// How many are asked for; models write numbers as texts too.
fn number(arguments: &Map<String, Value>) -> usize {
    let count = arguments
        .get("count")
        .and_then(|count| count.as_u64().or_else(|| count.as_str()?.trim().parse().ok()));
    count
        .and_then(|count| usize::try_from(count).ok())
        .unwrap_or(FOUND)
        .clamp(1, FOUND_MAX)
}

/// A tool on one line.
fn line(spec: &ToolSpec) -> String {
    let mut words: String = spec.description.chars().take(DESCRIPTION_CHARS_MAX).collect();
    if words.len() < spec.description.len() {
        words.push('…');
    }
    let words: Vec<&str> = words.split_whitespace().collect();
    let arguments: Vec<String> = search::arguments(spec)
        .into_iter()
        .take(ARGUMENTS_MAX)
        .map(|argument| {
            let mark = if argument.is_required { "" } else { "?" };
            format!("{}{mark}", argument.name)
        })
        .collect();
    format!("- {}({}): {}", spec.name, arguments.join(", "), words.join(" "))
}
