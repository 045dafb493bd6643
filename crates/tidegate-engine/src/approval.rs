//! Questions to a person, from the engine's side: which conversation a turn belongs to, how a question is put,
//! and how an answer is spent.
//!
//! An approved call is spent before it runs: the approval is claimed by compare-and-set, the facts are resolved
//! again, and the gate is asked again with the grant. Only then does it run. What was claimed and never
//! reported is `indeterminate` and opens nothing more.

use std::sync::{PoisonError, atomic::Ordering};

use sha2::{Digest, Sha256};
use tidegate_core::{
    approval::{Approval, ApprovalState},
    caller::Caller,
    clock::after,
    error::StoreError,
    id::ApprovalId,
    message::Message,
    tool::{ToolCall, ToolSpec},
};
use tidegate_gate::{Facts, Grant, Question, guards::untrusted::is_invisible};

use crate::{tool_log, turn::Turn};

/// Characters of the redacted arguments that a question keeps.
const ARGUMENTS_CHARS_MAX: usize = 4096;

/// Which conversation the turn belongs to: what the client names, else what its first words are. A digest, so
/// that no message text is kept.
pub(crate) fn conversation(caller: &Caller, named: Option<&str>, messages: &[Message]) -> String {
    let mut hash = Sha256::new();
    let mut field = |text: &str| {
        hash.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(text.as_bytes());
    };
    field(caller.key_id.as_str());
    field(caller.user.as_str());
    let named = named.filter(|name| !name.is_empty());
    if let Some(name) = named {
        field("named");
        field(name);
    } else {
        field("begins");
        let first = messages.iter().find_map(|message| match message {
            Message::Human { .. } => Some(message.text()),
            Message::ClientSystem { .. }
            | Message::Assistant { .. }
            | Message::Tool { .. }
            | Message::Harness { .. }
            | Message::Recalled { .. } => None,
        });
        field(&first.unwrap_or_default());
    }
    tidegate_gate::hex(&hash.finalize())
}

/// Puts the question to a person, or finds it put already.
pub(crate) async fn ask(
    turn: &Turn,
    spec: &ToolSpec,
    call: &ToolCall,
    facts: &Facts,
    question: &Question,
) -> Result<Approval, StoreError> {
    let now = turn.engine.now();
    let new = Approval {
        id: ApprovalId::generate(turn.engine.entropy()),
        run_id: turn.run_id.clone(),
        binding: question.binding.clone(),
        summary: turn.engine.redactor().redact(&summary(spec, facts)).into_owned(),
        arguments: tool_log::arguments(turn, call, ARGUMENTS_CHARS_MAX),
        reasons: vec![question.code.to_owned()],
        created_at: now,
        expires_at: after(now, turn.engine.options().approval_s),
        state: ApprovalState::Pending,
        decided_by: None,
        decided_at: None,
    };
    turn.engine.approvals().ask(&new).await
}

/// Spends an approval of exactly this question, if there is one. What is claimed here is settled by
/// [`settle`], or at the end of the turn.
pub(crate) async fn claim(turn: &Turn, question: &Question) -> Result<Option<(Approval, Grant)>, StoreError> {
    let claimed = turn
        .engine
        .approvals()
        .claim(&question.binding, turn.engine.now())
        .await?;
    let Some(approval) = claimed else {
        return Ok(None);
    };
    turn.claimed
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(approval.id.clone());
    Ok(Grant::of(&approval).map(|grant| (approval, grant)))
}

/// What became of a claimed approval.
pub(crate) async fn settle(turn: &Turn, id: &ApprovalId, state: ApprovalState) {
    turn.claimed
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .retain(|claimed| claimed != id);
    if let Err(error) = turn.engine.approvals().settle(id, state).await {
        // It stays `claimed`, which opens nothing, and is `indeterminate` after the next start.
        tracing::error!(%error, approval.id = %id, "an approval cannot be settled");
    }
}

/// At the end of a turn: calls that were cut off in the middle.
pub(crate) async fn settle_rest(turn: &Turn) {
    let rest = std::mem::take(&mut *turn.claimed.lock().unwrap_or_else(PoisonError::into_inner));
    for id in rest {
        settle(turn, &id, ApprovalState::Indeterminate).await;
    }
}

/// Whether the turn has been refused so often in a row that nothing more is asked.
pub(crate) fn breaker_is_open(turn: &Turn) -> bool {
    let denials_max = turn.engine.options().denials_max;
    denials_max > 0 && turn.denials.load(Ordering::SeqCst) >= denials_max
}

/// What would happen, in words made from the facts alone.
fn summary(spec: &ToolSpec, facts: &Facts) -> String {
    let mut parts = vec![format!("`{}` ({})", spec.name, spec.effect.name())];
    for (program, real) in &facts.programs {
        match real {
            Some(real) => parts.push(format!("runs {}", real.display())),
            None => parts.push(format!("runs {program} (not installed)")),
        }
    }
    for path in &facts.paths {
        let what = match path.access {
            tidegate_gate::Access::Read => "reads",
            tidegate_gate::Access::List => "lists",
            tidegate_gate::Access::Write => "writes",
        };
        match &path.resolution {
            Ok(resolved) => parts.push(format!("{what} {}", visible(&resolved.real.to_string_lossy()))),
            Err(_) => parts.push(format!("{what} {}", visible(&path.requested))),
        }
    }
    for url in &facts.urls {
        parts.push(format!("reaches {}", visible(url)));
    }
    if facts.write_bytes > 0 {
        parts.push(format!("{} bytes", facts.write_bytes));
    }
    if let Some(folder) = &facts.working_folder {
        parts.push(format!("in {}", folder.display()));
    }
    parts.join("; ")
}

/// Control characters and those that show nothing made visible, so that a person sees what will happen.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() || is_invisible(letter) {
            shown.extend(letter.escape_unicode());
        } else {
            shown.push(letter);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_nothing_is_shown_to_the_person_who_is_asked() {
        assert_eq!(visible("notes.txt"), "notes.txt");
        assert_eq!(visible("a\u{202e}b\nc\u{e0041}"), "a\\u{202e}b\\u{a}c\\u{e0041}");
    }
}
