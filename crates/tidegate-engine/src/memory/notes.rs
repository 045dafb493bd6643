//! What recall searches, kept in line with the facts: a note for each fact that may be told, and its vector.
//!
//! Notes follow from facts and are never written by anybody else. A change is put only onto the state that the facts
//! were derived from, so that what was forgotten meanwhile does not come back as a note.

use std::{collections::HashMap, time::Duration};

use tidegate_core::{
    embedding::{EmbedError, Purpose},
    error::StoreError,
    id::{FactId, UserId},
    port::{NewNote, RowKey},
};
use tidegate_memory::recall;

use super::{Memory, MemoryError, Person};

/// Notes that are read, and put, at once.
const PAGE: usize = 500;

/// How often notes are brought in line anew because something was written meanwhile. Whoever writes brings them in line
/// afterwards, too.
const ALIGNMENTS_MAX: usize = 4;

/// Notes whose vectors are asked for at once.
const EMBEDDED_AT_ONCE: usize = 64;

/// Why notes have no vectors yet.
#[derive(Debug, thiserror::Error)]
pub(super) enum EmbedFault {
    /// The embedder failed.
    #[error(transparent)]
    Embedder(#[from] EmbedError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Memory {
    /// Brings what recall searches in line with a person's facts. Vectors that do not come in time are made by the
    /// worker later.
    pub async fn refresh(&self, user: &UserId) -> Result<(), MemoryError> {
        for _ in 0..ALIGNMENTS_MAX {
            let person = self.person(user).await?;
            if self.align(user, &person).await? {
                self.agenda().aligned(user);
                break;
            }
        }
        let limit = Duration::from_millis(self.parts().options.recall_timeout_ms);
        match tokio::time::timeout(limit, self.embed(user)).await {
            // The new state is worked out now, and not in the person's next request.
            Ok(Ok(())) => {
                let person = self.person(user).await?;
                person.matrix(self, user).await?;
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "notes get their vectors later");
                self.agenda().embed_later();
            }
            Err(_elapsed) => self.agenda().embed_later(),
        }
        Ok(())
    }

    /// Puts the notes that differ. False where the facts were other ones by then.
    async fn align(&self, user: &UserId, person: &Person) -> Result<bool, StoreError> {
        let store = &self.parts().store;
        let kinds = self.kinds();
        let mut wanted: HashMap<&FactId, NewNote> = person
            .facts
            .iter()
            .filter_map(|fact| {
                let text = recall::note(kinds.get(&fact.kind)?, fact)?;
                let note = NewNote {
                    fact: fact.id.clone(),
                    kind: fact.kind.clone(),
                    value: fact.value.clone(),
                    text,
                };
                Some((&fact.id, note))
            })
            .collect();
        let (mut changed, mut gone): (Vec<NewNote>, Vec<FactId>) = (Vec::new(), Vec::new());
        let mut from: RowKey = 0;
        loop {
            let page = store.notes(user, from, PAGE).await?;
            let is_last = page.len() < PAGE;
            for note in page {
                from = note.key + 1;
                match wanted.remove(&note.fact) {
                    Some(new) if new.text == note.text && new.value == note.value => {}
                    Some(new) => changed.push(new),
                    None => gone.push(note.fact),
                }
            }
            if is_last {
                break;
            }
        }
        changed.extend(wanted.into_values());
        // The same order for the same facts, whatever the map's.
        changed.sort_unstable_by(|left, right| left.fact.cmp(&right.fact));
        let mut version = person.version;
        while !(changed.is_empty() && gone.is_empty()) {
            let later = (
                changed.split_off(changed.len().min(PAGE)),
                gone.split_off(gone.len().min(PAGE)),
            );
            match store.put_notes(user, version, changed, gone).await? {
                Some(next) => version = next,
                None => return Ok(false),
            }
            (changed, gone) = later;
        }
        // Nobody else wrote in between, so the facts are those of the new state, too.
        self.people.rebase(user, person, version);
        Ok(true)
    }

    /// Asks for the vectors of a person's notes that have none of this model.
    pub(super) async fn embed(&self, user: &UserId) -> Result<(), EmbedFault> {
        let Some(embedder) = &self.parts().embedder else {
            return Ok(());
        };
        let (store, model) = (&self.parts().store, &embedder.model().id);
        loop {
            let notes = store.unembedded_notes(user, model, EMBEDDED_AT_ONCE).await?;
            if notes.is_empty() {
                return Ok(());
            }
            let texts: Vec<&str> = notes.iter().map(|note| note.text.as_str()).collect();
            let vectors = embedder.embed(&texts, Purpose::Document).await?;
            let keys = notes.iter().map(|note| note.key);
            let kept = store
                .put_note_vectors(user, model, keys.zip(vectors).collect())
                .await?;
            if kept == 0 {
                // All of them were gone or replaced by then: whoever did so comes after us.
                return Ok(());
            }
        }
    }
}
