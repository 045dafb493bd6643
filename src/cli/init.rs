//! `tidegate init`: writes the shipped files that are not there yet.

use std::path::PathBuf;

use super::{Place, args::Init, error::Error, output::Out};
use crate::app::shipped;

/// Writes into the folder that was named, else into the configured home. Never replaces a file.
pub fn run(place: &Place<'_>, command: &Init, out: Out<'_>) -> Result<(), Error> {
    let folder = match &command.folder {
        Some(folder) => place.folder.join(folder),
        None => place.folder.join(place.load()?.config.home),
    };
    let folder: PathBuf = folder.components().collect();
    let mut written = 0_usize;
    for file in shipped::FILES {
        if shipped::write(&folder, file)? {
            written += 1;
            writeln!(out, "wrote   {}", file.path)?;
        } else {
            writeln!(out, "kept    {}", file.path)?;
        }
    }
    writeln!(
        out,
        "{written} of {} files written to {}",
        shipped::FILES.len(),
        folder.display()
    )?;
    Ok(())
}
