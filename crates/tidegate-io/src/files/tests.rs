use std::{
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;
use tidegate_gate::{PathFault, PathKind};

use super::{walk::Walked, *};

mod races;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A folder `in`, the only root, beside a folder `out`.
struct World {
    base: TempDir,
    roots: Roots,
}

impl World {
    fn new() -> Self {
        let base = tempfile::tempdir().expect("a folder");
        for folder in ["in/src", "out"] {
            std::fs::create_dir_all(base.path().join(folder)).expect("a folder");
        }
        put(&base.path().join("in/notes.txt"), "notes");
        put(&base.path().join("in/src/a.txt"), "a");
        put(&base.path().join("out/secret.txt"), "secret");
        let roots = Roots::open(&[base.path().join("in")]).expect("roots");
        Self { base, roots }
    }

    /// The real path of something below the base.
    fn at(&self, path: &str) -> PathBuf {
        self.base.path().canonicalize().expect("a real path").join(path)
    }

    fn read(&self, path: &str) -> Result<String, String> {
        let place = self.roots.resolve(path).map_err(|fault| format!("{fault:?}"))?;
        place
            .read_text(100)
            .map_err(|problem| format!("{:?}", problem.code()))
    }

    fn write(&self, path: &str, text: &str) -> Result<Written, String> {
        let place = self.roots.resolve(path).map_err(|fault| format!("{fault:?}"))?;
        place
            .write_atomic(text.as_bytes())
            .map_err(|problem| problem.to_string())
    }
}

fn put(path: &Path, text: &str) {
    write_private(path, text.as_bytes()).expect("a file");
}

#[test]
fn paths_inside_lead_where_they_say() -> Outcome {
    let world = World::new();
    let absolute = world.at("in/src/a.txt");
    let absolute = absolute.to_str().ok_or("not UTF-8")?;
    for (asked, text) in [
        ("notes.txt", "notes"),
        ("./src/.././notes.txt", "notes"),
        ("src//a.txt", "a"),
        ("notes.txt/", "notes"),
        (absolute, "a"),
    ] {
        assert_eq!(world.read(asked).as_deref(), Ok(text), "{asked}");
    }
    let place = world
        .roots
        .resolve("src/../notes.txt")
        .map_err(|fault| format!("{fault:?}"))?;
    assert_eq!(place.resolved().real, world.at("in/notes.txt"));
    assert_eq!(place.resolved().kind, PathKind::File);
    assert_eq!(place.requested_name(), "notes.txt");
    let root = world.roots.resolve(".").map_err(|fault| format!("{fault:?}"))?;
    assert_eq!(root.requested_name(), ".");
    assert_eq!(world.roots.paths().collect::<Vec<_>>(), [world.at("in")]);
    Ok(())
}

#[test]
fn joiners_of_a_script_are_part_of_a_name() {
    let world = World::new();
    for asked in ["می\u{200c}خواهم.txt", "👩\u{200d}🚀.md"] {
        let place = world.roots.resolve(asked).map(|place| place.requested_name());
        assert_eq!(place.as_deref(), Ok(asked));
    }
}

#[test]
fn what_is_no_plain_path_is_malformed() {
    let world = World::new();
    let long_name = "x".repeat(300);
    let long_path = "b/".repeat(3000);
    let deep_path = "b/".repeat(200);
    for asked in [
        "",
        "  ",
        "a\0",
        "notes.txt\0",
        "a\nb",
        "a\rb",
        "\u{1b}[31mred",
        "\u{85}",
        ".env\t",
        "no\u{200b}tes.txt",
        "notes\u{202e}txt.exe",
        "notes.txt\u{200d}",
        "\u{feff}notes.txt",
        "no\u{200c}tes.txt",
        "\u{e9}\u{200d}\u{200d}\u{e9}",
        "file:notes.txt",
        "FILE:///etc/hostname",
        "http://h.test/x",
        "s3+x://b/c",
        "~",
        "~/notes.txt",
        "~root/x",
        &long_name,
        &long_path,
        &deep_path,
    ] {
        let resolution = world.roots.resolve(asked).map(|place| place.resolved().clone());
        assert!(
            matches!(resolution, Err(PathFault::Malformed(_))),
            "{asked:?}: {resolution:?}"
        );
    }
    // Letters that mean something elsewhere are plain letters here.
    for asked in ["$HOME", "`id`", "%2e%2e", "a:b", "*", "grün/日本", "a b"] {
        assert_eq!(world.read(asked), Err("NotFound".into()), "{asked:?}");
    }
}

#[test]
fn nothing_outside_is_reached() -> Outcome {
    let world = World::new();
    symlink(world.at("out/secret.txt"), world.at("in/absolute"))?;
    symlink("../out/secret.txt", world.at("in/relative"))?;
    symlink(world.at("out"), world.at("in/folder"))?;
    symlink("/proc/self/environ", world.at("in/environ"))?;
    symlink("/proc/self/root/etc/passwd", world.at("in/magic"))?;
    symlink(world.at("out/new.txt"), world.at("in/dangling"))?;
    let sibling = world.at("in-beside");
    std::fs::create_dir(&sibling)?;
    put(&sibling.join("x.txt"), "x");
    let beside = sibling.join("x.txt");
    for asked in [
        "..",
        "../out/secret.txt",
        "src/../../out/secret.txt",
        "absolute",
        "relative",
        "folder/secret.txt",
        "folder",
        "folder/../secret.txt",
        "environ",
        "magic",
        "/etc/passwd",
        "//host/share",
        "dangling",
        "folder/new.txt",
        "folder/x/new.txt",
        "../in-beside/x.txt",
        "/",
        beside.to_str().ok_or("not UTF-8")?,
    ] {
        let resolution = world.roots.resolve(asked).map(|place| place.resolved().clone());
        assert_eq!(resolution, Err(PathFault::Outside), "{asked}");
    }
    assert!(!world.at("out/new.txt").exists());
    Ok(())
}

#[test]
fn links_that_stay_inside_work_and_say_that_they_are_links() -> Outcome {
    let world = World::new();
    symlink("notes.txt", world.at("in/relative"))?;
    symlink(world.at("in/notes.txt"), world.at("in/absolute"))?;
    symlink(world.at("in"), world.at("in/self"))?;
    symlink("relative", world.at("in/second"))?;
    symlink("gone.txt", world.at("in/dangling"))?;
    symlink("circle2", world.at("in/circle1"))?;
    symlink("circle1", world.at("in/circle2"))?;
    for (asked, is_link) in [
        ("relative", true),
        ("absolute", true),
        ("second", true),
        ("relative/", true),
        ("self/notes.txt", false),
        ("self/self/src/../notes.txt", false),
    ] {
        let place = world
            .roots
            .resolve(asked)
            .map_err(|fault| format!("{asked}: {fault:?}"))?;
        assert_eq!(place.resolved().real, world.at("in/notes.txt"), "{asked}");
        assert_eq!(place.resolved().is_link, is_link, "{asked}");
        assert_eq!(place.read_text(10)?, "notes", "{asked}");
    }
    let dangling = world
        .roots
        .resolve("dangling")
        .map_err(|fault| format!("{fault:?}"))?;
    assert_eq!(dangling.resolved().kind, PathKind::Missing);
    assert!(dangling.resolved().is_link);
    let circle = world.roots.resolve("circle1").map(|_| ());
    assert!(matches!(circle, Err(PathFault::Unreadable(_))), "{circle:?}");
    Ok(())
}

#[test]
fn the_walk_by_hand_agrees_with_the_kernel() -> Outcome {
    let world = World::new();
    symlink("src", world.at("in/link"))?;
    symlink("../../out/secret.txt", world.at("in/src/leaves"))?;
    for asked in [
        "notes.txt",
        ".",
        "link/a.txt",
        "link",
        "src/../notes.txt",
        "src/../src/a.txt",
    ] {
        let by_hand = walk::walk(&world.roots, 0, Path::new(asked)).map_err(|fault| format!("{fault:?}"))?;
        let Walked::There { handle, is_link } = by_hand else {
            return Err(format!("{asked} was not found").into());
        };
        let by_kernel = world.roots.resolve(asked).map_err(|fault| format!("{fault:?}"))?;
        assert_eq!(
            resolve::real_path(&handle).ok(),
            Some(by_kernel.resolved().real.clone())
        );
        assert_eq!(is_link, by_kernel.resolved().is_link, "{asked}");
    }
    for asked in ["..", "src/leaves", "link/../../out"] {
        let fault = walk::walk(&world.roots, 0, Path::new(asked)).expect_err(asked);
        assert_eq!(fault, PathFault::Outside);
    }
    Ok(())
}

#[test]
fn a_second_root_is_reached_by_its_path_and_by_links() -> Outcome {
    let world = World::new();
    let roots = Roots::open(&[world.at("in"), world.at("out")])?;
    symlink(world.at("out/secret.txt"), world.at("in/across"))?;
    for asked in [
        world.at("out/secret.txt").display().to_string(),
        "across".to_owned(),
    ] {
        let place = roots.resolve(&asked).map_err(|fault| format!("{fault:?}"))?;
        assert_eq!(place.resolved().real, world.at("out/secret.txt"));
        assert_eq!(
            place.requested_name(),
            world.at("out/secret.txt").display().to_string()
        );
    }
    assert!(matches!(Roots::open(&[]), Err(RootError::None)));
    let problem = Roots::open(&[world.at("nowhere")]).expect_err("it is not there");
    assert!(problem.to_string().contains("nowhere"), "{problem}");
    Ok(())
}

#[test]
fn missing_names_are_places_and_faults_below_files_are_not() {
    let world = World::new();
    let place = world.roots.resolve("a/b/new.txt").expect("a place");
    assert_eq!(place.resolved().real, world.at("in/a/b/new.txt"));
    assert_eq!(place.resolved().kind, PathKind::Missing);
    for asked in ["notes.txt/x", "gone/../notes.txt", "notes.txt/../src"] {
        let fault = world.roots.resolve(asked).map(|_| ()).expect_err(asked);
        assert_eq!(fault, PathFault::Missing, "{asked}");
    }
    assert_eq!(world.read("gone.txt"), Err("NotFound".into()));
}

#[test]
fn only_bounded_text_of_regular_files_is_read() -> Outcome {
    let world = World::new();
    put(&world.at("in/long.txt"), &"x".repeat(101));
    write_private(&world.at("in/latin1.txt"), &[b'a', 0xe9])?;
    write_private(&world.at("in/nul.bin"), b"a\0b")?;
    std::fs::File::options()
        .write(true)
        .create_new(true)
        .open(world.at("in/sparse"))?
        .set_len(4 << 30)?;
    mknodat(
        CWD,
        world.at("in/pipe"),
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )?;
    let _socket = std::os::unix::net::UnixListener::bind(world.at("in/socket"))?;
    for (asked, code) in [
        ("long.txt", "TooLarge"),
        ("sparse", "TooLarge"),
        ("latin1.txt", "NotText"),
        ("nul.bin", "NotText"),
        ("src", "InvalidArguments"),
        ("pipe", "InvalidArguments"),
        ("socket", "InvalidArguments"),
    ] {
        assert_eq!(world.read(asked), Err(code.into()), "{asked}");
    }
    for asked in ["pipe", "socket"] {
        let place = world.roots.resolve(asked).map_err(|fault| format!("{fault:?}"))?;
        assert_eq!(place.resolved().kind, PathKind::Special);
        assert!(place.write_atomic(b"x").is_err());
    }
    assert!(world.write("src", "x").is_err());
    Ok(())
}

#[test]
fn a_folder_is_listed_sorted_bounded_and_without_our_own_leavings() -> Outcome {
    let world = World::new();
    symlink("notes.txt", world.at("in/link"))?;
    put(&world.at("in/.tidegate-1-0.tmp"), "half");
    put(&world.at("in/日本語.md"), "x");
    let root = world.roots.resolve(".").map_err(|fault| format!("{fault:?}"))?;
    let listing = root.list(10)?;
    let shown: Vec<_> = listing
        .entries
        .iter()
        .map(|entry| (entry.name.as_str(), entry.kind, entry.bytes))
        .collect();
    assert_eq!(
        shown,
        [
            ("link", EntryKind::Link, 0),
            ("notes.txt", EntryKind::File, 5),
            ("src", EntryKind::Folder, 0),
            ("日本語.md", EntryKind::File, 1),
        ]
    );
    assert_eq!(listing.left_out, 0);
    let cut = root.list(1)?;
    assert_eq!((cut.entries.len(), cut.left_out), (1, 3));
    let file = world
        .roots
        .resolve("notes.txt")
        .map_err(|fault| format!("{fault:?}"))?;
    assert!(matches!(file.list(1), Err(FileError::NotAFolder(_))));
    Ok(())
}

#[test]
fn a_write_replaces_or_creates_with_its_folders_and_leaves_nothing_behind() -> Outcome {
    let world = World::new();
    std::fs::set_permissions(world.at("in/notes.txt"), PermissionsExt::from_mode(0o640))?;
    assert_eq!(world.write("notes.txt", "new"), Ok(Written { is_new: false }));
    assert_eq!(
        std::fs::metadata(world.at("in/notes.txt"))?.permissions().mode() & 0o777,
        0o640
    );
    assert_eq!(world.write("deep/er/é.txt", "x"), Ok(Written { is_new: true }));
    assert_eq!(world.read("deep/er/é.txt").as_deref(), Ok("x"));
    assert_eq!(world.write("deep/er/é.txt", ""), Ok(Written { is_new: false }));
    assert_eq!(world.read("deep/er/é.txt").as_deref(), Ok(""));
    let names: Vec<_> = std::fs::read_dir(world.at("in/deep/er"))?
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(names, ["é.txt"]);
    Ok(())
}

#[test]
fn a_hard_linked_twin_keeps_its_bytes() -> Outcome {
    let world = World::new();
    std::fs::hard_link(world.at("out/secret.txt"), world.at("in/twin"))?;
    let place = world
        .roots
        .resolve("twin")
        .map_err(|fault| format!("{fault:?}"))?;
    assert_eq!(place.resolved().hard_links, 2);
    place.write_atomic(b"mine")?;
    assert_eq!(std::fs::read_to_string(world.at("out/secret.txt"))?, "secret");
    assert_eq!(world.read("twin").as_deref(), Ok("mine"));
    Ok(())
}

#[test]
fn what_changed_since_it_was_judged_is_not_written() -> Outcome {
    let world = World::new();
    let resolve = |path: &str| world.roots.resolve(path).map_err(|fault| format!("{fault:?}"));
    let replaced = resolve("notes.txt")?;
    put(&world.at("in/notes.txt"), "another file");
    let linked = resolve("src/a.txt")?;
    std::fs::remove_file(world.at("in/src/a.txt"))?;
    symlink(world.at("out/secret.txt"), world.at("in/src/a.txt"))?;
    let appeared = resolve("new.txt")?;
    symlink(world.at("out/new.txt"), world.at("in/new.txt"))?;
    std::fs::create_dir(world.at("in/moves"))?;
    let moved = resolve("moves/x.txt")?;
    std::fs::rename(world.at("in/moves"), world.at("out/moved"))?;
    let half = resolve("made/x.txt")?;
    symlink(world.at("out"), world.at("in/made"))?;
    for place in [replaced, linked, appeared, moved, half] {
        let outcome = place.write_atomic(b"x");
        assert!(matches!(outcome, Err(FileError::Changed(_))), "{outcome:?}");
    }
    assert_eq!(std::fs::read_to_string(world.at("out/secret.txt"))?, "secret");
    assert_eq!(std::fs::read_to_string(world.at("in/notes.txt"))?, "another file");
    let outside: Vec<_> = std::fs::read_dir(world.at("out"))?
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(outside.len(), 2, "{outside:?}");
    assert_eq!(std::fs::read_dir(world.at("out/moved"))?.count(), 0);
    let left: Vec<_> = std::fs::read_dir(world.at("in"))?
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert!(
        !left
            .iter()
            .any(|name| tidegate_gate::floors::is_temporary_name(name)),
        "{left:?}"
    );
    Ok(())
}

#[test]
fn a_write_removes_what_a_killed_one_left_and_not_what_another_is_writing() -> Outcome {
    let world = World::new();
    let (old, fresh) = (world.at("in/.tidegate-1-0.tmp"), world.at("in/.tidegate-2-0.tmp"));
    put(&old, "half");
    put(&fresh, "half");
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    std::fs::File::options()
        .write(true)
        .open(&old)?
        .set_modified(long_ago)?;
    // A name of ours that is taken by a living write is stepped over.
    put(
        &world.at(&format!("in/.tidegate-{}-0.tmp", std::process::id())),
        "half",
    );
    assert_eq!(world.write("notes.txt", "new"), Ok(Written { is_new: false }));
    assert!(!old.exists() && fresh.exists());
    Ok(())
}

#[test]
fn private_files_and_folders_are_for_the_owner_alone() -> Outcome {
    let base = tempfile::tempdir()?;
    let folder = base.path().join("data/keys");
    create_private_dir(&folder)?;
    create_private_dir(&folder)?;
    let file = folder.join("token");
    write_private(&file, b"one")?;
    write_private(&file, b"two")?;
    assert_eq!(std::fs::read(&file)?, b"two");
    let mode = |path: &Path| std::fs::metadata(path).map(|data| data.permissions().mode() & 0o777);
    assert_eq!(
        (mode(&folder)?, mode(&base.path().join("data"))?, mode(&file)?),
        (0o700, 0o700, 0o600)
    );
    assert_eq!(std::fs::read_dir(&folder)?.count(), 1);
    assert!(write_private(&folder, b"over a folder").is_err());
    assert_eq!(std::fs::read_dir(&folder)?.count(), 1);
    assert!(write_private(Path::new("/"), b"").is_err());
    Ok(())
}

#[test]
fn a_name_that_leads_outside_is_outside_whether_or_not_something_is_on_the_way() {
    let world = World::new();
    for requested in ["missing/../../out/x", "missing/../../../etc/passwd", "../nothing"] {
        assert!(
            matches!(world.roots.resolve(requested), Err(PathFault::Outside)),
            "{requested}"
        );
    }
    assert!(matches!(
        world.roots.resolve("missing/../also-missing/x"),
        Err(PathFault::Missing) | Ok(_)
    ));
}
