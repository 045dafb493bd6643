//! Grants: a person's yes to exactly one call.
//!
//! A grant is bound by a [`Fingerprint`] over the canonical arguments and over what they mean in the world just
//! now, so that neither other arguments nor the same words about another file can spend it. It is spent by the
//! store's compare-and-set before it gets here; the gate asks every floor again all the same.

use std::fmt;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tidegate_core::{
    approval::{Approval, ApprovalBinding, ApprovalState},
    id::ApprovalId,
    tool::ToolCall,
};

use crate::{Access, Facts, PathFact, Session};

/// SHA-256 over a call and its facts.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of this call as it stands. Two calls have the same one only if they would do the same
    /// to the same things for the same person under the same policy.
    pub fn of(call: &ToolCall, facts: &Facts, session: &Session, policy: &str) -> Self {
        let mut hash = Fields(Sha256::new());
        hash.field("tidegate grant 1");
        hash.field(&call.name);
        match call.arguments.object() {
            Some(arguments) => {
                let mut text = String::new();
                canonical(&Value::Object(arguments.clone()), &mut text);
                hash.field(&text);
            }
            None => hash.field(&call.arguments.to_json()),
        }
        hash.field(session.caller.key_id.as_str());
        hash.field(session.caller.user.as_str());
        hash.field(&session.conversation);
        hash.field(session.mode.name());
        hash.field(policy);
        for path in &facts.paths {
            path_fields(&mut hash, path);
        }
        for (program, real) in &facts.programs {
            hash.field("program");
            hash.field(program);
            hash.field(
                &real
                    .as_ref()
                    .map_or_else(String::new, |real| real.to_string_lossy().into_owned()),
            );
        }
        for (file, digest) in &facts.digests {
            hash.field("digest");
            hash.field(&file.to_string_lossy());
            hash.field(digest);
        }
        for url in &facts.urls {
            hash.field("url");
            hash.field(url);
        }
        if let Some(folder) = &facts.working_folder {
            hash.field("folder");
            hash.field(&folder.to_string_lossy());
        }
        Self(hash.0.finalize().into())
    }

    /// In lower-case hex.
    pub fn to_hex(self) -> String {
        hex(&self.0)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

/// Bytes in lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

/// A claimed approval, for the gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    id: ApprovalId,
    binding: ApprovalBinding,
}

impl Grant {
    /// The grant of an approval that this call has just claimed; none of one in any other state.
    pub fn of(approval: &Approval) -> Option<Self> {
        (approval.state == ApprovalState::Claimed).then(|| Self {
            id: approval.id.clone(),
            binding: approval.binding.clone(),
        })
    }

    /// The approval's id.
    pub fn id(&self) -> &ApprovalId {
        &self.id
    }

    /// Whether it is for exactly what is asked now.
    pub(crate) fn opens(&self, asked: &ApprovalBinding) -> bool {
        self.binding == *asked
    }
}

/// What an approval of this call would be bound to.
pub(crate) fn binding(call: &ToolCall, facts: &Facts, session: &Session, policy: &str) -> ApprovalBinding {
    ApprovalBinding {
        key_id: session.caller.key_id.clone(),
        user: session.caller.user.clone(),
        conversation: session.conversation.clone(),
        mode: session.mode,
        tool: call.name.clone(),
        fingerprint: Fingerprint::of(call, facts, session, policy).to_hex(),
        policy: policy.to_owned(),
    }
}

/// A hash over fields, each with its length before it, so that no two lists of fields read alike.
struct Fields(Sha256);

impl Fields {
    fn field(&mut self, text: &str) {
        self.0
            .update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
        self.0.update(text.as_bytes());
    }
}

fn path_fields(hash: &mut Fields, path: &PathFact) {
    hash.field("path");
    hash.field(&path.argument);
    hash.field(match path.access {
        Access::Read => "read",
        Access::List => "list",
        Access::Write => "write",
    });
    if let Ok(resolved) = &path.resolution {
        hash.field(&resolved.real.to_string_lossy());
    } else {
        hash.field("unresolved");
        hash.field(&path.requested);
    }
}

/// JSON with sorted keys and no blanks. The depth is that of parsed JSON, which is bounded.
fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by(|left, right| left.0.cmp(right.0));
            out.push('{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                canonical(item, out);
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
    }
}

#[cfg(test)]
mod tests;
