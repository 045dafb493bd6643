//! From the text of a path to an opened place.

use std::{
    fs::File,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2, readlink},
    io::Errno,
};
use tidegate_gate::{Access, PathFact, PathFault, PathKind, ResolvedPath, guards::untrusted::is_invisible};

use super::{
    place::{Place, Spot},
    twins::Twins,
    walk::{self, Walked},
};

/// The longest path taken, in bytes: what the kernel takes (`PATH_MAX` less its closing NUL).
pub const PATH_BYTES_MAX: usize = 4095;

/// The longest single name, in bytes (`NAME_MAX` of the usual file systems).
const NAME_BYTES_MAX: usize = 255;

/// The most components of one path. Each may cost an open handle while it is walked.
pub(super) const COMPONENTS_MAX: usize = 128;

/// Why the roots could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// There are none.
    #[error("no folder is allowed; name at least one in `allowed_paths`")]
    None,
    /// One of them cannot be opened.
    #[error("the allowed folder `{folder}` cannot be opened: {problem}; create it or take it off the list")]
    Unusable {
        /// Which.
        folder: String,
        /// Why.
        problem: std::io::Error,
    },
}

/// One allowed folder, opened for as long as the process lives.
#[derive(Debug)]
pub(super) struct Root {
    /// The folder itself, whatever happens to its name.
    pub(super) handle: OwnedFd,
    /// Its real path when it was opened.
    pub(super) real: PathBuf,
    /// As the operator wrote it; absolute requests may use this spelling too.
    configured: PathBuf,
}

/// The folders inside which files may be touched at all. Relative requests begin at the first.
#[derive(Debug, Clone)]
pub struct Roots {
    roots: Arc<[Root]>,
    twins: Arc<Twins>,
}

