use super::*;

fn shell(script: &str) -> Program {
    Program {
        program: PathBuf::from("/bin/sh"),
        arguments: vec!["-c".into(), script.into()],
        folder: std::env::temp_dir(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        stdin: None,
        output_bytes_max: 1024,
        timeout: Duration::from_secs(20),
    }
}

#[tokio::test]
async fn output_exit_code_input_and_folder_are_the_programs_own() -> Result<(), ProcessError> {
    let folder = tempfile::tempdir().expect("a folder");
    let real = folder.path().canonicalize().expect("its real path");
    let mut program = shell("pwd; cat; echo bad >&2; exit 3");
    program.folder.clone_from(&real);
    program.stdin = Some(b"hello".to_vec());
    let finished = run(program).await?;
    assert_eq!(finished.exit, Exit::Code(3));
    assert!(!finished.exit.is_success());
    let expected = format!("{}\nhello", real.display());
    assert_eq!(String::from_utf8_lossy(&finished.stdout.bytes), expected);
    assert_eq!(finished.stderr.bytes, b"bad\n");
    assert!(!finished.stdout.is_cut && !finished.stderr.is_cut);
    Ok(())
}

#[tokio::test]
async fn nothing_is_inherited_and_nothing_is_a_shell() -> Result<(), ProcessError> {
    let mut program = shell("");
    program.program = "env".into();
    program.arguments.clear();
    program.environment.push(("ONLY".into(), "this".into()));
    let finished = run(program).await?;
    let mut lines: Vec<_> = String::from_utf8_lossy(&finished.stdout.bytes)
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    assert_eq!(lines, ["ONLY=this", "PATH=/usr/bin:/bin"]);

    let mut program = shell("");
    program.program = "/bin/echo".into();
    program.arguments = vec!["$(id); `id` | x > y".into(), "*".into()];
    let finished = run(program).await?;
    assert_eq!(finished.stdout.bytes, b"$(id); `id` | x > y *\n");
    Ok(())
}

#[tokio::test]
async fn more_output_than_is_kept_is_dropped_and_the_program_ends() -> Result<(), ProcessError> {
    let mut program = shell("yes 0123456789 | head -c 1000000; echo end >&2");
    program.output_bytes_max = 100;
    let finished = run(program).await?;
    assert_eq!(finished.exit, Exit::Code(0));
    assert_eq!(finished.stdout.bytes.len(), 100);
    assert!(finished.stdout.is_cut);
    assert_eq!(finished.stderr.bytes, b"end\n");
    Ok(())
}

#[tokio::test]
async fn an_input_that_is_never_read_does_not_hold_the_program() -> Result<(), ProcessError> {
    let mut program = shell("exit 0");
    program.stdin = Some(vec![b'x'; 1_000_000]);
    assert!(run(program).await?.exit.is_success());
    Ok(())
}

/// Whether anything still runs with this text in its command line.
fn is_running(marker: &str) -> bool {
    std::fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(marker))
}

/// Waits until `condition` holds, or fails.
async fn eventually(condition: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(tokio::time::Instant::now() < deadline, "it never came true");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_whole_group_dies_at_the_deadline() {
    let mut program = shell("sleep 71.25 & sleep 71.25; echo never");
    program.timeout = Duration::from_millis(200);
    let problem = run(program).await.expect_err("it runs for too long");
    assert!(
        matches!(problem, ProcessError::TimedOut { after_ms: 200, .. }),
        "{problem}"
    );
    eventually(|| !is_running("71.25")).await;
}

#[tokio::test]
async fn dropping_the_future_kills_the_group() {
    let program = shell("sleep 72.25 & sleep 72.25");
    {
        let work = run(program);
        tokio::pin!(work);
        tokio::select! {
            outcome = &mut work => panic!("it ended: {outcome:?}"),
            () = eventually(|| is_running("sleep\u{0}72.25")) => {}
        }
    }
    eventually(|| !is_running("72.25")).await;
}

#[tokio::test]
async fn what_a_program_leaves_running_neither_holds_us_nor_survives() -> Result<(), ProcessError> {
    let finished = run(shell("sleep 73.25 & echo done")).await?;
    assert_eq!(finished.stdout.bytes, b"done\n");
    eventually(|| !is_running("73.25")).await;
    Ok(())
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let mut program = shell("");
    program.program = "/nowhere/at/all".into();
    let problem = run(program).await.expect_err("there is no such program");
    assert!(problem.to_string().contains("/nowhere/at/all"), "{problem}");
}

#[tokio::test]
async fn a_signal_is_told_from_a_code() -> Result<(), ProcessError> {
    assert_eq!(run(shell("kill -9 $$")).await?.exit, Exit::Signal(9));
    Ok(())
}

#[test]
fn the_file_limit_is_raised_to_what_it_may_be() -> std::io::Result<()> {
    let files = raise_file_limit()?;
    let now = getrlimit(Resource::Nofile);
    assert_eq!((now.current, now.maximum), (now.maximum, now.current));
    assert_eq!(now.current.unwrap_or(u64::MAX), files);
    assert_eq!(raise_file_limit()?, files, "the second time nothing changes");
    Ok(())
}
