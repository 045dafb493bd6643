//! `cargo xtask bench`: what tidegate adds to a model call, measured in one run against one scripted model.
//!
//! The same request goes straight to the scripted model, through tidegate, and through tidegate as a stream. What
//! is compared are differences and ratios within the run: the machine's own speed cancels out.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_testkit::{Reply, Upstream};
use tokio::runtime::Runtime;

use crate::daemon::{Daemon, Start};
use crate::http::{Connection, request};
use crate::{process, scripted};

/// How long one answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Connections of the throughput measure.
const CONNECTIONS: usize = 16;
/// Requests before measuring, so that connections are open and code is warm.
const WARM_UP: usize = 50;
/// Starts of the daemon, for the time until it is ready; the middle one counts.
const STARTS: usize = 5;
/// How long the wave benchmark may take, its build included.
const WAVE_TIMEOUT: Duration = Duration::from_mins(15);

/// The targets on a machine with two cores.
const ADDED_P50_MAX_US: f64 = 500.0;
const WAVE_RATIO_MAX: f64 = 1.3;
const RESIDENT_MAX_MIB: f64 = 50.0;
const READY_MAX_MS: f64 = 200.0;
const GATE_P50_MAX_US: f64 = 20.0;
const GATE_WORST_MAX_US: f64 = 1_000.0;

/// How much is measured.
struct Size {
    latency_requests: usize,
    throughput_requests: usize,
}

/// The times of a series, sorted, in microseconds.
struct Series(Vec<f64>);

impl Series {
    fn at(&self, quantile: f64) -> f64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a position in a list, between 0 and its length"
        )]
        let position = (quantile * self.0.len() as f64) as usize;
        self.0
            .get(position.min(self.0.len().saturating_sub(1)))
            .copied()
            .unwrap_or_default()
    }
}

/// One line of the result.
#[derive(Clone, Copy)]
struct Line {
    what: &'static str,
    value: f64,
    unit: &'static str,
    target: Option<f64>,
}

/// Measures and prints; whether every target was met. A smoke run is too short to hold anyone to a target, and
/// leaves out the wave, whose example takes minutes to build.
pub(crate) fn run(smoke: bool) -> Result<bool> {
    if !smoke && cfg!(debug_assertions) {
        // A scripted model and a client without optimisation would be measured along with the daemon.
        let arguments = ["run", "--quiet", "--release", "--package", "xtask", "--", "bench"];
        return Ok(process::cargo(&arguments).status()?.success());
    }
    let size = if smoke {
        Size {
            latency_requests: 200,
            throughput_requests: 800,
        }
    } else {
        Size {
            latency_requests: 3_000,
            throughput_requests: 20_000,
        }
    };
    let runtime = Runtime::new()?;
    let upstream = runtime.block_on(start_upstream())?;
    let folder = TempDir::new()?;
    let mut lines = ready(&folder, &upstream)?;
    let start = start(&folder, "measured", &upstream);
    let daemon = Daemon::start(&start)?;
    lines.push(Line {
        what: "memory, idle",
        value: mib(daemon.resident_bytes()?),
        unit: "MiB",
        target: Some(RESIDENT_MAX_MIB),
    });
    lines.extend(latency(&upstream, &daemon, &size)?);
    lines.extend(throughput(&daemon, &size)?);
    lines.push(Line {
        what: "memory, after load",
        value: mib(daemon.resident_bytes()?),
        unit: "MiB",
        target: None,
    });
    ensure!(daemon.stop()?, "the daemon did not stop cleanly");
    runtime.block_on(upstream.stop());
    // What was measured is shown even where the engine's example fails.
    let wave = if smoke { Ok(Vec::new()) } else { wave() };
    lines.extend(wave.as_ref().ok().into_iter().flatten().copied());
    let gate = if smoke { Ok(Vec::new()) } else { gate() };
    lines.extend(gate.as_ref().ok().into_iter().flatten().copied());
    let met = print(&lines);
    if !smoke {
        checkpoints()?;
    }
    wave?;
    gate?;
    Ok(met || smoke)
}