impl Roots {
    /// Opens every folder, once.
    pub fn open(folders: &[PathBuf]) -> Result<Self, RootError> {
        if folders.is_empty() {
            return Err(RootError::None);
        }
        let roots = folders
            .iter()
            .map(|folder| {
                open_root(folder).map_err(|problem| RootError::Unusable {
                    folder: folder.display().to_string(),
                    problem,
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            roots,
            twins: Arc::default(),
        })
    }

    /// The same folders, in which another name of a guarded file counts as that file.
    #[must_use]
    pub fn guarding(mut self, twins: Arc<Twins>) -> Self {
        self.twins = twins;
        self
    }

    /// The real paths of the folders, in the operator's order.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.roots.iter().map(|root| root.real.as_path())
    }

    /// Opens what `requested` leads to, without touching it, and says what it is.
    ///
    /// A name that is not there yet is no fault: the place then is the nearest folder that exists, and the
    /// names to come. Nothing is created.
    pub fn resolve(&self, requested: &str) -> Result<Place, PathFault> {
        self.place(self.reach(requested)?)
    }

    /// What stands where `requested` leads, before it is judged by where it really is.
    pub(super) fn reach(&self, requested: &str) -> Result<Walked, PathFault> {
        check_text(requested)?;
        let asked = Path::new(requested);
        let (index, relative) = if asked.is_absolute() {
            self.split_absolute(asked).ok_or(PathFault::Outside)?
        } else {
            (0, asked.to_path_buf())
        };
        match self.open_with_kernel(index, &relative) {
            Some(walked) => Ok(walked),
            // The kernel refuses absolute links even when they lead back inside, and says little about what
            // is missing; the walk tells these apart, and stands in where the kernel is too old.
            None => walk::walk(self, index, &relative).map_err(|fault| self.by_name(index, &relative, fault)),
        }
    }

    /// What leads nowhere is taken by its name: one that would lead outside is told so, whatever is there now.
    fn by_name(&self, index: usize, relative: &Path, fault: PathFault) -> PathFault {
        let (PathFault::Missing, Some(root)) = (&fault, self.roots.get(index)) else {
            return fault;
        };
        let mut named = root.real.clone();
        for component in relative.components() {
            match component {
                Component::ParentDir => {
                    named.pop();
                }
                Component::Normal(name) => named.push(name),
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        if self.split_real(&named).is_some() {
            fault
        } else {
            PathFault::Outside
        }
    }

    /// The same as a fact for the gate.
    pub fn fact(&self, argument: &str, requested: &str, access: Access) -> PathFact {
        PathFact {
            argument: argument.to_owned(),
            requested: requested.to_owned(),
            access,
            resolution: self.resolve(requested).map(|place| place.resolved().clone()),
        }
    }

    pub(super) fn twins(&self) -> &Twins {
        &self.twins
    }

    pub(super) fn get(&self, index: usize) -> Result<&Root, PathFault> {
        self.roots.get(index).ok_or(PathFault::Outside)
    }

    /// The innermost root that an absolute path names, and the rest of the path.
    pub(super) fn split_absolute(&self, path: &Path) -> Option<(usize, PathBuf)> {
        self.roots
            .iter()
            .enumerate()
            .flat_map(|(index, root)| [(index, &root.real), (index, &root.configured)])
            .filter_map(|(index, prefix)| {
                let rest = path.strip_prefix(prefix).ok()?;
                Some((prefix.components().count(), index, rest.to_path_buf()))
            })
            .max_by_key(|(depth, ..)| *depth)
            .map(|(_, index, rest)| (index, rest))
    }

    /// The kernel's own answer, where it opens the path without leaving the root.
    fn open_with_kernel(&self, index: usize, relative: &Path) -> Option<Walked> {
        let root = self.roots.get(index)?;
        // Rebuilding from components drops trailing slashes, which would make the kernel follow a last link.
        let relative: PathBuf = relative.components().collect();
        let relative = if relative.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            relative
        };
        let handle = open_beneath(&root.handle, &relative, OFlags::NOFOLLOW).ok()?;
        let is_link = kind_of(&handle).ok()? == FileType::Symlink;
        let handle = if is_link {
            open_beneath(&root.handle, &relative, OFlags::empty()).ok()?
        } else {
            handle
        };
        Some(Walked::There { handle, is_link })
    }

    /// Judges where the handle really is.
    pub(super) fn place(&self, walked: Walked) -> Result<Place, PathFault> {
        let (resolved, spot) = match walked {
            Walked::There { handle, is_link } => {
                let file = File::from(handle);
                let metadata = file.metadata().map_err(|problem| faulty(&problem))?;
                let handle = OwnedFd::from(file);
                if metadata.nlink() == 0 {
                    return Err(PathFault::Missing);
                }
                let kind = if metadata.is_file() {
                    PathKind::File
                } else if metadata.is_dir() {
                    PathKind::Folder
                } else {
                    PathKind::Special
                };
                let real = real_path(&handle)?;
                let resolved = ResolvedPath {
                    real: self.twins.guarded_name(&real, &metadata).unwrap_or(real),
                    kind,
                    hard_links: if kind == PathKind::File {
                        metadata.nlink()
                    } else {
                        1
                    },
                    is_link,
                };
                (resolved, Spot::There(handle))
            }
            Walked::Nothing {
                parent,
                missing,
                is_link,
            } => {
                let mut real = real_path(&parent)?;
                real.extend(&missing);
                let resolved = ResolvedPath {
                    real,
                    kind: PathKind::Missing,
                    hard_links: 1,
                    is_link,
                };
                (resolved, Spot::Nothing { parent, missing })
            }
        };
        let (index, relative) = self.split_real(&resolved.real).ok_or(PathFault::Outside)?;
        Ok(Place::new(self.clone(), index, relative, resolved, spot))
    }

    /// The innermost root that a real path stands in.
    fn split_real(&self, real: &Path) -> Option<(usize, PathBuf)> {
        self.roots
            .iter()
            .enumerate()
            .filter_map(|(index, root)| Some((index, &root.real, real.strip_prefix(&root.real).ok()?)))
            .max_by_key(|(_, root, _)| root.components().count())
            .map(|(index, _, rest)| (index, rest.to_path_buf()))
    }
}

fn open_root(folder: &Path) -> std::io::Result<Root> {
    let handle = open(
        folder,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let real = real_path(&handle)
        .map_err(|_fault| std::io::Error::other("its real path cannot be read from /proc"))?;
    let configured = std::path::absolute(folder)?;
    Ok(Root {
        handle,
        real,
        configured,
    })
}

/// The real path: links followed as far as the path exists, and the names that do not kept. For what the operator
/// names; a zone need not exist yet.
pub fn real_path_of(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.components().next_back()) {
        (Some(parent), Some(Component::Normal(name))) => real_path_of(parent).join(name),
        (Some(parent), Some(Component::ParentDir)) => {
            let mut around = real_path_of(parent);
            around.pop();
            around
        }
        (Some(_) | None, _) => path.to_owned(),
    }
}

fn open_beneath(root: &OwnedFd, relative: &Path, more: OFlags) -> Result<OwnedFd, Errno> {
    openat2(
        root,
        relative,
        OFlags::PATH | OFlags::CLOEXEC | more,
        Mode::empty(),
        ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
    )
}

/// The real path of an open handle, as the kernel knows it now.
pub(super) fn real_path(handle: &impl AsFd) -> Result<PathBuf, PathFault> {
    use std::os::{fd::AsRawFd, unix::ffi::OsStringExt};
    let link = format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd());
    let text = readlink(link, Vec::new()).map_err(unreadable)?;
    let path = PathBuf::from(std::ffi::OsString::from_vec(text.into_bytes()));
    if path.is_absolute() {
        Ok(path)
    } else {
        Err(PathFault::Unreadable("it has no path".to_owned()))
    }
}

pub(super) fn kind_of(handle: &OwnedFd) -> Result<FileType, Errno> {
    Ok(FileType::from_raw_mode(fstat(handle)?.st_mode))
}

pub(super) fn unreadable(problem: Errno) -> PathFault {
    faulty(&std::io::Error::from(problem))
}

/// The kind of a failure in words, without the path it was about.
fn faulty(problem: &std::io::Error) -> PathFault {
    PathFault::Unreadable(problem.kind().to_string())
}

/// Refuses texts that are no plain path of a file here, whatever stands on the disk.
fn check_text(requested: &str) -> Result<(), PathFault> {
    let problem = if requested.trim().is_empty() {
        "it is empty"
    } else if requested.len() > PATH_BYTES_MAX {
        "it is longer than any path"
    } else if requested.chars().any(char::is_control) {
        "it holds a NUL or control character"
    } else if holds_invisible(requested) {
        "it holds a character that shows nothing or turns the direction of what is shown"
    } else if is_url(requested) {
        "it is a URL, not a path"
    } else if requested.starts_with('~') {
        "`~` is not expanded here; use a path relative to the folder"
    } else if Path::new(requested).components().count() > COMPONENTS_MAX {
        "it has too many components"
    } else if names(requested).any(|name| name.len() > NAME_BYTES_MAX) {
        "one of its names is too long"
    } else {
        return Ok(());
    };
    Err(PathFault::Malformed(problem.to_owned()))
}

/// Whether a name looks like another one to whoever reads it. Joiners are part of several scripts and of
/// pictures: they may stand where they join something, which nothing of ASCII is (compare RFC 5892, appendix A).
fn holds_invisible(requested: &str) -> bool {
    let mut before = None;
    let mut letters = requested.chars().peekable();
    while let Some(letter) = letters.next() {
        let joins = |neighbour: Option<char>| {
            neighbour.is_some_and(|letter| !letter.is_ascii() && !is_invisible(letter))
        };
        let is_joiner = matches!(letter, '\u{200c}' | '\u{200d}');
        if is_invisible(letter) && !(is_joiner && joins(before) && joins(letters.peek().copied())) {
            return true;
        }
        before = Some(letter);
    }
    false
}

fn names(requested: &str) -> impl Iterator<Item = &str> {
    Path::new(requested)
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => name.to_str(),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
        })
}

/// `scheme:` of RFC 3986 §3.1 where it cannot be an ordinary file name: before `//`, or `file:`.
fn is_url(requested: &str) -> bool {
    let Some((scheme, rest)) = requested.trim_start().split_once(':') else {
        return false;
    };
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.'));
    is_scheme && (rest.starts_with("//") || scheme.eq_ignore_ascii_case("file"))
}
