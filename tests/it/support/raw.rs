//! Bytes on a socket: for requests that no client library would send.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// An answer, taken apart.
#[derive(Debug)]
pub(crate) struct Raw {
    /// The status; 0 where the connection was closed without an answer.
    pub(crate) status: u16,
    /// The head, as it came.
    pub(crate) head: String,
    /// The body.
    pub(crate) body: String,
}

impl Raw {
    /// Sends exactly these bytes and reads one answer. Nothing more is sent, and the connection stays open.
    pub(crate) async fn send(address: &str, bytes: &[u8]) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // A peer that has answered already may have closed.
        drop(stream.write_all(bytes).await);
        let mut answer = Vec::new();
        let reading = async {
            while !is_whole(&answer) {
                match stream.read_buf(&mut answer).await {
                    Ok(0) | Err(_) => break,
                    Ok(_) => {}
                }
            }
        };
        tokio::time::timeout(PATIENCE, reading)
            .await
            .unwrap_or_else(|_| panic!("no whole answer in time"));
        Self::parse(&String::from_utf8_lossy(&answer))
    }

    fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap_or_default();
        Self {
            status,
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    /// The code of the error envelope.
    pub(crate) fn code(&self) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}\n\n{}", self.head, self.body));
        body["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse::<usize>().ok());
    length.is_some_and(|length| body.len() >= length)
}
