//! A program's pipes: one JSON text a line (MCP 2025-11-25, "stdio").
//!
//! Lines have a bound. One that is longer is not kept; the call that it seems to answer gets an error instead, so
//! that one large result does not cost the connection. What is no message of the protocol is passed over: many
//! programs print banners.

use std::{sync::Arc, time::Duration};

use bytes::{Buf, BytesMut};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage},
    transport::Transport,
};
use tidegate_io::child::{ChildStderr, ChildStdin, ChildStdout, Handle, Running};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Mutex,
    task::JoinHandle,
};

use super::{Fault, watched::Notices};

/// How long a program may take to end by itself once its input is closed.
const GRACE: Duration = Duration::from_millis(1500);
/// How much is read at once, in bytes.
const READ_BYTES: usize = 32 << 10;
/// Messages longer than this, in bytes, are read on a thread of their own, so that nobody else waits meanwhile.
const LONG_BYTES: usize = 128 << 10;
/// How much of a message that is too long is looked at, at each end, for the call that it answers.
const ENDS_BYTES: usize = 256;

/// The pipes of one program, and its life.
#[derive(Debug)]
pub(crate) struct Pipes {
    stdin: Arc<Mutex<Option<ChildStdin>>>,
    lines: Lines<ChildStdout>,
    parsing: Option<JoinHandle<Option<ServerJsonRpcMessage>>>,
    handle: Option<Handle>,
    notices: Arc<Notices>,
}

impl Pipes {
    /// Takes over a started program but for its standard error, which somebody else reads.
    pub(crate) fn of(running: Running, bytes_max: usize, notices: Arc<Notices>) -> (Self, ChildStderr) {
        let Running {
            stdin,
            stdout,
            stderr,
            handle,
        } = running;
        let pipes = Self {
            stdin: Arc::new(Mutex::new(Some(stdin))),
            lines: Lines::new(stdout, bytes_max),
            parsing: None,
            handle: Some(handle),
            notices,
        };
        (pipes, stderr)
    }
}

