//! What may be remembered, and how learning does, for `doctor`.

use std::sync::Arc;

use tidegate_core::{clock::Clock, port::CaptureQueue as _};
use tidegate_engine::memory::Extractor;

use super::Line;
use crate::{
    app::{self, memory},
    clock::SystemClock,
    config::{self, Settings},
    lifecycle::Lifecycle,
};

const NAME: &str = "memory";

/// How memory does. `has_database` says that there is one of this version.
pub(super) async fn line(settings: &Settings, has_database: bool) -> Line {
    let options = &settings.config.memory;
    if !options.enabled {
        return Line::ok(NAME, "switched off (`memory.enabled`)");
    }
    let kinds = match memory::kinds(options) {
        Ok(kinds) => config::count(kinds.iter().count(), "kind"),
        Err(error) => {
            let fix = "mend the entry that is named, or move the file away: then the built-in table is used";
            return Line::failed(NAME, error.to_string(), fix);
        }
    };
    let model = format!("the model `{}`", options.model);
    let by = match options.extractor {
        Extractor::Rules => "rules".to_owned(),
        Extractor::Model => model,
        Extractor::Both => format!("rules and {model}"),
    };
    let found = format!("{kinds}, found by {by}");
    if !has_database {
        return Line::ok(NAME, found);
    }
    let lifecycle = Lifecycle::new();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new(settings.zone.clone()));
    let counts = match app::open_store(settings, clock, &lifecycle).await {
        Ok(store) => store.capture_counts().await.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    lifecycle.close().await;
    match counts {
        Ok(counts) if counts.dead > 0 => Line::warning(
            NAME,
            format!(
                "{found}; {} could not be learned from and were given up",
                config::count(usize::try_from(counts.dead).unwrap_or(usize::MAX), "turn")
            ),
            "the log says why; mend it (often the model of `memory.model`), then type `tidegate memory revive`",
        ),
        Ok(counts) => {
            let waiting = usize::try_from(counts.waiting + counts.leased).unwrap_or(usize::MAX);
            Line::ok(
                NAME,
                format!("{found}; {} to be learned from", config::count(waiting, "turn")),
            )
        }
        Err(error) => Line::failed(NAME, error, "see the line `database`"),
    }
}
