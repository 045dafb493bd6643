//! A whole folder with everything below it, as it stands: what is there, how large and how old, and the bytes of one
//! file of it.
//!
//! The walk goes from handle to handle by names alone and follows no link, so that it stays in the folder whatever is
//! renamed meanwhile, and comes to an end. A file is read by the same rule: through no link, and through the handle that
//! was judged.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::Read as _,
    os::{fd::OwnedFd, unix::ffi::OsStringExt as _, unix::fs::MetadataExt as _},
    path::Path,
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat},
    io::Errno,
};
use tidegate_gate::{PathFault, PathKind};

use super::{
    Roots,
    place::{reopen_file, reopen_folder},
    resolve::{COMPONENTS_MAX, real_path},
    twins::{Identity, Twins},
    walk::{self, Walked},
};

/// What an entry of a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// A regular file.
    File,
    /// A symbolic link; [`Roots::leads`] says where to.
    Link,
    /// Another name of a file that the [`Twins`] guard.
    Twin,
    /// A pipe, socket or device.
    Special,
    /// A folder that cannot be opened or listed, or lies too deep.
    ClosedFolder,
    /// Something whose name is no text. The path shows replacement characters and cannot be opened.
    Nameless,
}

/// Something in a tree that is not a folder, or a folder that could not be entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its path below the first root, with `/` between names.
    pub path: String,
    /// What it is.
    pub kind: NodeKind,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was changed, in nanoseconds since 1970.
    pub modified_ns: i64,
}

/// What stands below a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// In no particular order.
    pub nodes: Vec<Node>,
    /// Whether there is more than was asked for.
    pub cut: bool,
}

/// Where a link leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leads {
    /// To something in the allowed folders.
    Inside,
    /// Out of them.
    Outside,
    /// To nothing.
    Nowhere,
}

/// Why a file's bytes are not to be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadFault {
    /// It is not there, or no longer.
    #[error("it is not there any more")]
    Gone,
    /// It leads out of the allowed folders.
    #[error("it leads out of the folder")]
    Outside,
    /// It is no regular file.
    #[error("it is not a regular file")]
    NotAFile,
    /// It is reached through a link, and stands elsewhere under its own name.
    #[error("a link leads to it")]
    Link,
    /// It is another name of a guarded file, or one of the server's own.
    #[error("it is another name (a hard link) of one of the server's own files, or of a file of credentials")]
    Twin,
    /// It is larger than may be read.
    #[error("it has {bytes} bytes, more than the {bytes_max} that are read")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The bound.
        bytes_max: u64,
    },
    /// The operating system denies it.
    #[error("this user may not read it")]
    Denied,
    /// It changed while it was being read.
    #[error("it keeps changing while it is being read")]
    Changing,
    /// Its name is not taken.
    #[error("its name is not usable: {0}")]
    Name(String),
    /// The operating system failed.
    #[error("the operating system cannot read it: {0}")]
    Io(String),
}

/// A file that was read whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whole {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// When it was changed, in nanoseconds since 1970.
    pub modified_ns: i64,
}

impl Roots {
    /// Everything below `below` in the first root (all of it for an empty one), at most `nodes_max`. `enters` is asked
    /// about each path and whether it is a folder; what it refuses is left out, folders with all that is in them.
    /// What is not there is empty. Blocks.
    pub fn tree(&self, below: &str, nodes_max: usize, enters: &dyn Fn(&str, bool) -> bool) -> Tree {
        let Ok(root) = self.get(0) else {
            return Tree::default();
        };
        let mut growing = Growing {
            tree: Tree::default(),
            nodes_max,
            enters,
            real: &root.real,
            twins: self.twins(),
        };
        let (parent, name) = below
            .trim_matches('/')
            .rsplit_once('/')
            .unwrap_or(("", below.trim_matches('/')));
        if name.is_empty() {
            growing.folder(&root.handle, "", 0);
        } else if let Ok(parent_handle) = walk::open_folder(&root.handle, parent.as_ref()) {
            let depth = parent.split('/').filter(|name| !name.is_empty()).count();
            growing.entry(&parent_handle, parent, OsStr::new(name), depth);
        }
        growing.tree
    }

