//! The switch for machines that are thrown away: a test bench in a container, where the floors on credentials,
//! start-up files, destructive git and text piped into a shell would only be in the way.
//!
//! It takes two things that no setting, no request and no tool can bring about together: a variable in the
//! environment of the process, and a file in the root folder that belongs to root and that only an image has. Both
//! are looked at once, at the start. Every other floor holds all the same.

use std::{os::unix::fs::MetadataExt, path::Path};

use super::Environment;

/// The variable; it must be `1`.
pub const VARIABLE: &str = "TIDEGATE_DISPOSABLE_CONTAINER";
/// The file that only a container image has.
pub const MARKER: &str = "/.tidegate-disposable";

/// How the switch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Disposable {
    /// Nobody has asked for it.
    #[default]
    Off,
    /// The variable asks for it, and the file is not there as it must be: every floor holds.
    WithoutMarker,
    /// Both are there.
    On,
}

impl Disposable {
    /// Reads the switch of this machine.
    pub fn read(environment: &Environment) -> Self {
        Self::of(environment, Path::new(MARKER))
    }

    fn of(environment: &Environment, marker: &Path) -> Self {
        match environment.get(VARIABLE) {
            Some("1") if is_marker(marker) => Self::On,
            Some(_) => Self::WithoutMarker,
            None => Self::Off,
        }
    }

    /// Whether floors are off.
    pub fn is_on(self) -> bool {
        self == Self::On
    }
}

/// A plain file of root's that nobody else can write: an agent that may write files could otherwise make it.
fn is_marker(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.uid() == 0 && metadata.mode() & 0o022 == 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn it_takes_the_variable_and_a_file_of_roots() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (name, mode) in [("good", 0o644), ("open", 0o666)] {
            tidegate_io::files::write_private(&path(name), b"").unwrap();
            std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        symlink(path("good"), path("link")).unwrap();
        let on = Environment::from_pairs([(VARIABLE, "1")]);
        let is_root = path("good").metadata().unwrap().uid() == 0;
        let of = |environment: &Environment, name: &str| Disposable::of(environment, &path(name));
        assert_eq!(of(&on, "good").is_on(), is_root);
        for name in ["open", "link", "missing", "."] {
            assert_eq!(of(&on, name), Disposable::WithoutMarker, "{name}");
        }
        let other = Environment::from_pairs([(VARIABLE, "yes")]);
        assert_eq!(of(&other, "good"), Disposable::WithoutMarker);
        assert_eq!(of(&Environment::default(), "good"), Disposable::Off);
    }
}
