//! The world of one line: its names and what its servers answer. Everything asked of it is kept.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use serde_json::Value;
use tidegate_io::guarded::{Connector, Peer, Resolver, Stream};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    task::JoinSet,
};

#[derive(Debug, Default)]
struct Seen {
    looked_up: Vec<String>,
    connected: Vec<IpAddr>,
    requests: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct World {
    seen: Arc<Mutex<Seen>>,
    names: Arc<Names>,
    servers: Arc<Servers>,
}

#[derive(Debug)]
struct Names {
    dns: Value,
    seen: Arc<Mutex<Seen>>,
    asked: Mutex<HashMap<String, usize>>,
}

#[derive(Debug)]
struct Servers {
    answers: Vec<Vec<u8>>,
    seen: Arc<Mutex<Seen>>,
    tasks: Mutex<JoinSet<()>>,
}

impl World {
    pub(crate) fn of(input: &Value) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        Self {
            names: Arc::new(Names {
                dns: input["dns"].clone(),
                seen: Arc::clone(&seen),
                asked: Mutex::new(HashMap::new()),
            }),
            servers: Arc::new(Servers {
                answers: answers(&input["redirects"]),
                seen: Arc::clone(&seen),
                tasks: Mutex::new(JoinSet::new()),
            }),
            seen,
        }
    }

    pub(crate) fn resolver(&self) -> Arc<dyn Resolver> {
        Arc::clone(&self.names) as Arc<dyn Resolver>
    }

    pub(crate) fn connector(&self) -> Arc<dyn Connector> {
        Arc::clone(&self.servers) as Arc<dyn Connector>
    }

    /// Waits for the servers, whose clients are gone.
    pub(crate) async fn end(&mut self) {
        let mut tasks = std::mem::take(&mut *self.servers.tasks.lock().unwrap());
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
    }

    pub(crate) fn connected(&self) -> Vec<IpAddr> {
        self.seen.lock().unwrap().connected.clone()
    }

    pub(crate) fn looked_up(&self) -> Vec<String> {
        self.seen.lock().unwrap().looked_up.clone()
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().requests.clone()
    }
}

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.seen.lock().unwrap().looked_up.push(name.to_owned());
        if self.dns[name]["timeout"] == true {
            return std::future::pending().await;
        }
        self.records(name, 8)
    }
}

impl Names {
    /// As a resolver answers: other names are followed, a few times.
    fn records(&self, name: &str, depth: usize) -> io::Result<Vec<IpAddr>> {
        let entry = &self.dns[name];
        if let Some(count) = entry["answers"].as_u64() {
            let first = u32::from(Ipv4Addr::new(93, 0, 0, 0));
            let count = u32::try_from(count).unwrap();
            return Ok((0..count)
                .map(|place| Ipv4Addr::from_bits(first + place).into())
                .collect());
        }
        let records = match entry["sequence"].as_array() {
            Some(sequence) => {
                let mut asked = self.asked.lock().unwrap();
                let place = asked.entry(name.to_owned()).or_default();
                *place += 1;
                sequence[(*place - 1).min(sequence.len() - 1)].as_array()
            }
            None => entry.as_array(),
        };
        let mut addresses = Vec::new();
        for record in records.ok_or_else(|| io::Error::other("no such name"))? {
            let value = record[1].as_str().unwrap();
            if record[0] == "CNAME" {
                let depth = depth
                    .checked_sub(1)
                    .ok_or_else(|| io::Error::other("too many names"))?;
                addresses.extend(self.records(value, depth)?);
            } else {
                addresses.push(value.parse().unwrap());
            }
        }
        Ok(addresses)
    }
}

#[async_trait]
impl Connector for Servers {
    async fn connect(&self, peer: &Peer) -> io::Result<Box<dyn Stream>> {
        let mut seen = self.seen.lock().unwrap();
        let place = seen.connected.len();
        seen.connected.push(peer.address.ip());
        let ordinary =
            || b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok".to_vec();
        let answer = self.answers.get(place).cloned().unwrap_or_else(ordinary);
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        self.tasks
            .lock()
            .unwrap()
            .spawn(serve(theirs, answer, Arc::clone(&self.seen)));
        Ok(Box::new(ours))
    }
}

async fn serve(mut stream: DuplexStream, answer: Vec<u8>, seen: Arc<Mutex<Seen>>) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(read) => request.extend_from_slice(&buffer[..read]),
        }
    }
    let head = String::from_utf8_lossy(&request).to_lowercase();
    seen.lock().unwrap().requests.push(head);
    // The client may have seen enough.
    drop(stream.write_all(&answer).await);
}

/// The answers that a line gives, as bytes.
fn answers(lines: &Value) -> Vec<Vec<u8>> {
    let mut answers: Vec<Vec<u8>> = Vec::new();
    for line in lines.as_array().into_iter().flatten() {
        if let Some(count) = line.as_str().and_then(|text| text.strip_prefix("repeat:")) {
            let last = answers.last().cloned().unwrap();
            answers.extend(std::iter::repeat_n(last, count.parse().unwrap()));
            continue;
        }
        let parts = line.as_array().unwrap();
        let status = parts[0].as_u64().unwrap();
        let text = parts[1].as_str().unwrap();
        let mut head = vec![
            format!("HTTP/1.1 {status} X"),
            "content-type: text/plain".to_owned(),
        ];
        let is_redirect = (300..400).contains(&status);
        if is_redirect {
            head.push(format!("location: {text}"));
        }
        for more in parts.iter().skip(2) {
            if let Some(location) = more.as_str() {
                head.push(format!("location: {location}"));
            }
            for (name, value) in more.as_object().into_iter().flatten() {
                head.push(format!("{name}: {}", value.as_str().unwrap()));
            }
        }
        let body = if is_redirect { "" } else { text };
        answers.push(
            format!(
                "{}\r\ncontent-length: {}\r\n\r\n{body}",
                head.join("\r\n"),
                body.len()
            )
            .into_bytes(),
        );
    }
    answers
}
