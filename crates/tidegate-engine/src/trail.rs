//! One line of the audit trail for every decision of the gate.

use tidegate_core::{
    approval::Approval,
    id::{ApprovalId, KeyId},
    port::{AuditDecision, AuditEntry, AuditEvent, AuditFault},
    tool::{ToolCall, ToolSpec},
};
use tidegate_gate::Basis;

use crate::{tool_log, turn::Turn};

/// What was decided, and by which layer.
#[derive(Debug)]
pub(crate) struct Ruling {
    decision: AuditDecision,
    layer: &'static str,
    code: &'static str,
    approval_id: Option<ApprovalId>,
    approver: Option<KeyId>,
}

impl Ruling {
    /// It may run.
    pub(crate) fn allowed(basis: &Basis, approval: Option<&Approval>) -> Self {
        Self {
            decision: AuditDecision::Allowed,
            layer: basis.layer(),
            code: basis.layer(),
            approval_id: approval.map(|approval| approval.id.clone()),
            approver: approval.and_then(|approval| approval.decided_by.clone()),
        }
    }

    /// A person is asked.
    pub(crate) fn asked(layer: &'static str, code: &'static str, approval: &Approval) -> Self {
        Self {
            decision: AuditDecision::Asked,
            layer,
            code,
            approval_id: Some(approval.id.clone()),
            approver: None,
        }
    }

    /// It does not run.
    pub(crate) fn denied(layer: &'static str, code: &'static str) -> Self {
        Self {
            decision: AuditDecision::Denied,
            layer,
            code,
            approval_id: None,
            approver: None,
        }
    }
}

/// Adds the line. An error means that the trail is required and cannot be written.
pub(crate) async fn record(
    turn: &Turn,
    spec: &ToolSpec,
    call: &ToolCall,
    ruling: Ruling,
) -> Result<(), AuditFault> {
    let entry = AuditEntry {
        at: turn.engine.now(),
        event: AuditEvent::ToolCall,
        request_id: Some(turn.request.request_id.clone()),
        run_id: turn.run_id.clone(),
        call_id: Some(call.id.clone()),
        key_id: turn.caller.key_id.clone(),
        user: turn.caller.user.clone(),
        origin: Some(turn.request.origin),
        tool: spec.name.clone(),
        mode: turn.session.mode,
        decision: ruling.decision,
        layer: ruling.layer.to_owned(),
        code: ruling.code.to_owned(),
        detail: tool_log::detail(turn, Some(spec), call),
        approval_id: ruling.approval_id,
        approver: ruling.approver,
    };
    turn.engine.audit().record(&entry).await
}
