//! Puts calls together from their pieces, whichever way a provider numbers and names them.

use std::collections::HashSet;

use serde_json::Value;
use tidegate_core::{
    clock::Entropy,
    id::CallId,
    lenient::{RAW_CHARS_MAX, arguments_from_value, parse_arguments},
    message::Message,
    tool::{Arguments, ToolCall},
};

use crate::options::Limits;

/// The longest call id that is kept; a longer one is replaced.
const ID_BYTES_MAX: usize = 256;
/// The longest tool name that is kept. No tool of ours or of the contract has a longer one.
const NAME_BYTES_MAX: usize = 256;

/// The calls of one answer.
#[derive(Debug)]
pub(super) struct Calls {
    slots: Vec<Slot>,
    dropped: usize,
    taken: HashSet<String>,
    slots_max: usize,
    arguments_bytes_max: usize,
}

/// One call in the making.
#[derive(Debug, Default)]
struct Slot {
    index: Option<u64>,
    id: String,
    name: String,
    text: String,
    object: Option<Value>,
    too_long: bool,
}

/// A piece of a call as it arrived.
#[derive(Debug, Default)]
struct Piece<'a> {
    index: Option<u64>,
    id: &'a str,
    name: &'a str,
    arguments: Option<&'a Value>,
}

/// Where a piece belongs.
enum Place {
    Slot(usize),
    New,
}

impl Calls {
    /// The calls of an answer to `history`, whose call ids are taken: some models begin each reply at `call_0`.
    pub(super) fn new(limits: &Limits, history: &[Message]) -> Self {
        let earlier = history.iter().flat_map(|message| match message {
            Message::Assistant { calls, .. } => calls.as_slice(),
            Message::Human { .. }
            | Message::ClientSystem { .. }
            | Message::Tool { .. }
            | Message::Harness { .. }
            | Message::Recalled { .. } => &[],
        });
        Self {
            slots: Vec::new(),
            dropped: 0,
            taken: earlier.map(|call| call.id.as_str().to_owned()).collect(),
            slots_max: limits.calls_max,
            arguments_bytes_max: limits.arguments_bytes_max,
        }
    }

    /// Takes an element of `tool_calls`; says how many bytes it added.
    pub(super) fn push(&mut self, call: &Value) -> usize {
        let piece = Piece::read(call);
        let place = self.place(&piece);
        self.add(&place, &piece)
    }

    /// Takes a call that is whole.
    pub(super) fn push_whole(&mut self, call: &Value) -> usize {
        self.add(&Place::New, &Piece::read(call))
    }

    /// Takes the legacy `function_call`, of which there is only one.
    pub(super) fn push_legacy(&mut self, call: &Value) -> usize {
        let piece = Piece {
            index: Some(0),
            name: text(call.get("name")),
            arguments: call.get("arguments"),
            ..Piece::default()
        };
        let place = self.place(&piece);
        self.add(&place, &piece)
    }

    /// The calls, whole: every one has a name, and an id of its own.
    pub(super) fn take(&mut self, entropy: &dyn Entropy) -> Vec<ToolCall> {
        if self.dropped > 0 {
            tracing::warn!(
                dropped = self.dropped,
                calls_max = self.slots_max,
                "a model issued too many calls at once"
            );
        }
        let mut taken = std::mem::take(&mut self.taken);
        let slots = std::mem::take(&mut self.slots);
        slots
            .into_iter()
            .filter(|slot| {
                if slot.name.is_empty() {
                    tracing::warn!("a model issued a call that names no tool");
                }
                !slot.name.is_empty()
            })
            .map(|slot| {
                let usable = is_wire_id(&slot.id) && taken.insert(slot.id.clone());
                let id = if usable {
                    CallId::new(slot.id.clone())
                } else {
                    CallId::generate(entropy)
                };
                slot.into_call(id, self.arguments_bytes_max)
            })
            .collect()
    }

    fn place(&self, piece: &Piece<'_>) -> Place {
        let last = |found: &dyn Fn(&Slot) -> bool| self.slots.iter().rposition(found);
        let by_index = piece
            .index
            .and_then(|index| last(&|slot| slot.index == Some(index)));
        if let Some(at) = by_index {
            return self
                .slots
                .get(at)
                .map_or(Place::New, |slot| slot.continued_by(piece, at));
        }
        if !piece.id.is_empty() {
            if let Some(at) = last(&|slot| slot.id == piece.id) {
                return self
                    .slots
                    .get(at)
                    .filter(|slot| !slot.shares_id_with(piece))
                    .map_or(Place::New, |slot| slot.continued_by(piece, at));
            }
            return Place::New;
        }
        match (piece.index, self.slots.last()) {
            // Without index and id, a piece goes on with the newest call, unless it opens another one.
            (None, Some(slot)) if piece.name.is_empty() || slot.name.is_empty() => {
                Place::Slot(self.slots.len() - 1)
            }
            (Some(_) | None, _) => Place::New,
        }
    }

