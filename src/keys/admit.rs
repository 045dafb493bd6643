//! Whether a presented key opens: known and of the right hash, switched on, not expired. One place for every front
//! end.

use tidegate_core::{
    caller::Caller, clock::Timestamp, error::StoreError, id::UserId, key::KeyRecord, port::KeyStore,
    secret::HashedKey,
};

use super::{matches, parse};

/// Why a key does not open. It never says whether a key of that id exists.
#[derive(Debug, thiserror::Error)]
pub enum NotAdmitted {
    /// It is no key.
    #[error("the API key is malformed")]
    Malformed,
    /// Nothing is opened by it.
    #[error("the API key is unknown, disabled or expired")]
    Unusable,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The key of that text, where it opens now.
pub async fn admit(keys: &dyn KeyStore, text: &str, now: Timestamp) -> Result<KeyRecord, NotAdmitted> {
    let presented = parse(text).map_err(|_| NotAdmitted::Malformed)?;
    let found = keys.find(&presented.id).await?;
    let record = proven(found, &presented.hash(), now).ok_or(NotAdmitted::Unusable)?;
    if !record.policy.enabled || record.policy.expires_at.is_some_and(|end| end <= now) {
        return Err(NotAdmitted::Unusable);
    }
    Ok(record)
}

/// The record, if the presented secret is its own or the one it had before a rotation, in its grace time.
fn proven(found: Option<KeyRecord>, presented: &HashedKey, now: Timestamp) -> Option<KeyRecord> {
    // An unknown id costs the same comparison as a known one.
    let nobody = HashedKey::from_digest([0; 32]);
    let stored = found.as_ref().map_or(&nobody, |record| &record.hash);
    let current = matches(stored, presented);
    let previous = found
        .as_ref()
        .and_then(|record| record.previous)
        .is_some_and(|old| now < old.valid_until && matches(&old.hash, presented));
    found.filter(|_| current || previous)
}

/// The key as a caller, on behalf of that user.
pub fn caller(record: KeyRecord, user: UserId) -> Caller {
    let policy = record.policy;
    Caller {
        key_id: record.id,
        user,
        scopes: policy.scopes,
        mode_ceiling: policy.mode_ceiling,
        models: policy.models,
        tools: policy.tools,
        tokens_per_day: policy.tokens_per_day,
    }
}
