//! Runs, as their owner may see them. No message text leaves here.

use axum::{Json, extract::State};
use serde::Serialize;
use serde_json::{Map, Value};
use tidegate_core::{
    clock::Timestamp,
    id::RunId,
    run::{RunView, Stage},
};
use utoipa::ToSchema;

use crate::http::{
    AppState, auth::Identity, error::ApiError, extract::query::PathText, wire::answer::WireUsage,
};

/// Bytes of a run's id; a longer text is none.
const RUN_ID_BYTES_MAX: usize = 64;

/// A run as its owner sees it; no message text.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct RunBody {
    id: String,
    /// `run`.
    object: &'static str,
    request_id: String,
    model: String,
    user: String,
    /// `running`, `completed`, `awaiting_client`, `failed`, `cancelled`, `interrupted` or `indeterminate`.
    status: &'static str,
    /// How it ended, once it has.
    outcome: Option<String>,
    created_at: i64,
    ended_at: Option<i64>,
    usage: WireUsage,
    /// Whether part of it is an estimate: a provider reported nothing, or the run was cut off.
    usage_estimated: bool,
    /// When, and which stage, oldest first.
    #[schema(value_type = Vec<Object>)]
    journal: Vec<Map<String, Value>>,
}

/// Show a run
///
/// Only to the key that owns it; the id is in the `x-run-id` of its answer.
#[utoipa::path(get, path = "/v1/runs/{id}", tag = "runs", params(("id" = String, Path, description = "the run's id")),
    responses((status = 200, body = RunBody)))]
pub(in crate::http) async fn show(
    State(app): State<AppState>,
    identity: Identity,
    PathText(id): PathText,
) -> Result<Json<RunBody>, ApiError> {
    let well_formed = id.len() <= RUN_ID_BYTES_MAX
        && id
            .strip_prefix("run_")
            .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    if !well_formed {
        let rule =
            "`id` must be the id of a run, `run_` and letters and digits; the `x-run-id` of an answer has it";
        return Err(ApiError::invalid_value("id", rule));
    }
    let found = app
        .parts
        .runs
        .find(&identity.caller.key_id, &RunId::new(id))
        .await?;
    found
        .map(|view| Json(body(view)))
        .ok_or_else(|| ApiError::not_found("run"))
}

fn body(view: RunView) -> RunBody {
    let record = view.record;
    RunBody {
        id: record.id.to_string(),
        object: "run",
        request_id: record.request_id.to_string(),
        model: record.model,
        user: record.user.to_string(),
        status: view.state.name(),
        outcome: view.outcome,
        created_at: record.created_at.as_second(),
        ended_at: view.ended_at.map(Timestamp::as_second),
        usage: view.usage.into(),
        usage_estimated: view.usage.estimated,
        journal: view.journal.iter().map(|(at, stage)| line(*at, stage)).collect(),
    }
}

fn line(at: Timestamp, stage: &Stage) -> Map<String, Value> {
    let mut line = Map::from_iter([("at".to_owned(), Value::from(at.to_string()))]);
    if let Ok(Value::Object(fields)) = serde_json::to_value(stage) {
        line.extend(fields);
    }
    line
}
