//! What tools said in this turn: the full texts behind the clipped ones, and reads that need not run twice.

use std::collections::{HashMap, VecDeque};

use tidegate_core::{
    id::CallId,
    tool::{Arguments, ToolCall},
};
use tidegate_gate::guards::untrusted;

/// Full results kept in one turn.
const RESULTS_MAX: usize = 40;
/// Bytes of all kept results together.
const RESULTS_BYTES_MAX: usize = 8 << 20;
/// Characters of the newest result that stand in for an answer when there is none.
const PARTIAL_CHARS_MAX: usize = 1000;
/// Characters of a window that `last_output` gives where the call names no length.
const WINDOW_CHARS: usize = 8_000;

/// The full text of one result.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    /// The handle the model uses: `r1`, `r2`, … in call order.
    pub(crate) handle: String,
    /// The tool.
    pub(crate) tool: String,
    /// The guarded text.
    pub(crate) text: String,
}

/// The results of one turn, newest last.
#[derive(Debug, Default)]
pub(crate) struct Results {
    kept: VecDeque<Stored>,
    bytes: usize,
    count: usize,
}

impl Results {
    /// Keeps a text and returns its handle; the oldest go where a bound is met.
    pub(crate) fn keep(&mut self, tool: &str, text: String) -> String {
        self.count += 1;
        let handle = format!("r{}", self.count);
        self.bytes += text.len();
        self.kept.push_back(Stored {
            handle: handle.clone(),
            tool: tool.to_owned(),
            text,
        });
        while self.kept.len() > RESULTS_MAX || (self.bytes > RESULTS_BYTES_MAX && self.kept.len() > 1) {
            if let Some(oldest) = self.kept.pop_front() {
                self.bytes -= oldest.text.len();
            }
        }
        handle
    }

    /// The newest result, or the one of that handle.
    pub(crate) fn find(&self, handle: Option<&str>) -> Option<&Stored> {
        match handle {
            None => self.kept.back(),
            Some(handle) => self.kept.iter().find(|stored| stored.handle == handle),
        }
    }

    /// The handles that are still kept, oldest first.
    pub(crate) fn handles(&self) -> Vec<&str> {
        self.kept.iter().map(|stored| stored.handle.as_str()).collect()
    }

    /// The start of the newest result, for an answer that has nothing better.
    pub(crate) fn newest_head(&self) -> Option<String> {
        self.kept
            .back()
            .map(|stored| stored.text.chars().take(PARTIAL_CHARS_MAX).collect())
    }

    /// What stands in for an answer that cannot be finished, and why it does; `None` where nothing was gathered.
    pub(crate) fn partial_answer(&self, why: &str) -> Option<String> {
        let head = self.newest_head()?;
        Some(format!(
            "[This answer is incomplete: {why}. The last tool result was:]\n{head}"
        ))
    }
}

/// A window of a stored text, with a line that says what it is a window of.
pub(crate) fn window(stored: &Stored, offset: usize, length: Option<usize>) -> String {
    let total = stored.text.chars().count();
    let offset = offset.min(total);
    let length = length.unwrap_or(WINDOW_CHARS).min(WINDOW_CHARS);
    let text: String = stored.text.chars().skip(offset).take(length).collect();
    let end = offset + text.chars().count();
    format!(
        "[{} of `{}`, characters {offset} to {end} of {total}]\n{text}",
        stored.handle, stored.tool
    )
}

/// Cuts a text for the model; the note says how to get the rest.
pub(crate) fn clip(text: &str, chars_max: usize, handle: &str) -> String {
    let total = text.chars().count();
    if total <= chars_max {
        return text.to_owned();
    }
    // What is wrapped stays wrapped: a cut must not take the end of the wrapping away.
    let head = untrusted::closed(text.chars().take(chars_max).collect());
    format!("{head}\n[cut: {chars_max} of {total} characters shown; the rest: last_output with ref {handle}]")
}

/// Identical reads of one turn: the same call is not run twice unless something changed in between.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    seen: HashMap<String, CallId>,
}

impl Repeats {
    /// The earlier call that this one repeats.
    pub(crate) fn earlier(&self, call: &ToolCall) -> Option<&CallId> {
        self.seen.get(&key(call)?)
    }

    /// Notes a read that is about to run.
    pub(crate) fn note(&mut self, call: &ToolCall) {
        if let Some(key) = key(call) {
            self.seen.insert(key, call.id.clone());
        }
    }

    /// Forgets a read, so that it may run again: it failed.
    pub(crate) fn forget(&mut self, call: &ToolCall) {
        if let Some(key) = key(call) {
            self.seen.remove(&key);
        }
    }

    /// Forgets all reads: something may have changed.
    pub(crate) fn invalidate(&mut self) {
        self.seen.clear();
    }
}

/// Name and arguments with sorted keys; `None` for arguments that are no object.
fn key(call: &ToolCall) -> Option<String> {
    let Arguments::Object(map) = &call.arguments else {
        return None;
    };
    Some(format!(
        "{}\u{0}{}",
        call.name,
        canonical(&serde_json::Value::Object(map.clone()))
    ))
}

/// JSON with the keys of every object sorted.
fn canonical(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_by_key(|(name, _)| *name);
            let inner: Vec<String> = entries
                .into_iter()
                .map(|(name, value)| format!("{}:{}", Value::String(name.clone()), canonical(value)))
                .collect();
            format!("{{{}}}", inner.join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str, arguments: &serde_json::Value) -> ToolCall {
        ToolCall {
            id: CallId::new(id),
            name: "read_text".into(),
            arguments: Arguments::Object(arguments.as_object().unwrap().clone()),
        }
    }

    #[test]
    fn the_order_of_keys_does_not_matter_and_a_change_forgets() {
        let mut repeats = Repeats::default();
        repeats.note(&call("c1", &json!({"path": "a", "lines": 2})));
        let again = call("c2", &json!({"lines": 2, "path": "a"}));
        assert_eq!(repeats.earlier(&again), Some(&CallId::new("c1")));
        assert_eq!(repeats.earlier(&call("c3", &json!({"path": "b"}))), None);
        repeats.invalidate();
        assert_eq!(repeats.earlier(&again), None);
    }

    #[test]
    fn the_full_text_of_a_clipped_result_is_retrievable() {
        let mut results = Results::default();
        let text = "é".repeat(100);
        let handle = results.keep("t", text.clone());
        let clipped = clip(&text, 10, &handle);
        assert!(clipped.starts_with(&"é".repeat(10)) && clipped.contains("last_output with ref r1"));
        let stored = results.find(Some("r1")).unwrap();
        assert!(window(stored, 90, None).ends_with(&format!("\n{}", "é".repeat(10))));
        assert!(window(stored, 1000, None).contains("characters 100 to 100 of 100"));
        assert_eq!(
            results.find(Some("r9")).map(|stored| stored.handle.as_str()),
            None
        );
    }

    #[test]
    fn kept_results_are_bounded() {
        let mut results = Results::default();
        for _ in 0..100 {
            results.keep("t", "x".into());
        }
        assert_eq!(results.handles().len(), RESULTS_MAX);
        assert_eq!(results.find(None).unwrap().handle, "r100");
    }
}
