//! The operator's own way into the knowledge bank, for uploads. A person with the scope `admin` does what the model
//! would have to ask for; the floors and the zones hold for both, and so does the audit trail.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use axum::body::Bytes;
use tidegate_core::{
    caller::Origin,
    clock::Clock,
    id::RunId,
    port::{AuditDecision, AuditEntry, AuditEvent, AuditTrail, KnowledgeBase},
};
use tidegate_gate::{Access, PathFact, PathFault, ZoneVerdict, Zones, floors};
use tidegate_io::files::{Place, Roots};

use super::{Error, part, zones::zones};
use crate::{
    config::Settings,
    http::{DocumentDoor, NotStored, Stored, Uploader},
};

/// The name of an upload in the audit trail.
const TOOL: &str = "upload";

/// The knowledge bank as uploads see it.
#[derive(Debug)]
pub(super) struct Bank {
    pub(super) roots: Roots,
    pub(super) zones: Zones,
    pub(super) knowledge: Option<Arc<dyn KnowledgeBase>>,
    pub(super) audit: Arc<dyn AuditTrail>,
    pub(super) clock: Arc<dyn Clock>,
}

#[async_trait]
impl DocumentDoor for Bank {
    async fn put(&self, by: &Uploader, path: String, bytes: Bytes) -> Result<Stored, NotStored> {
        let (roots, zones, requested) = (self.roots.clone(), self.zones.clone(), path.clone());
        let opened = tokio::task::spawn_blocking(move || judge(&roots, &zones, &requested));
        let opened = opened.await.map_err(|error| broke(&error))?;
        self.record(by, &path, opened.as_ref().err()).await?;
        let (place, real) = opened?;
        let size = bytes.len() as u64;
        let written = tokio::task::spawn_blocking(move || place.write_atomic(&bytes)).await;
        let written = written
            .map_err(|error| broke(&error))?
            .map_err(|error| NotStored::Failed(error.to_string()))?;
        if let Some(knowledge) = &self.knowledge {
            knowledge.written(&real);
        }
        Ok(Stored {
            path,
            bytes: size,
            is_replaced: !written.is_new,
        })
    }
}

impl Bank {
    /// Opens the folder.
    pub(super) fn open(
        settings: &Settings,
        knowledge: Option<Arc<dyn KnowledgeBase>>,
        audit: &Arc<dyn AuditTrail>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        Ok(Self {
            roots: Roots::open(std::slice::from_ref(&settings.config.tools.knowledge_bank)).map_err(part)?,
            zones: zones(settings),
            knowledge,
            audit: Arc::clone(audit),
            clock: Arc::clone(clock),
        })
    }

    /// Records an upload before it is done, or the refusal.
    async fn record(&self, by: &Uploader, path: &str, refusal: Option<&NotStored>) -> Result<(), NotStored> {
        let (decision, code) = match refusal {
            None => (AuditDecision::Allowed, "admin"),
            Some(NotStored::Malformed(_)) => (AuditDecision::Denied, "malformed"),
            Some(NotStored::Refused(_)) => (AuditDecision::Denied, "floor"),
            Some(NotStored::Missing(_)) => (AuditDecision::Denied, "missing"),
            Some(NotStored::Failed(_)) => (AuditDecision::Denied, "unreadable"),
        };
        let entry = AuditEntry {
            at: self.clock.now(),
            event: AuditEvent::ToolCall,
            request_id: Some(by.request_id.clone()),
            // No run stands behind it: a person did it.
            run_id: RunId::new("none"),
            call_id: None,
            key_id: by.caller.key_id.clone(),
            user: by.caller.user.clone(),
            origin: Some(Origin::Http),
            tool: TOOL.to_owned(),
            mode: by.caller.mode_ceiling,
            decision,
            layer: "upload".to_owned(),
            code: code.to_owned(),
            detail: path.chars().take(1024).flat_map(char::escape_debug).collect(),
            approval_id: None,
            approver: None,
        };
        let recorded = self.audit.record(&entry).await;
        recorded.map_err(|fault| NotStored::Failed(fault.to_string()))
    }
}

/// Opens the place that a path leads to, and asks floors and zones about the opened thing. Blocks.
fn judge(roots: &Roots, zones: &Zones, requested: &str) -> Result<(Place, PathBuf), NotStored> {
    let opened = roots.resolve(requested);
    let fact = PathFact {
        argument: "path".to_owned(),
        requested: requested.to_owned(),
        access: Access::Write,
        resolution: opened
            .as_ref()
            .map(|place| place.resolved().clone())
            .map_err(PathFault::clone),
    };
    if let Some(denial) = floors::check_paths(&[fact], zones) {
        return Err(NotStored::Refused(denial.reason));
    }
    let place = opened.map_err(|fault| match fault {
        PathFault::Missing => NotStored::Missing(requested.to_owned()),
        PathFault::Malformed(why) => NotStored::Malformed(format!("the path is malformed: {why}")),
        PathFault::Outside => NotStored::Refused("the path leads out of the knowledge bank".to_owned()),
        PathFault::Unreadable(why) => NotStored::Failed(format!("the path cannot be used: {why}")),
    })?;
    let real = place.resolved().real.clone();
    match zones.judge(Access::Write, &real) {
        ZoneVerdict::Blocked | ZoneVerdict::Outside => Err(NotStored::Refused(
            "this place is shut by the operator's settings (`gate.blocked_paths`, `gate.allowed_paths`)"
                .to_owned(),
        )),
        // Where the model would have to ask a person, a person is asking.
        ZoneVerdict::NoPrompt | ZoneVerdict::Inside | ZoneVerdict::Ask(_) => Ok((place, real)),
    }
}

fn broke(error: &tokio::task::JoinError) -> NotStored {
    tracing::error!(%error, "storing a document broke");
    NotStored::Failed("storing the document broke; the log says how".to_owned())
}
