//! Server-sent events, read as they come, each up to a bound.
//!
//! The format is that of the HTML standard, 9.2.6: fields by lines, an empty line ends an event.

use std::collections::VecDeque;

use sse_stream::Sse;

/// Events that one piece of a body may complete before they are taken; a piece is at most some ten kilobytes.
#[derive(Debug)]
pub(crate) struct Events {
    bytes_max: usize,
    line: Vec<u8>,
    after_cr: bool,
    is_first: bool,
    size: usize,
    event: Option<String>,
    data: Option<String>,
    id: Option<String>,
    retry: Option<u64>,
    ready: VecDeque<Sse>,
}

/// An event is longer than may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {0} bytes")]
pub(crate) struct TooLong(pub(crate) usize);

impl Events {
    /// Reads events of at most `bytes_max` bytes each.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            line: Vec::new(),
            after_cr: false,
            is_first: true,
            size: 0,
            event: None,
            data: None,
            id: None,
            retry: None,
            ready: VecDeque::new(),
        }
    }

    /// The next whole event.
    pub(crate) fn next(&mut self) -> Option<Sse> {
        self.ready.pop_front()
    }

    /// Takes a piece of the body.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), TooLong> {
        let mut rest = piece;
        while let Some(first) = rest.first() {
            if self.after_cr && *first == b'\n' {
                self.after_cr = false;
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            self.after_cr = false;
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (text, after) = match end {
                Some(end) => (rest.get(..end), rest.get(end + 1..)),
                None => (Some(rest), None),
            };
            let text = text.unwrap_or_default();
            self.size += text.len();
            if self.size > self.bytes_max {
                return Err(TooLong(self.bytes_max));
            }
            self.line.extend_from_slice(text);
            let Some(end) = end else { break };
            self.after_cr = rest.get(end) == Some(&b'\r');
            let line = std::mem::take(&mut self.line);
            self.line(&line);
            rest = after.unwrap_or_default();
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let mut text: &str = &text;
        if std::mem::take(&mut self.is_first) {
            text = text.strip_prefix('\u{feff}').unwrap_or(text);
        }
        if text.is_empty() {
            self.dispatch();
            return;
        }
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "event" => self.event = Some(value.to_owned()),
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "retry" => self.retry = value.parse().ok(),
            _ => {}
        }
    }

    fn dispatch(&mut self) {
        self.size = 0;
        let event = Sse {
            event: self.event.take(),
            data: self.data.take(),
            id: self.id.take(),
            retry: self.retry.take(),
        };
        if event != Sse::default() {
            self.ready.push_back(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "\u{feff}: hello\r\nevent: endpoint\rdata: /a\ndata: b\n\nid: 7\nretry: 5\ndata:x\r\n\r\n\n\ndata: cut";

    fn all(pieces: impl Iterator<Item = Vec<u8>>) -> Vec<Sse> {
        let mut events = Events::new(1000);
        let mut found = Vec::new();
        for piece in pieces {
            events.push(&piece).unwrap();
            found.extend(std::iter::from_fn(|| events.next()));
        }
        found
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(cuts in prop::collection::vec(1_usize..20, 1..60)) {
            let mut rest = TEXT.as_bytes();
            let mut pieces = Vec::new();
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece.to_vec());
                rest = after;
            }
            pieces.push(rest.to_vec());
            let expected = [
                Sse::default().event("endpoint").data("/a\nb"),
                Sse::default().id("7").retry(5).data("x"),
            ];
            prop_assert_eq!(all(pieces.into_iter()), expected);
        }
    }

    #[test]
    fn an_event_has_a_bound_and_a_stream_has_none() {
        let mut events = Events::new(10);
        for _ in 0..100 {
            events.push(b"data: 1\n\n").unwrap();
            assert!(events.next().is_some());
        }
        assert_eq!(events.push(b"data: 12345"), Err(TooLong(10)));
    }
}
