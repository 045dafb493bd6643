//! Swaps that a second thread repeats while a call runs.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::world::World;

/// A swap: what is replaced, and by what.
#[derive(Debug, Clone)]
pub(super) struct Race {
    swap: Swap,
    place: String,
    other: String,
}

#[derive(Debug, Clone, Copy)]
enum Swap {
    /// A plain file is there, then a copy of another is renamed over it.
    RenameOver,
    /// A file is there, then a link.
    FileForLink,
    /// A folder is there, then a link.
    FolderForLink,
}

impl Race {
    /// `NAME:PLACE<-OTHER` or `NAME:PLACE->OTHER`.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (name, paths) = text.split_once(':')?;
        let swap = match name {
            "rename_over" => Swap::RenameOver,
            "swap_file_for_symlink" => Swap::FileForLink,
            "swap_dir_for_symlink" => Swap::FolderForLink,
            _ => return None,
        };
        let (place, other) = paths.split_once("<-").or_else(|| paths.split_once("->"))?;
        Some(Self {
            swap,
            place: place.to_owned(),
            other: other.to_owned(),
        })
    }

    pub(super) fn filled(&self, world: &World) -> Self {
        Self {
            swap: self.swap,
            place: world.fill(&self.place),
            other: world.fill(&self.other),
        }
    }

    /// Swaps for as long as the work goes on.
    pub(super) fn run(&self, work: impl FnOnce()) {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    // A step that loses against the call under test is tried again in the next round.
                    drop(self.once());
                }
            });
            work();
            stop.store(true, Ordering::Relaxed);
        });
    }

    fn once(&self) -> std::io::Result<()> {
        let (place, other) = (Path::new(&self.place), Path::new(&self.other));
        // The swapped thing is made beside the place, outside of what the call looks at.
        let beside = |ending: &str| -> PathBuf {
            let mut name = place.as_os_str().to_owned();
            name.push(ending);
            name.into()
        };
        match self.swap {
            Swap::RenameOver => {
                std::fs::write(beside(".plain"), "plain")?;
                std::fs::rename(beside(".plain"), place)?;
                std::fs::copy(other, beside(".other"))?;
                std::fs::rename(beside(".other"), place)
            }
            Swap::FileForLink => {
                std::fs::write(beside(".plain"), "plain")?;
                std::fs::rename(beside(".plain"), place)?;
                drop(std::fs::remove_file(beside(".link")));
                std::os::unix::fs::symlink(other, beside(".link"))?;
                std::fs::rename(beside(".link"), place)
            }
            Swap::FolderForLink => {
                // A folder and a link cannot replace each other in one step.
                let aside = beside(".aside");
                std::fs::rename(place, &aside)?;
                std::os::unix::fs::symlink(other, place)?;
                std::fs::remove_file(place)?;
                std::fs::rename(&aside, place)
            }
        }
    }
}
