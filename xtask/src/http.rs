//! A small HTTP/1.1 client over plain sockets. It sends exactly the bytes it is given, which a proper client
//! would refuse to, and it reads what comes back without trusting it.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The most that is read of one answer, in bytes.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// An answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    /// The status; 0 where the connection closed without one.
    pub(crate) status: u16,
    /// Header names in lower case, and values.
    pub(crate) headers: Vec<(String, String)>,
    /// The body, chunks joined.
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The body as JSON; null where it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// One connection, kept open between requests.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects, with a limit for every later read and write.
    pub(crate) fn open(address: SocketAddr, timeout: Duration) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, timeout)
            .with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Self {
            stream,
            buffer: Vec::new(),
        })
    }

    /// The socket, for drivers that misuse it.
    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Writes bytes as they are.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Reads one whole answer. A connection that closes before a status gives status 0.
    pub(crate) fn read(&mut self) -> Result<Answer> {
        let mut body = Vec::new();
        let mut answer = self.read_with(&mut |piece| body.extend_from_slice(piece))?;
        answer.body = body;
        Ok(answer)
    }

    /// Reads one answer and gives its body to `take` as it comes.
    pub(crate) fn read_with(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<Answer> {
        let mut answer = loop {
            let Some(end) = self.find(b"\r\n\r\n")? else {
                return Ok(Answer::default());
            };
            let head: Vec<u8> = self.buffer.drain(..end + 4).collect();
            let answer = parse_head(&String::from_utf8_lossy(&head))?;
            // 100-continue and the like come before the answer.
            if !(100..200).contains(&answer.status) {
                break answer;
            }
        };
        let chunked = answer
            .header("transfer-encoding")
            .is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
        if chunked {
            self.read_chunks(take)?;
        } else if let Some(length) = answer
            .header("content-length")
            .and_then(|value| value.parse().ok())
        {
            self.read_exactly(length, take)?;
        } else if answer.status != 204 && answer.status != 304 {
            self.read_to_end(take)?;
            answer.headers.push(("connection".to_owned(), "close".to_owned()));
        }
        Ok(answer)
    }

    fn more(&mut self) -> Result<bool> {
        let mut piece = [0; 16 * 1024];
        let length = match self.stream.read(&mut piece) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                bail!("no answer in time")
            }
            Err(error) => return Err(error.into()),
        };
        self.buffer.extend_from_slice(&piece[..length]);
        if self.buffer.len() > ANSWER_BYTES_MAX {
            bail!("an answer of more than {ANSWER_BYTES_MAX} bytes");
        }
        Ok(length > 0)
    }

    fn find(&mut self, marker: &[u8]) -> Result<Option<usize>> {
        let mut from = 0;
        loop {
            let found = self.buffer[from..]
                .windows(marker.len())
                .position(|window| window == marker);
            if let Some(at) = found {
                return Ok(Some(from + at));
            }
            from = self.buffer.len().saturating_sub(marker.len());
            if !self.more()? {
                return Ok(None);
            }
        }
    }

    fn read_exactly(&mut self, mut length: usize, take: &mut dyn FnMut(&[u8])) -> Result<()> {
        while length > 0 {
            if self.buffer.is_empty() && !self.more()? {
                bail!("the connection closed in the middle of a body");
            }
            let piece = length.min(self.buffer.len());
            take(&self.buffer[..piece]);
            self.buffer.drain(..piece);
            length -= piece;
        }
        Ok(())
    }

    fn read_chunks(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<()> {
        loop {
            let end = self
                .find(b"\r\n")?
                .context("the connection closed between chunks")?;
            let line: Vec<u8> = self.buffer.drain(..end + 2).collect();
            let size = String::from_utf8_lossy(&line);
            let size = size.split(';').next().unwrap_or_default().trim();
            let size =
                usize::from_str_radix(size, 16).with_context(|| format!("`{size}` is no chunk size"))?;
            self.read_exactly(size, take)?;
            self.read_exactly(2, &mut |_| ())?;
            if size == 0 {
                return Ok(());
            }
        }
    }

    fn read_to_end(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<()> {
        loop {
            take(&self.buffer);
            self.buffer.clear();
            if !self.more()? {
                return Ok(());
            }
        }
    }
}

fn parse_head(head: &str) -> Result<Answer> {
    let mut lines = head.split("\r\n");
    let status_line = lines.next().unwrap_or_default();
    let status = status_line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let status = status.with_context(|| format!("`{status_line}` is no status line"))?;
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Ok(Answer {
        status,
        headers,
        body: Vec::new(),
    })
}

/// A request's bytes, with a key if there is one and a JSON body if it is not null.
pub(crate) fn request(
    method: &str,
    path: &str,
    address: SocketAddr,
    key: Option<&str>,
    body: &Value,
) -> Vec<u8> {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let authorization = key.map_or_else(String::new, |key| format!("Authorization: Bearer {key}\r\n"));
    let content = if body.is_empty() {
        ""
    } else {
        "Content-Type: application/json\r\n"
    };
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n{authorization}{content}Content-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// One request on a connection of its own.
pub(crate) fn call(
    address: SocketAddr,
    method: &str,
    path: &str,
    key: Option<&str>,
    body: &Value,
    timeout: Duration,
) -> Result<Answer> {
    let mut connection = Connection::open(address, timeout)?;
    connection.send(&request(method, path, address, key, body))?;
    connection.read()
}

/// What a streamed chat gave.
#[derive(Debug, Default)]
pub(crate) struct Streamed {
    /// The status.
    pub(crate) status: u16,
    /// The text of all pieces.
    pub(crate) text: String,
    /// What it rests on, as tidegate's own field has it.
    pub(crate) citations: Vec<Value>,
    /// Time to the first piece of text.
    pub(crate) first_token: Option<Duration>,
    /// Whether it ended with `[DONE]`.
    pub(crate) done: bool,
    /// The body of an error answer.
    pub(crate) error: String,
}

/// Asks a streamed question and gives each piece of text to `show`.
pub(crate) fn stream_chat(
    address: SocketAddr,
    path: &str,
    key: Option<&str>,
    body: &Value,
    timeout: Duration,
    mut show: impl FnMut(&str),
) -> Result<Streamed> {
    let begin = Instant::now();
    let mut connection = Connection::open(address, timeout)?;
    connection.send(&request("POST", path, address, key, body))?;
    let mut streamed = Streamed::default();
    let mut pending = Vec::new();
    let mut raw = Vec::new();
    let answer = connection.read_with(&mut |piece| {
        raw.extend_from_slice(piece);
        pending.extend_from_slice(piece);
        while let Some(end) = pending.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let Some(data) = line.trim_end().strip_prefix("data:") else {
                continue;
            };
            let data = data.trim_start();
            streamed.done |= data == "[DONE]";
            let event: Value = serde_json::from_str(data).unwrap_or_default();
            if let Some(citations) = event["tidegate"]["citations"].as_array() {
                streamed.citations.clone_from(citations);
            }
            if let Some(text) = event["choices"][0]["delta"]["content"]
                .as_str()
                .filter(|text| !text.is_empty())
            {
                streamed.first_token.get_or_insert_with(|| begin.elapsed());
                streamed.text.push_str(text);
                show(text);
            }
        }
    })?;
    streamed.status = answer.status;
    if !streamed.done {
        streamed.error = String::from_utf8_lossy(&raw).into_owned();
    }
    Ok(streamed)
}
