//! Operands of commands: any path of the machine, judged where it really leads.
//!
//! Commands are not run here and open their files themselves, so no handle is kept; what is found out is where
//! a path leads now, links followed one by one and patterns expanded as the shell would. Everything is looked
//! up below the root of a [`View`]: `/` in the product, a folder with a made-up world elsewhere. Work is bounded;
//! what exceeds a bound is a fault, and a fault is never allowed.

mod glob;

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs::File,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{FileType, Mode, OFlags, fstatfs, open},
    io::Errno,
};
use tidegate_gate::{Access, PathFact, PathFault, PathKind, ResolvedPath};

use super::{
    place::reopen_file,
    resolve::{COMPONENTS_MAX, PATH_BYTES_MAX, kind_of, unreadable},
    twins::Twins,
    walk::{LINKS_MAX, Step, open_itself, steps, target_of},
};

/// The argument that facts about operands are said to come from.
const ARGUMENT: &str = "command";

/// Takes everything that is written to it and gives nothing: no file for any rule.
const NOTHING: &str = "/dev/null";

/// `f_type` of the file system whose links lead past every folder (`PROC_SUPER_MAGIC` of linux/magic.h).
const PROC_MAGIC: u64 = 0x9fa0;

/// Whether an operand means what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperandKind {
    /// The very path.
    Literal,
    /// A pattern of a shell: `*`, `?`, `[…]`, with `\` before what is meant literally.
    Glob,
}

/// The file system that operands are looked up in.
#[derive(Debug, Clone)]
pub struct View {
    root: Arc<OwnedFd>,
    twins: Arc<Twins>,
}

impl View {
    /// A view of what stands below `root`: `/` for the machine itself. Absolute paths and targets of links begin
    /// there, and `..` does not lead out of it.
    pub fn open(root: &Path) -> std::io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            root: Arc::new(open(root, flags, Mode::empty())?),
            twins: Arc::default(),
        })
    }

    /// The same view, in which another name of a guarded file counts as that file.
    #[must_use]
    pub fn guarding(mut self, twins: Arc<Twins>) -> Self {
        self.twins = twins;
        self
    }
}

