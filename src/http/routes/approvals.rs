//! Approvals: what waits for a person, and the person's answer.
//!
//! A key sees and decides the questions of its own users, and of everybody's with `approvals:decide:any`. The key
//! that asked may answer itself only with `approvals:decide:own`. What a key may not see does not exist for it.

use axum::{Json, extract::State};
use tidegate_core::{
    approval::{Approval, ApprovalQuery, ApprovalState, Decided},
    caller::{Caller, Scope},
    clock::after,
};
use tracing::info;

use crate::audit::decision_entry;
use crate::http::{
    AppState,
    auth::Identity,
    error::ApiError,
    extract::{
        ApiJson,
        query::{ApiQuery, PathText},
    },
    stamp::Stamp,
    wire::approvals::{ApprovalBody, ApprovalList, Decision, ListApprovals, Page, approval_id},
};

/// List approvals
#[utoipa::path(get, path = "/v1/approvals", tag = "approvals", params(ListApprovals),
    responses((status = 200, body = ApprovalList)))]
pub(in crate::http) async fn list(
    State(app): State<AppState>,
    identity: Identity,
    ApiQuery(page): ApiQuery<Page>,
) -> Result<Json<ApprovalList>, ApiError> {
    let caller = &identity.caller;
    let wanted = ApprovalQuery {
        key_id: (!sees_all(caller)).then(|| caller.key_id.clone()),
        user: None,
        state: page.state,
        limit: page.limit,
        after: page.after,
    };
    let page = app.parts.approvals.list(&wanted, app.parts.clock.now()).await?;
    let data: Vec<ApprovalBody> = page.approvals.into_iter().map(Into::into).collect();
    Ok(Json(ApprovalList {
        object: "list",
        first_id: data.first().map(|approval| approval.id().to_owned()),
        last_id: data.last().map(|approval| approval.id().to_owned()),
        has_more: page.has_more,
        data,
    }))
}

/// Show an approval
#[utoipa::path(get, path = "/v1/approvals/{id}", tag = "approvals", params(("id" = String, Path, description = "the approval's id")),
    responses((status = 200, body = ApprovalBody)))]
pub(in crate::http) async fn show(
    State(app): State<AppState>,
    identity: Identity,
    PathText(id): PathText,
) -> Result<Json<ApprovalBody>, ApiError> {
    Ok(Json(find(&app, &identity.caller, &id).await?.into()))
}

/// Answer an approval
///
/// Approved, exactly this call may run once, until the approval expires. Answering twice in the same way is safe.
#[utoipa::path(post, path = "/v1/approvals/{id}/decision", tag = "approvals", params(("id" = String, Path, description = "the approval's id")),
    request_body = Decision,
    responses((status = 200, body = ApprovalBody)))]
pub(in crate::http) async fn decide(
    State(app): State<AppState>,
    identity: Identity,
    Stamp(request_id): Stamp,
    PathText(id): PathText,
    ApiJson(body): ApiJson<Decision>,
) -> Result<Json<ApprovalBody>, ApiError> {
    let answer = body.answer()?;
    let caller = &identity.caller;
    let found = find(&app, caller, &id).await?;
    let is_own = found.binding.key_id == caller.key_id;
    if is_own && !caller.has(Scope::ApprovalsDecideOwn) {
        return Err(ApiError::scope_missing("`approvals:decide:own`"));
    }
    let now = app.parts.clock.now();
    if found.state == ApprovalState::Pending {
        let mut entry = decision_entry(&found, answer, now);
        entry.request_id = Some(request_id);
        entry.approver = Some(caller.key_id.clone());
        let recorded = app.parts.audit.record(&entry).await;
        recorded.map_err(|fault| ApiError::internal(fault.to_string()))?;
    }
    let until = after(now, app.parts.approval_s);
    let decided = app
        .parts
        .approvals
        .decide(&found.id, answer, &caller.key_id, now, until)
        .await?;
    match decided {
        Decided::Now(approval) => {
            info!(approval = %approval.id, by = %caller.key_id, state = approval.state.name(), "an approval was decided");
            Ok(Json(approval.into()))
        }
        Decided::Before(approval) => Ok(Json(approval.into())),
        Decided::TooLate(approval) => Err(ApiError::too_late(&format!(
            "this approval is {} already; ask for the action again",
            approval.state.name()
        ))),
        Decided::Missing => Err(ApiError::not_found("approval")),
    }
}

fn sees_all(caller: &Caller) -> bool {
    caller.has(Scope::ApprovalsDecideAny)
}

async fn find(app: &AppState, caller: &Caller, id: &str) -> Result<Approval, ApiError> {
    let id = approval_id("id", id)?;
    let found = app.parts.approvals.find(&id, app.parts.clock.now()).await?;
    found
        .filter(|approval| sees_all(caller) || approval.binding.key_id == caller.key_id)
        .ok_or_else(|| ApiError::not_found("approval"))
}
