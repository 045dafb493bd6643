//! The file tools over a real folder: what they do, and every way out of it.

use std::{
    os::unix::fs::{PermissionsExt, symlink},
    task::Poll,
};

use serde_json::json;
use tidegate_core::tool::{FailureCode, ToolResult};
use tidegate_gate::ToolBox;

use super::{Desk, code, put};

#[tokio::test]
async fn reads_whole_files_and_pages() {
    let desk = Desk::with(None, |options| options.read_bytes_max = 100);
    desk.put("a.md", "one\ntwo\nthree\n");
    assert_eq!(
        desk.said("read_text", json!({"path": "a.md"})).await,
        "a.md (3 lines):\n\none\ntwo\nthree\n"
    );
    let page = desk
        .said(
            "read_text",
            json!({"path": "./a.md", "start_line": 2, "lines_max": 1}),
        )
        .await;
    assert!(page.starts_with("a.md (lines 2 to 2 of 3):\n\ntwo\n"), "{page}");
    desk.put("big.md", &"x".repeat(101));
    desk.put("binary.md", "a\0b");
    desk.put("folder/b.md", "b");
    for (path, wanted) in [
        ("none.md", FailureCode::NotFound),
        ("no/such/folder.md", FailureCode::NotFound),
        ("big.md", FailureCode::TooLarge),
        ("binary.md", FailureCode::NotText),
        ("folder", FailureCode::InvalidArguments),
    ] {
        let result = desk.call("read_text", json!({"path": path})).await;
        assert_eq!(code(&result), Some(wanted), "{path}: {result:?}");
    }
}

#[tokio::test]
async fn lists_folders_ready_to_read() {
    let desk = Desk::with(None, |options| options.list_entries_max = 2);
    assert_eq!(
        desk.said("list_files", json!({})).await,
        "Nothing is in the top folder."
    );
    for name in ["docs/b.md", "docs/a.md", "docs/sub/c.md", "docs/Leave.md"] {
        desk.put(name, "12345");
    }
    assert_eq!(
        desk.said("list_files", json!({"path": ""})).await,
        "In the top folder:\n- docs/ (folder)\n"
    );
    let all = desk.said("list_files", json!({"path": "docs"})).await;
    assert_eq!(
        all,
        "In `docs`:\n- docs/Leave.md (5 bytes)\n- docs/a.md (5 bytes)\n[2 more are not shown; narrow with pattern]\n"
    );
    let some = desk
        .said("list_files", json!({"path": "docs", "pattern": "leave"}))
        .await;
    assert_eq!(some, "In `docs`:\n- docs/Leave.md (5 bytes)\n");
    let none = desk
        .said("list_files", json!({"path": "docs", "pattern": "zzz"}))
        .await;
    assert_eq!(none, "Nothing in `docs` has `zzz` in its name.");
    assert!(
        !desk
            .call("list_files", json!({"path": "docs/a.md"}))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn writes_in_one_step() {
    let desk = Desk::with(None, |options| options.write_bytes_max = 10);
    assert_eq!(
        desk.said("write_file", json!({"path": "notes/n.md", "content": "first"}))
            .await,
        "Created `notes/n.md` (5 bytes)."
    );
    assert_eq!(
        desk.said("write_file", json!({"path": "notes/n.md", "content": "second"}))
            .await,
        "Replaced `notes/n.md` (6 bytes)."
    );
    let too_large = desk
        .call(
            "write_file",
            json!({"path": "notes/n.md", "content": "12345678901"}),
        )
        .await;
    assert_eq!(code(&too_large), Some(FailureCode::TooLarge));
    assert_eq!(desk.text("notes/n.md"), "second");
    assert_eq!(
        std::fs::read_dir(desk.bank.path().join("notes")).unwrap().count(),
        1
    );
    assert!(
        !desk
            .call("write_file", json!({"path": "notes", "content": "x"}))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn nothing_leads_out() {
    let desk = Desk::new();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.txt");
    put(&secret, "hush");
    symlink(&secret, desk.bank.path().join("link.md")).unwrap();
    symlink(outside.path(), desk.bank.path().join("door")).unwrap();
    symlink("/", desk.bank.path().join("root")).unwrap();
    let absolute = secret.to_str().unwrap().to_owned();
    let up = format!(
        "../{}/secret.txt",
        outside.path().file_name().unwrap().to_str().unwrap()
    );
    for path in [
        "link.md",
        "door/secret.txt",
        &absolute,
        &up,
        "..",
        "../..",
        "/etc/passwd",
        "root/etc/passwd",
        "a/../../b",
        "a\0b",
        "",
        "file:///etc/passwd",
        "a\nb",
        "/proc/self/environ",
    ] {
        for (tool, arguments) in [
            ("read_text", json!({"path": path})),
            ("list_files", json!({"path": path})),
            ("write_file", json!({"path": path, "content": "changed"})),
        ] {
            if tool == "list_files" && path.is_empty() {
                continue;
            }
            let result = desk.call(tool, arguments).await;
            assert!(!result.is_ok(), "{tool} {path:?}: {result:?}");
            assert!(!result.to_model_text().contains("hush"), "{tool} {path:?}");
        }
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "hush");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn what_looks_like_a_credential_is_neither_read_nor_written() {
    let desk = Desk::new();
    desk.put(".env", "TOKEN=hush");
    desk.put(".ssh/id_rsa", "hush");
    for path in [".env", ".ssh/id_rsa", ".bashrc", ".git/hooks/pre-commit"] {
        let written = desk
            .call("write_file", json!({"path": path, "content": "x"}))
            .await;
        assert!(
            matches!(written, ToolResult::Refused { .. }),
            "{path}: {written:?}"
        );
    }
    for path in [".env", ".ssh/id_rsa"] {
        let read = desk.call("read_text", json!({"path": path})).await;
        assert!(matches!(read, ToolResult::Refused { .. }), "{path}: {read:?}");
    }
    assert_eq!(desk.text(".env"), "TOKEN=hush");
}

#[tokio::test]
async fn a_failed_write_leaves_the_old_bytes() {
    let desk = Desk::new();
    desk.put("shut/n.md", "old");
    let folder = desk.bank.path().join("shut");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o555)).unwrap();
    let result = desk
        .call("write_file", json!({"path": "shut/n.md", "content": "new"}))
        .await;
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let is_root = is_root_here();
    assert_eq!(result.is_ok(), is_root, "{result:?}");
    assert_eq!(desk.text("shut/n.md"), if is_root { "new" } else { "old" });
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

/// Whether permissions hold nobody back here, as for root in a container.
fn is_root_here() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

/// A call that is dropped while it waits for a thread never writes.
#[test]
fn an_abandoned_write_does_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    let desk = Desk::new();
    desk.put("n.md", "old");
    runtime.block_on(async {
        let call = desk
            .authorized("write_file", json!({"path": "n.md", "content": "new"}))
            .await;
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || wait.recv().is_ok());
        {
            let mut write = desk.tools.run(call, &desk.context);
            let polled = std::future::poll_fn(|context| Poll::Ready(write.as_mut().poll(context).is_ready()));
            assert!(!polled.await, "the only thread is busy");
        }
        release.send(()).unwrap();
        assert!(busy.await.unwrap());
        // The next job on the only thread begins after the abandoned one was passed over.
        tokio::task::spawn_blocking(|| ()).await.unwrap();
    });
    assert_eq!(desk.text("n.md"), "old");
}