    fn add(&mut self, place: &Place, piece: &Piece<'_>) -> usize {
        let at = match place {
            Place::Slot(at) => *at,
            Place::New => {
                if self.slots.len() >= self.slots_max {
                    self.dropped += 1;
                    return 0;
                }
                self.slots.push(Slot {
                    index: piece.index,
                    ..Slot::default()
                });
                self.slots.len() - 1
            }
        };
        let bytes_max = self.arguments_bytes_max;
        self.slots
            .get_mut(at)
            .map_or(0, |slot| slot.add(piece, bytes_max))
    }
}

impl<'a> Piece<'a> {
    fn read(call: &'a Value) -> Self {
        let function = call
            .get("function")
            .filter(|function| function.is_object())
            .unwrap_or(call);
        Self {
            index: call
                .get("index")
                .or_else(|| function.get("index"))
                .and_then(Value::as_u64),
            id: text(call.get("id")),
            name: text(function.get("name")),
            arguments: function.get("arguments").filter(|arguments| !arguments.is_null()),
        }
    }
}

impl Slot {
    /// Whether a piece that points at this slot goes on with it, or opens another call under the same number.
    fn continued_by(&self, piece: &Piece<'_>, at: usize) -> Place {
        let other_id = !piece.id.is_empty() && !self.id.is_empty() && piece.id != self.id;
        let same_id = !piece.id.is_empty() && piece.id == self.id;
        let opens_anew = !piece.name.is_empty() && !self.name.is_empty() && !same_id && self.is_complete();
        if other_id || opens_anew {
            Place::New
        } else {
            Place::Slot(at)
        }
    }

    /// Whether a piece of this slot's id and of a number nobody has used opens another call all the same: some
    /// servers give every call of an answer one id. Others count the pieces of one call.
    fn shares_id_with(&self, piece: &Piece<'_>) -> bool {
        let other_number = piece.index.is_some() && self.index.is_some() && piece.index != self.index;
        let has_names = !piece.name.is_empty() && !self.name.is_empty();
        other_number && has_names && (piece.name.trim() != self.name || self.is_complete())
    }

    fn is_complete(&self) -> bool {
        // Asked for every piece, so the cheap test comes first.
        self.object.is_some()
            || (self.text.trim_end().ends_with('}') && parse_arguments(&self.text).object().is_some())
    }

    fn add(&mut self, piece: &Piece<'_>, bytes_max: usize) -> usize {
        if self.id.is_empty() {
            piece.id.clone_into(&mut self.id);
        }
        // A name that is repeated in a later piece is the same name, never its continuation.
        if self.name.is_empty() && piece.name.len() <= NAME_BYTES_MAX {
            piece.name.trim().clone_into(&mut self.name);
        }
        match piece.arguments {
            None => 0,
            Some(Value::String(text)) => self.add_text(text, bytes_max),
            Some(value) => {
                let bytes = value.to_string().len();
                if bytes > bytes_max {
                    self.too_long = true;
                } else {
                    self.object = Some(value.clone());
                }
                bytes
            }
        }
    }

    fn add_text(&mut self, text: &str, bytes_max: usize) -> usize {
        // Some servers close a call by sending its whole arguments once more.
        let repeats = text.len() > 2 && text == self.text && text.starts_with('{') && self.is_complete();
        if self.too_long || repeats {
            return 0;
        }
        if self.text.len() + text.len() > bytes_max {
            self.too_long = true;
            return 0;
        }
        self.text.push_str(text);
        text.len()
    }

    fn into_call(self, id: CallId, bytes_max: usize) -> ToolCall {
        let arguments = if self.too_long {
            Arguments::Unparsable {
                raw: self.text.chars().take(RAW_CHARS_MAX).collect(),
                problem: format!("longer than {bytes_max} bytes"),
            }
        } else {
            self.object
                .map_or_else(|| parse_arguments(&self.text), arguments_from_value)
        };
        ToolCall {
            id,
            name: self.name,
            arguments,
        }
    }
}

fn is_wire_id(id: &str) -> bool {
    (1..=ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
