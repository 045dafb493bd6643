//! What a run costs at each level: `cargo run --release -p tidegate-io --example sandbox_cost`.
//!
//! The program starts itself as the confined side, as the product does.

use std::{
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use tidegate_io::{
    process::{self, Program},
    sandbox::{Level, Options, Policy, Sandbox, Task, child},
};

/// How many runs of each kind are measured.
const RUNS: u32 = 50;

fn main() -> ExitCode {
    if std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == "__sandbox")
    {
        return child::main();
    }
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    match runtime.block_on(Box::pin(measure())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            say(&problem.to_string());
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "an example that prints figures")]
fn say(line: &str) {
    println!("{line}");
}

async fn measure() -> Result<(), Box<dyn std::error::Error>> {
    let mut bare = Vec::new();
    for _ in 0..RUNS {
        let program = Program {
            program: "/bin/bash".into(),
            arguments: vec!["-c".into(), "true".into()],
            folder: "/".into(),
            environment: Vec::new(),
            stdin: None,
            output_bytes_max: 1024,
            timeout: Duration::from_secs(10),
        };
        let begun = Instant::now();
        Box::pin(process::run(program)).await?;
        bare.push(begun.elapsed());
    }
    say(&figures("bare", bare));
    let own = std::env::current_exe()?;
    for level in [Level::Landlock, Level::BwrapLandlock] {
        Box::pin(measure_level(level, &own)).await?;
    }
    Ok(())
}

async fn measure_level(level: Level, own: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let sandbox = Sandbox::open_with(Options::default(), own, &[level]).await;
    if sandbox.level().is_none() {
        say(&sandbox.probe().sentence());
        return Ok(());
    }
    let mut took = Vec::new();
    for _ in 0..RUNS {
        let begun = Instant::now();
        sandbox
            .run(Task::program("/bin/bash", ["-c", "true"]), &Policy::default())
            .await?;
        took.push(begun.elapsed());
    }
    say(&figures(level.name(), took));
    Ok(())
}

fn figures(name: &str, mut took: Vec<Duration>) -> String {
    took.sort_unstable();
    let at = |share: usize| {
        let index = (took.len().saturating_sub(1)) * share / 100;
        took.get(index).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    };
    format!("{name:<10} p50 {:6.2} ms   p95 {:6.2} ms", at(50), at(95))
}
