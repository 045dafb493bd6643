//! `tidegate init`: writes the shipped files that are not there yet.

use std::path::PathBuf;

use super::{
    Place,
    args::{Init, PresetName},
    error::Error,
    output::Out,
};
use crate::{app::shipped, config::FILE};

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
    if let Some(name) = command.preset {
        let file = shipped::File {
            path: FILE,
            text: preset(name).text,
        };
        if !shipped::write(&folder, &file)? {
            return Err(Error::Usage(format!(
                "there is a {FILE} already, and it stays as it is; add the lines that `tidegate config --preset \
                 {}` prints to it",
                preset_name(name)
            )));
        }
        writeln!(out, "wrote   {FILE}")?;
    }
    writeln!(
        out,
        "{written} of {} files written to {}",
        shipped::FILES.len(),
        folder.display()
    )?;
    Ok(())
}

/// The file of a preset.
pub fn preset(name: PresetName) -> shipped::File {
    match name {
        PresetName::Hardened => shipped::HARDENED,
    }
}

fn preset_name(name: PresetName) -> &'static str {
    match name {
        PresetName::Hardened => "hardened",
    }
}
