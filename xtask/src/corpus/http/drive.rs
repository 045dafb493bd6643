//! A driver for each form of input.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tidegate_testkit::Reply;

use super::fill::Places;
use super::form::{Input, ModelReply};
use super::target::{ANSWER_TIMEOUT, Target};
use super::{Case, Outcome, Verdict, judge};
use crate::http::{Answer, Connection};

/// How long a second answer is waited for.
const SECOND_TIMEOUT: Duration = Duration::from_millis(300);
/// How often the daemon's memory is looked at.
const SAMPLE: Duration = Duration::from_millis(20);
/// How long connections may take to be cleared away after a line.
const SETTLE: Duration = Duration::from_secs(10);

/// What was seen of one line.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "observations, each on its own")]
pub(super) struct Seen {
    pub(super) answer: Answer,
    pub(super) took: Duration,
    pub(super) closed: bool,
    pub(super) second_served: bool,
    pub(super) alive: bool,
    pub(super) other_client: Option<Duration>,
    pub(super) rss_growth_bytes: u64,
    pub(super) files_growth: usize,
    pub(super) new_files: Vec<String>,
    pub(super) keys_changed: bool,
    pub(super) bad_log_lines: usize,
    pub(super) mean_difference: Duration,
}

impl Seen {
    pub(super) fn status(&self) -> u16 {
        self.answer.status
    }
}

/// Everything that a corpus is run against.
pub(super) struct Bench {
    target: Target,
    places: Places,
}

impl Bench {
    pub(super) fn new(target: Target) -> Self {
        let places = Places::new(&target.host(), target.address().port(), target.key());
        Self { target, places }
    }