/// It looks at no more of a request than at what decides the answer's form, for whoever asks.
async fn start_upstream() -> Result<Upstream> {
    let upstream = Upstream::start().await?;
    upstream.record(false);
    upstream.set_models(Some(vec![scripted::NAME.to_owned()]));
    upstream.always(Reply::text("The answer of a model, some forty letters.").usage(20, 10));
    Ok(upstream)
}

fn start(folder: &TempDir, name: &str, upstream: &Upstream) -> Start {
    let mut start = Start::new(folder.path().join(name), upstream.base_url(), scripted::NAME);
    // Logs at the level that a busy installation has.
    "[logs]\nconsole = \"warn\"\n".clone_into(&mut start.settings);
    start
}

/// The time from the start of the process to the first ready answer, on a folder that has its database.
fn ready(folder: &TempDir, upstream: &Upstream) -> Result<Vec<Line>> {
    let start = start(folder, "ready", upstream);
    Daemon::start(&start)?.stop()?;
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let daemon = Daemon::start(&start)?;
        times.push(micros(daemon.ready_after) / 1e3);
        daemon.stop()?;
    }
    times.sort_by(f64::total_cmp);
    Ok(vec![Line {
        what: "ready after start",
        value: Series(times).at(0.5),
        unit: "ms",
        target: Some(READY_MAX_MS),
    }])
}

/// One request after another on one connection: straight, through, and as a stream, in turn, so that a slow
/// moment of the machine falls on all three.
fn latency(upstream: &Upstream, daemon: &Daemon, size: &Size) -> Result<Vec<Line>> {
    let direct: SocketAddr = upstream.root_url().trim_start_matches("http://").parse()?;
    let whole = question(false);
    let mut kinds = [
        Kind::new(direct, None, &direct_body(&whole))?,
        Kind::new(daemon.address, Some(&daemon.key), &whole)?,
        Kind::new(direct, None, &direct_body(&question(true)))?,
        Kind::new(daemon.address, Some(&daemon.key), &question(true))?,
    ];
    for number in 0..WARM_UP + size.latency_requests {
        for kind in &mut kinds {
            let took = kind.ask()?;
            if number >= WARM_UP {
                kind.times.push(took);
            }
        }
    }
    let [direct_whole, through_whole, direct_stream, through_stream] = kinds.map(Kind::series);
    let added = |through: &Series, direct: &Series, quantile| through.at(quantile) - direct.at(quantile);
    let line = |what, value, target| Line {
        what,
        value,
        unit: "µs",
        target,
    };
    Ok(vec![
        line("direct, p50", direct_whole.at(0.5), None),
        line("direct, p99", direct_whole.at(0.99), None),
        line(
            "added, whole, p50",
            added(&through_whole, &direct_whole, 0.5),
            Some(ADDED_P50_MAX_US),
        ),
        line(
            "added, whole, p99",
            added(&through_whole, &direct_whole, 0.99),
            None,
        ),
        line(
            "added, stream, p50",
            added(&through_stream, &direct_stream, 0.5),
            Some(ADDED_P50_MAX_US),
        ),
        line(
            "added, stream, p99",
            added(&through_stream, &direct_stream, 0.99),
            None,
        ),
    ])
}

struct Kind {
    connection: Connection,
    bytes: Vec<u8>,
    times: Vec<f64>,
}

impl Kind {
    fn new(address: SocketAddr, key: Option<&str>, body: &Value) -> Result<Self> {
        let bytes = request("POST", "/v1/chat/completions", address, key, body);
        Ok(Self {
            connection: Connection::open(address, TIMEOUT)?,
            bytes,
            times: Vec::new(),
        })
    }

    fn ask(&mut self) -> Result<f64> {
        let begin = Instant::now();
        self.connection.send(&self.bytes)?;
        let answer = self.connection.read()?;
        ensure!(
            answer.status == 200,
            "an answer of {}: {}",
            answer.status,
            answer.text()
        );
        Ok(micros(begin.elapsed()))
    }

    fn series(self) -> Series {
        let mut times = self.times;
        times.sort_by(f64::total_cmp);
        Series(times)
    }
}

