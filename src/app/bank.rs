//! The operator's own way into the knowledge bank, for uploads and removals. A person with the scope `admin` does what the model
//! would have to ask for; the floors and the zones hold for both, and so does the audit trail.
//!
//! What is asked for one path is done one after another, from the judgement to the announcement to the index, so that
//! the last one that was answered is what lies there.

mod name;

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use axum::body::Bytes;
use tidegate_core::{
    caller::Origin,
    clock::Clock,
    id::RunId,
    port::{AuditDecision, AuditEntry, AuditEvent, AuditTrail, KnowledgeBase},
};
use tidegate_gate::{Access, PathFact, PathFault, PathKind, ZoneVerdict, Zones, floors};
use tidegate_io::files::{FileError, Place, Roots, real_path_of};
use tidegate_kb::ingest::{Ignored, LeftOut};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{Error, live_zones::LiveZones, part};
use crate::{
    config::Settings,
    http::{DocumentDoor, NotStored, Stored, Uploader},
};

/// How long a removal waits until the index has followed: whoever takes a document out does not expect to find it.
const FOLLOW_WAIT: Duration = Duration::from_secs(2);

/// Documents that are written at once; two whose names fall together wait for each other.
const TURNS: usize = 16;

/// What is done to a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Upload,
    Removal,
}

impl Act {
    /// Its name in the audit trail.
    fn name(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Removal => "removal",
        }
    }
}

/// The knowledge bank as its operator sees it.
#[derive(Debug)]
pub(super) struct Bank {
    roots: Roots,
    folder: PathBuf,
    ignored: Ignored,
    zones: LiveZones,
    knowledge: Option<Arc<dyn KnowledgeBase>>,
    audit: Arc<dyn AuditTrail>,
    clock: Arc<dyn Clock>,
    turns: [Arc<Mutex<()>>; TURNS],
}

#[async_trait]
impl DocumentDoor for Bank {
    async fn put(&self, by: &Uploader, path: String, bytes: Bytes) -> Result<Stored, NotStored> {
        let (path, turn) = self.turn(by, &path, Act::Upload).await?;
        let (place, real) = self.open_place(by, &path, Act::Upload).await?;
        let size = bytes.len() as u64;
        let written = self.act(turn, real, move || place.write_atomic(&bytes)).await?;
        Ok(Stored {
            path,
            bytes: size,
            is_replaced: !written.is_new,
        })
    }

    async fn remove(&self, by: &Uploader, path: String) -> Result<String, NotStored> {
        let (path, turn) = self.turn(by, &path, Act::Removal).await?;
        let (place, real) = self.open_place(by, &path, Act::Removal).await?;
        self.act(turn, real, move || place.remove_file()).await?;
        if let Some(knowledge) = &self.knowledge
            && !knowledge.settled(FOLLOW_WAIT).await
        {
            tracing::info!("a document was removed; the index follows as soon as it can");
        }
        Ok(path)
    }
}

impl Bank {
    /// Opens the folder.
    pub(super) fn open(
        settings: &Settings,
        zones: LiveZones,
        knowledge: Option<Arc<dyn KnowledgeBase>>,
        audit: &Arc<dyn AuditTrail>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let (config, folder) = (&settings.config, &settings.config.tools.knowledge_bank);
        // Where nothing is indexed no pattern of the index counts.
        let ignore = if knowledge.is_some() {
            config.kb.ignore.as_slice()
        } else {
            &[]
        };
        Ok(Self {
            roots: Roots::open(std::slice::from_ref(folder)).map_err(part)?,
            folder: folder.clone(),
            ignored: Ignored::new(ignore).map_err(part)?,
            zones,
            knowledge,
            audit: Arc::clone(audit),
            clock: Arc::clone(clock),
            turns: std::array::from_fn(|_| Arc::default()),
        })
    }

    /// The form that a path is known by, and the right to change what is there. Waits until whoever has it is done.
    async fn turn(
        &self,
        by: &Uploader,
        requested: &str,
        act: Act,
    ) -> Result<(String, OwnedMutexGuard<()>), NotStored> {
        let path = match name::normalised(requested) {
            Ok(path) => path,
            Err(malformed) => {
                self.record(by, requested, act, Some(&malformed)).await?;
                return Err(malformed);
            }
        };
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        let at = usize::try_from(hasher.finish() % TURNS as u64).unwrap_or(0);
        let turn = self.turns.get(at).map(Arc::clone).unwrap_or_default();
        Ok((path, turn.lock_owned().await))
    }