impl View {
    /// What a regular file of the view holds, by its real path; `None` for anything else, and for one that is
    /// longer than `bytes_max`, or that this process must not open. Blocks.
    pub fn read(&self, real: &Path, bytes_max: u64) -> Option<Vec<u8>> {
        use std::io::Read as _;
        let relative = real.strip_prefix("/").ok()?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(&self.root, relative, flags, Mode::empty()).ok()?;
        let file = reopen_file(&handle, &self.twins).ok()?;
        if file.metadata().ok()?.len() > bytes_max {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(bytes_max).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}

/// What an operand means, one fact for each file that a pattern stands for. A pattern without a match stands
/// for itself, as in a shell. `/dev/null` means nothing. Blocks.
pub fn resolve_operand(text: &str, access: Access, kind: OperandKind, view: &View) -> Vec<PathFact> {
    if text == NOTHING {
        return Vec::new();
    }
    let fact = |requested: String, resolution| PathFact {
        argument: ARGUMENT.to_owned(),
        requested,
        access,
        resolution,
    };
    if let Err(fault) = check_text(text) {
        return vec![fact(text.to_owned(), Err(fault))];
    }
    let paths = match kind {
        OperandKind::Literal => vec![PathBuf::from(text)],
        OperandKind::Glob => match glob::expand(text, view) {
            Ok(paths) => paths,
            Err(fault) => return vec![fact(text.to_owned(), Err(fault))],
        },
    };
    paths
        .into_iter()
        .map(|path| {
            let resolution = find(view, &path).and_then(|found| found.resolved(&view.twins));
            fact(path.to_string_lossy().into_owned(), resolution)
        })
        .collect()
}

fn check_text(text: &str) -> Result<(), PathFault> {
    let problem = if !text.starts_with('/') {
        "it is not absolute"
    } else if text.contains('\0') {
        "it holds a NUL character"
    } else if text.len() > PATH_BYTES_MAX {
        "it is longer than any path"
    } else if Path::new(text).components().count() > COMPONENTS_MAX {
        "it has too many components"
    } else {
        return Ok(());
    };
    Err(PathFault::Malformed(problem.to_owned()))
}

/// Where a walk ended: the real names on the way, and what is there.
#[derive(Debug)]
struct Found {
    real: PathBuf,
    handle: Option<OwnedFd>,
    is_link: bool,
}

impl Found {
    fn resolved(mut self, twins: &Twins) -> Result<ResolvedPath, PathFault> {
        let (kind, hard_links) = match self.handle {
            None => (PathKind::Missing, 1),
            Some(handle) => {
                use std::os::unix::fs::MetadataExt;
                let metadata = File::from(handle)
                    .metadata()
                    .map_err(|problem| PathFault::Unreadable(problem.kind().to_string()))?;
                if metadata.is_file() {
                    if let Some(guarded) = twins.guarded_name(&self.real, &metadata) {
                        self.real = guarded;
                    }
                    (PathKind::File, metadata.nlink())
                } else if metadata.is_dir() {
                    (PathKind::Folder, 1)
                } else {
                    (PathKind::Special, 1)
                }
            }
        };
        Ok(ResolvedPath {
            real: self.real,
            kind,
            hard_links,
            is_link: self.is_link,
        })
    }
}

/// Follows a path, one name at a time; no link is followed by the kernel.
fn find(view: &View, path: &Path) -> Result<Found, PathFault> {
    let mut held: Vec<(OwnedFd, OsString)> = Vec::new();
    let mut pending: VecDeque<Step> = steps(path).collect();
    let mut links = 0;
    let mut is_link = false;
    while let Some(step) = pending.pop_front() {
        let name = match step {
            Step::Down(name) => name,
            Step::Up => {
                // The folder above the root is the root.
                held.pop();
                continue;
            }
        };
        let folder = held.last().map_or(&*view.root, |(handle, _)| handle);
        let handle = match open_itself(folder, &name) {
            Ok(handle) => handle,
            Err(Errno::NOENT) => {
                let mut real = real(&held);
                real.push(name);
                for step in pending {
                    match step {
                        Step::Down(name) => real.push(name),
                        // `..` below something that is not there means nothing.
                        Step::Up => return Err(PathFault::Missing),
                    }
                }
                return Ok(Found {
                    real,
                    handle: None,
                    is_link,
                });
            }
            Err(Errno::NOTDIR) => return Err(PathFault::Missing),
            Err(problem) => return Err(unreadable(problem)),
        };
        let kind = kind_of(&handle).map_err(unreadable)?;
        if kind != FileType::Symlink {
            if kind != FileType::Directory && !pending.is_empty() {
                return Err(PathFault::Missing);
            }
            held.push((handle, name));
            continue;
        }
        links += 1;
        is_link |= pending.is_empty();
        if is_of_proc(&handle)? {
            return Err(PathFault::Unreadable(
                "it leads through a link of /proc".to_owned(),
            ));
        }
        let target = target_of(&handle)?;
        if target.is_absolute() {
            held.clear();
        }
        for step in steps(&target).rev() {
            pending.push_front(step);
        }
        if links > LINKS_MAX || pending.len() + held.len() > COMPONENTS_MAX {
            return Err(PathFault::Unreadable("too many links".to_owned()));
        }
    }
    let real = real(&held);
    let handle = match held.pop() {
        Some((handle, _)) => handle,
        None => view
            .root
            .try_clone()
            .map_err(|problem| PathFault::Unreadable(problem.kind().to_string()))?,
    };
    Ok(Found {
        real,
        handle: Some(handle),
        is_link,
    })
}

fn real(held: &[(OwnedFd, OsString)]) -> PathBuf {
    let mut path = PathBuf::from("/");
    path.extend(held.iter().map(|(_, name)| name));
    path
}

/// Links of `/proc` lead to what a process holds, whatever their text says.
fn is_of_proc(link: &OwnedFd) -> Result<bool, PathFault> {
    let system = fstatfs(link).map_err(unreadable)?;
    Ok(u64::try_from(system.f_type).is_ok_and(|kind| kind == PROC_MAGIC))
}

#[cfg(test)]
mod tests;
