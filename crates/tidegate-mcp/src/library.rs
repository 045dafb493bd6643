//! What servers offer beside tools: resources and prompts, each kind listed and read through one tool.

use std::sync::Arc;

use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, ListPromptsRequest,
    ListResourceTemplatesRequest, ListResourcesRequest, PaginatedRequestParams, ReadResourceRequest,
    ReadResourceRequestParams, ServerResult,
};
use serde_json::{Map, Value, json};
use tidegate_core::tool::{Effect, FailureCode, ToolMode, ToolResult, ToolSpec};

use crate::{
    Options, State, results,
    slot::Slot,
    text,
    toolbox::{McpTools, ask},
    transport::watched::Follow,
};

/// The tool over resources.
const RESOURCES: &str = "mcp_resources";
/// The tool over prompts.
const PROMPTS: &str = "mcp_prompts";
/// How many entries of one server a list shows.
const ENTRIES_MAX: usize = 200;
/// How many pages of a list are asked for.
const PAGES_MAX: usize = 10;
/// The longest words of an entry, in characters.
const WORDS_CHARS_MAX: usize = 300;
/// The longest argument of a prompt, in characters.
const ARGUMENT_CHARS_MAX: u64 = 10_000;

pub(crate) fn is_tool(name: &str) -> bool {
    name == RESOURCES || name == PROMPTS
}

/// Both rows. What a server does when it is asked is unknown, whatever the request is called.
pub(crate) fn specs(options: &Options) -> Vec<Arc<ToolSpec>> {
    let spec = |name: &str, description: &str, properties: Value| {
        Arc::new(ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            mode: ToolMode::Mcp,
            effect: Effect::External,
            parameters: Vec::new(),
            input_schema: Some(json!({
                "type": "object",
                "properties": properties,
                "required": [],
                "additionalProperties": false,
            })),
            timeout_ms: options.timeout_ms.saturating_mul(2),
            output_bytes_max: options.result_bytes_max,
        })
    };
    let server = json!({"type": "string", "description": "The MCP server; all that are connected where it is left out."});
    vec![
        spec(
            RESOURCES,
            "Lists the resources (files, pages, records) that MCP servers offer, or reads one of them.",
            json!({
                "server": server,
                "uri": {"type": "string", "description": "The resource to read, as the list names it, with its server; leave it out for the list."},
            }),
        ),
        spec(
            PROMPTS,
            "Lists the prompts that MCP servers offer, or gives the text of one of them.",
            json!({
                "server": server,
                "name": {"type": "string", "description": "The prompt to get, as the list names it, with its server; leave it out for the list."},
                "arguments": {
                    "type": "object",
                    "description": "The prompt's arguments.",
                    "additionalProperties": {"type": "string", "maxLength": ARGUMENT_CHARS_MAX},
                },
            }),
        ),
    ]
}

/// Runs one of the two.
pub(crate) async fn run(
    tools: &McpTools,
    name: &str,
    arguments: &Map<String, Value>,
    follow: &Follow,
) -> ToolResult {
    let text = |key: &str| {
        arguments
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let one = text(if name == RESOURCES { "uri" } else { "name" });
    let slots: Vec<Arc<Slot>> = if let Some(server) = text("server") {
        let Some(slot) = tools.registry.slot(server) else {
            return unknown(tools, server);
        };
        vec![slot]
    } else {
        let ready = |slot: &Arc<Slot>| slot.state() == State::Ready;
        tools.registry.slots().into_values().filter(ready).collect()
    };
    match (one, slots.as_slice()) {
        (Some(uri), [slot]) if name == RESOURCES => read(tools, slot, uri, follow).await,
        (Some(prompt), [slot]) => get(tools, slot, prompt, arguments.get("arguments"), follow).await,
        (Some(_), _) => ToolResult::failed(
            FailureCode::MissingArgument,
            "`server` is missing: name the server it is from",
        ),
        (None, slots) => {
            let mut parts = Vec::new();
            for slot in slots {
                let list = if name == RESOURCES {
                    resources(tools, slot, follow).await
                } else {
                    prompts(tools, slot, follow).await
                };
                let words = match list {
                    Ok(entries) if entries.is_empty() => continue,
                    Ok(entries) => entries.join("\n"),
                    Err(result) => result.to_model_text(),
                };
                parts.push(format!("Server `{}`:\n{words}", slot.server.name));
            }
            let whole = if parts.is_empty() {
                "No server that is connected offers any.".to_owned()
            } else {
                parts.join("\n\n")
            };
            ToolResult::ok(text::bounded(whole, tools.options.result_bytes_max))
        }
    }
}

fn unknown(tools: &McpTools, server: &str) -> ToolResult {
    let names: Vec<String> = tools.registry.slots().into_keys().collect();
    ToolResult::failed(
        FailureCode::NotFound,
        format!(
            "there is no MCP server `{}`; there are {}",
            text::line(server, 80),
            names.join(", ")
        ),
    )
}

/// Whether the server says that it has such things at all.
fn has(slot: &Slot, which: impl Fn(&rmcp::model::ServerCapabilities) -> bool) -> bool {
    slot.connection()
        .and_then(|connection| connection.info())
        .is_some_and(|info| which(&info.capabilities))
}

async fn resources(tools: &McpTools, slot: &Slot, follow: &Follow) -> Result<Vec<String>, ToolResult> {
    if !has(slot, |capabilities| capabilities.resources.is_some()) {
        return Ok(Vec::new());
    }
    let mut entries = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let request = ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(params));
        let ServerResult::ListResourcesResult(page) = ask(slot, &tools.options, request, follow.clone()).await? else {
            return Err(odd(slot));
        };
        entries.extend(
            page.resources
                .iter()
                .map(|resource| format!("- {}", results::resource(resource))),
        );
        cursor = page.next_cursor;
        if cursor.is_none() || entries.len() > ENTRIES_MAX {
            break;
        }
    }
    let request = ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest::default());
    if let Ok(ServerResult::ListResourceTemplatesResult(page)) =
        ask(slot, &tools.options, request, follow.clone()).await
    {
        entries.extend(page.resource_templates.iter().map(|template| {
            format!(
                "- {} ({}), fill in what stands in braces: {}",
                text::line(&template.uri_template, WORDS_CHARS_MAX),
                text::line(&template.name, WORDS_CHARS_MAX),
                text::line(
                    template.description.as_deref().unwrap_or_default(),
                    WORDS_CHARS_MAX
                )
            )
        }));
    }
    Ok(shortened(entries, cursor.is_some()))
}

