//! The text form in which a model without native tool calls writes a call, and is shown its earlier ones.
//!
//! ```text
//! ✿FUNCTION✿: name
//! ✿ARGS✿: {"key": "value"}
//! ```

use std::borrow::Cow;

/// The marker around every header; it wraps a whole call object too.
pub const MARKER: &str = "✿";
/// Opens a call; a colon and the tool's name follow.
pub const FUNCTION_HEADER: &str = "✿FUNCTION✿";
/// Opens the arguments; a colon and a JSON object follow.
pub const ARGS_HEADER: &str = "✿ARGS✿";
/// What stands for the marker in text that must not be read as a call.
const HARMLESS_MARKER: &str = "❀";

/// Writes a call in the header form.
pub fn render_call(name: &str, arguments_json: &str) -> String {
    format!("{FUNCTION_HEADER}: {name}\n{ARGS_HEADER}: {arguments_json}")
}

/// The text with every marker replaced: a tool's output or a person's sentence can then never be taken for a
/// call, however it is quoted back.
pub fn neutralise(text: &str) -> Cow<'_, str> {
    if text.contains(MARKER) {
        Cow::Owned(text.replace(MARKER, HARMLESS_MARKER))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_written_under_its_headers_and_can_be_made_harmless() {
        let call = render_call("read_text", r#"{"path":"a"}"#);
        assert_eq!(call, "✿FUNCTION✿: read_text\n✿ARGS✿: {\"path\":\"a\"}");
        assert!(!neutralise(&call).contains(MARKER));
        assert!(matches!(neutralise("plain"), Cow::Borrowed("plain")));
    }
}
