//! A question of the gate put to the person at the client, where the client can put it and the key may answer for
//! its own users (`approvals:decide:own`). Everybody else hears how to approve in another way.
//!
//! Clients of the older generation are asked in the middle of the call, for a bounded time. Of the newer generation
//! the call ends with the question, and is made again with the answer; what it brings back is only the question's
//! id, and the store says whose it is.

use std::time::Duration;

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationSchema, InputRequest, InputRequests, InputRequiredResult, ProtocolVersion,
    },
    service::RequestContext,
};
use serde_json::Value;
use tidegate_core::{
    approval::{self, Approval, ApprovalState, Decided},
    caller::Scope,
    clock::after,
    id::ApprovalId,
};

use super::{Asker, Server};
use crate::audit::decision_entry;

/// The name of the question, and of the answer in its form.
const APPROVE: &str = "approve";
/// Bytes of an id that is looked up.
const ID_BYTES_MAX: usize = 128;

/// What became of a question.
pub(super) enum Answer {
    /// Somebody said yes: the very same call runs now.
    Approved,
    /// Somebody said no.
    Refused,
    /// Nobody was asked, or nobody answered.
    Nobody,
    /// The client is to ask and to make the call again.
    Later(InputRequiredResult),
}

/// An answer that a repeated call brings along.
pub(super) struct Given {
    id: String,
    says_yes: Option<bool>,
}

/// Puts the question where it can be put.
pub(super) async fn ask(
    server: &Server,
    asker: &Asker,
    context: &RequestContext<RoleServer>,
    id: &ApprovalId,
    reason: &str,
) -> Result<Answer, ErrorData> {
    let wait_s = server.options.approval_wait_s.min(server.approval_s);
    if wait_s == 0 || !asker.caller.has(Scope::ApprovalsDecideOwn) || !takes_forms(context) {
        return Ok(Answer::Nobody);
    }
    let Some(approval) = own(server, asker, id.as_str()).await? else {
        return Ok(Answer::Nobody);
    };
    let Some(form) = form(&approval, reason) else {
        return Ok(Answer::Nobody);
    };
    let is_newer = context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
    if is_newer {
        let question = InputRequest::Elicitation(ElicitRequest::new(form));
        let requests = InputRequests::from([(APPROVE.to_owned(), question)]);
        return Ok(Answer::Later(InputRequiredResult::new(
            Some(requests),
            Some(id.to_string()),
        )));
    }
    let wait = Duration::from_secs(wait_s);
    let answered = context.peer.create_elicitation_with_timeout(form, Some(wait));
    // The SDK's own limit, and ours around it.
    let says_yes = match tokio::time::timeout(wait, answered).await {
        Ok(Ok(answer)) => says_yes(&answer),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a client could not put a question");
            None
        }
        Err(_elapsed) => None,
    };
    let given = Given {
        id: id.to_string(),
        says_yes,
    };
    Ok(match decide(server, asker, &given).await? {
        Some(true) => Answer::Approved,
        Some(false) => Answer::Refused,
        None => Answer::Nobody,
    })
}

/// The answer that a repeated call brings along.
pub(super) fn answered(params: &CallToolRequestParams) -> Option<Given> {
    let id = params.request_state.clone()?;
    let answer = params.input_responses.as_ref()?.get(APPROVE)?;
    let answer: ElicitResult = serde_json::from_value(answer.clone()).ok()?;
    Some(Given {
        id,
        says_yes: says_yes(&answer),
    })
}

/// Writes an answer down, as `POST /v1/approvals/{id}/decision` does: to the audit trail first. Whether it was yes;
/// `None` where there was none, or it is not this caller's to give.
pub(super) async fn decide(server: &Server, asker: &Asker, given: &Given) -> Result<Option<bool>, ErrorData> {
    let caller = &asker.caller;
    let Some(says_yes) = given.says_yes.filter(|_| caller.has(Scope::ApprovalsDecideOwn)) else {
        return Ok(None);
    };
    let Some(found) = own(server, asker, &given.id).await? else {
        return Ok(None);
    };
    let answer = if says_yes {
        approval::Answer::Approve
    } else {
        approval::Answer::Deny
    };
    let now = server.clock.now();
    if found.state == ApprovalState::Pending {
        let mut entry = decision_entry(&found, answer, now);
        entry.approver = Some(caller.key_id.clone());
        server.audit.record(&entry).await.map_err(broken)?;
    }
    let until = after(now, server.approval_s);
    let decided = server
        .approvals
        .decide(&found.id, answer, &caller.key_id, now, until)
        .await
        .map_err(broken)?;
    Ok(match decided {
        Decided::Now(approval) => {
            tracing::info!(approval = %approval.id, by = %caller.key_id, state = approval.state.name(), "an approval was decided over MCP");
            Some(says_yes)
        }
        Decided::Before(_) => Some(says_yes),
        Decided::TooLate(_) | Decided::Missing => None,
    })
}

/// The question of that id, if it is one of this caller's own.
async fn own(server: &Server, asker: &Asker, id: &str) -> Result<Option<Approval>, ErrorData> {
    if id.len() > ID_BYTES_MAX {
        return Ok(None);
    }
    let found = server
        .approvals
        .find(&ApprovalId::new(id), server.clock.now())
        .await
        .map_err(broken)?;
    let (key, user) = (&asker.caller.key_id, &asker.caller.user);
    Ok(found.filter(|found| found.binding.key_id == *key && found.binding.user == *user))
}

/// Whether the client can show a form. One that declares the capability and no kind of it means forms.
fn takes_forms(context: &RequestContext<RoleServer>) -> bool {
    let capabilities = context.client_capabilities();
    let Some(elicitation) = capabilities.and_then(|capabilities| capabilities.elicitation) else {
        return false;
    };
    elicitation.form.is_some() || elicitation.url.is_none()
}

fn form(approval: &Approval, reason: &str) -> Option<ElicitRequestParams> {
    let schema = ElicitationSchema::builder()
        .required_bool_property(APPROVE, |field| {
            field
                .title("Let exactly this call run, once")
                .description("No change of the call is covered by the answer")
        })
        .build()
        .ok()?;
    let message = format!(
        "tidegate asks for an approval ({}). {reason}\nWhat would happen: {}\nArguments: {}",
        approval.id, approval.summary, approval.arguments
    );
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: schema,
    })
}

/// What a person said; `None` where they closed the form, or sent it without the answer.
fn says_yes(answer: &ElicitResult) -> Option<bool> {
    let ticked = answer
        .content
        .as_ref()
        .and_then(|content| content.get(APPROVE))
        .and_then(Value::as_bool);
    if answer.action == ElicitationAction::Accept {
        ticked
    } else if answer.action == ElicitationAction::Decline {
        Some(false)
    } else {
        None
    }
}

fn broken(error: impl std::fmt::Display) -> ErrorData {
    tracing::error!(%error, "an approval could not be looked up or decided");
    ErrorData::internal_error("the server cannot keep the answer at the moment", None)
}