    /// Changes the folder and announces it. Both are done, and the turn is kept until then, even where nobody waits for
    /// it any more.
    async fn act<T: Send + 'static>(
        &self,
        turn: OwnedMutexGuard<()>,
        real: PathBuf,
        change: impl FnOnce() -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, NotStored> {
        let knowledge = self.knowledge.clone();
        let changing = tokio::task::spawn_blocking(move || {
            let changed = change();
            if let Some(knowledge) = knowledge {
                knowledge.written(&real);
            }
            drop(turn);
            changed
        });
        changing.await.map_err(|error| broke(&error))?.map_err(failed)
    }

    /// The place of a document and its real path, once floors and zones have let it through and that is recorded.
    async fn open_place(&self, by: &Uploader, path: &str, act: Act) -> Result<(Place, PathBuf), NotStored> {
        let roots = self.roots.clone().guarding(Arc::new(self.zones.twins()));
        let (zones, requested) = (self.zones.now(), path.to_owned());
        let (folder, ignored) = (self.folder.clone(), self.ignored.clone());
        let opened = tokio::task::spawn_blocking(move || {
            let (place, real) = judge(&roots, &zones, &requested, act)?;
            match act {
                Act::Upload => will_be_indexed(&ignored, &folder, &real)?,
                Act::Removal => {}
            }
            Ok((place, real))
        });
        let opened = opened.await.map_err(|error| broke(&error))?;
        self.record(by, path, act, opened.as_ref().err()).await?;
        opened
    }

    /// Records what is about to be done, or the refusal.
    async fn record(
        &self,
        by: &Uploader,
        path: &str,
        act: Act,
        refusal: Option<&NotStored>,
    ) -> Result<(), NotStored> {
        let (decision, code) = match refusal {
            None => (AuditDecision::Allowed, "admin"),
            Some(NotStored::Malformed(_)) => (AuditDecision::Denied, "malformed"),
            Some(NotStored::Conflict(_)) => (AuditDecision::Denied, "conflict"),
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
            tool: act.name().to_owned(),
            mode: by.caller.mode_ceiling,
            decision,
            layer: act.name().to_owned(),
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
fn judge(roots: &Roots, zones: &Zones, requested: &str, act: Act) -> Result<(Place, PathBuf), NotStored> {
    let opened = roots.resolve(requested);
    if let Err(PathFault::Malformed(why)) = &opened {
        return Err(name::malformed(why));
    }
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
        PathFault::Malformed(why) => name::malformed(&why),
        PathFault::Outside => NotStored::Refused("the path leads out of the knowledge bank".to_owned()),
        PathFault::Unreadable(why) => NotStored::Failed(format!("the path cannot be used: {why}")),
    })?;
    match act {
        Act::Removal => may_go(&place, requested)?,
        Act::Upload => {}
    }
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

/// Refuses what would lie there and never be found. Blocks.
fn will_be_indexed(ignored: &Ignored, folder: &Path, real: &Path) -> Result<(), NotStored> {
    let folder = real_path_of(folder);
    let Some(path) = real.strip_prefix(&folder).ok().and_then(Path::to_str) else {
        return Ok(());
    };
    match ignored.leaves_out(path) {
        None => Ok(()),
        Some(LeftOut::Hidden) => Err(NotStored::Malformed(
            "names that begin with a dot are not indexed; choose another name".to_owned(),
        )),
        Some(LeftOut::Pattern(pattern)) => Err(NotStored::Malformed(format!(
            "it would not be indexed, since the pattern `{pattern}` of `kb.ignore` leaves it out; choose another name, \
             or take the pattern out and restart"
        ))),
    }
}

/// Only a document is removed, by its own name.
fn may_go(place: &Place, requested: &str) -> Result<(), NotStored> {
    let resolved = place.resolved();
    match resolved.kind {
        PathKind::Missing => Err(NotStored::Missing(requested.to_owned())),
        PathKind::File if resolved.is_link => Err(NotStored::Refused(
            "a link leads to this document; remove it by its own name".to_owned(),
        )),
        PathKind::File => Ok(()),
        PathKind::Folder | PathKind::Special => Err(NotStored::Malformed(
            "there is no document of this name, but something else, which only its owner removes".to_owned(),
        )),
    }
}

fn failed(error: FileError) -> NotStored {
    match error {
        FileError::NotFound(name) => NotStored::Missing(name),
        FileError::NotAFile(_) | FileError::NotAFolder(_) => NotStored::Malformed(error.to_string()),
        FileError::Changed(name) => NotStored::Conflict(format!(
            "`{name}` was changed by somebody else meanwhile, and this request changed nothing; look at it and send it again"
        )),
        FileError::TooLarge { .. } | FileError::NotText(_) | FileError::Denied(_) | FileError::Io { .. } => {
            NotStored::Failed(error.to_string())
        }
    }
}

fn broke(error: &tokio::task::JoinError) -> NotStored {
    tracing::error!(%error, "storing a document broke");
    NotStored::Failed("storing the document broke; the log says how".to_owned())
}
