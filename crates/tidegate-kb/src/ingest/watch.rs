//! The watcher of the folder: what it sees becomes a signal.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use notify::{
    Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _,
    event::{AccessKind, AccessMode},
};

use super::signals::Signals;

/// Watches until it is dropped. `folder` is a real path.
pub(super) fn watch(folder: &Path, signals: Arc<Signals>) -> Result<RecommendedWatcher, notify::Error> {
    let root = folder.to_owned();
    let handler = move |event: notify::Result<Event>| match event {
        Ok(event) => heed(&root, &event, &signals),
        Err(error) => {
            tracing::warn!(%error, "the watcher of the knowledge bank failed; everything is compared instead");
            signals.lose_watcher();
        }
    };
    // A link that leads out would have the watcher follow it.
    let config = Config::default().with_follow_symlinks(false);
    let mut watcher = RecommendedWatcher::new(handler, config)?;
    watcher.watch(folder, RecursiveMode::Recursive)?;
    Ok(watcher)
}

fn heed(root: &Path, event: &Event, signals: &Signals) {
    if event.need_rescan() {
        signals.everything();
    }
    let counts = match event.kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => true,
    };
    for path in event.paths.iter().filter(|_| counts) {
        match relative(root, path) {
            Some(path) if path.is_empty() => {
                // The folder itself: replaced perhaps, and then nobody watches the new one.
                if matches!(
                    event.kind,
                    EventKind::Remove(_) | EventKind::Modify(notify::event::ModifyKind::Name(_))
                ) {
                    signals.lose_watcher();
                }
            }
            Some(path) => signals.saw(path),
            None => {}
        }
    }
}

/// The path inside the folder, with `/` between names; `None` outside.
pub(super) fn relative(root: &Path, path: &Path) -> Option<String> {
    let inside: PathBuf = path.strip_prefix(root).ok()?.components().collect();
    Some(inside.to_string_lossy().into_owned())
}
