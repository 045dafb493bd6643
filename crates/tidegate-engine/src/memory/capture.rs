//! What a turn leaves to be learned from: the person's newest words, which turn they were, and what else was in sight.
//!
//! A row is queued before the answer's last event goes out, so that an answer that was acknowledged has its row. Nothing
//! is read closely here: that is the worker's.

use jiff::civil::Date;
use sha2::{Digest as _, Sha256};
use tidegate_core::{
    caller::Origin,
    clock::Timestamp,
    message::{Message, Source},
    port::{CAPTURE_BYTES_MAX, Capture, Enqueued, Seen, Sight},
    tool::ToolMode,
};
use tidegate_gate::guards::secrets::Redactor;
use tidegate_memory::{boundary::TURN_BYTES_MAX, extract::is_trivial};

use crate::{
    RunRequest,
    event::Outcome,
    turn::{Ending, Turn},
};

/// What stands before everything that is hashed to a turn's identity.
const TURN_DOMAIN: &[u8] = b"tidegate turn 1";

/// Whether a person speaks through that front end. What a schedule or another program's agent says is said by nobody:
/// it recalls nothing and teaches nothing.
pub(crate) fn is_person(origin: Origin) -> bool {
    match origin {
        Origin::Http | Origin::Terminal | Origin::Chat => true,
        Origin::Mcp | Origin::Cron => false,
    }
}

/// What can be learned from a turn that is under way.
#[derive(Debug)]
pub(crate) struct Draft {
    said: String,
    turn: [u8; 32],
    at: Timestamp,
    day: Date,
    seen: Vec<Seen>,
}

impl Draft {
    /// Reads a request as the client sent it. `None` where nothing could ever be kept of it: nobody speaks, the newest
    /// message is no person's, or it says nothing of them. Only the newest message counts, also where a client sends
    /// several in a row: the others may have been sent before.
    pub(crate) fn of(request: &RunRequest, at: Timestamp, day: Date) -> Option<Self> {
        if !is_person(request.origin) {
            return None;
        }
        let newest = request
            .messages
            .iter()
            .rposition(|message| message.source() != Source::ClientSystem)?;
        let message = request.messages.get(newest)?;
        if message.source() != Source::Human {
            return None;
        }
        let said = message.text();
        if said.len() > TURN_BYTES_MAX {
            tracing::debug!(bytes = said.len(), "a message is too long to be learned from");
            return None;
        }
        if is_trivial(&said) {
            return None;
        }
        let before = request.messages.get(..newest).unwrap_or_default();
        let behind = request.messages.get(newest + 1..).unwrap_or_default();
        let others = before.iter().chain(behind);
        // It only grows from here on: a long history is not copied for nothing.
        let mut bytes = said.len();
        let seen = others.filter_map(seen).take_while(|seen| {
            bytes += seen.text.len();
            bytes <= CAPTURE_BYTES_MAX
        });
        let seen: Vec<Seen> = seen.collect();
        if bytes > CAPTURE_BYTES_MAX {
            too_large(bytes);
            return None;
        }
        Some(Self {
            turn: identity(request.conversation.as_deref(), before, &said, day),
            seen,
            said,
            at,
            day,
        })
    }

    fn bytes(&self) -> usize {
        self.said.len() + self.seen.iter().map(|seen| seen.text.len()).sum::<usize>()
    }
}

/// Which turn it is: the same one for what is sent again and for what is edited, since what came before it stays. A first
/// turn has nothing before it; there the words and the day tell.
fn identity(named: Option<&str>, before: &[Message], said: &str, day: Date) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(TURN_DOMAIN);
    let mut field = |text: &str| {
        hash.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(text.as_bytes());
    };
    field(named.unwrap_or_default());
    let mut is_first = true;
    for message in before {
        match message {
            Message::Human { .. } => {
                field("person");
                field(&message.text());
                is_first = false;
            }
            Message::Assistant { text, .. } => {
                field("assistant");
                field(text);
                is_first = false;
            }
            Message::ClientSystem { .. }
            | Message::Tool { .. }
            | Message::Harness { .. }
            | Message::Recalled { .. } => {}
        }
    }
    if is_first {
        field("first");
        field(&day.to_string());
        field(said.trim());
    }
    hash.finalize().into()
}

/// What another message of the request is held against the newest one as. Results of tools are taken from the turn at its
/// end, with those that came to it.
fn seen(message: &Message) -> Option<Seen> {
    let sight = match message {
        Message::Human { .. } => Sight::Earlier,
        Message::ClientSystem { .. } => Sight::System,
        Message::Assistant { .. } => Sight::Assistant,
        Message::Tool { .. } | Message::Harness { .. } | Message::Recalled { .. } => return None,
    };
    let text = message.text();
    (!text.trim().is_empty()).then_some(Seen { sight, text })
}

/// Whether a turn that ended so is learned from. One that hands calls to the client is: its answer comes in another run,
/// in which nothing new is said.
fn is_learned_from(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Answered
        | Outcome::ClientCalls
        | Outcome::TurnLimit
        | Outcome::DenialLimit
        | Outcome::BudgetExceeded
        | Outcome::Truncated
        | Outcome::BackendError
        | Outcome::Empty => true,
        Outcome::RefusedPreflight => false,
    }
}

