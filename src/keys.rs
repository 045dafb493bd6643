//! The form of an API key, and the only place where keys are made, taken apart, hashed and compared.
//!
//! ```text
//! tg_4x9k2m7qw1ab_<52 letters: 256 random bits><8 letters: checksum>
//! ```
//!
//! The public id lets a store find the row without the secret; the checksum lets a mistyped or cut key be
//! refused without asking the store at all. Letters are those of [`tidegate_core::id::base32`], lower case, so
//! that a key survives a double click and a URL.

pub mod admit;
pub mod bounds;

use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tidegate_core::{
    clock::Entropy,
    id::{KeyId, base32},
    secret::{HashedKey, PlainKey},
};

/// How every key begins, so that scanners for leaked secrets can find it.
pub const PREFIX: &str = "tg_";
/// Letters of the public id: 60 bits, enough to tell keys apart, and no secret.
pub const ID_CHARS: usize = 12;
/// Random bytes of the secret.
const SECRET_BYTES: usize = 32;
/// Letters of the secret: 256 bits, five a letter.
const SECRET_CHARS: usize = 52;
/// Letters of the checksum: 40 bits.
const CHECKSUM_CHARS: usize = 8;
/// Letters of a whole key.
pub const KEY_CHARS: usize = PREFIX.len() + ID_CHARS + 1 + SECRET_CHARS + CHECKSUM_CHARS;

/// Why a text is no key. Says nothing about which keys exist, and never repeats the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    /// It does not begin as keys begin.
    #[error("a key begins with `{PREFIX}`")]
    Prefix,
    /// Too short, too long, or the parts are not where they belong.
    #[error("a key has {KEY_CHARS} characters; this one is cut, or something was added")]
    Shape,
    /// A letter that keys do not have.
    #[error("a key has only lower-case letters and digits after `{PREFIX}`")]
    Alphabet,
    /// The checksum does not fit.
    #[error("the key's checksum does not fit: it was mistyped or changed")]
    Checksum,
}

/// A well-formed key, taken apart. Whether it exists is the store's to say.
#[derive(Clone, PartialEq, Eq)]
pub struct ParsedKey {
    /// The public id.
    pub id: KeyId,
    /// The secret and its checksum.
    pub secret: PlainKey,
}

impl ParsedKey {
    /// The hash under which the key is stored.
    pub fn hash(&self) -> HashedKey {
        digest(self.secret.expose())
    }
}

impl fmt::Debug for ParsedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redacted(&self.id))
    }
}

/// Makes a key with a public id of its own.
pub fn generate(entropy: &dyn Entropy) -> (KeyId, PlainKey) {
    let mut bytes = [0_u8; 8];
    entropy.fill(&mut bytes);
    let mut id = base32(&bytes);
    id.truncate(ID_CHARS);
    let id = KeyId::new(id);
    let plain = generate_for(&id, entropy);
    (id, plain)
}

/// Makes a new secret for a public id that stays: what a rotation needs.
pub fn generate_for(id: &KeyId, entropy: &dyn Entropy) -> PlainKey {
    let mut bytes = [0_u8; SECRET_BYTES];
    entropy.fill(&mut bytes);
    let secret = base32(&bytes);
    let checksum = checksum(id.as_str(), &secret);
    PlainKey::new(format!("{PREFIX}{id}_{secret}{checksum}"))
}

/// Takes a key apart. Costs the same few microseconds whatever is sent: the length is looked at first.
pub fn parse(text: &str) -> Result<ParsedKey, KeyFault> {
    let rest = text.strip_prefix(PREFIX).ok_or(KeyFault::Prefix)?;
    if text.len() != KEY_CHARS {
        return Err(KeyFault::Shape);
    }
    let (id, rest) = rest.split_once('_').ok_or(KeyFault::Shape)?;
    if id.len() != ID_CHARS {
        return Err(KeyFault::Shape);
    }
    if !id.bytes().chain(rest.bytes()).all(is_key_letter) {
        return Err(KeyFault::Alphabet);
    }
    let (secret, given) = rest.split_at_checked(SECRET_CHARS).ok_or(KeyFault::Shape)?;
    if checksum(id, secret) != given {
        return Err(KeyFault::Checksum);
    }
    Ok(ParsedKey {
        id: KeyId::new(id),
        secret: PlainKey::new(rest),
    })
}

/// The hash under which a key is stored: SHA-256 of what follows its public id. The secret is 256 random bits,
/// so that a slow password hash would add nothing.
pub fn hash(key: &PlainKey) -> HashedKey {
    let text = key.expose();
    digest(text.rsplit_once('_').map_or(text, |(_, secret)| secret))
}

/// Whether two hashes are the same, in a time that does not depend on where they differ.
pub fn matches(stored: &HashedKey, presented: &HashedKey) -> bool {
    stored.digest().ct_eq(presented.digest()).into()
}

/// How a key is shown to people: its public part.
pub fn redacted(id: &KeyId) -> String {
    format!("{PREFIX}{id}_…")
}

fn digest(secret: &str) -> HashedKey {
    HashedKey::from_digest(Sha256::digest(secret.as_bytes()).into())
}

fn checksum(id: &str, secret: &str) -> String {
    let digest: [u8; 32] = Sha256::new()
        .chain_update(b"tidegate key checksum\0")
        .chain_update(id.as_bytes())
        .chain_update(b"_")
        .chain_update(secret.as_bytes())
        .finalize()
        .into();
    let mut text = base32(&digest);
    text.truncate(CHECKSUM_CHARS);
    text
}

fn is_key_letter(byte: u8) -> bool {
    byte.is_ascii_digit() || (byte.is_ascii_lowercase() && !matches!(byte, b'i' | b'l' | b'o' | b'u'))
}

#[cfg(test)]
mod tests;
