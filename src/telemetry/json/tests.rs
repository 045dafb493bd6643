use std::{
    io,
    sync::{Arc, Mutex},
};

use proptest::prelude::*;
use serde_json::{Value, json};
use tracing_subscriber::{fmt::MakeWriter, layer::SubscriberExt as _};

use super::*;
use crate::telemetry::{
    filter,
    masks::{Form, Masks},
    queue,
};

/// A file in memory.
#[derive(Debug, Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Sink {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

impl Sink {
    fn lines(&self) -> Vec<Value> {
        let bytes = self.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'));
        text.lines()
            .map(|line| serde_json::from_str(line).expect(line))
            .map(|mut line: Value| {
                let timestamp = line["timestamp"].take();
                assert!(timestamp.as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
                line
            })
            .collect()
    }
}

/// What `log` writes, in our form and in the library's.
fn both(log: impl Fn()) -> (Vec<Value>, Vec<Value>) {
    let (ours, theirs) = (Sink::default(), Sink::default());
    let (writer, drain) = queue::start("test-log", ours.clone(), Form::Json, Masks::default()).unwrap();
    let library = tracing_subscriber::fmt::layer()
        .json()
        .with_writer(theirs.clone());
    let subscriber = tracing_subscriber::registry()
        .with(Lines::new(writer).with_filter(filter("info").unwrap()))
        .with(library.with_filter(filter("info").unwrap()));
    tracing::subscriber::with_default(subscriber, log);
    drop(drain);
    (ours.lines(), theirs.lines())
}

fn a_day() {
    let request = tracing::info_span!(
        "request",
        request_id = "req_1",
        method = %"POST",
        absent = tracing::field::Empty,
        key_id = tracing::field::Empty,
        quoted = ?"a \"b\"\n\u{1}",
    );
    request.in_scope(|| {
        tracing::info!("plain");
        request.record("key_id", "k1");
        tracing::info!(status = 200_u64, latency = %"1 ms", ratio = 0.5, whole = 2.0, yes = true, less = -3, "done");
        let inner = tracing::info_span!("engine.run", run.id = %"run_1");
        inner.in_scope(|| tracing::warn!(error = &io::Error::other("a \\ b") as &dyn std::error::Error, "inner"));
        tracing::debug_span!("unseen").in_scope(|| tracing::info!("under one that is filtered"));
    });
    tracing::error!(nothing = f64::NAN, r#type = "t", "ünïcödé \u{7f}\t");
    tracing::debug!("not at this level");
    tracing::info!(alone = 1);
}

#[test]
fn lines_say_what_the_librarys_own_would() {
    let (ours, theirs) = both(a_day);
    assert_eq!(ours.len(), 6);
    assert_eq!(ours, theirs);
    assert_eq!(
        ours[1],
        json!({
            "timestamp": null, "level": "INFO", "target": "tidegate::telemetry::json::tests",
            "fields": {"message": "done", "status": 200, "latency": "1 ms", "ratio": 0.5, "whole": 2.0,
                "yes": true, "less": -3},
            "span": {"request_id": "req_1", "method": "POST", "key_id": "k1",
                "quoted": "\"a \\\"b\\\"\\n\\u{1}\"", "name": "request"},
            "spans": [{"request_id": "req_1", "method": "POST", "key_id": "k1",
                "quoted": "\"a \\\"b\\\"\\n\\u{1}\"", "name": "request"}],
        })
    );
}

#[test]
fn a_field_that_is_recorded_again_takes_the_place_of_the_first() {
    let (ours, theirs) = both(|| {
        let span = tracing::info_span!("s", first = 1, second = "two", third = 3);
        span.record("first", 10);
        span.record("third", 30);
        span.record("first", 11);
        span.in_scope(|| tracing::info!("seen"));
    });
    assert_eq!(
        ours[0]["span"],
        json!({"first": 11, "second": "two", "third": 30, "name": "s"})
    );
    assert_eq!(ours, theirs);
}

proptest! {
    #[test]
    fn any_text_comes_back_from_a_line(text in any::<String>()) {
        let mut written = String::new();
        quoted(&text, &mut written);
        prop_assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
        prop_assert!(!written.bytes().any(|byte| byte < 0x20), "{written:?} is one line");
    }
}
