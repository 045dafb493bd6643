//! Texts on their way into what is remembered of people, and out of it again, put to memory's own functions.

use anyhow::{Context as _, Result};
use serde_json::json;
use tidegate_core::clock::Timestamp;
use tidegate_core::id::{KeyId, UserId};
use tidegate_gate::guards::secrets::Redactor;
use tidegate_memory::boundary::given_words;
use tidegate_memory::evidence::Ledger;
use tidegate_memory::export::{self, Binding, Import};
use tidegate_memory::kinds::Kinds;

/// What is stored of a person's words: they, or nothing.
pub(super) fn stored(text: &str, redactor: &Redactor) -> String {
    match given_words(text, text, redactor) {
        Ok(()) => text.to_owned(),
        Err(_) => String::new(),
    }
}

/// What is handed out of words that come in with somebody's export.
pub(super) fn exported(text: &str, redactor: &Redactor) -> Result<String> {
    let kinds = Kinds::shipped()?;
    let user = UserId::of(&KeyId::new("corpus"), None)?;
    let now: Timestamp = "2026-03-02T09:00:00Z".parse()?;
    let document = json!({
        "format": export::FORMAT, "version": export::VERSION, "user": user, "exported_at": now,
        "observations": [{
            "id": "obs_00000000000000000000000000", "kind": "preference", "value": "tables", "quote": text,
            "turn": "0".repeat(64), "conversation": "", "day": "2026-03-02", "at": now, "voice": "stated",
            "extractor": "rules", "is_explicit": true, "is_first_person": true,
        }],
    });
    let import = Import {
        kinds: &kinds,
        redactor,
        user: &user,
        binding: Binding::SamePerson,
        now,
    };
    let read = export::read(&document.to_string(), &import).context("the export is not read")?;
    let out = export::document(&kinds, &user, now, &[], &Ledger::new(read.observations));
    Ok(serde_json::to_string(&out)?)
}

#[cfg(test)]
mod tests {
    use tidegate_core::secret::Secret;

    use super::*;

    #[test]
    fn what_holds_no_secret_is_kept_and_handed_out() -> Result<()> {
        let redactor = Redactor::new([Secret::new("sk-inv-9fQ2xLm7RtYb4KpZ")])?;
        let (plain, secret) = ("I like tables", "value sk-inv-9fQ2xLm7RtYb4KpZ end");
        assert_eq!(stored(plain, &redactor), plain);
        assert_eq!(stored(secret, &redactor), "");
        assert!(exported(plain, &redactor)?.contains(plain));
        assert!(!exported(secret, &redactor)?.contains("sk-inv"));
        Ok(())
    }
}