    /// Where the link at a path leads. Blocks.
    pub fn leads(&self, path: &str) -> Leads {
        match self.resolve(path) {
            Ok(place) if place.resolved().kind == PathKind::Missing => Leads::Nowhere,
            Ok(_) => Leads::Inside,
            // One that leads to itself is not to be read either.
            Err(PathFault::Missing | PathFault::Unreadable(_)) => Leads::Nowhere,
            Err(PathFault::Outside | PathFault::Malformed(_)) => Leads::Outside,
        }
    }

    /// The bytes of the file of this very name in the first root, all of one moment: a file that changed meanwhile is a
    /// fault, and so is a link on the way, which may have come since the tree was looked at. What is opened is what was
    /// judged. Blocks.
    pub fn read_whole(&self, path: &str, bytes_max: u64) -> Result<Whole, ReadFault> {
        let handle = match self.reach(path).map_err(fault_of_path)? {
            Walked::There {
                handle,
                is_link: false,
            } => handle,
            Walked::There { is_link: true, .. } => return Err(ReadFault::Link),
            Walked::Nothing { .. } => return Err(ReadFault::Gone),
        };
        let stat = fstat(&handle).map_err(fault_of)?;
        if stat.st_nlink == 0 {
            return Err(ReadFault::Gone);
        }
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(ReadFault::NotAFile);
        }
        let real = real_path(&handle).map_err(fault_of_path)?;
        let root = self.get(0).and_then(|root| real_path(&root.handle));
        if root.map_err(fault_of_path)?.join(path) != real {
            return Err(ReadFault::Link);
        }
        let identity = Identity::of_stat(&stat);
        if self.twins().forbids(identity)
            || (stat.st_nlink > 1 && self.twins().other_name(&real, identity).is_some())
        {
            return Err(ReadFault::Twin);
        }
        let mut file = reopen_file(&handle, self.twins()).map_err(fault_of)?;
        let (size, modified_ns) = state_of(&file)?;
        if size > bytes_max {
            return Err(ReadFault::TooLarge {
                bytes: size,
                bytes_max,
            });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).map_or(0, |size| size + 1));
        let outcome = (&mut file).take(size.saturating_add(1)).read_to_end(&mut bytes);
        outcome.map_err(|problem| fault_of(Errno::from_io_error(&problem).unwrap_or(Errno::IO)))?;
        if bytes.len() as u64 != size || state_of(&file)? != (size, modified_ns) {
            return Err(ReadFault::Changing);
        }
        Ok(Whole { bytes, modified_ns })
    }
}

fn fault_of_path(fault: PathFault) -> ReadFault {
    match fault {
        PathFault::Missing => ReadFault::Gone,
        PathFault::Outside => ReadFault::Outside,
        PathFault::Malformed(problem) => ReadFault::Name(problem),
        PathFault::Unreadable(problem) => ReadFault::Io(problem),
    }
}

fn fault_of(problem: Errno) -> ReadFault {
    match problem {
        Errno::ACCESS | Errno::PERM => ReadFault::Denied,
        Errno::NOENT => ReadFault::Gone,
        Errno::INVAL | Errno::ISDIR => ReadFault::NotAFile,
        other => ReadFault::Io(std::io::Error::from(other).to_string()),
    }
}

/// Size and time of change.
fn state_of(file: &File) -> Result<(u64, i64), ReadFault> {
    let metadata = file
        .metadata()
        .map_err(|problem| ReadFault::Io(problem.to_string()))?;
    Ok((
        metadata.len(),
        nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
    ))
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

struct Growing<'e> {
    tree: Tree,
    nodes_max: usize,
    enters: &'e dyn Fn(&str, bool) -> bool,
    /// The real path of the root.
    real: &'e Path,
    twins: &'e Twins,
}

