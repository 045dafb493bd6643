//! `tidegate triage`: what the routing gate decided, and the threshold of its second tier.

mod calibrate;
mod config_file;
mod histogram;
mod labels;
mod log;
mod report;
mod svg;
mod threshold;

use std::io::BufRead;

use tidegate_engine::routing::ScoreKind;

use super::{Place, args, error::Error, output::Out};

/// What a score belongs to: none of another origin can be compared with it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Origin {
    /// The embedding model.
    model: String,
    /// The version of both lists.
    lists: String,
    /// How it was scored.
    kind: ScoreKind,
}

/// The name of a score in a configuration file.
fn kind_name(kind: ScoreKind) -> &'static str {
    match kind {
        ScoreKind::Probe => "probe",
        ScoreKind::Margin => "margin",
        ScoreKind::Centroid => "centroid",
        ScoreKind::Nearest => "nearest",
    }
}

/// Runs one command; `keys` is where the person answers.
pub fn run(
    place: &Place<'_>,
    command: &args::triage::Triage,
    keys: &mut dyn BufRead,
    out: Out<'_>,
) -> Result<(), Error> {
    let (loaded, settings) = place.resolve()?;
    super::warn(&settings.warnings);
    match command {
        args::triage::Triage::Report(command) => report::run(&settings, command, out),
        args::triage::Triage::Calibrate(command) => {
            let file = loaded
                .file
                .unwrap_or_else(|| place.folder.join(crate::config::FILE));
            calibrate::run(&settings, &file, command, keys, out)
        }
    }
}
