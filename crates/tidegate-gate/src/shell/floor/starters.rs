//! Programs that start another one again and again, with words that come from elsewhere.

use super::{Walk, wrappers::joined};
use crate::shell::shape::{Output, Shape, UNKNOWN};

impl Walk<'_> {
    /// `find … -exec COMMAND ;`
    pub(super) fn find(&mut self, name: &str, words: &[Shape], stdin: &Output) {
        let starts = [
            "-exec",
            "-execdir",
            "-ok",
            "-okdir",
            "-x",
            "-X",
            "--exec",
            "--exec-batch",
        ];
        let mut at = 0;
        while let Some(word) = words.get(at) {
            at += 1;
            let text = word.text.as_str();
            let is_start = starts.contains(&text)
                || (name == "find" && word.is_unknown() && text.starts_with(['-', UNKNOWN]));
            if is_start {
                let rest = words.get(at..).unwrap_or_default();
                let length = rest
                    .iter()
                    .position(|word| matches!(word.text.as_str(), ";" | "+"))
                    .unwrap_or(rest.len());
                let command = rest.get(..length).unwrap_or_default();
                self.invoke(command, stdin);
            }
        }
    }

    /// `xargs COMMAND`: what flows in becomes words.
    /// What `xargs` and `parallel` make words of: a file that an option names, or what flows in.
    pub(super) fn arguments_from(&self, words: &[Shape], inner: &[Shape], stdin: &Output) -> Output {
        let own = words
            .get(..words.len().saturating_sub(inner.len()))
            .unwrap_or_default();
        for (at, word) in own.iter().enumerate() {
            let text = word.text.as_str();
            let is_next = |word: &Shape| matches!(word.text.as_str(), "-a" | "--arg-file");
            let file = text
                .strip_prefix("--arg-file=")
                .or_else(|| text.strip_prefix("-a").filter(|file| !file.is_empty()))
                .or_else(|| (at > 0 && own.get(at - 1).is_some_and(is_next)).then_some(text));
            if let Some(file) = file {
                return if word.is_stream {
                    word.origin.clone().unwrap_or_default()
                } else if self.could_be_input(&Shape::literal(file)) {
                    stdin.clone()
                } else {
                    self.held(file)
                };
            }
        }
        stdin.clone()
    }

    pub(super) fn xargs(&mut self, words: &[Shape], inner: &[Shape], stdin: &Output) -> Output {
        let mark = words.iter().enumerate().find_map(|(at, word)| {
            let value = word.text.strip_prefix("-I")?;
            if value.is_empty() {
                words.get(at + 1).map(|word| word.text.clone())
            } else {
                Some(value.to_owned())
            }
        });
        let (text, origin) = match stdin {
            Output::Known(text) => (text.trim_end().to_owned(), None),
            Output::Download | Output::Decoded | Output::Other => (UNKNOWN.to_string(), Some(stdin.clone())),
        };
        let mut command: Vec<Shape> = inner.to_vec();
        if let Some(mark) = mark.filter(|mark| !mark.is_empty()) {
            for word in &mut command {
                if word.text.contains(&mark) {
                    word.text = word.text.replace(&mark, &text);
                    word.origin = word.origin.take().or_else(|| origin.clone());
                }
            }
        } else if origin.is_some() {
            command.push(Shape {
                text,
                origin,
                may_split: true,
                ..Shape::default()
            });
        } else {
            let is_whole = words
                .iter()
                .any(|word| word.text.starts_with("-0") || word.text == "--null");
            if is_whole {
                command.extend(text.split('\0').map(Shape::literal));
            } else {
                command.extend(text.split_ascii_whitespace().map(Shape::literal));
            }
        }
        self.invoke(&command, &Output::Other)
    }

    pub(super) fn parallel(&mut self, inner: &[Shape], stdin: &Output) -> Output {
        let end = inner
            .iter()
            .position(|word| word.text.starts_with(":::"))
            .unwrap_or(inner.len());
        let (command, inputs) = inner.split_at(end.min(inner.len()));
        if command.is_empty() {
            for input in inputs.iter().skip(1) {
                self.payload(&input.text, stdin, false);
            }
            return self.text_from(stdin);
        }
        let text = joined(command);
        self.payload(&text, stdin, false);
        let mut whole = command.to_vec();
        whole.extend(
            inputs
                .iter()
                .filter(|word| !word.text.starts_with(":::"))
                .cloned(),
        );
        self.invoke(&whole, stdin)
    }
}