/// Queues a turn that has ended and whose journal is closed.
pub(crate) async fn queue(turn: &Turn, ending: &Ending) {
    let (Some(memory), Some(draft)) = (turn.engine.memory(), &turn.draft) else {
        return;
    };
    match ending {
        Ending::Finished { outcome, .. } if is_learned_from(*outcome) => {}
        Ending::Finished { .. } | Ending::Failed(_) => return,
    }
    let results = turn.messages.iter().filter_map(|message| result(turn, message));
    let results: Vec<Seen> = results.collect();
    let bytes = draft.bytes() + results.iter().map(|seen| seen.text.len()).sum::<usize>();
    if bytes > CAPTURE_BYTES_MAX {
        too_large(bytes);
        return;
    }
    let redactor = turn.engine.redactor();
    let capture = Capture {
        run: turn.run_id.clone(),
        turn: draft.turn,
        conversation: turn.session.conversation.clone(),
        day: draft.day,
        at: draft.at,
        said: redactor.redact(&draft.said).into_owned(),
        in_sight: draft
            .seen
            .iter()
            .chain(&results)
            .map(|seen| redacted(redactor, seen))
            .collect(),
    };
    match memory.parts().queue.enqueue(&turn.caller.user, &capture).await {
        Ok(Enqueued::Queued) => memory.agenda().wake(),
        Ok(Enqueued::Full) => {
            tracing::warn!("too many turns wait to be learned from; this one is not");
        }
        Ok(reason @ (Enqueued::Known | Enqueued::LearningOff | Enqueued::RunGone | Enqueued::TooLarge)) => {
            tracing::debug!(?reason, "a turn is not learned from");
        }
        Err(error) => tracing::warn!(%error, "a turn cannot be queued to be learned from"),
    }
}

fn too_large(bytes: usize) {
    tracing::debug!(
        bytes,
        "a turn with all that was in sight is too large to be learned from"
    );
}

/// What a tool returned in this turn or before.
fn result(turn: &Turn, message: &Message) -> Option<Seen> {
    let Message::Tool { name, text, .. } = message else {
        return None;
    };
    let sight = match turn.tools.get(name).map(|spec| spec.mode) {
        Some(ToolMode::SearchKnowledge | ToolMode::ReadDocument) => Sight::Retrieved,
        Some(
            ToolMode::ReadText
            | ToolMode::ListFiles
            | ToolMode::WriteText
            | ToolMode::Calculate
            | ToolMode::CurrentTime
            | ToolMode::StudyPlan
            | ToolMode::ListDocuments
            | ToolMode::Command
            | ToolMode::HttpGet
            | ToolMode::HttpPost
            | ToolMode::PageTitle
            | ToolMode::Shell
            | ToolMode::Sandbox
            | ToolMode::GitRead
            | ToolMode::GitClone
            | ToolMode::GitCommit
            | ToolMode::GitPush
            | ToolMode::Mcp
            | ToolMode::SearchTools
            | ToolMode::LastOutput
            | ToolMode::Introspect,
        )
        | None => Sight::Tool,
    };
    (!text.trim().is_empty()).then(|| Seen {
        sight,
        text: text.clone(),
    })
}

fn redacted(redactor: &Redactor, seen: &Seen) -> Seen {
    Seen {
        sight: seen.sight,
        text: redactor.redact(&seen.text).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use tidegate_core::message::Part;

    use super::*;

    fn assistant(text: &str) -> Message {
        Message::Assistant {
            text: text.to_owned(),
            calls: Vec::new(),
        }
    }

    #[test]
    fn only_people_are_remembered() {
        for (origin, expected) in [
            (Origin::Http, true),
            (Origin::Terminal, true),
            (Origin::Chat, true),
            (Origin::Mcp, false),
            (Origin::Cron, false),
        ] {
            assert_eq!(is_person(origin), expected, "{origin:?}");
        }
    }

    #[test]
    fn a_turn_is_the_same_when_it_is_sent_again_or_edited() {
        let (monday, tuesday) = (date(2026, 3, 2), date(2026, 3, 3));
        let before = [Message::human("Good morning"), assistant("Good morning!")];
        let of = |named, before: &[Message], said, day| identity(named, before, said, day);
        let first = of(None, &before, "I teach 4th grade.", monday);
        // Sent again on another day, and edited.
        assert_eq!(of(None, &before, "I teach 4th grade.", tuesday), first);
        assert_eq!(of(None, &before, "I teach 5th grade.", monday), first);
        // Another turn of the same conversation, and the same words in another one.
        assert_ne!(of(None, &before[..1], "I teach 4th grade.", monday), first);
        assert_ne!(of(Some("c2"), &before, "I teach 4th grade.", monday), first);
        // A first turn is its words and its day.
        let alone = of(None, &[], "I teach 4th grade.", monday);
        assert_eq!(of(None, &[], " I teach 4th grade.\n", monday), alone);
        assert_ne!(of(None, &[], "I teach 4th grade.", tuesday), alone);
        assert_ne!(of(None, &[], "I like tables.", monday), alone);
        // Client system text and results are no part of it.
        let system = Message::ClientSystem {
            text: "Be brief.".to_owned(),
        };
        assert_eq!(of(None, &[system], "I teach 4th grade.", monday), alone);
    }

    #[test]
    fn what_is_in_sight_keeps_where_it_came_from() {
        let system = Message::ClientSystem {
            text: "Be brief.".to_owned(),
        };
        for (message, expected) in [
            (Message::human("hello"), Some(Sight::Earlier)),
            (system, Some(Sight::System)),
            (assistant("hello"), Some(Sight::Assistant)),
            (assistant(" "), None),
            (
                Message::Human {
                    parts: vec![Part::Image {
                        url: "data:,".to_owned(),
                        detail: None,
                    }],
                    name: None,
                },
                None,
            ),
        ] {
            assert_eq!(seen(&message).map(|seen| seen.sight), expected, "{message:?}");
        }
    }
}