impl Growing<'_> {
    fn folder(&mut self, handle: &OwnedFd, path: &str, depth: usize) {
        let names = if depth < COMPONENTS_MAX {
            names_in(handle)
        } else {
            Err(Errno::NAMETOOLONG)
        };
        let Ok(names) = names else {
            self.add(path.to_owned(), NodeKind::ClosedFolder, None);
            return;
        };
        for name in names {
            if self.tree.cut {
                return;
            }
            self.entry(handle, path, &name, depth);
        }
    }

    fn entry(&mut self, parent: &OwnedFd, above: &str, name: &OsStr, depth: usize) {
        // What went away meanwhile is no longer part of the folder.
        let Ok(stat) = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return;
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let path = match above {
            "" => name.to_string_lossy().into_owned(),
            above => format!("{above}/{}", name.to_string_lossy()),
        };
        if !(self.enters)(&path, kind == FileType::Directory) {
            return;
        }
        let kind = match kind {
            _ if name.to_str().is_none() => NodeKind::Nameless,
            FileType::Directory => {
                match openat(
                    parent,
                    name,
                    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                    Mode::empty(),
                ) {
                    Ok(handle) => self.folder(&handle, &path, depth + 1),
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    Err(_) => self.add(path, NodeKind::ClosedFolder, None),
                }
                return;
            }
            FileType::RegularFile if self.is_twin(&path, &stat) => NodeKind::Twin,
            FileType::RegularFile => NodeKind::File,
            FileType::Symlink => NodeKind::Link,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => NodeKind::Special,
        };
        self.add(path, kind, Some(&stat));
    }

    fn is_twin(&self, path: &str, stat: &Stat) -> bool {
        stat.st_nlink > 1
            && self
                .twins
                .other_name(&self.real.join(path), Identity::of_stat(stat))
                .is_some()
    }

    fn add(&mut self, path: String, kind: NodeKind, stat: Option<&Stat>) {
        if self.tree.nodes.len() >= self.nodes_max {
            self.tree.cut = true;
            return;
        }
        // The types of the fields differ between systems.
        #[expect(
            clippy::useless_conversion,
            reason = "they are wider on this system than on others"
        )]
        let modified_ns = stat.map_or(0, |stat| {
            let part = i64::try_from(stat.st_mtime_nsec).unwrap_or(0);
            nanoseconds(stat.st_mtime.into(), part)
        });
        self.tree.nodes.push(Node {
            path,
            kind,
            bytes: stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0)),
            modified_ns,
        });
    }
}

