//! `tidegate approvals`: straight on the database, also while the daemon runs. Whoever may run this on the
//! machine may decide everything; the answer is recorded as the console's.

use std::path::Path;

use serde_json::{Value, json};
use tidegate_core::{
    approval::{Answer, Approval, ApprovalQuery, ApprovalState, Decided},
    clock::{Clock, Timestamp, after},
    id::{ApprovalId, KeyId},
    port::ApprovalStore,
};

use super::{
    args::{Approvals, ListApprovals, OneApproval},
    error::Error,
    output::{self, Out},
};
use crate::audit;

/// Approvals that are fetched at a time.
const PAGE: u32 = 100;
/// Pages that are shown at most.
const PAGES_MAX: u32 = 50;
/// Who answers here.
const CONSOLE: &str = "console";

/// What the commands work with.
#[derive(Debug, Clone, Copy)]
pub struct Desk<'d> {
    /// The approvals.
    pub store: &'d dyn ApprovalStore,
    /// The wall clock.
    pub clock: &'d dyn Clock,
    /// The audit trail's settings.
    pub audit: &'d audit::Options,
    /// The logs folder.
    pub logs: &'d Path,
    /// How long an approval can be spent, in seconds.
    pub approval_s: u64,
}

impl Desk<'_> {
    /// Does what was asked.
    pub async fn run(&self, command: &Approvals, out: Out<'_>) -> Result<(), Error> {
        match command {
            Approvals::List(list) => self.list(list, out).await,
            Approvals::Show(one) => self.show(one, out).await,
            Approvals::Approve(one) => self.decide(one, Answer::Approve, out).await,
            Approvals::Deny(one) => self.decide(one, Answer::Deny, out).await,
        }
    }

    async fn list(&self, list: &ListApprovals, out: Out<'_>) -> Result<(), Error> {
        let mut approvals = Vec::new();
        let mut after = None;
        for _ in 0..PAGES_MAX {
            let query = ApprovalQuery {
                state: (!list.all).then_some(ApprovalState::Pending),
                after,
                limit: PAGE,
                ..ApprovalQuery::default()
            };
            let page = self.store.list(&query, self.clock.now()).await?;
            after = page.approvals.last().map(|approval| approval.id.clone());
            approvals.extend(page.approvals);
            if !page.has_more {
                break;
            }
        }
        if list.output.json {
            let views: Vec<Value> = approvals.iter().map(view).collect();
            return Ok(output::json(out, &views)?);
        }
        if approvals.is_empty() {
            let text = if list.all {
                "There are no approvals."
            } else {
                "Nothing waits for an answer."
            };
            return Ok(writeln!(out, "{text}")?);
        }
        let now = self.clock.now();
        let rows: Vec<_> = approvals.iter().map(|approval| row(approval, now)).collect();
        Ok(output::columns(
            out,
            &["ID", "STATE", "LEFT", "USER", "WHAT"],
            &rows,
        )?)
    }

    async fn show(&self, one: &OneApproval, out: Out<'_>) -> Result<(), Error> {
        let approval = self.find(&one.id).await?;
        print(&approval, one, self.clock.now(), out)
    }

    async fn decide(&self, one: &OneApproval, answer: Answer, out: Out<'_>) -> Result<(), Error> {
        let found = self.find(&one.id).await?;
        let by = KeyId::new(CONSOLE);
        let now = self.clock.now();
        if found.state == ApprovalState::Pending {
            let mut entry = audit::decision_entry(&found, answer, now);
            entry.approver = Some(by.clone());
            let recorded = audit::write_now(self.audit, self.logs, &entry);
            if let Err(problem) = recorded {
                if self.audit.required {
                    let text = format!("the answer cannot be recorded, so nothing was decided: {problem}");
                    return Err(Error::NotFound(text));
                }
                tracing::warn!(%problem, "the answer could not be recorded");
            }
        }
        let until = after(now, self.approval_s);
        match self.store.decide(&found.id, answer, &by, now, until).await? {
            Decided::Now(approval) | Decided::Before(approval) => print(&approval, one, now, out),
            Decided::TooLate(approval) => Err(Error::NotFound(format!(
                "approval {} is {} already; the action must be asked for again",
                approval.id,
                approval.state.name()
            ))),
            Decided::Missing => Err(unknown(&one.id)),
        }
    }

    async fn find(&self, id: &str) -> Result<Approval, Error> {
        let found = self.store.find(&ApprovalId::new(id), self.clock.now()).await?;
        found.ok_or_else(|| unknown(id))
    }
}

fn unknown(id: &str) -> Error {
    Error::NotFound(format!(
        "there is no approval `{}`; see `tidegate approvals list --all`",
        output::plain(id)
    ))
}

fn row(approval: &Approval, now: Timestamp) -> Vec<String> {
    vec![
        approval.id.to_string(),
        approval.state.name().to_owned(),
        left(approval, now),
        approval.binding.user.to_string(),
        approval.summary.clone(),
    ]
}

fn left(approval: &Approval, now: Timestamp) -> String {
    match approval.state {
        ApprovalState::Pending | ApprovalState::Approved => {
            format!(
                "{} s",
                approval
                    .expires_at
                    .as_second()
                    .saturating_sub(now.as_second())
                    .max(0)
            )
        }
        ApprovalState::Denied
        | ApprovalState::Expired
        | ApprovalState::Claimed
        | ApprovalState::Consumed
        | ApprovalState::Indeterminate => "-".to_owned(),
    }
}

fn print(approval: &Approval, one: &OneApproval, now: Timestamp, out: Out<'_>) -> Result<(), Error> {
    if one.output.json {
        return Ok(output::json(out, &view(approval))?);
    }
    for (name, text) in [
        ("Approval", approval.id.to_string()),
        ("State", approval.state.name().to_owned()),
        ("Left", left(approval, now)),
        ("User", approval.binding.user.to_string()),
        ("Mode", approval.binding.mode.name().to_owned()),
        ("What", approval.summary.clone()),
        ("Arguments", approval.arguments.clone()),
        ("Why", approval.reasons.join(", ")),
        ("Run", approval.run_id.to_string()),
    ] {
        writeln!(out, "{name:<10} {}", output::plain(&text))?;
    }
    Ok(())
}

fn view(approval: &Approval) -> Value {
    json!({
        "id": approval.id,
        "status": approval.state.name(),
        "tool": approval.binding.tool,
        "summary": approval.summary,
        "arguments": approval.arguments,
        "reasons": approval.reasons,
        "mode": approval.binding.mode.name(),
        "key_id": approval.binding.key_id,
        "user": approval.binding.user,
        "run_id": approval.run_id,
        "created_at": approval.created_at.as_second(),
        "expires_at": approval.expires_at.as_second(),
        "decided_by": approval.decided_by,
        "decided_at": approval.decided_at.map(Timestamp::as_second),
    })
}
