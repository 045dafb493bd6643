//! Log lines as JSON, one object a line, in the shape of `tracing-subscriber`'s own: `timestamp`, `level`,
//! `fields`, `target`, and the spans that the event stands in.
//!
//! Every request ends with such a line. A span's fields are therefore turned into text once, as they come, and
//! copied into the line; the library's own formatter reads and writes the whole span anew for each field that
//! is recorded later, and for each line.

use std::{
    fmt::{self, Write as _},
    io::Write as _,
};

use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer,
    fmt::{
        MakeWriter as _,
        format::Writer,
        time::{FormatTime as _, SystemTime},
    },
    layer::Context,
    registry::LookupSpan,
};

use super::queue::Queue;

/// Bytes that a line is expected to have; a longer one grows.
const LINE_BYTES: usize = 1 << 10;

/// Writes each event as one line.
#[derive(Debug)]
pub(super) struct Lines {
    queue: Queue,
}

impl Lines {
    pub(super) fn new(queue: Queue) -> Self {
        Self { queue }
    }
}

impl<S> Layer<S> for Lines
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let line = line(event, &context);
        // The queue is memory; it counts what it has no room for.
        drop(self.queue.make_writer().write_all(line.as_bytes()));
    }
}

/// A line about a panic, made without asking anything that the thread may have been in the middle of.
pub(super) fn panic_line(message: &str, location: &str) -> String {
    let mut line = opened("ERROR");
    line.push_str("{\"message\":\"a thread panicked\",\"panic\":");
    quoted(message, &mut line);
    line.push_str(",\"location\":");
    quoted(location, &mut line);
    line.push_str("},\"target\":\"tidegate::panic\"}\n");
    line
}

/// The beginning of a line, up to its fields.
fn opened(level: &str) -> String {
    let mut line = String::with_capacity(LINE_BYTES);
    line.push_str("{\"timestamp\":\"");
    // Its text is digits and punctuation; a clock that cannot be written leaves it empty.
    SystemTime
        .format_time(&mut Writer::new(&mut line))
        .unwrap_or_default();
    line.push_str("\",\"level\":\"");
    line.push_str(level);
    line.push_str("\",\"fields\":");
    line
}

fn line<S>(event: &Event<'_>, context: &Context<'_, S>) -> String
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let metadata = event.metadata();
    let mut line = opened(metadata.level().as_str());
    let mut fields = Fields::default();
    event.record(&mut fields);
    fields.write(None, &mut line);
    line.push_str(",\"target\":");
    quoted(metadata.target(), &mut line);
    if let Some(leaf) = context.event_span(event) {
        let write = |span: &tracing_subscriber::registry::SpanRef<'_, S>, line: &mut String| {
            let extensions = span.extensions();
            match extensions.get::<Fields>() {
                Some(fields) => fields.write(Some(span.name()), line),
                None => Fields::default().write(Some(span.name()), line),
            }
        };
        line.push_str(",\"span\":");
        write(&leaf, &mut line);
        line.push_str(",\"spans\":[");
        for (number, span) in leaf.scope().from_root().enumerate() {
            if number > 0 {
                line.push(',');
            }
            write(&span, &mut line);
        }
        line.push(']');
    }
    line.push_str("}\n");
    line
}

/// The fields of a span or an event, as the members of an object.
#[derive(Debug, Default)]
struct Fields {
    /// `"name":value,` for each.
    text: String,
    /// Where each begins.
    starts: Vec<(&'static str, usize)>,
}

impl Fields {
    /// The object; `name` is its last member.
    fn write(&self, name: Option<&'static str>, line: &mut String) {
        line.push('{');
        match name {
            Some(name) => {
                line.push_str(&self.text);
                line.push_str("\"name\":");
                quoted(name, line);
            }
            None => line.push_str(self.text.strip_suffix(',').unwrap_or(&self.text)),
        }
        line.push('}');
    }

    /// Adds a member; of the same name only the newest stays.
    fn add(&mut self, field: &Field, value: impl FnOnce(&mut String)) {
        let name = field.name();
        self.remove(name);
        self.starts.push((name, self.text.len()));
        quoted(name.strip_prefix("r#").unwrap_or(name), &mut self.text);
        self.text.push(':');
        value(&mut self.text);
        self.text.push(',');
    }

    fn remove(&mut self, name: &str) {
        let Some(at) = self.starts.iter().position(|(known, _)| *known == name) else {
            return;
        };
        let (_, start) = self.starts.remove(at);
        let end = self.starts.get(at).map_or(self.text.len(), |(_, next)| *next);
        self.text.replace_range(start..end, "");
        for (_, later) in self.starts.iter_mut().skip(at) {
            *later -= end - start;
        }
    }

    fn add_shown(&mut self, field: &Field, value: impl fmt::Display) {
        // Writing into a string fails only where a value's own formatting does; what it wrote stays.
        self.add(field, |text| write!(text, "{value}").unwrap_or_default());
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            // With its `.0`, so that it stays a fraction.
            self.add_shown(field, format_args!("{value:?}"));
        } else {
            self.add(field, |text| text.push_str("null"));
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add_shown(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add_shown(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add_shown(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, |text| quoted(value, text));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, |text| {
            text.push('"');
            // As above: a value that fails to format itself leaves what it wrote.
            write!(Escaped(text), "{value:?}").unwrap_or_default();
            text.push('"');
        });
    }
}

/// `value` as a JSON string.
fn quoted(value: &str, text: &mut String) {
    text.push('"');
    escape(value, text);
    text.push('"');
}

/// Text on its way into a JSON string.
struct Escaped<'a>(&'a mut String);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        escape(part, self.0);
        Ok(())
    }
}

/// What RFC 8259, section 7, has escaped: the quotation mark, the backslash, and control characters.
fn escape(mut part: &str, text: &mut String) {
    let special = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    while let Some(at) = part.bytes().position(special) {
        // A special byte is a character of its own, so that both cuts are at characters.
        let (plain, rest) = part.split_at(at);
        text.push_str(plain);
        let mut characters = rest.chars();
        match characters.next() {
            Some('"') => text.push_str("\\\""),
            Some('\\') => text.push_str("\\\\"),
            Some('\n') => text.push_str("\\n"),
            Some('\r') => text.push_str("\\r"),
            Some('\t') => text.push_str("\\t"),
            Some(control) => write!(text, "\\u{:04x}", u32::from(control)).unwrap_or_default(),
            None => {}
        }
        part = characters.as_str();
    }
    text.push_str(part);
}

#[cfg(test)]
mod tests;
