//! Filling in words.

use std::{
    io::{self, Read},
    path::PathBuf,
};

use tidegate_gate::shell::{Argument, Node, Part, found_argument};

use super::{State, World, glob};

/// The most bytes that the output of a line adds to a word.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;

/// A letter of a word, or a pattern in it.
pub(super) enum Letter {
    Text(String),
    Wildcard(String),
}

/// A word that is being filled in.
#[derive(Default)]
struct Words {
    done: Vec<Vec<Letter>>,
    open: Option<Vec<Letter>>,
}

impl Words {
    fn push(&mut self, letter: Letter) {
        self.open.get_or_insert_default().push(letter);
    }

    /// Blanks end words; at its edges they end what stands before and behind.
    fn push_split(&mut self, text: &str) {
        let blanks = [' ', '\t', '\n'];
        let mut parts = text.split(blanks).peekable();
        while let Some(part) = parts.next() {
            if !part.is_empty() {
                self.push(Letter::Text(part.to_owned()));
            }
            if parts.peek().is_some() {
                self.done.extend(self.open.take());
            }
        }
    }

    fn end(mut self) -> Vec<Vec<Letter>> {
        self.done.extend(self.open.take());
        self.done
    }
}

impl World<'_> {
    /// The arguments that a word becomes.
    pub(super) fn expand(self, argument: &Argument, state: &mut State) -> Vec<String> {
        let mut words = Words::default();
        for part in &argument.parts {
            match part {
                Part::Text(text) => words.push(Letter::Text(text.clone())),
                Part::Wildcard(text) => words.push(Letter::Wildcard(text.clone())),
                Part::Status => words.push(Letter::Text(state.status.to_string())),
                Part::Variable { name, is_split } => {
                    let value = state.variables.get(name).cloned().unwrap_or_default();
                    fill(&mut words, value, *is_split);
                }
                Part::Output { node, is_split } => {
                    let value = self.output(node, state);
                    fill(&mut words, value, *is_split);
                }
                Part::Stream(node) => match self.stream(node, state) {
                    Ok(path) => words.push(Letter::Text(path.display().to_string())),
                    Err(problem) => state.complain("stream", &problem),
                },
            }
        }
        words
            .end()
            .into_iter()
            .flat_map(|letters| {
                let found = glob::find(&state.folder, &letters);
                if found.is_empty() {
                    vec![as_written(&letters)]
                } else {
                    found.iter().map(|name| found_argument(name)).collect()
                }
            })
            .collect()
    }

    /// A word that stays one.
    pub(super) fn text(self, argument: &Argument, state: &mut State) -> String {
        self.expand(argument, state).join(" ")
    }

    /// What a line prints, without the line ends at its end.
    fn output(self, node: &Node, state: &mut State) -> String {
        let printed = self.printed(node, state, |reader| {
            let mut bytes = Vec::new();
            // What cannot be read is missing; what is too long is cut, and its writer ends.
            drop(reader.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes));
            bytes
        });
        match printed {
            Ok(bytes) => String::from_utf8_lossy(&bytes)
                .trim_end_matches('\n')
                .replace('\0', ""),
            Err(problem) => {
                state.complain("output", &problem);
                String::new()
            }
        }
    }

    /// What a line prints, as a file in the private folder: read once or many times, it is all there.
    pub(super) fn stream(self, node: &Node, state: &mut State) -> io::Result<PathBuf> {
        let private = self.environment.iter().find(|(name, _)| name == "TMPDIR");
        let folder = private.map_or_else(PathBuf::new, |(_, folder)| PathBuf::from(folder));
        // Kept: the folder goes as a whole when the run is over.
        let (mut file, path) = tempfile::Builder::new()
            .prefix(".stream-")
            .tempfile_in(folder)?
            .keep()?;
        self.printed(node, state, move |mut reader| io::copy(&mut reader, &mut file))??;
        Ok(path)
    }
}

fn fill(words: &mut Words, value: String, is_split: bool) {
    if is_split {
        words.push_split(&value);
    } else {
        words.push(Letter::Text(value));
    }
}

fn as_written(letters: &[Letter]) -> String {
    letters
        .iter()
        .map(|letter| match letter {
            Letter::Text(text) | Letter::Wildcard(text) => text.as_str(),
        })
        .collect()
}
