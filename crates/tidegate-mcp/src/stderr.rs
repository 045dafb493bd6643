//! What a server's program writes to its standard error: kept in a bounded log of its own, and its last lines for
//! whoever asks why it ended.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::json;
use tidegate_core::{clock::Clock, port::LineLog, secret::Secret};
use tidegate_io::{
    child::ChildStderr,
    lines::{LineWriter, Options, Worker},
};
use tokio::io::AsyncReadExt;

use crate::text;

/// The longest line kept, in bytes; the rest of a longer one is dropped.
const LINE_BYTES_MAX: usize = 4096;
/// How many of the last lines are kept in memory.
const LAST_LINES: usize = 8;
/// The longest line in a reason, in characters.
const REASON_CHARS_MAX: usize = 200;
/// Lines that may wait for the writer; a program that writes faster loses some.
const QUEUE_MAX: usize = 256;
/// The size at which the log is put aside, in bytes, and how many such files are kept.
const ROTATE_BYTES: u64 = 1 << 20;
const KEEP: usize = 2;
/// The shortest value that is masked; a shorter one would mask half the log.
const SECRET_BYTES_MIN: usize = 6;

/// The log of one server.
#[derive(Debug)]
pub(crate) struct Complaints {
    log: Option<LineWriter>,
    clock: Arc<dyn Clock>,
    secrets: Vec<Secret>,
    last: Mutex<VecDeque<String>>,
}

impl Complaints {
    /// A log in `folder`, where there is one, and the writer to run for it.
    pub(crate) fn open(
        folder: Option<&Path>,
        slug: &str,
        clock: Arc<dyn Clock>,
        secrets: Vec<Secret>,
    ) -> (Self, Option<Worker>) {
        let opened = folder.map(|folder| {
            LineWriter::open(Options {
                queue_max: QUEUE_MAX,
                rotate_bytes: ROTATE_BYTES,
                keep: KEEP,
                ..Options::new(folder.join(format!("mcp-{slug}.log")))
            })
        });
        let (log, worker) = opened.unzip();
        let complaints = Self {
            log,
            clock,
            secrets,
            last: Mutex::default(),
        };
        (complaints, worker)
    }

    /// Reads a program's standard error to its end.
    pub(crate) async fn drain(&self, mut pipe: ChildStderr) {
        let mut line = Vec::new();
        let mut chunk = vec![0; LINE_BYTES_MAX];
        while let Ok(count) = pipe.read(&mut chunk).await {
            if count == 0 {
                break;
            }
            for byte in chunk.iter().take(count) {
                if *byte == b'\n' {
                    self.keep(&line);
                    line.clear();
                } else if line.len() < LINE_BYTES_MAX {
                    line.push(*byte);
                }
            }
            // A program that writes without end must not keep the thread to itself.
            tokio::task::consume_budget().await;
        }
        self.keep(&line);
    }

    fn keep(&self, line: &[u8]) {
        let mut text = String::from_utf8_lossy(line).into_owned();
        for secret in self
            .secrets
            .iter()
            .filter(|secret| secret.expose().len() >= SECRET_BYTES_MIN)
        {
            text = text.replace(secret.expose(), "[secret]");
        }
        let text = text::line(&text, LINE_BYTES_MAX);
        if text.is_empty() {
            return;
        }
        if let Some(log) = &self.log {
            log.append(json!({"at": self.clock.now().to_string(), "text": text}).to_string());
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() == LAST_LINES {
            last.pop_front();
        }
        last.push_back(text);
    }

    /// The last thing it said.
    pub(crate) fn last_words(&self) -> Option<String> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.back().map(|line| text::line(line, REASON_CHARS_MAX))
    }
}
