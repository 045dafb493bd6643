//! Secrets are taken out of every log line on its way to the disk or the console, also out of what was never meant
//! to be logged: the message of a panic, a question in the triage log.
//!
//! The threads that write the lines do it, so that nobody who logs waits for it.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

use serde_json::Value;
use tidegate_core::port::LineLog;
use tidegate_gate::guards::secrets::Redactor;

/// What stands for a line that is no JSON any more once its secrets are gone.
const LOST: &str = r#"{"level":"WARN","fields":{"message":"a line was left out: it held a secret"}}"#;

/// What the lines of a log are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Text for people.
    Text,
    /// One JSON object each.
    Json,
}

/// The redactor, once the secrets are known: logging begins before that.
#[derive(Debug, Clone, Default)]
pub(super) struct Masks(Arc<OnceLock<Arc<Redactor>>>);

impl Masks {
    /// From here on. The first redactor stays.
    pub(super) fn set(&self, redactor: Arc<Redactor>) {
        drop(self.0.set(redactor));
    }

    /// Whole lines without their secrets.
    pub(super) fn clean<'l>(&self, lines: &'l [u8], form: Form) -> Cow<'l, [u8]> {
        let Some(redactor) = self.0.get() else {
            return Cow::Borrowed(lines);
        };
        // What is logged is text; whatever else got in is made text, too.
        let text = String::from_utf8_lossy(lines);
        let mut clean = String::new();
        let mut written = 0;
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let body = line.strip_suffix('\n').unwrap_or(line);
            if let Cow::Owned(masked) = redactor.redact(body) {
                clean.push_str(text.get(written..at).unwrap_or_default());
                match form {
                    Form::Text => clean.push_str(&masked),
                    Form::Json => clean.push_str(&masked_json(redactor, body)),
                }
                written = at + body.len();
            }
            at += line.len();
        }
        if written == 0 {
            return match text {
                Cow::Borrowed(_) => Cow::Borrowed(lines),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            };
        }
        clean.push_str(text.get(written..).unwrap_or_default());
        Cow::Owned(clean.into_bytes())
    }
}

/// A JSON line without its secrets, which stays one.
fn masked_json(redactor: &Redactor, line: &str) -> String {
    match serde_json::from_str::<Value>(line) {
        Ok(mut value) => {
            redactor.redact_json(&mut value);
            value.to_string()
        }
        Err(_) => LOST.to_owned(),
    }
}

/// A log of JSON lines without the secrets in them.
#[derive(Debug)]
pub struct Masked {
    log: Arc<dyn LineLog>,
    redactor: Arc<Redactor>,
}

impl Masked {
    /// In front of this log.
    pub fn new(log: Arc<dyn LineLog>, redactor: Arc<Redactor>) -> Self {
        Self { log, redactor }
    }
}

impl LineLog for Masked {
    fn append(&self, line: String) {
        let line = match self.redactor.redact(&line) {
            Cow::Borrowed(_) => line,
            Cow::Owned(_) => masked_json(&self.redactor, &line),
        };
        self.log.append(line);
    }

    fn dropped(&self) -> u64 {
        self.log.dropped()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tidegate_core::secret::Secret;

    use super::*;

    const SECRET: &str = "abc\"def-0123456789";

    fn masks() -> Masks {
        let masks = Masks::default();
        masks.set(Arc::new(Redactor::new([Secret::new(SECRET)]).unwrap()));
        masks
    }

    #[test]
    fn lines_lose_their_secrets_and_nothing_else() {
        let masks = masks();
        let line = |text: &str| Value::from(text).to_string();
        let lines = format!(
            "{}\n{}\n{}\n",
            line("one"),
            line(&format!("a {SECRET} b")),
            line("ü\\n")
        );
        let clean = masks.clean(lines.as_bytes(), Form::Json).into_owned();
        let clean = String::from_utf8(clean).unwrap();
        assert_eq!(
            clean,
            format!("{}\n{}\n{}\n", line("one"), line("a [redacted] b"), line("ü\\n"))
        );
        let text = format!("one\ntwo {SECRET}\nthree");
        assert_eq!(
            &*masks.clean(text.as_bytes(), Form::Text),
            b"one\ntwo [redacted]\nthree"
        );
        assert!(matches!(masks.clean(b"one\ntwo\n", Form::Text), Cow::Borrowed(_)));
        assert!(matches!(
            Masks::default().clean(text.as_bytes(), Form::Text),
            Cow::Borrowed(_)
        ));
        let broken = format!("{{\"a\": {SECRET}\n");
        assert_eq!(
            masks.clean(broken.as_bytes(), Form::Json).strip_suffix(b"\n"),
            Some(LOST.as_bytes())
        );
    }

    #[derive(Debug, Default)]
    struct Kept(Mutex<Vec<String>>);

    impl LineLog for Kept {
        fn append(&self, line: String) {
            self.0.lock().unwrap().push(line);
        }

        fn dropped(&self) -> u64 {
            3
        }
    }

    #[test]
    fn a_masked_log_keeps_lines_whole() {
        let kept = Arc::new(Kept::default());
        let redactor = Arc::new(Redactor::new([Secret::new(SECRET)]).unwrap());
        let log = Masked::new(Arc::clone(&kept) as _, redactor);
        log.append(serde_json::json!({"query": format!("is {SECRET} mine?")}).to_string());
        log.append("{\"query\":\"hello\"}".to_owned());
        assert_eq!(log.dropped(), 3);
        assert_eq!(
            *kept.0.lock().unwrap(),
            ["{\"query\":\"is [redacted] mine?\"}", "{\"query\":\"hello\"}"]
        );
    }
}