fn shortened(mut entries: Vec<String>, goes_on: bool) -> Vec<String> {
    if entries.len() > ENTRIES_MAX || goes_on {
        entries.truncate(ENTRIES_MAX);
        entries.push("(there are more)".to_owned());
    }
    entries
}

async fn prompts(tools: &McpTools, slot: &Slot, follow: &Follow) -> Result<Vec<String>, ToolResult> {
    if !has(slot, |capabilities| capabilities.prompts.is_some()) {
        return Ok(Vec::new());
    }
    let mut entries = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let request = ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(params));
        let ServerResult::ListPromptsResult(page) = ask(slot, &tools.options, request, follow.clone()).await? else {
            return Err(odd(slot));
        };
        for prompt in &page.prompts {
            let mut line = format!("- {}", text::line(&prompt.name, WORDS_CHARS_MAX));
            let arguments: Vec<String> = prompt
                .arguments
                .iter()
                .flatten()
                .map(|argument| {
                    let name = text::line(&argument.name, WORDS_CHARS_MAX);
                    if argument.required == Some(true) {
                        name
                    } else {
                        format!("{name}?")
                    }
                })
                .collect();
            if !arguments.is_empty() {
                text::add(&mut line, format_args!(" ({})", arguments.join(", ")));
            }
            if let Some(words) = &prompt.description {
                line.push_str(": ");
                line.push_str(&text::line(words, WORDS_CHARS_MAX));
            }
            entries.push(line);
        }
        cursor = page.next_cursor;
        if cursor.is_none() || entries.len() > ENTRIES_MAX {
            break;
        }
    }
    Ok(shortened(entries, cursor.is_some()))
}

async fn read(tools: &McpTools, slot: &Slot, uri: &str, follow: &Follow) -> ToolResult {
    let params = ReadResourceRequestParams::new(uri);
    let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
    match ask(slot, &tools.options, request, follow.clone()).await {
        Ok(ServerResult::ReadResourceResult(result)) => {
            let parts: Vec<String> = result.contents.iter().map(results::contents).collect();
            ToolResult::ok(text::bounded(parts.join("\n\n"), tools.options.result_bytes_max))
        }
        Ok(_) => odd(slot),
        Err(result) => result,
    }
}

async fn get(
    tools: &McpTools,
    slot: &Slot,
    name: &str,
    arguments: Option<&Value>,
    follow: &Follow,
) -> ToolResult {
    let mut params = GetPromptRequestParams::new(name);
    if let Some(Value::Object(arguments)) = arguments {
        params = params.with_arguments(arguments.clone());
    }
    let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
    match ask(slot, &tools.options, request, follow.clone()).await {
        Ok(ServerResult::GetPromptResult(result)) => {
            let parts: Vec<String> = result.messages.iter().map(results::message).collect();
            ToolResult::ok(text::bounded(parts.join("\n\n"), tools.options.result_bytes_max))
        }
        Ok(_) => odd(slot),
        Err(result) => result,
    }
}

fn odd(slot: &Slot) -> ToolResult {
    ToolResult::failed(
        FailureCode::Unsuccessful,
        format!(
            "the answer of the server `{}` is none that can be used",
            slot.server.name
        ),
    )
}
