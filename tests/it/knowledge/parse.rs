//! Documents are read in a process of their own, which may be lost without anything else.

use std::{
    fmt::Write as _,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tidegate_core::knowledge::Format;
use tidegate_kb::parse::{self, Limits, Options, Problem, Worker};

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_tidegate"))
}

pub(super) fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/knowledge");
    fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn worker(change: impl Fn(&mut Options)) -> Worker {
    let mut options = Options::default();
    change(&mut options);
    Worker::new(program(), options)
}

/// A PDF whose page draws a form that draws itself: reading it goes down until the stack is gone.
fn bottomless_pdf() -> Vec<u8> {
    let draw = "<< /Length 5 /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /F 5 0 R >> >> >>";
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /XObject << /F 5 0 R >> >> >>"
            .to_owned(),
        "<< /Length 5 >>\nstream\n/F Do\nendstream".to_owned(),
        format!("{draw}\nstream\n/F Do\nendstream"),
    ];
    let mut text = "%PDF-1.4\n".to_owned();
    let mut table = "xref\n0 6\n0000000000 65535 f \n".to_owned();
    for (number, object) in (1..).zip(&objects) {
        writeln!(table, "{:010} 00000 n ", text.len()).expect("a line");
        writeln!(text, "{number} 0 obj\n{object}\nendobj").expect("an object");
    }
    let table_at = text.len();
    format!("{text}{table}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n{table_at}\n%%EOF\n").into_bytes()
}

#[tokio::test]
async fn another_process_reads_what_this_one_would() {
    let worker = worker(|_| {});
    for name in [
        "handbook.pdf",
        "owner-locked.pdf",
        "policy.docx",
        "review.pptx",
        "stock.xlsx",
        "tale.epub",
        "locked.pdf",
        "locked.docx",
        "scan.pdf",
    ] {
        let bytes = fixture(name);
        let here = parse::read(name, &bytes, &Limits::default());
        let there = worker.parse(name, bytes).await;
        assert_eq!(there, here, "{name}");
    }
    let page = format!("{}deep &amp; down", "<div>".repeat(100_000));
    let parsed = worker
        .parse("deep.html", page.into_bytes())
        .await
        .expect("a page");
    assert_eq!(
        (parsed.format, parsed.text.as_str()),
        (Format::Html, "deep & down")
    );
}

#[tokio::test]
async fn large_files_of_plain_formats_are_read_elsewhere_too() {
    let text = format!("# Title\n\n{}\n", "words and more ".repeat(200_000));
    let parsed = worker(|_| {})
        .parse("large.md", text.clone().into_bytes())
        .await
        .expect("a document");
    assert!(parsed.text == text && parsed.title.as_deref() == Some("Title"));
}

/// Whatever becomes of the process, the file has one outcome and the next file is read.
#[tokio::test]
async fn a_lost_process_costs_one_file() {
    let usual = worker(|_| {});
    let rows = "<p>row of text</p>".repeat(400_000);
    let tight = worker(|options| options.memory_bytes = 24 << 20);
    let hasty = worker(|options| options.timeout_ms = 1);
    let named = |program: &str| Worker::new(program, Options::default());
    for (worker, name, bytes, code) in [
        (&usual, "bottomless.pdf", bottomless_pdf(), "parser_crashed"),
        (
            &tight,
            "large.html",
            rows.clone().into_bytes(),
            "parser_out_of_memory",
        ),
        (&hasty, "large.html", rows.into_bytes(), "parser_too_slow"),
        (
            &named("/bin/false"),
            "a.pdf",
            fixture("handbook.pdf"),
            "parser_crashed",
        ),
        (
            &named("/bin/echo"),
            "a.pdf",
            fixture("handbook.pdf"),
            "parser_crashed",
        ),
        (
            &named("/nonexistent"),
            "a.pdf",
            fixture("handbook.pdf"),
            "parser_unavailable",
        ),
    ] {
        let problem = worker.parse(name, bytes).await.expect_err(name);
        assert_eq!(problem.code(), code, "{name}: {problem}");
        assert_eq!(problem.is_passing(), code == "parser_unavailable");
    }
    assert!(usual.parse("handbook.pdf", fixture("handbook.pdf")).await.is_ok());
}

#[tokio::test]
async fn bounds_come_before_any_work() {
    let worker = worker(|options| options.limits.file_bytes_max = 1000);
    assert_eq!(worker.parse("a.pdf", Vec::new()).await, Err(Problem::Empty));
    let problem = worker
        .parse("a.pdf", fixture("handbook.pdf"))
        .await
        .expect_err("too large");
    assert_eq!(problem.code(), "too_large");
}

#[tokio::test]
async fn many_at_once_are_read_a_few_at_a_time() {
    let worker = worker(|_| {});
    let mut reads = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let worker = worker.clone();
        reads.spawn(async move { worker.parse("policy.docx", fixture("policy.docx")).await.is_ok() });
    }
    while let Some(read) = reads.join_next().await {
        assert!(read.expect("a read"));
    }
}

/// The walls as the kernel shows them, while the process waits for the document.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "it is looked at from outside while it waits"
)]
fn the_process_stands_behind_walls() {
    let mut child = Command::new(program())
        .arg("__parse")
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a process");
    let limits = serde_json::to_value(Limits::default()).expect("limits");
    let order =
        serde_json::json!({"name": "a.html", "limits": limits, "memory_bytes": 300 << 20, "cpu_s": 7});
    let order = order.to_string();
    let mut input = child.stdin.take().expect("its input");
    let length = u32::try_from(order.len()).expect("a length");
    input
        .write_all(&length.to_le_bytes())
        .and_then(|()| input.write_all(order.as_bytes()))
        .expect("an order");
    input.flush().expect("an order");

    let of_process =
        |file: &str| fs::read_to_string(format!("/proc/{}/{file}", child.id())).unwrap_or_default();
    let field = |name: &str| {
        let status = of_process("status");
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .map(|rest| rest.trim().to_owned())
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while field("Seccomp:").as_deref() != Some("2") && std::time::Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert_eq!(field("Seccomp:").as_deref(), Some("2"));
    assert_eq!(field("NoNewPrivs:").as_deref(), Some("1"));
    let limit = |name: &str| {
        let limits = of_process("limits");
        let line = limits
            .lines()
            .find(|line| line.starts_with(name))
            .map(str::to_owned)
            .unwrap_or_default();
        line[name.len()..]
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(limit("Max data size"), (300 << 20).to_string());
    assert_eq!(limit("Max cpu time"), "7");
    assert_eq!(limit("Max file size"), "0");
    assert_eq!(limit("Max core file size"), "0");

    input.write_all(b"<p>words</p>").expect("a document");
    drop(input);
    let output = child.wait_with_output().expect("its answer");
    assert!(
        output.status.success() && output.stdout.ends_with(b"words"),
        "{output:?}"
    );
}
