//! The world of one line: its names, and what its servers answer. Everything asked of it is kept.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::Value;
use tidegate_io::guarded::{Connector, Peer, Resolver, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinSet;

use crate::corpus::case::repetitions;

/// How many other names are followed.
const NAMES_MAX: usize = 8;
/// The most answers that a line's server has.
const ANSWERS_MAX: usize = 1_000;
/// The longest head of a request.
const HEAD_BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
struct Seen {
    looked_up: Vec<String>,
    connected: Vec<IpAddr>,
    requests: Vec<String>,
}

/// What was asked of the world, shared by its parts.
#[derive(Debug, Clone, Default)]
struct Record(Arc<Mutex<Seen>>);

impl Record {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct World {
    record: Record,
    names: Arc<Names>,
    servers: Arc<Servers>,
}

#[derive(Debug)]
struct Names {
    dns: Value,
    record: Record,
    asked: Mutex<HashMap<String, usize>>,
}

#[derive(Debug)]
struct Servers {
    answers: Vec<Vec<u8>>,
    record: Record,
    tasks: Mutex<JoinSet<()>>,
}

impl World {
    pub(super) fn of(input: &Value) -> Result<Self, String> {
        let record = Record::default();
        Ok(Self {
            names: Arc::new(Names {
                dns: input["dns"].clone(),
                record: record.clone(),
                asked: Mutex::default(),
            }),
            servers: Arc::new(Servers {
                answers: answers(&input["redirects"])?,
                record: record.clone(),
                tasks: Mutex::default(),
            }),
            record,
        })
    }

    pub(super) fn resolver(&self) -> Arc<dyn Resolver> {
        Arc::clone(&self.names) as Arc<dyn Resolver>
    }

    pub(super) fn connector(&self) -> Arc<dyn Connector> {
        Arc::clone(&self.servers) as Arc<dyn Connector>
    }

    /// Waits for the servers, whose clients are gone.
    pub(super) async fn end(&self) {
        let mut tasks = {
            let mut tasks = self.servers.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *tasks)
        };
        while tasks.join_next().await.is_some() {}
    }

    pub(super) fn connected(&self) -> Vec<IpAddr> {
        self.record.seen().connected.clone()
    }

    pub(super) fn looked_up(&self) -> Vec<String> {
        self.record.seen().looked_up.clone()
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.record.seen().requests.clone()
    }
}

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.record.seen().looked_up.push(name.to_owned());
        if self.dns[name]["timeout"] == true {
            return std::future::pending().await;
        }
        self.records(name, NAMES_MAX)
    }
}

impl Names {
    /// As a resolver answers: other names are followed, a few times.
    fn records(&self, name: &str, depth: usize) -> io::Result<Vec<IpAddr>> {
        let entry = &self.dns[name];
        if let Some(count) = entry["answers"].as_u64() {
            let first = u32::from(Ipv4Addr::new(93, 0, 0, 0));
            let count = u32::try_from(count.min(1 << 20)).unwrap_or_default();
            return Ok((0..count)
                .map(|place| Ipv4Addr::from_bits(first + place).into())
                .collect());
        }
        if entry.get("cname_loop").is_some() {
            return Err(io::Error::other("too many names"));
        }
        let records = match entry["sequence"].as_array() {
            Some(sequence) => {
                let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
                let place = asked.entry(name.to_owned()).or_default();
                *place += 1;
                let at = (*place - 1).min(sequence.len().saturating_sub(1));
                sequence.get(at).and_then(Value::as_array)
            }
            None => entry.as_array(),
        };
        let mut addresses = Vec::new();
        for record in records.ok_or_else(|| io::Error::other("no such name"))? {
            let value = record[1].as_str().unwrap_or_default();
            if record[0] == "CNAME" {
                let depth = depth
                    .checked_sub(1)
                    .ok_or_else(|| io::Error::other("too many names"))?;
                addresses.extend(self.records(value, depth)?);
            } else {
                // Other records say nothing about an address.
                addresses.extend(value.parse::<IpAddr>());
            }
        }
        Ok(addresses)
    }
}

#[async_trait]
impl Connector for Servers {
    async fn connect(&self, peer: &Peer) -> io::Result<Box<dyn Stream>> {
        let mut seen = self.record.seen();
        let place = seen.connected.len();
        seen.connected.push(peer.address.ip());
        let ordinary =
            || b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok".to_vec();
        let answer = self.answers.get(place).cloned().unwrap_or_else(ordinary);
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.spawn(serve(theirs, answer, self.record.clone()));
        Ok(Box::new(ours))
    }
}

async fn serve(mut stream: DuplexStream, answer: Vec<u8>, record: Record) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(read) => request.extend_from_slice(buffer.get(..read).unwrap_or_default()),
        }
        if request.len() > HEAD_BYTES_MAX {
            return;
        }
    }
    let head = String::from_utf8_lossy(&request).to_lowercase();
    record.seen().requests.push(head);
    // The client may have seen enough.
    drop(stream.write_all(&answer).await);
}

/// The answers that a line gives, as bytes. `repeat:N` says the last one N times more.
fn answers(lines: &Value) -> Result<Vec<Vec<u8>>, String> {
    let mut answers: Vec<Vec<u8>> = Vec::new();
    for line in lines.as_array().into_iter().flatten() {
        if let Some(count) = line.as_str().and_then(|text| text.strip_prefix("repeat:")) {
            let count: usize = count.parse().map_err(|_| format!("{line} is no repetition"))?;
            let last = answers.last().cloned().ok_or("nothing to repeat")?;
            answers.extend(std::iter::repeat_n(last, count.min(ANSWERS_MAX)));
            continue;
        }
        let (Some(status), Some(text)) = (line[0].as_u64(), line[1].as_str()) else {
            return Err(format!("{line} is no answer"));
        };
        let text = repetitions(text);
        let mut head = vec![
            format!("HTTP/1.1 {status} X"),
            "content-type: text/plain".to_owned(),
        ];
        let is_redirect = (300..400).contains(&status);
        if is_redirect {
            head.push(format!("location: {text}"));
        }
        for more in line.as_array().into_iter().flatten().skip(2) {
            if let Some(location) = more.as_str() {
                head.push(format!("location: {}", repetitions(location)));
            }
            for (name, value) in more.as_object().into_iter().flatten() {
                head.push(format!("{name}: {}", value.as_str().unwrap_or_default()));
            }
        }
        let body = if is_redirect { "" } else { text.as_str() };
        let answer = format!(
            "{}\r\ncontent-length: {}\r\n\r\n{body}",
            head.join("\r\n"),
            body.len()
        );
        answers.push(answer.into_bytes());
    }
    Ok(answers)
}