    /// Why a line cannot be put to this daemon; `None` where it can.
    pub(super) fn lacks(&self, input: &Input) -> Option<&'static str> {
        self.target.lacks(input)
    }

    /// Puts one line to the daemon and judges what came of it.
    pub(super) fn judge(&mut self, case: &Case, input: &Input) -> Result<Verdict> {
        let mut check = case.check.clone();
        check.retain(|name, _| self.target.can_check(name));
        let unseen: Vec<String> = case
            .check
            .keys()
            .filter(|name| !check.contains_key(*name))
            .cloned()
            .collect();
        let wants = |name: &str| check.contains_key(name);
        let wants_keys = ["no_state_change", "mode_unchanged", "no_grant_created"]
            .into_iter()
            .any(wants);
        let files = self.files();
        let keys = if wants_keys { self.keys() } else { Value::Null };
        let open_files = self.open_files().unwrap_or_default();
        let memory = self.target.own().map(|own| Memory::watch(own.daemon.pid()));
        let mut seen = self.drive(input, wants("other_client_served_within_ms"))?;
        seen.rss_growth_bytes = memory.map(Memory::growth).unwrap_or_default();
        seen.alive = self.target.alive(Duration::from_secs(10));
        if wants("fd_growth_max") || wants("no_task_left_after_s") {
            seen.files_growth = self.settle(open_files);
        }
        seen.new_files = self
            .files()
            .into_iter()
            .filter(|file| !files.contains(file))
            .collect();
        seen.keys_changed = wants_keys && self.keys() != keys;
        if wants("log_one_record_per_line")
            && let Some(home) = self.target.home()
        {
            seen.bad_log_lines = judge::bad_log_lines(&home.join("logs"));
        }
        let findings = judge::judge(&check, &seen, &self.places);
        let served = (200..400).contains(&seen.status());
        Ok(Verdict {
            failures: findings.failures,
            unchecked: findings.unchecked,
            unseen,
            ..Verdict::new(
                if served { Outcome::Allow } else { Outcome::Refuse },
                format!("status {}", seen.status()),
            )
        })
    }

    fn files(&self) -> Vec<String> {
        self.target.home().map(judge::files).unwrap_or_default()
    }

    fn open_files(&self) -> Option<usize> {
        self.target.own().and_then(|own| own.daemon.open_files().ok())
    }

    /// What can be seen of permissions: every key's policy, without the times that use changes.
    fn keys(&self) -> Value {
        let answer = self.target.get("/v1/admin/keys");
        let mut list = answer.map(|answer| answer.json()).unwrap_or_default();
        for key in list["data"].as_array_mut().into_iter().flatten() {
            if let Some(key) = key.as_object_mut() {
                key.remove("last_used_at");
            }
        }
        list
    }

    /// Waits for connections to be cleared away and gives how many files are left open beyond before.
    fn settle(&self, before: usize) -> usize {
        let deadline = Instant::now() + SETTLE;
        loop {
            let growth = self.open_files().unwrap_or(usize::MAX).saturating_sub(before);
            if growth == 0 || Instant::now() > deadline {
                return growth;
            }
            thread::sleep(SAMPLE);
        }
    }

    fn drive(&self, input: &Input, ask_beside: bool) -> Result<Seen> {
        let begin = Instant::now();
        let mut seen = match input {
            Input::Raw(_) | Input::Bytes { .. } | Input::Body(_) | Input::Whole(_) => {
                let bytes = input.bytes(&self.places)?.context("a request has bytes")?;
                let begin = Instant::now();
                let mut seen = self.send(bytes)?;
                seen.took = begin.elapsed().saturating_sub(SECOND_TIMEOUT);
                return Ok(seen);
            }
            Input::HalfClose(text) => self.half_close(&self.places.fill(text))?,
            Input::Slow { text, bytes_per_s } => self.slow(&self.places.fill(text), *bytes_per_s)?,
            Input::OpenIdle(connections) => self.open_idle(*connections, ask_beside),
            Input::Reconnect { to, times } => self.reconnect(&self.places.fill(to), *times)?,
            Input::SlowRead {
                request,
                bytes_per_s,
                seconds,
            } => self.slow_read(&self.places.fill(request), *bytes_per_s, *seconds, ask_beside)?,
            Input::Timing { rounds } => self.timing(*rounds)?,
            Input::Model(reply) => self.model(reply)?,
        };
        seen.took = begin.elapsed();
        Ok(seen)
    }

    fn connect(&self) -> Result<Connection> {
        Connection::open(self.target.address(), ANSWER_TIMEOUT)
    }

    /// Writes beside reading: a daemon that refuses early must not be waited for.
    fn send(&self, bytes: Vec<u8>) -> Result<Seen> {
        let mut connection = self.connect()?;
        let mut writer = connection.stream().try_clone()?;
        let writing = thread::spawn(move || writer.write_all(&bytes).is_ok());
        let mut seen = Seen {
            answer: connection.read().unwrap_or_default(),
            ..Seen::default()
        };
        if seen.answer.status != 0 && seen.answer.header("connection") != Some("close") {
            connection.stream().set_read_timeout(Some(SECOND_TIMEOUT))?;
            seen.second_served = connection
                .read()
                .is_ok_and(|second| (200..400).contains(&second.status));
        }
        // Unblocks a writer that the daemon no longer reads from.
        drop(connection.stream().shutdown(Shutdown::Both));
        drop(writing.join());
        Ok(seen)
    }

    fn half_close(&self, text: &str) -> Result<Seen> {
        let mut connection = self.connect()?;
        connection.send(text.as_bytes())?;
        connection.stream().shutdown(Shutdown::Write)?;
        Ok(Seen {
            answer: connection.read().unwrap_or_default(),
            ..Seen::default()
        })
    }

    /// Sends slowly, then waits for the daemon to close.
    fn slow(&self, text: &str, bytes_per_s: u64) -> Result<Seen> {
        let mut connection = self.connect()?;
        let mut writer = connection.stream().try_clone()?;
        let text = text.as_bytes().to_owned();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let writing = thread::spawn(move || {
            for byte in text {
                if stopped.load(Ordering::Relaxed) || writer.write_all(&[byte]).is_err() {
                    return;
                }
                thread::sleep(Duration::from_secs(1) / u32::try_from(bytes_per_s).unwrap_or(u32::MAX));
            }
        });
        let answer = connection.read();
        let closed = answer.is_ok()
            && (answer.as_ref().is_ok_and(|answer| answer.status == 0) || closes(&mut connection));
        stop.store(true, Ordering::Relaxed);
        drop(writing.join());
        Ok(Seen {
            answer: answer.unwrap_or_default(),
            closed,
            ..Seen::default()
        })
    }

    fn open_idle(&self, connections: usize, ask_beside: bool) -> Seen {
        let open: Vec<_> = (0..connections)
            .filter_map(|_| TcpStream::connect_timeout(&self.target.address(), Duration::from_secs(5)).ok())
            .collect();
        let mut seen = Seen::default();
        if ask_beside {
            seen.other_client = self.ask_beside();
        }
        drop(open);
        seen
    }

    fn reconnect(&self, path: &str, times: usize) -> Result<Seen> {
        let bytes = self
            .target
            .request("GET", path, Some(self.target.key()), &Value::Null);
        for _ in 0..times {
            let mut connection = self.connect()?;
            connection.send(&bytes)?;
        }
        Ok(Seen::default())
    }

    fn slow_read(&self, request: &str, bytes_per_s: u64, seconds: u64, ask_beside: bool) -> Result<Seen> {
        let mut connection = self.connect()?;
        connection.send(request.as_bytes())?;
        let mut seen = Seen::default();
        let deadline = Instant::now() + Duration::from_secs(seconds);
        if ask_beside {
            seen.other_client = self.ask_beside();
        }
        let mut byte = [0];
        while Instant::now() < deadline && connection.stream().read(&mut byte).is_ok_and(|length| length > 0)
        {
            thread::sleep(Duration::from_secs(1) / u32::try_from(bytes_per_s).unwrap_or(u32::MAX));
        }
        Ok(seen)
    }

    /// How long a proper client waits for a list while the odd one is at it.
    fn ask_beside(&self) -> Option<Duration> {
        let begin = Instant::now();
        let answer = self.target.get("/v1/models").ok()?;
        (answer.status == 200).then(|| begin.elapsed())
    }

    /// Compares the time of two refusals: a key that is wrong from the start, and one wrong at its end.
    fn timing(&self, rounds: usize) -> Result<Seen> {
        let key = self.target.key();
        let swap = |letter: char| if letter == 'a' { 'b' } else { 'a' };
        let first: String = key
            .chars()
            .enumerate()
            .map(|(at, letter)| if at == 0 { swap(letter) } else { letter })
            .collect();
        let last_at = key.chars().count().saturating_sub(1);
        let last: String = key
            .chars()
            .enumerate()
            .map(|(at, letter)| if at == last_at { swap(letter) } else { letter })
            .collect();
        let mut totals = [Duration::ZERO; 2];
        let mut answer = Answer::default();
        for _ in 0..rounds {
            for (total, key) in totals.iter_mut().zip([&first, &last]) {
                let bytes = self.target.request("GET", "/v1/models", Some(key), &Value::Null);
                let mut connection = self.connect()?;
                let begin = Instant::now();
                connection.send(&bytes)?;
                answer = connection.read()?;
                *total += begin.elapsed();
            }
        }
        let rounds = u32::try_from(rounds.max(1)).unwrap_or(u32::MAX);
        let mean_difference = (totals[0] / rounds).abs_diff(totals[1] / rounds);
        Ok(Seen {
            answer,
            mean_difference,
            ..Seen::default()
        })
    }

    /// Asks a question while the model answers in an odd way.
    fn model(&self, reply: &ModelReply) -> Result<Seen> {
        let own = self.target.own().context("there is no scripted model")?;
        let _runtime = own.runtime.enter();
        let wait = match reply {
            ModelReply::Endless { seconds, .. } => Duration::from_secs(seconds + 10),
            ModelReply::JsonDepth(_)
            | ModelReply::ToolCalls(_)
            | ModelReply::ToolLoop
            | ModelReply::Command(_)
            | ModelReply::TextBytes(_)
            | ModelReply::Status(_)
            | ModelReply::Garbage(_)
            | ModelReply::Never
            | ModelReply::Cut
            | ModelReply::Empty => ANSWER_TIMEOUT,
        };
        let scripted = scripted(reply);
        if matches!(reply, ModelReply::ToolLoop) {
            own.upstream.always(scripted);
        } else {
            own.upstream.push(scripted);
        }
        let question = json!({"model": "tidegate", "messages": [{"role": "user", "content": "hello"}]});
        let bytes = self
            .target
            .request("POST", "/v1/chat/completions", Some(self.target.key()), &question);
        let mut connection = Connection::open(self.target.address(), wait)?;
        connection.send(&bytes)?;
        let answer = connection.read().unwrap_or_default();
        own.upstream.always(Reply::text("hello"));
        Ok(Seen {
            answer,
            ..Seen::default()
        })
    }
}

