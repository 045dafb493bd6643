//! A question of the gate put to the person at the client, where the client can put it and the key may answer for
//! its own users (`approvals:decide:own`). Everybody else hears how to approve in another way.
//!
//! Clients of the older generation are asked in the middle of the call, for a bounded time. Of the newer generation
//! a request ends with the question, and is made again with the answer; what it brings back is only the question's
//! id, and the store says whose it is.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
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
use tidegate_engine::{Approver, Said};
use tokio::{
    sync::{mpsc, oneshot},
    time,
};

use super::{Asker, Server};
use crate::audit::decision_entry;

/// The name of the question, and of the answer in its form.
const APPROVE: &str = "approve";
/// Bytes of an id that is looked up.
const ID_BYTES_MAX: usize = 128;
/// Questions of one run that wait for the one that is put.
const QUESTIONS_MAX: usize = 4;

/// How a client can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// In the middle of the call.
    Within,
    /// By ending the call with the question.
    After,
}

/// How the person at this client can be asked; `None` where nobody can be, or may be.
pub(super) fn way(server: &Server, asker: &Asker, context: &RequestContext<RoleServer>) -> Option<Way> {
    if wait(server).is_zero() || !asker.caller.has(Scope::ApprovalsDecideOwn) || !takes_forms(context) {
        return None;
    }
    let is_newer = context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
    Some(if is_newer { Way::After } else { Way::Within })
}

/// How long an answer may take.
pub(super) fn wait(server: &Server) -> Duration {
    Duration::from_secs(server.options.approval_wait_s.min(server.approval_s))
}

/// A question that a run waits for.
#[derive(Debug)]
pub(super) struct Question {
    approval: Approval,
    reason: String,
    said: oneshot::Sender<Said>,
}

impl Question {
    /// The approval that it is about.
    pub(super) fn id(&self) -> &ApprovalId {
        &self.approval.id
    }

    /// Gives the run its answer. It may have stopped waiting.
    pub(super) fn answer(self, said: Said) {
        self.said.send(said).ok();
    }
}

/// Where the questions of one run arrive: who asks a client must do so from the task of its request.
pub(super) type Desk = mpsc::Receiver<Question>;

/// The run's end of a desk.
#[derive(Debug)]
struct AtClient {
    patience: Duration,
    questions: mpsc::Sender<Question>,
}

/// Both ends.
pub(super) fn desk(server: &Server) -> (Arc<dyn Approver>, Desk) {
    let (questions, desk) = mpsc::channel(QUESTIONS_MAX);
    let patience = wait(server);
    (Arc::new(AtClient { patience, questions }), desk)
}

#[async_trait]
impl Approver for AtClient {
    fn patience(&self) -> Duration {
        self.patience
    }

    async fn ask(&self, approval: &Approval, reason: &str) -> Said {
        let (said, answer) = oneshot::channel();
        let question = Question {
            approval: approval.clone(),
            reason: reason.to_owned(),
            said,
        };
        let answered = async {
            self.questions.send(question).await.ok()?;
            answer.await.ok()
        };
        let answered = time::timeout(self.patience, answered).await;
        answered.ok().flatten().unwrap_or(Said::Nothing)
    }
}

/// Waits for the work's end, and puts what it asks to the person meanwhile.
pub(super) async fn attend<T>(
    mut desk: Desk,
    server: &Server,
    asker: &Asker,
    context: &RequestContext<RoleServer>,
    work: impl Future<Output = T>,
) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        let question = tokio::select! {
            biased;
            end = &mut work => return end,
            Some(question) = desk.recv() => question,
        };
        let said = tokio::select! {
            biased;
            end = &mut work => return end,
            said = put(server, asker, context, &question) => said,
        };
        question.answer(said);
    }
}

/// Puts a question to the person at a client of the older generation, and writes the answer down.
pub(super) async fn put(
    server: &Server,
    asker: &Asker,
    context: &RequestContext<RoleServer>,
    question: &Question,
) -> Said {
    let Some(form) = form(&question.approval, &question.reason) else {
        return Said::Nothing;
    };
    let wait = wait(server);
    let answered = context.peer.create_elicitation_with_timeout(form, Some(wait));
    // The SDK's own limit, and ours around it.
    let says_yes = match time::timeout(wait, answered).await {
        Ok(Ok(answer)) => says_yes(&answer),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a client could not put a question");
            None
        }
        Err(_elapsed) => None,
    };
    let given = Given {
        id: question.id().to_string(),
        says_yes,
    };
    // The key may have been switched off while its person was thinking.
    let Ok(asker) = asker.again().await else {
        return Said::Nothing;
    };
    decide(server, &asker, &given).await.unwrap_or(Said::Nothing)
}

/// The question as the end of a request of the newer generation.
pub(super) fn ending(question: &Question) -> Option<InputRequiredResult> {
    ending_of(&question.approval, &question.reason)
}

/// The same for a call that has ended with it.
pub(super) async fn ending_with(
    server: &Server,
    asker: &Asker,
    id: &ApprovalId,
    reason: &str,
) -> Result<Option<InputRequiredResult>, ErrorData> {
    let approval = own(server, asker, id.as_str()).await?;
    Ok(approval.and_then(|approval| ending_of(&approval, reason)))
}

fn ending_of(approval: &Approval, reason: &str) -> Option<InputRequiredResult> {
    let question = InputRequest::Elicitation(ElicitRequest::new(form(approval, reason)?));
    let requests = InputRequests::from([(APPROVE.to_owned(), question)]);
    Some(InputRequiredResult::new(
        Some(requests),
        Some(approval.id.to_string()),
    ))
}

/// An answer that a repeated call brings along.
#[derive(Debug)]
pub(super) struct Given {
    id: String,
    says_yes: Option<bool>,
}

impl Given {
    /// The approval that it names.
    pub(super) fn id(&self) -> ApprovalId {
        ApprovalId::new(&self.id)
    }
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

/// Writes an answer down, as `POST /v1/approvals/{id}/decision` does: to the audit trail first. What was said counts
/// only where it is this caller's to say.
pub(super) async fn decide(server: &Server, asker: &Asker, given: &Given) -> Result<Said, ErrorData> {
    let caller = &asker.caller;
    let Some(says_yes) = given.says_yes.filter(|_| caller.has(Scope::ApprovalsDecideOwn)) else {
        return Ok(Said::Nothing);
    };
    let Some(found) = own(server, asker, &given.id).await? else {
        return Ok(Said::Nothing);
    };
    let (answer, said) = if says_yes {
        (approval::Answer::Approve, Said::Yes)
    } else {
        (approval::Answer::Deny, Said::No)
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
            said
        }
        Decided::Before(_) => said,
        Decided::TooLate(_) | Decided::Missing => Said::Nothing,
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