/// The names of a folder. What bounds them is the bound on nodes and the folder itself, which is read once.
fn names_in(folder: &OwnedFd) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::new(reopen_folder(folder)?)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    type Outcome = Result<(), Box<dyn std::error::Error>>;

    fn write(folder: &Path, name: &str, text: &str) -> std::io::Result<()> {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap())?;
        crate::files::write_private(&path, text.as_bytes())
    }

    fn all(roots: &Roots, below: &str) -> Vec<(String, NodeKind)> {
        let tree = roots.tree(below, 100, &|path, _| !path.contains("skipped"));
        let mut nodes: Vec<_> = tree
            .nodes
            .into_iter()
            .map(|node| (node.path, node.kind))
            .collect();
        nodes.sort_by(|one, other| one.0.cmp(&other.0));
        nodes
    }

    #[test]
    fn a_tree_is_what_stands_there_and_nothing_outside() -> Outcome {
        let folder = tempfile::tempdir()?;
        let bank = folder.path().join("bank");
        for name in [
            "bank/a.md",
            "bank/deep/down/b.md",
            "bank/skipped/c.md",
            "outside/secret.md",
        ] {
            write(folder.path(), name, name)?;
        }
        symlink("../outside", bank.join("out"))?;
        symlink("a.md", bank.join("in"))?;
        symlink("gone.md", bank.join("dangling"))?;
        symlink("..", bank.join("deep/up"))?;
        symlink("round", bank.join("round"))?;
        rustix::fs::mkfifoat(rustix::fs::CWD, bank.join("pipe"), Mode::RUSR)?;
        crate::files::write_private(&bank.join(OsString::from_vec(b"no\xfftext".to_vec())), b"x")?;
        let roots = Roots::open(std::slice::from_ref(&bank))?;
        let node = |path: &str, kind| (path.to_owned(), kind);
        assert_eq!(
            all(&roots, ""),
            [
                node("a.md", NodeKind::File),
                node("dangling", NodeKind::Link),
                node("deep/down/b.md", NodeKind::File),
                node("deep/up", NodeKind::Link),
                node("in", NodeKind::Link),
                node("no\u{fffd}text", NodeKind::Nameless),
                node("out", NodeKind::Link),
                node("pipe", NodeKind::Special),
                node("round", NodeKind::Link),
            ]
        );
        assert_eq!(all(&roots, "deep/down"), [node("deep/down/b.md", NodeKind::File)]);
        assert_eq!(
            all(&roots, "deep/down/b.md"),
            [node("deep/down/b.md", NodeKind::File)]
        );
        for nothing in ["out/secret.md", "gone", "a.md/x", "../outside"] {
            assert_eq!(all(&roots, nothing), [], "{nothing}");
        }
        let leads = ["in", "out", "dangling", "deep/up", "round"].map(|link| roots.leads(link));
        assert_eq!(
            leads,
            [
                Leads::Inside,
                Leads::Outside,
                Leads::Nowhere,
                Leads::Inside,
                Leads::Nowhere
            ]
        );
        let cut = roots.tree("", 3, &|_, _| true);
        assert_eq!((cut.nodes.len(), cut.cut), (3, true));

        assert_eq!(roots.read_whole("a.md", 100)?.bytes, b"bank/a.md");
        let faults = [
            ("in", ReadFault::Link),
            ("out/secret.md", ReadFault::Outside),
            ("dangling", ReadFault::Gone),
            ("pipe", ReadFault::NotAFile),
            ("deep", ReadFault::NotAFile),
            (
                "a.md",
                ReadFault::TooLarge {
                    bytes: 9,
                    bytes_max: 8,
                },
            ),
        ];
        for (path, expected) in faults {
            assert_eq!(roots.read_whole(path, 8), Err(expected), "{path}");
        }
        assert!(matches!(roots.read_whole("a\u{1}b", 8), Err(ReadFault::Name(_))));
        // A file that says it is empty and holds something is one that grows while it is read.
        let growing = Roots::open(&["/proc/sys/kernel".into()])?;
        assert_eq!(growing.read_whole("ostype", 100), Err(ReadFault::Changing));
        Ok(())
    }

    #[test]
    fn what_may_not_be_read_is_told() -> Outcome {
        let folder = tempfile::tempdir()?;
        write(folder.path(), "locked/a.md", "a")?;
        write(folder.path(), "b.md", "b")?;
        let close = |name: &str, mode| {
            std::fs::set_permissions(folder.path().join(name), std::fs::Permissions::from_mode(mode))
        };
        close("locked", 0o000)?;
        close("b.md", 0o000)?;
        let roots = Roots::open(&[folder.path().to_owned()])?;
        // For the superuser nothing is locked.
        let expected: &[(&str, NodeKind)] = if rustix::process::geteuid().is_root() {
            &[("b.md", NodeKind::File), ("locked/a.md", NodeKind::File)]
        } else {
            assert_eq!(roots.read_whole("b.md", 9), Err(ReadFault::Denied));
            &[("b.md", NodeKind::File), ("locked", NodeKind::ClosedFolder)]
        };
        let found = all(&roots, "");
        close("locked", 0o700)?;
        let expected: Vec<_> = expected
            .iter()
            .map(|(path, kind)| ((*path).to_owned(), *kind))
            .collect();
        assert_eq!(found, expected);
        Ok(())
    }
}