impl Transport<RoleClient> for Pipes {
    type Error = Fault;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Fault>> + Send + 'static {
        let stdin = Arc::clone(&self.stdin);
        async move {
            let mut bytes = serde_json::to_vec(&item).map_err(|error| Fault::Message(error.to_string()))?;
            bytes.push(b'\n');
            let mut stdin = stdin.lock().await;
            let broken = |error: std::io::Error| Fault::Pipe(error.to_string());
            match stdin.as_mut() {
                Some(pipe) => {
                    pipe.write_all(&bytes).await.map_err(broken)?;
                    pipe.flush().await.map_err(broken)
                }
                None => Err(Fault::Pipe("it is closed".to_owned())),
            }
        }
    }

    /// Cancel safe: what was read stays in the buffer, and a message being read stays in `parsing`.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(parsing) = &mut self.parsing {
                let message = parsing.await.ok().flatten();
                self.parsing = None;
                if message.is_some() {
                    return message;
                }
            }
            match self.lines.next().await? {
                Line::Whole(line) if line.len() > LONG_BYTES => {
                    self.parsing = Some(tokio::task::spawn_blocking(move || parse(&line)));
                }
                Line::Whole(line) if is_dropped(&line, &self.notices) => {}
                Line::Whole(line) => {
                    if let Some(message) = parse(&line) {
                        return Some(message);
                    }
                }
                Line::TooLong { head, tail } => {
                    if let Some(id) = answered(&head, &tail) {
                        let text = format!("the answer is longer than {} bytes", self.lines.bytes_max);
                        return Some(ServerJsonRpcMessage::error(
                            ErrorData::internal_error(text, None),
                            Some(id),
                        ));
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Fault> {
        // A writer that is stuck holds the lock; the program is killed then.
        if let Ok(mut stdin) = self.stdin.try_lock() {
            stdin.take();
        }
        if let Some(handle) = self.handle.take() {
            handle.stop(GRACE).await;
        }
        Ok(())
    }
}

/// Whether a line is a notification too many. Only its name is read, which costs a fraction of reading all of it.
fn is_dropped(line: &[u8], notices: &Notices) -> bool {
    #[derive(serde::Deserialize)]
    struct Envelope<'l> {
        #[serde(borrow)]
        method: std::borrow::Cow<'l, str>,
        id: Option<serde::de::IgnoredAny>,
    }
    if notices.is_calm() {
        return false;
    }
    let envelope: Result<Envelope<'_>, _> = serde_json::from_slice(line);
    envelope.is_ok_and(|envelope| envelope.id.is_none() && notices.drops(&envelope.method))
}

/// `None` where it is no message of the protocol.
fn parse(line: &[u8]) -> Option<ServerJsonRpcMessage> {
    let first = line.iter().find(|byte| !byte.is_ascii_whitespace())?;
    if *first != b'{' {
        return None;
    }
    serde_json::from_slice(line).ok()
}

/// The request that a message answers, by what stands at its ends: as members of the outermost object alone, since a
/// result may hold anything.
fn answered(head: &[u8], tail: &[u8]) -> Option<RequestId> {
    let head = String::from_utf8_lossy(head);
    let outer = head.strip_prefix('{').unwrap_or(&head);
    let outer = outer.split(['{', '[']).next().unwrap_or_default();
    let tail = String::from_utf8_lossy(tail);
    let end = tail.trim_end().strip_suffix('}').unwrap_or_default();
    let after = end.rsplit_once("\"id\":").map(|(_, after)| after);
    let before = outer.split_once("\"id\":").map(|(_, after)| after);
    before
        .and_then(|text| text.split([',', '}']).next())
        .or(after)
        .and_then(|text| text.trim().parse().ok())
        .map(RequestId::Number)
}

#[derive(Debug)]
enum Line {
    Whole(Vec<u8>),
    TooLong { head: Vec<u8>, tail: Vec<u8> },
}

/// Lines of a stream, each up to a bound.
#[derive(Debug)]
struct Lines<R> {
    reader: R,
    buffer: BytesMut,
    scanned: usize,
    bytes_max: usize,
    /// The ends of a line that is being passed over.
    passing: Option<(Vec<u8>, Vec<u8>)>,
    is_ended: bool,
}

impl<R: AsyncReadExt + Unpin> Lines<R> {
    fn new(reader: R, bytes_max: usize) -> Self {
        Self {
            reader,
            buffer: BytesMut::new(),
            scanned: 0,
            bytes_max,
            passing: None,
            is_ended: false,
        }
    }

    /// The next line; `None` at the end. Cancel safe.
    async fn next(&mut self) -> Option<Line> {
        loop {
            // Lines that are there already must not keep the thread to themselves. Before one is taken: what is taken
            // is lost where the future is dropped.
            tokio::task::consume_budget().await;
            if let Some(line) = self.take() {
                return Some(line);
            }
            if self.is_ended {
                return None;
            }
            self.buffer.reserve(READ_BYTES);
            match self.reader.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => self.is_ended = true,
                Ok(_) => {}
            }
        }
    }

    fn take(&mut self) -> Option<Line> {
        let fresh = self.buffer.get(self.scanned..).unwrap_or_default();
        let end = fresh
            .iter()
            .position(|byte| *byte == b'\n')
            .map(|end| end + self.scanned);
        self.scanned = self.buffer.len();
        match (end, &mut self.passing) {
            (None, None) if self.buffer.len() > self.bytes_max => {
                let head = self
                    .buffer
                    .get(..ENDS_BYTES.min(self.buffer.len()))
                    .unwrap_or_default()
                    .to_vec();
                let mut tail = Vec::new();
                keep_end(&mut tail, &self.buffer);
                self.passing = Some((head, tail));
                self.clear();
                None
            }
            (None, None) => None,
            (None, Some((_, tail))) => {
                keep_end(tail, &self.buffer);
                self.clear();
                None
            }
            (Some(end), passing) => {
                let line = self.buffer.split_to(end);
                self.buffer.advance(1);
                self.scanned = 0;
                match passing.take() {
                    Some((head, mut tail)) => {
                        keep_end(&mut tail, &line);
                        Some(Line::TooLong { head, tail })
                    }
                    None if line.len() > self.bytes_max => {
                        let mut tail = Vec::new();
                        keep_end(&mut tail, &line);
                        let head = line
                            .get(..ENDS_BYTES.min(line.len()))
                            .unwrap_or_default()
                            .to_vec();
                        Some(Line::TooLong { head, tail })
                    }
                    None => Some(Line::Whole(line.to_vec())),
                }
            }
        }
    }

    fn clear(&mut self) {
        // A new buffer: the old one may have grown to the bound.
        self.buffer = BytesMut::new();
        self.scanned = 0;
    }
}

fn keep_end(tail: &mut Vec<u8>, more: &[u8]) {
    tail.extend_from_slice(
        more.get(more.len().saturating_sub(ENDS_BYTES)..)
            .unwrap_or_default(),
    );
    let surplus = tail.len().saturating_sub(ENDS_BYTES);
    tail.drain(..surplus);
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: Vec<u8>, bytes_max: usize) -> Vec<Line> {
        let mut lines = Lines::new(text.as_slice(), bytes_max);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await {
            all.push(line);
        }
        all
    }

    #[tokio::test]
    async fn lines_have_a_bound_and_the_next_one_is_read_all_the_same() {
        let long = format!(
            "{{\"jsonrpc\":\"2.0\",\"result\":{{\"id\":3,\"x\":\"{}\"}},\"id\":42}}\n{{\"id\":1}}\nrest",
            "y".repeat(100_000)
        );
        let all = read(long.into_bytes(), 1000).await;
        let [Line::TooLong { head, tail }, Line::Whole(next)] = all.as_slice() else {
            panic!("{all:?}");
        };
        assert_eq!(answered(head, tail), Some(RequestId::Number(42)));
        assert_eq!(next, b"{\"id\":1}");
    }

    #[test]
    fn the_answered_call_is_read_at_either_end() {
        let head = b"{\"jsonrpc\":\"2.0\", \"id\": 7, \"result\":{\"id\":9";
        assert_eq!(answered(head, b"yyyy\"}}"), Some(RequestId::Number(7)));
        assert_eq!(answered(b"{\"result\":{\"id\":9,", b"yyy\"}}"), None);
        assert_eq!(answered(b"", b""), None);
    }

    #[test]
    fn banners_are_no_messages() {
        for text in ["", "hello", "[1]", "{\"x\":1}", "{"] {
            assert!(parse(text.as_bytes()).is_none(), "{text}");
        }
        assert!(parse(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}").is_some());
    }
}
