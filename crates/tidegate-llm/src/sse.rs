//! Reads an event stream (WHATWG HTML, "Server-sent events", section 9.2.6), tolerantly and within bounds.

use crate::lines::{Lines, TooLong};

/// The longest event, in bytes. A whole call with long arguments is one event.
const EVENT_BYTES_MAX: usize = 16 << 20;

/// One event that carries data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its name; empty where it has none.
    pub(crate) name: String,
    /// Its data lines, joined by line breaks.
    pub(crate) data: String,
}

/// The reader.
#[derive(Debug)]
pub(crate) struct Events {
    lines: Lines,
    name: String,
    data: String,
    has_data: bool,
    ended: bool,
}

impl Events {
    /// A reader at the beginning of a stream.
    pub(crate) fn new() -> Self {
        Self::bounded(EVENT_BYTES_MAX)
    }

    fn bounded(bytes_max: usize) -> Self {
        Self {
            lines: Lines::new(bytes_max),
            name: String::new(),
            data: String::new(),
            has_data: false,
            ended: false,
        }
    }

    /// Takes a piece of the stream.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), TooLong> {
        self.lines.push(piece)
    }

    /// Takes the end of the stream. Strictly an event without its blank line is void; servers that forget
    /// the blank line mean the event.
    pub(crate) fn finish(&mut self) {
        self.lines.finish();
        self.ended = true;
    }

    /// The next complete event with data.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, TooLong> {
        while let Some(line) = self.lines.next() {
            if line.is_empty() {
                if let Some(event) = self.dispatch() {
                    return Ok(Some(event));
                }
                continue;
            }
            self.field(&line)?;
        }
        Ok(if self.ended { self.dispatch() } else { None })
    }

    fn field(&mut self, line: &str) -> Result<(), TooLong> {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.data.len() + value.len() >= self.lines.bytes_max() {
                    return Err(TooLong);
                }
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.name),
            // Comments have an empty field name; `id` and `retry` are of no use here.
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self) -> Option<Event> {
        let name = std::mem::take(&mut self.name);
        let data = std::mem::take(&mut self.data);
        self.has_data = false;
        (!data.is_empty()).then_some(Event { name, data })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<Event> {
        let mut events = Events::new();
        let mut seen = Vec::new();
        for piece in pieces {
            events.push(piece).unwrap();
            while let Some(event) = events.next().unwrap() {
                seen.push(event);
            }
        }
        events.finish();
        while let Some(event) = events.next().unwrap() {
            seen.push(event);
        }
        seen
    }

    fn data(text: &str) -> Vec<String> {
        read(&[text.as_bytes()])
            .into_iter()
            .map(|event| event.data)
            .collect()
    }

    #[test]
    fn framing_is_read_as_servers_write_it() {
        let rows: [(&str, &[&str]); 10] = [
            ("data: a\n\ndata: b\n\n", &["a", "b"]),
            ("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]),
            ("data: a\r\rdata: b\r\r", &["a", "b"]),
            ("data:a\n\n", &["a"]),
            (": comment\n\ndata: a\n: in between\n\n", &["a"]),
            ("data: a\ndata: b\n\n", &["a\nb"]),
            ("data: a\n\ndata: unfinished", &["a", "unfinished"]),
            ("\u{feff}data: a\n\n", &["a"]),
            ("id: 1\nretry: 5\ndata: a\nnonsense\n\n", &["a"]),
            ("data:\n\ndata\n\n\n\n", &[]),
        ];
        for (text, expected) in rows {
            assert_eq!(data(text), expected, "{text:?}");
        }
        let named = read(&[b"event: error\ndata: x\n\n"]);
        assert_eq!(named.first().map(|event| event.name.as_str()), Some("error"));
    }

    #[test]
    fn lines_and_events_have_a_bound() {
        let mut events = Events::bounded(64);
        assert_eq!(events.push(&[b'x'; 65]), Err(TooLong));
        let mut events = Events::bounded(64);
        for _ in 0..10 {
            events.push(b"data: 0123456789\n").unwrap();
        }
        assert_eq!(events.next(), Err(TooLong));
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_events(
            text in "(data: ?[a-zé✿:]{0,4}|: c|event: x|)((\r\n|\n|\r)(data: ?[é✿😀{}\"]{0,4}|: c|id: 1|)){0,12}",
            cuts in proptest::collection::vec(0_usize..200, 0..8),
        ) {
            let whole = read(&[text.as_bytes()]);
            let mut at: Vec<usize> = cuts.into_iter().map(|cut| cut % (text.len() + 1)).collect();
            at.sort_unstable();
            at.push(text.len());
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in at {
                pieces.push(&text.as_bytes()[from..cut]);
                from = cut;
            }
            prop_assert_eq!(read(&pieces), whole);
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            read(&[&bytes]);
        }
    }
}
