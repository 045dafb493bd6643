//! Following a path by hand, one handle at a time.
//!
//! No link is ever followed by the kernel here: each name is opened as itself, a link is read and its target
//! is walked in turn, and `..` steps back to a handle that was already held. Whatever is renamed meanwhile,
//! every handle was reached from a root by names alone.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    os::{fd::OwnedFd, unix::ffi::OsStringExt},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{FileType, Mode, OFlags, openat, readlinkat},
    io::Errno,
};
use tidegate_gate::PathFault;

use super::resolve::{COMPONENTS_MAX, Roots, kind_of, unreadable};

/// The most links followed for one path; the kernel's own bound is the same.
pub(super) const LINKS_MAX: usize = 40;

/// Where a walk ended.
#[derive(Debug)]
pub(super) enum Walked {
    /// Something is there.
    There {
        /// It, opened without any right to read or write.
        handle: OwnedFd,
        /// Whether the last name asked for is a link.
        is_link: bool,
    },
    /// Nothing is there.
    Nothing {
        /// The nearest folder that is.
        parent: OwnedFd,
        /// The names that are not; at least one.
        missing: Vec<OsString>,
        /// Whether the last name asked for is a link, that leads nowhere.
        is_link: bool,
    },
}

/// One step of a path.
pub(super) enum Step {
    /// Into something of that name.
    Down(OsString),
    /// To the folder around.
    Up,
}

/// Walks `relative` from the root of that index.
pub(super) fn walk(roots: &Roots, index: usize, relative: &Path) -> Result<Walked, PathFault> {
    let mut root = &roots.get(index)?.handle;
    let mut held: Vec<OwnedFd> = Vec::new();
    let mut pending: VecDeque<Step> = steps(relative).collect();
    let mut links = 0;
    let mut is_link = false;
    while let Some(step) = pending.pop_front() {
        let name = match step {
            Step::Down(name) => name,
            Step::Up => {
                held.pop().ok_or(PathFault::Outside)?;
                continue;
            }
        };
        let handle = match open_itself(held.last().unwrap_or(root), &name) {
            Ok(handle) => handle,
            Err(Errno::NOENT) => {
                let missing = names_to_come(name, pending)?;
                let parent = last_or_root(held, root)?;
                return Ok(Walked::Nothing {
                    parent,
                    missing,
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
            held.push(handle);
            continue;
        }
        links += 1;
        is_link |= pending.is_empty();
        let mut target = target_of(&handle)?;
        if target.is_absolute() {
            let (index, rest) = roots.split_absolute(&target).ok_or(PathFault::Outside)?;
            root = &roots.get(index)?.handle;
            held.clear();
            target = rest;
        }
        for step in steps(&target).rev() {
            pending.push_front(step);
        }
        if links > LINKS_MAX || pending.len() + held.len() > COMPONENTS_MAX {
            return Err(PathFault::Unreadable("too many links".to_owned()));
        }
    }
    Ok(Walked::There {
        handle: last_or_root(held, root)?,
        is_link,
    })
}

/// Opens a folder below `root` by names alone; a link or anything else on the way is an error.
pub(super) fn open_folder(root: &OwnedFd, relative: &Path) -> Result<OwnedFd, Errno> {
    let mut current = root.try_clone().map_err(|_problem| Errno::MFILE)?;
    for step in steps(relative) {
        match step {
            Step::Down(name) => current = open_subfolder(&current, &name)?,
            Step::Up => return Err(Errno::XDEV),
        }
    }
    Ok(current)
}

/// Opens one folder in a folder; a link is an error.
pub(super) fn open_subfolder(folder: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    openat(
        folder,
        name,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

pub(super) fn open_itself(folder: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    openat(
        folder,
        name,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

pub(super) fn target_of(link: &OwnedFd) -> Result<PathBuf, PathFault> {
    let text = readlinkat(link, "", Vec::new()).map_err(unreadable)?;
    Ok(PathBuf::from(OsString::from_vec(text.into_bytes())))
}

fn last_or_root(mut held: Vec<OwnedFd>, root: &OwnedFd) -> Result<OwnedFd, PathFault> {
    match held.pop() {
        Some(handle) => Ok(handle),
        None => root
            .try_clone()
            .map_err(|problem| PathFault::Unreadable(problem.kind().to_string())),
    }
}

/// The names below the first missing one. `..` below something that is not there means nothing.
fn names_to_come(first: OsString, rest: VecDeque<Step>) -> Result<Vec<OsString>, PathFault> {
    let rest = rest.into_iter().map(|step| match step {
        Step::Down(name) => Ok(name),
        Step::Up => Err(PathFault::Missing),
    });
    std::iter::once(Ok(first)).chain(rest).collect()
}

pub(super) fn steps(path: &Path) -> impl DoubleEndedIterator<Item = Step> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(Step::Down(name.to_owned())),
        Component::ParentDir => Some(Step::Up),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    })
}
