//! Secrets are types: a plain key and a hashed key cannot be confused, and neither prints itself.

use std::fmt;

/// A raw API key, as a client sends it. Lives only for as long as it takes to hash it.
#[derive(Clone, PartialEq, Eq)]
pub struct PlainKey(String);

impl PlainKey {
    /// Takes the text of a key.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The raw key. Called where a key is hashed, and where a new one is shown for the only time.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PlainKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlainKey(…)")
    }
}

/// The SHA-256 of a key's secret: all that is stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct HashedKey([u8; 32]);

impl HashedKey {
    /// Takes a digest that was computed earlier.
    pub fn from_digest(digest: [u8; 32]) -> Self {
        Self(digest)
    }

    /// The digest. Compare digests in constant time.
    pub fn digest(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for HashedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashedKey(…)")
    }
}

/// A credential of the operator's (a provider's API key). Neither `Debug` nor `Display` shows it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// Takes the secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself, for the one header it belongs in.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_prints_itself() {
        let shown = format!(
            "{:?} {:?} {:?}",
            PlainKey::new("tg_abc"),
            HashedKey::from_digest([7; 32]),
            Secret::new("sk-abc")
        );
        assert!(!shown.contains("abc") && !shown.contains('7'), "{shown}");
    }
}
