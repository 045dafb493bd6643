//! What stands at a path is swapped, over and over, while it is read and written.

use std::{
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{World, put};

/// How many swaps and how many uses there are at least.
const TURNS: u32 = 400;

/// Uses a path while another thread exchanges what stands at two names, until both have had their turns.
fn race(one: &Path, other: &Path, mut work: impl FnMut()) {
    let (swaps, uses) = (AtomicU32::new(0), AtomicU32::new(0));
    let is_over = || swaps.load(Ordering::Relaxed) >= TURNS && uses.load(Ordering::Relaxed) >= TURNS;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over() {
                renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).expect("an exchange");
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        while !is_over() {
            work();
            uses.fetch_add(1, Ordering::Relaxed);
        }
    });
}

#[test]
fn a_file_swapped_for_a_link_is_never_read_outside() {
    let world = World::new();
    let (file, link) = (world.at("in/race.txt"), world.at("in/other"));
    put(&file, "inside");
    symlink(world.at("out/secret.txt"), &link).expect("a link");
    race(&file, &link, || {
        if let Ok(text) = world.read("race.txt") {
            assert_eq!(text, "inside");
        }
    });
}

#[test]
fn a_file_swapped_for_a_link_is_never_written_outside() {
    let world = World::new();
    let (file, link) = (world.at("in/race.txt"), world.at("in/other"));
    put(&file, "inside");
    symlink(world.at("out/secret.txt"), &link).expect("a link");
    race(&file, &link, || {
        // Refused or written, either is right; where it is written is what counts.
        drop(world.write("race.txt", "inside"));
    });
    assert_eq!(
        std::fs::read_to_string(world.at("out/secret.txt")).expect("it is there"),
        "secret"
    );
}

#[test]
fn a_folder_swapped_for_a_link_never_leads_outside() {
    let world = World::new();
    let (folder, link) = (world.at("in/folder"), world.at("in/other"));
    std::fs::create_dir(&folder).expect("a folder");
    symlink(world.at("out"), &link).expect("a link");
    race(&folder, &link, || {
        for path in ["folder/new.txt", "folder/deep/er.txt"] {
            drop(world.write(path, "x"));
        }
        assert!(world.read("folder/secret.txt").is_err());
    });
    let outside: Vec<_> = std::fs::read_dir(world.at("out"))
        .expect("it is there")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(outside, ["secret.txt"]);
}