/// Many connections at once: requests by second of the daemon's own processor time.
fn throughput(daemon: &Daemon, size: &Size) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for (what, stream) in [
        ("requests per core and second, whole", false),
        ("requests per core and second, stream", true),
    ] {
        let per_connection = size.throughput_requests / CONNECTIONS;
        let cpu = daemon.cpu_seconds()?;
        let workers: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                let (address, key) = (daemon.address, daemon.key.clone());
                thread::spawn(move || -> Result<()> {
                    let mut kind = Kind::new(address, Some(&key), &question(stream))?;
                    for _ in 0..per_connection {
                        kind.ask()?;
                    }
                    Ok(())
                })
            })
            .collect();
        for worker in workers {
            worker.join().ok().context("a client thread ended badly")??;
        }
        let used = daemon.cpu_seconds()? - cpu;
        #[expect(clippy::cast_precision_loss, reason = "a count of requests")]
        let requests = (per_connection * CONNECTIONS) as f64;
        lines.push(Line {
            what,
            value: requests / used.max(0.01),
            unit: "/s",
            target: None,
        });
    }
    Ok(lines)
}

/// Sixteen tool calls of 100 ms in one wave against one; the engine's own example measures it.
fn wave() -> Result<Vec<Line>> {
    let arguments = [
        "run",
        "--quiet",
        "--release",
        "--package",
        "tidegate-engine",
        "--example",
        "wave_bench",
    ];
    let finished = process::check(&mut process::cargo(&arguments), WAVE_TIMEOUT)?;
    let ratio = finished
        .lines
        .iter()
        .find_map(|line| line.strip_prefix("ratio ")?.trim().parse().ok());
    let ratio = ratio.context("the wave benchmark printed no line `ratio N`")?;
    Ok(vec![Line {
        what: "sixteen calls in a wave to one",
        value: ratio,
        unit: "×",
        target: Some(WAVE_RATIO_MAX),
    }])
}

/// What a decision of the gate costs, as the gate's own example measures it.
fn gate() -> Result<Vec<Line>> {
    let arguments = [
        "run",
        "--quiet",
        "--release",
        "--package",
        "tidegate-gate",
        "--example",
        "gate_bench",
    ];
    let finished = process::check(&mut process::cargo(&arguments), WAVE_TIMEOUT)?;
    let figure = |name: &str| {
        let found = finished
            .lines
            .iter()
            .find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        found.with_context(|| format!("the gate benchmark printed no line `{name}N`"))
    };
    Ok(vec![
        Line {
            what: "gate decision, p50",
            value: figure("p50 ")?,
            unit: "µs",
            target: Some(GATE_P50_MAX_US),
        },
        Line {
            what: "gate decision, worst accepted input",
            value: figure("worst ")?,
            unit: "µs",
            target: Some(GATE_WORST_MAX_US),
        },
    ])
}

/// What the journal costs, as the store's own example measures it.
fn checkpoints() -> Result<()> {
    let arguments = [
        "run",
        "--quiet",
        "--release",
        "--package",
        "tidegate-store",
        "--example",
        "store_bench",
    ];
    let finished = process::check(&mut process::cargo(&arguments), WAVE_TIMEOUT)?;
    println!("\nthe store, each as a ratio to a checkpoint without state");
    for line in finished.lines {
        println!("{line}");
    }
    Ok(())
}

fn print(lines: &[Line]) -> bool {
    println!("\n{:<40} {:>12} {:<4} {:>10}", "measure", "value", "", "target");
    let mut met = true;
    for line in lines {
        let target = line
            .target
            .map_or_else(String::new, |target| format!("≤ {target}"));
        let missed = line.target.is_some_and(|target| line.value > target);
        met &= !missed;
        let mark = if missed { "  missed" } else { "" };
        println!(
            "{:<40} {:>12.1} {:<4} {target:>10}{mark}",
            line.what, line.value, line.unit
        );
    }
    met
}

fn question(stream: bool) -> Value {
    json!({"model": "tidegate", "stream": stream, "messages": [{"role": "user", "content": "hello"}]})
}

/// The same question for the model itself.
fn direct_body(question: &Value) -> Value {
    let mut body = question.clone();
    body["model"] = scripted::NAME.into();
    body
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[expect(
    clippy::cast_precision_loss,
    reason = "memory sizes, printed with one decimal"
)]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
