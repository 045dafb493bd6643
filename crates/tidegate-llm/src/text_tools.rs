//! Tools for models that have no native calls: described in the prompt, called and answered in text.

use std::{borrow::Cow, sync::Arc};

use tidegate_core::{
    markup::{neutralise, render_call},
    message::{Message, Part},
    model::{ModelRequest, ToolChoice, ToolSchema},
};

/// A question as its dialect writes it down.
#[derive(Debug)]
pub(crate) struct Prepared<'a> {
    /// The system prompt; empty means none.
    pub(crate) system: Cow<'a, str>,
    /// The history.
    pub(crate) messages: Cow<'a, [Message]>,
    /// The tools that are offered natively.
    pub(crate) tools: &'a [Arc<ToolSchema>],
}

/// The question, its tools turned into text where the model has no native calls.
pub(crate) fn prepare(request: &ModelRequest) -> Prepared<'_> {
    if request.model.native_tools {
        return Prepared {
            system: Cow::Borrowed(&request.system),
            messages: Cow::Borrowed(&request.messages),
            tools: &request.tools,
        };
    }
    Prepared {
        system: Cow::Owned(describe(request)),
        messages: Cow::Owned(merge_turns(request.messages.iter().map(as_text))),
        tools: &[],
    }
}

fn describe(request: &ModelRequest) -> String {
    let mut system = request.system.clone();
    if request.tools.is_empty() || request.tool_choice == ToolChoice::None {
        return system;
    }
    if !system.is_empty() {
        system.push_str("\n\n");
    }
    system.push_str("# Tools\n\nTo call a tool, write exactly this, outside of any code block:\n\n");
    system.push_str(&render_call("name of the tool", "{\"argument\": \"value\"}"));
    system.push_str(
        "\n\nThe arguments are one JSON object that fits the tool's schema. Several calls may follow one \
         another. After the last call stop writing: the results come in the next message. Write no call when \
         you do not need a tool.\n",
    );
    for tool in request.tools.iter() {
        let schema = tool.parameters.text().get();
        system.extend([
            "\n## ",
            &tool.name,
            "\n",
            &tool.description,
            "\nSchema: ",
            schema,
            "\n",
        ]);
    }
    match &request.tool_choice {
        ToolChoice::Auto | ToolChoice::None => {}
        ToolChoice::Required => {
            system.push_str("\nYour next message must call at least one of these tools.\n");
        }
        ToolChoice::Named(name) => {
            system.extend(["\nYour next message must call the tool `", name, "`.\n"]);
        }
    }
    if !request.parallel_tool_calls {
        system.push_str("\nWrite at most one call in a message.\n");
    }
    system
}

/// A message without native calls.
fn as_text(message: &Message) -> Message {
    match message {
        Message::Assistant { text, calls } if !calls.is_empty() => {
            let mut blocks: Vec<String> = Vec::with_capacity(calls.len() + 1);
            blocks.extend((!text.is_empty()).then(|| text.clone()));
            blocks.extend(
                calls
                    .iter()
                    .map(|call| render_call(&call.name, &call.arguments.to_json())),
            );
            Message::Assistant {
                text: blocks.join("\n"),
                calls: Vec::new(),
            }
        }
        Message::Tool { name, text, .. } => {
            let of = if name.is_empty() {
                String::new()
            } else {
                format!(" of {name}")
            };
            Message::human(format!("[result{of}]\n{}\n[end of result]", neutralise(text)))
        }
        Message::Human { .. }
        | Message::ClientSystem { .. }
        | Message::Assistant { .. }
        | Message::Harness { .. }
        | Message::Recalled { .. } => message.clone(),
    }
}

/// Joins neighbouring user texts: the templates of such models often insist on alternating turns.
fn merge_turns(messages: impl Iterator<Item = Message>) -> Vec<Message> {
    let mut merged: Vec<Message> = Vec::new();
    for message in messages {
        match (merged.last_mut().and_then(user_text), user_text_of(&message)) {
            (Some(earlier), Some(later)) => {
                earlier.push_str("\n\n");
                earlier.push_str(later);
            }
            (None, Some(later)) => merged.push(Message::human(later)),
            (_, None) => merged.push(message),
        }
    }
    merged
}

fn user_text(message: &mut Message) -> Option<&mut String> {
    match message {
        Message::Human { parts, name: None } => match parts.as_mut_slice() {
            [Part::Text { text }] => Some(text),
            _ => None,
        },
        Message::Human { .. }
        | Message::ClientSystem { .. }
        | Message::Assistant { .. }
        | Message::Tool { .. }
        | Message::Harness { .. }
        | Message::Recalled { .. } => None,
    }
}

fn user_text_of(message: &Message) -> Option<&str> {
    match message {
        Message::Human { parts, name: None } => match parts.as_slice() {
            [Part::Text { text }] => Some(text),
            _ => None,
        },
        Message::ClientSystem { text } | Message::Harness { text, .. } | Message::Recalled { text } => {
            Some(text)
        }
        Message::Human { .. } | Message::Assistant { .. } | Message::Tool { .. } => None,
    }
}
