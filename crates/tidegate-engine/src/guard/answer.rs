//! What the model says before anybody hears it: the prompt's text is not given away, and secrets are masked.
//!
//! Both hold back as little of a stream as they can, and what they let pass is the same however the model's
//! words were cut into pieces.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use tidegate_core::tool::{Arguments, ToolCall};
use tidegate_gate::guards::{
    prompt_leak::{self, Fingerprints, Passage},
    secrets,
    untrusted::Unmarked,
};

use super::citations::Citations;
use crate::{
    prompt::{Prompt, PromptPart},
    sources::Shown,
    turn::Turn,
};

/// Prompts whose fingerprints are kept. Agents have one, and one more for each skill.
const KEPT_MAX: usize = 16;

/// Fingerprints of prompts, by what the prompts are made of. They change only when a file does.
#[derive(Debug, Default)]
pub(crate) struct Prints {
    kept: Mutex<VecDeque<(String, Arc<Fingerprints>)>>,
}

impl Prints {
    /// The fingerprints of what is confidential in a prompt: its instructions and its skill. What the agent can do
    /// may be told to anybody, and what came from the client is the client's.
    pub(crate) fn of(&self, prompt: &Prompt) -> Arc<Fingerprints> {
        let parts: Vec<&PromptPart> = prompt
            .parts
            .iter()
            .filter(|part| matches!(part.name, "agent" | "skill"))
            .collect();
        let key: String = parts.iter().map(|part| part.hash.as_str()).collect();
        let lookup = |kept: &VecDeque<(String, Arc<Fingerprints>)>| {
            kept.iter()
                .find(|(known, _)| *known == key)
                .map(|(_, prints)| Arc::clone(prints))
        };
        if let Some(prints) = lookup(&self.kept.lock().unwrap_or_else(PoisonError::into_inner)) {
            return prints;
        }
        let prints = Arc::new(Fingerprints::of(parts.iter().map(|part| part.text.as_str())));
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if lookup(&kept).is_none() {
            kept.push_back((key, Arc::clone(&prints)));
            if kept.len() > KEPT_MAX {
                kept.pop_front();
            }
        }
        prints
    }
}

/// Guards one stream of the model's words.
#[derive(Debug)]
pub(crate) struct Answer {
    prompt: prompt_leak::Stream,
    secrets: secrets::Stream,
    unmarked: Unmarked,
    /// Absent where nobody can show a passage.
    citations: Option<(Citations, Arc<Shown>)>,
}

impl Answer {
    /// A guard of words. Those of a thought name no sources.
    pub(crate) fn of_words(turn: &Turn) -> Self {
        let shown = turn.shown.as_ref().map(Arc::clone);
        Self {
            citations: shown.map(|shown| (Citations::default(), shown)),
            ..Self::of_thoughts(turn)
        }
    }

    /// A guard of thoughts.
    pub(crate) fn of_thoughts(turn: &Turn) -> Self {
        Self {
            citations: None,
            prompt: prompt_leak::Stream::new(Arc::clone(&turn.prints)),
            secrets: secrets::Stream::new(Arc::clone(&turn.engine.parts().redactor)),
            unmarked: Unmarked::default(),
        }
    }

    /// Takes a piece and gives what may be heard now.
    pub(crate) fn push(&mut self, text: &str) -> Passage {
        match self.prompt.push(text) {
            Passage::Shown(text) => {
                let text = self.secrets.push(&text);
                let text = self.unmarked.push(&text);
                Passage::Shown(self.cited(text))
            }
            Passage::Leak => Passage::Leak,
        }
    }

    /// The text without citations that nobody has shown.
    fn cited(&mut self, text: String) -> String {
        match &mut self.citations {
            Some((citations, shown)) => citations.push(&text, |id| shown.name(id)),
            None => text,
        }
    }

    /// What is left when the model has ended.
    pub(crate) fn finish(&mut self) -> Passage {
        match self.prompt.finish() {
            Passage::Shown(text) => {
                let text = self.secrets.push(&text) + &self.secrets.finish();
                let text = self.unmarked.push(&text) + &self.unmarked.finish();
                let mut text = self.cited(text);
                if let Some((citations, shown)) = &mut self.citations {
                    text.push_str(&citations.finish(|id| shown.name(id)));
                }
                Passage::Shown(text)
            }
            Passage::Leak => Passage::Leak,
        }
    }
}

/// Masks secrets in a call that is handed to the client.
pub(crate) fn client_call(turn: &Turn, call: &mut ToolCall) {
    let redactor = turn.engine.redactor();
    match &mut call.arguments {
        Arguments::Object(members) => {
            let mut value = serde_json::Value::Object(std::mem::take(members));
            redactor.redact_json(&mut value);
            if let serde_json::Value::Object(masked) = value {
                *members = masked;
            }
        }
        Arguments::Unparsable { raw, .. } => *raw = redactor.redact(raw).into_owned(),
    }
}