fn scripted(reply: &ModelReply) -> Reply {
    match reply {
        ModelReply::JsonDepth(depth) => {
            let arguments = format!("{}1{}", "{\"a\":".repeat(*depth), "}".repeat(*depth));
            Reply::text("").call("call_1", "calculate", Value::String(arguments))
        }
        ModelReply::ToolCalls(calls) => (0..*calls).fold(Reply::text(""), |reply, number| {
            reply.call(format!("call_{number}"), "current_time", json!({}))
        }),
        ModelReply::ToolLoop => Reply::text("").call(
            "call_1",
            "write_file",
            json!({"path": "../outside.txt", "content": "x"}),
        ),
        ModelReply::Command(command) => {
            Reply::text("").call("call_1", "execute_shell", json!({"command": command}))
        }
        ModelReply::Endless { bytes_per_s, .. } => Reply::endless(*bytes_per_s),
        ModelReply::TextBytes(bytes) => Reply::text("a".repeat(*bytes)).chunk_chars(4096),
        ModelReply::Status(status) => Reply::status(*status, json!({"error": {"message": "scripted"}})),
        ModelReply::Garbage(text) => Reply::raw_sse(text.as_str()),
        ModelReply::Never => Reply::never(),
        ModelReply::Cut => Reply::text("this answer breaks off").chunk_chars(4).cut(),
        ModelReply::Empty => Reply::text(""),
    }
}

fn closes(connection: &mut Connection) -> bool {
    let mut byte = [0];
    connection
        .stream()
        .read(&mut byte)
        .is_ok_and(|length| length == 0)
}

/// Watches how far a process's memory grows.
struct Memory {
    before: u64,
    most: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    watcher: Option<thread::JoinHandle<()>>,
}

impl Memory {
    fn watch(pid: u32) -> Self {
        let before = resident(pid);
        let most = Arc::new(AtomicU64::new(before));
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, stopped) = (Arc::clone(&most), Arc::clone(&stop));
        let watcher = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                shared.fetch_max(resident(pid), Ordering::Relaxed);
                thread::sleep(SAMPLE);
            }
        });
        Self {
            before,
            most,
            stop,
            watcher: Some(watcher),
        }
    }

    fn growth(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.take() {
            drop(watcher.join());
        }
        self.most.load(Ordering::Relaxed).saturating_sub(self.before)
    }
}

/// Resident memory in bytes; 0 where the process is gone.
fn resident(pid: u32) -> u64 {
    const PAGE_BYTES: u64 = 4096;
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok())
        .unwrap_or_default()
        * PAGE_BYTES
}
