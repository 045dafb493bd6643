use std::{fs, os::unix::fs::PermissionsExt as _};

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn options(folder: &Path) -> Options {
    Options {
        path: folder.join("audit.jsonl"),
        rotate_bytes: 1 << 20,
        keep: 3,
    }
}

#[expect(clippy::disallowed_methods, reason = "the test tampers with the file")]
fn put(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
}

fn line(text: &str) -> Map<String, Value> {
    json!({"text": text}).as_object().unwrap().clone()
}

fn written(options: &Options, count: usize) {
    for number in 0..count {
        append(options, vec![line(&format!("line {number}"))]).unwrap();
    }
}

#[test]
fn a_whole_chain_has_no_faults_and_goes_on_where_it_stood() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    append(&options, vec![line("a"), line("b")]).unwrap();
    append(&options, vec![line("c")]).unwrap();
    let report = verify(&options).unwrap();
    assert_eq!((report.lines, report.first_line), (3, 1));
    assert_eq!(report.faults, Vec::<String>::new());
    let mode = fs::metadata(&options.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn each_kind_of_tampering_shows() {
    let tampered = |change: fn(Vec<String>) -> Vec<String>| {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path());
        written(&options, 5);
        let text = fs::read_to_string(&options.path).unwrap();
        let lines = change(text.lines().map(str::to_owned).collect());
        let mut text = lines.join("\n");
        if !lines.is_empty() {
            text.push('\n');
        }
        put(&options.path, text.as_bytes());
        verify(&options).unwrap().faults
    };
    assert_eq!(tampered(|lines| lines), Vec::<String>::new());
    assert!(
        !tampered(|mut lines| {
            lines.remove(0);
            lines
        })
        .is_empty(),
        "the first line"
    );
    assert!(
        !tampered(|mut lines| {
            lines.remove(2);
            lines
        })
        .is_empty(),
        "a middle line"
    );
    assert!(
        !tampered(|mut lines| {
            lines.pop();
            lines
        })
        .is_empty(),
        "the last line"
    );
    assert!(!tampered(|_| Vec::new()).is_empty(), "every line");
    assert!(
        !tampered(|mut lines| {
            lines[1] = lines[1].replace("line 1", "line 9");
            lines
        })
        .is_empty()
    );
    assert!(
        !tampered(|mut lines| {
            lines[4] = lines[4].replace("line 4", "line 9");
            lines
        })
        .is_empty()
    );
    assert!(
        !tampered(|mut lines| {
            lines.swap(1, 2);
            lines
        })
        .is_empty()
    );
    assert!(
        !tampered(|mut lines| {
            let copy = lines[1].clone();
            lines.insert(1, copy);
            lines
        })
        .is_empty()
    );
}

#[test]
fn a_head_that_is_gone_shows() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    written(&options, 2);
    fs::remove_file(beside(&options.path, ".head")).unwrap();
    assert_eq!(verify(&options).unwrap().faults.len(), 1);
}

#[test]
fn a_torn_line_is_kept_and_the_chain_goes_on_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    written(&options, 2);
    let mut file = OpenOptions::new().append(true).open(&options.path).unwrap();
    file.write_all(br#"{"text":"half"#).unwrap();
    written(&options, 2);
    let report = verify(&options).unwrap();
    assert_eq!(report.faults, Vec::<String>::new());
    assert_eq!((report.lines, report.torn), (5, 1));
}

#[test]
fn the_chain_goes_through_rotated_files_and_begins_later_once_old_ones_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        rotate_bytes: 400,
        ..options(folder.path())
    };
    written(&options, 6);
    assert!(beside(&options.path, ".1").exists());
    let report = verify(&options).unwrap();
    assert_eq!((report.faults, report.first_line), (Vec::new(), 1));
    written(&options, 20);
    let report = verify(&options).unwrap();
    assert_eq!(report.faults, Vec::<String>::new());
    assert!(report.first_line > 1);
    fs::remove_file(beside(&options.path, ".2")).unwrap();
    assert!(
        !verify(&options).unwrap().faults.is_empty(),
        "a file from the middle"
    );
}

#[test]
fn two_writers_make_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| written(&options, 25));
        }
    });
    let report = verify(&options).unwrap();
    assert_eq!((report.lines, report.faults), (100, Vec::new()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_changed_byte_shows(count in 2_usize..6, at in any::<prop::sample::Index>(), flip in 1_u8..=255) {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path());
        written(&options, count);
        let mut bytes = fs::read(&options.path).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        put(&options.path, &bytes);
        let report = verify(&options).unwrap();
        prop_assert!(!report.faults.is_empty() || report.torn > 0, "byte {at}");
    }
}
