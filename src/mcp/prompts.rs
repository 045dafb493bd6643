//! Skills as prompts: the operator's instructions for a kind of task, for the client's own model.

use std::sync::Arc;

use rmcp::{
    ErrorData,
    model::{
        GetPromptRequestParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage,
        Role,
    },
};
use tidegate_engine::prompt::skill::Skill;

use super::{Asker, Server, exposure, page};

/// The argument that every prompt takes: what the skill is to be used for.
const TASK: &str = "task";
/// Characters of a task.
const TASK_CHARS_MAX: usize = 16_384;

/// A page of the prompts.
pub(super) async fn list(
    server: &Server,
    asker: &Asker,
    cursor: Option<&str>,
) -> Result<ListPromptsResult, ErrorData> {
    let prompts = skills(server, asker).await?;
    let prompts = prompts.iter().map(|skill| prompt(skill)).collect();
    let (items, next) = page::cut(prompts, cursor)?;
    let mut result = ListPromptsResult::with_all_items(items);
    result.next_cursor = next;
    Ok(result)
}

/// One prompt: the skill's text, and the task below it.
pub(super) async fn get(
    server: &Server,
    asker: &Asker,
    request: GetPromptRequestParams,
) -> Result<GetPromptResult, ErrorData> {
    let skills = skills(server, asker).await?;
    let skill = skills
        .iter()
        .find(|skill| skill.name == request.name)
        .ok_or_else(|| ErrorData::invalid_params("there is no prompt of that name; list them", None))?;
    let task = match request.arguments.as_ref().and_then(|given| given.get(TASK)) {
        None => None,
        Some(serde_json::Value::String(text)) if text.chars().count() <= TASK_CHARS_MAX => Some(text),
        Some(_) => {
            let message = format!("`{TASK}` is a text of at most {TASK_CHARS_MAX} characters");
            return Err(ErrorData::invalid_params(message, None));
        }
    };
    let mut text = skill.body.clone();
    if let Some(task) = task.filter(|task| !task.trim().is_empty()) {
        text.push_str("\n\n");
        text.push_str(task);
    }
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(skill.description.clone()))
}

fn prompt(skill: &Skill) -> Prompt {
    let task = PromptArgument::new(TASK)
        .with_description("what to use the skill for")
        .with_required(false);
    Prompt::new(&skill.name, Some(&skill.description), Some(vec![task]))
}

/// The skills that this caller is shown.
async fn skills(server: &Server, asker: &Asker) -> Result<Vec<Arc<Skill>>, ErrorData> {
    if !server.options.skills || !exposure::may_ask(&asker.caller) {
        return Ok(Vec::new());
    }
    let engine = Arc::clone(&server.engine);
    tokio::task::spawn_blocking(move || engine.skills())
        .await
        .map_err(|_broke| ErrorData::internal_error("the skills could not be read", None))
}
