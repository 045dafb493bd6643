//! The documents of the knowledge bank as resources, to keys that may read them with a tool.
//!
//! The list is the index's, which holds nothing that the floors shut; reading one is a call of the tool that reads
//! documents, with all that goes with a call.

use rmcp::{
    ErrorData,
    model::{
        ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource, ResourceContents,
        ResourceTemplate,
    },
};
use serde_json::{Map, Value, json};
use tidegate_core::{
    caller::Mode,
    knowledge::{Document, DocumentState, Filter},
    port::KnowledgeError,
    tool::{FailureCode, ToolMode, ToolResult},
};
use url_text::{decode, encode};

use super::{
    Asker, Server, exposure, page,
    tools::{self, refused},
};

mod url_text;

/// How every address begins.
const SCHEME: &str = "kb:///";
/// Bytes of an address.
const URI_BYTES_MAX: usize = 8192;
/// What a document is handed out as: the text that was read out of it.
const MIME: &str = "text/plain";

/// A page of the documents that are in the index. The cursor is the last path of the page before.
pub(super) async fn list(
    server: &Server,
    asker: &Asker,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let Some(base) = server
        .knowledge
        .as_ref()
        .filter(|_| may(server, asker, ToolMode::ListDocuments))
    else {
        return Ok(ListResourcesResult::default());
    };
    let (documents, more) = base
        .list(&Filter::default(), cursor, page::ITEMS_MAX)
        .await
        .map_err(fault)?;
    let next = documents
        .last()
        .filter(|_| more)
        .map(|document| document.path.clone());
    let resources = documents
        .iter()
        .filter(|document| match document.state {
            DocumentState::Indexed { .. } => true,
            DocumentState::Failed { .. } => false,
        })
        .map(resource)
        .collect();
    let mut result = ListResourcesResult::with_all_items(resources);
    result.next_cursor = next;
    Ok(result)
}

/// The form of the addresses.
pub(super) fn templates(server: &Server, asker: &Asker) -> ListResourceTemplatesResult {
    if server.knowledge.is_none() || !may(server, asker, ToolMode::ReadDocument) {
        return ListResourceTemplatesResult::default();
    }
    let template = ResourceTemplate::new(format!("{SCHEME}{{+path}}{{?part}}"), "document")
        .with_title("Document of the knowledge bank")
        .with_description("The text of a document; `part` goes on in a long one, and its text says where")
        .with_mime_type(MIME);
    ListResourceTemplatesResult::with_all_items(vec![template])
}

/// The text of a document, or of a part of it.
pub(super) async fn read(server: &Server, asker: &Asker, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let arguments = address(uri).ok_or_else(|| missing(uri, "this is no address of a document"))?;
    let tool = tools::of_mode(server, asker, ToolMode::ReadDocument)
        .filter(|_| server.options.documents)
        .ok_or_else(|| missing(uri, "this key may not read documents"))?;
    let end = server
        .engine
        .call(tools::request(server, asker, &tool, arguments, Mode::ReadOnly))
        .await
        .map_err(|error| refused(&error))?;
    match end.result {
        ToolResult::Ok { text, .. } => {
            let contents = ResourceContents::text(text, uri).with_mime_type(MIME);
            Ok(ReadResourceResult::new(vec![contents]))
        }
        ToolResult::Failed {
            code: FailureCode::NotFound,
            message,
        } => Err(missing(uri, &message)),
        other @ (ToolResult::Failed { .. }
        | ToolResult::Refused { .. }
        | ToolResult::NeedsApproval { .. }
        | ToolResult::TimedOut { .. }
        | ToolResult::Cancelled) => Err(ErrorData::invalid_request(other.to_model_text(), None)),
    }
}

fn may(server: &Server, asker: &Asker, mode: ToolMode) -> bool {
    server.options.documents && exposure::offers_mode(&server.engine.tools_of(&asker.caller), mode)
}

fn resource(document: &Document) -> Resource {
    Resource::new(format!("{SCHEME}{}", encode(&document.path)), &document.path)
        .with_title(&document.title)
        .with_description(format!(
            "{}, {}",
            document.format.name(),
            document.authority.name()
        ))
        .with_mime_type(MIME)
}

/// The tool's arguments for that address.
fn address(uri: &str) -> Option<Map<String, Value>> {
    let rest = uri.strip_prefix(SCHEME).filter(|_| uri.len() <= URI_BYTES_MAX)?;
    let (path, query) = rest
        .split_once('?')
        .map_or((rest, None), |(path, query)| (path, Some(query)));
    let path = decode(path).filter(|path| !path.is_empty())?;
    let mut arguments = Map::new();
    arguments.insert("path".to_owned(), Value::String(path));
    if let Some(query) = query {
        let part: u64 = query.strip_prefix("part=")?.parse().ok()?;
        arguments.insert("part".to_owned(), part.into());
    }
    Some(arguments)
}

/// There is nothing at that address. It is repeated, as the protocol wishes, unless it is too long to be one.
fn missing(uri: &str, message: &str) -> ErrorData {
    let data = (uri.len() <= URI_BYTES_MAX).then(|| json!({ "uri": uri }));
    ErrorData::resource_not_found(message.to_owned(), data)
}

fn fault(error: KnowledgeError) -> ErrorData {
    match error {
        KnowledgeError::Invalid(message) | KnowledgeError::NotFound(message) => {
            ErrorData::invalid_params(message, None)
        }
        KnowledgeError::Store(error) => {
            tracing::error!(%error, "the documents could not be listed");
            ErrorData::internal_error("the documents cannot be listed at the moment", None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_back_to_its_path_and_nothing_else_is_one() {
        for path in [
            "a.md",
            "forms/leave 2026.pdf",
            "50%.md",
            "ä/ß?.md",
            "a#b",
            "x/%2e%2e/y",
        ] {
            let uri = format!("{SCHEME}{}", encode(path));
            assert!(uri.is_ascii(), "{uri}");
            assert_eq!(Value::Object(address(&uri).unwrap()), json!({"path": path}));
        }
        assert_eq!(
            Value::Object(address("kb:///a.md?part=3").unwrap()),
            json!({"path": "a.md", "part": 3})
        );
        for bad in [
            "",
            "kb:///",
            "file:///etc/passwd",
            "kb:///a%",
            "kb:///a%zz",
            "kb:///%ff",
            "kb:///a?x=1",
        ] {
            assert_eq!(address(bad), None, "{bad}");
        }
        assert_eq!(address(&format!("{SCHEME}{}", "a".repeat(URI_BYTES_MAX))), None);
    }
}
