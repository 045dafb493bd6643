//! What a server's answer becomes: one text, in which what is no text is named.

use rmcp::model::{CallToolResult, ContentBlock, PromptMessage, Resource, ResourceContents, Role};
use serde_json::Value;
use tidegate_core::tool::{FailureCode, ToolResult};

use crate::text;

/// The longest name, address or media type in a note, in characters.
const NOTE_CHARS_MAX: usize = 300;
/// What separates the parts of an answer.
const SEPARATOR: &str = "\n\n";

/// The result of a call, its text at most `bytes_max` bytes.
pub(crate) fn of_call(result: &CallToolResult, bytes_max: usize) -> ToolResult {
    let mut parts: Vec<String> = result.content.iter().map(block).collect();
    if let Some(structured) = &result.structured_content {
        // Servers repeat it as text for clients that do not know it.
        let is_repeated = result.content.iter().any(|block| {
            let ContentBlock::Text(text) = block else {
                return false;
            };
            says(&Value::from(text.text.as_str()), structured)
                || serde_json::from_str(&text.text).is_ok_and(|value| says(&value, structured))
        });
        if !is_repeated {
            parts.push(structured.to_string());
        }
    }
    let text = text::bounded(parts.join(SEPARATOR), bytes_max);
    if result.is_error == Some(true) {
        let text = if text.trim().is_empty() {
            "the server reports an error and says no more.".to_owned()
        } else {
            text
        };
        ToolResult::failed(FailureCode::Unsuccessful, text)
    } else {
        ToolResult::ok(text)
    }
}

/// Whether a value is the structured content, or its only member, as some servers wrap it.
fn says(value: &Value, structured: &Value) -> bool {
    let only = structured.as_object().filter(|members| members.len() == 1);
    value == structured || only.is_some_and(|members| members.values().any(|member| member == value))
}

fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => binary("image", Some(&image.mime_type), &image.data, None),
        ContentBlock::Audio(audio) => binary("audio", Some(&audio.mime_type), &audio.data, None),
        ContentBlock::Resource(embedded) => contents(&embedded.resource),
        ContentBlock::ResourceLink(link) => format!("[resource: {}]", resource(link)),
        _ => "[content of a kind that is not known here]".to_owned(),
    }
}

fn binary(what: &str, kind: Option<&str>, data: &str, uri: Option<&str>) -> String {
    let kind = text::line(kind.unwrap_or("unknown type"), NOTE_CHARS_MAX);
    let uri = uri.map_or_else(String::new, |uri| {
        format!(" at {}", text::line(uri, NOTE_CHARS_MAX))
    });
    // Base64 (RFC 4648): four characters for three bytes.
    let bytes =
        data.trim_end_matches('=').len() / 4 * 3 + (data.trim_end_matches('=').len() % 4).saturating_sub(1);
    format!("[{what}{uri}: {kind}, {bytes} bytes, not shown]")
}

/// One resource on one line.
pub(crate) fn resource(resource: &Resource) -> String {
    let mut line = format!(
        "{} ({}",
        text::line(&resource.uri, NOTE_CHARS_MAX),
        text::line(&resource.name, NOTE_CHARS_MAX)
    );
    if let Some(kind) = &resource.mime_type {
        line.push_str(", ");
        line.push_str(&text::line(kind, NOTE_CHARS_MAX));
    }
    if let Some(size) = resource.size {
        text::add(&mut line, format_args!(", {size} bytes"));
    }
    line.push(')');
    if let Some(words) = &resource.description {
        line.push_str(": ");
        line.push_str(&text::line(words, NOTE_CHARS_MAX));
    }
    line
}

/// What a resource holds.
pub(crate) fn contents(contents: &ResourceContents) -> String {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            format!("[resource {}]\n{text}", text::line(uri, NOTE_CHARS_MAX))
        }
        ResourceContents::BlobResourceContents {
            uri, mime_type, blob, ..
        } => binary("resource", mime_type.as_deref(), blob, Some(uri)),
        _ => "[a resource of a kind that is not known here]".to_owned(),
    }
}

/// One message of a prompt.
pub(crate) fn message(message: &PromptMessage) -> String {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    format!("{role}: {}", block(&message.content))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mapped(result: Value) -> ToolResult {
        of_call(&serde_json::from_value(result).unwrap(), 100)
    }

    #[test]
    fn every_kind_of_content_has_words() {
        for (content, expected) in [
            (
                json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
                "a\n\nb",
            ),
            (
                json!([{"type": "image", "data": "AAAA", "mimeType": "image/png"}]),
                "[image: image/png, 3 bytes, not shown]",
            ),
            (
                json!([{"type": "audio", "data": "AAA=", "mimeType": "audio/wav"}]),
                "[audio: audio/wav, 2 bytes, not shown]",
            ),
            (
                json!([{"type": "resource_link", "uri": "demo://1", "name": "one", "mimeType": "text/plain", "size": 7}]),
                "[resource: demo://1 (one, text/plain, 7 bytes)]",
            ),
            (
                json!([{"type": "resource", "resource": {"uri": "demo://1", "text": "x"}}]),
                "[resource demo://1]\nx",
            ),
            (
                json!([{"type": "resource", "resource": {"uri": "demo://1", "blob": "AAAA", "mimeType": "a/b"}}]),
                "[resource at demo://1: a/b, 3 bytes, not shown]",
            ),
            (json!([]), ""),
        ] {
            assert_eq!(mapped(json!({"content": content})), ToolResult::ok(expected));
        }
    }

    #[test]
    fn structured_content_is_said_once_and_errors_are_failures() {
        let once =
            json!({"content": [{"type": "text", "text": "{\"a\": 1}"}], "structuredContent": {"a": 1}});
        assert_eq!(mapped(once), ToolResult::ok("{\"a\": 1}"));
        let wrapped = json!({"content": [{"type": "text", "text": "hello"}], "structuredContent": {"content": "hello"}});
        assert_eq!(mapped(wrapped), ToolResult::ok("hello"));
        let alone = json!({"content": [], "structuredContent": {"a": 1}});
        assert_eq!(mapped(alone), ToolResult::ok("{\"a\":1}"));
        let other = json!({"content": [{"type": "text", "text": "done"}], "structuredContent": {"a": 1}});
        assert_eq!(mapped(other), ToolResult::ok("done\n\n{\"a\":1}"));
        let error = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
        assert_eq!(mapped(error), ToolResult::failed(FailureCode::Unsuccessful, "no"));
        let long = json!({"content": [{"type": "text", "text": "x".repeat(1000)}]});
        assert!(
            mapped(long)
                .to_model_text()
                .ends_with("[cut: 100 of 1000 bytes kept]")
        );
    }
}
