//! Identifiers. Each is its own type, so that a run id cannot stand where a key id belongs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::clock::{Entropy, Timestamp};

/// Crockford-like lower-case base 32: no `i`, `l`, `o`, `u`, so that ids survive being read aloud.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Writes `bytes` in the id alphabet, five bits a letter, the last letter padded with zero bits.
pub fn base32(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 8 / 5 + 1);
    let (mut buffer, mut bits) = (0_u32, 0_u32);
    for byte in bytes {
        buffer = (buffer << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(char::from(ALPHABET[((buffer >> bits) & 31) as usize]));
        }
    }
    if bits > 0 {
        text.push(char::from(ALPHABET[((buffer << (5 - bits)) & 31) as usize]));
    }
    text
}

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// A fresh id: the prefix and 120 random bits.
            pub fn generate(entropy: &dyn Entropy) -> Self {
                let mut bytes = [0_u8; 15];
                entropy.fill(&mut bytes);
                Self(format!(concat!($prefix, "{}"), base32(&bytes)))
            }

            /// Takes an id that was made earlier, or by a peer.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

string_id!(
    /// One run: a turn from request to answer.
    RunId,
    "run_"
);
string_id!(
    /// One request at a front end; for HTTP it is the `x-request-id`.
    RequestId,
    "req_"
);
string_id!(
    /// One tool call. Ids from the model are kept where they are usable.
    CallId,
    "call_"
);
string_id!(
    /// One question to a person: may exactly this call run?
    ApprovalId,
    "appr_"
);
string_id!(
    /// One thing a person said, as evidence.
    ObservationId,
    "obs_"
);
string_id!(
    /// One fact about a person.
    FactId,
    "fact_"
);
string_id!(
    /// The public id of an API key; it is no secret.
    KeyId,
    ""
);

impl RunId {
    /// A fresh id of a run that opens at `now`: the prefix, the time in milliseconds and 80 random bits. Ids are in
    /// the order of their times, so that a store keeps new runs together.
    pub fn generate_at(now: Timestamp, entropy: &dyn Entropy) -> Self {
        let mut bytes = [0_u8; 10];
        entropy.fill(&mut bytes);
        let mut id = Self::first_at(now);
        id.0.push_str(&base32(&bytes));
        id
    }

    /// What every id of that millisecond begins with; a later one's is greater.
    pub fn first_at(time: Timestamp) -> Self {
        let time_ms = u64::try_from(time.as_millisecond()).unwrap_or_default();
        // 48 bits, which last for some thousand years.
        let [_, _, bytes @ ..] = time_ms.to_be_bytes();
        Self(format!("run_{}", base32(&bytes)))
    }
}

/// A person behind a key. Always namespaced by the key, so that one key can never name another key's users.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserId(String);

/// The longest caller-supplied user id that is accepted, in characters.
pub const USER_ID_CHARS_MAX: usize = 256;

/// Why a caller-supplied user id was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UserIdFault {
    /// Longer than [`USER_ID_CHARS_MAX`].
    #[error("a user id has at most {USER_ID_CHARS_MAX} characters")]
    TooLong,
    /// Holds a control character.
    #[error("a user id may not hold control characters")]
    Control,
}

impl UserId {
    /// The user of `key` that the caller names, or the key itself where it names nobody.
    pub fn of(key: &KeyId, supplied: Option<&str>) -> Result<Self, UserIdFault> {
        let Some(supplied) = supplied.map(str::trim).filter(|text| !text.is_empty()) else {
            return Ok(Self(key.as_str().to_owned()));
        };
        if supplied.chars().count() > USER_ID_CHARS_MAX {
            return Err(UserIdFault::TooLong);
        }
        if supplied.chars().any(char::is_control) {
            return Err(UserIdFault::Control);
        }
        Ok(Self(format!("{key}:{supplied}")))
    }

    /// The id as text: `key` or `key:user`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key behind which the person is. Ids of keys hold no colon.
    pub fn key_id(&self) -> KeyId {
        KeyId::new(self.0.split(':').next().unwrap_or_default())
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_id_is_namespaced_by_its_key() {
        let key = KeyId::new("k1");
        assert_eq!(UserId::of(&key, None).unwrap().as_str(), "k1");
        assert_eq!(UserId::of(&key, Some("  ")).unwrap().as_str(), "k1");
        assert_eq!(UserId::of(&key, Some("ann")).unwrap().as_str(), "k1:ann");
        for supplied in [None, Some("ann"), Some("a:b"), Some(":"), Some("k2")] {
            assert_eq!(UserId::of(&key, supplied).unwrap().key_id(), key);
        }
        assert_eq!(UserId::of(&key, Some("a\nb")), Err(UserIdFault::Control));
        assert_eq!(
            UserId::of(&key, Some(&"x".repeat(257))),
            Err(UserIdFault::TooLong)
        );
    }

    #[test]
    fn run_ids_are_in_the_order_of_time() {
        #[derive(Debug)]
        struct Ones;
        impl Entropy for Ones {
            fn fill(&self, bytes: &mut [u8]) {
                bytes.fill(0xff);
            }
        }
        let times = [
            -1,
            0,
            1,
            31,
            32,
            1_023,
            1_024,
            1_800_000_000_000,
            1_800_000_000_001,
        ];
        let times = times.map(|ms| Timestamp::from_millisecond(ms).unwrap());
        assert_eq!(RunId::first_at(times[0]), RunId::first_at(times[1]));
        for pair in times[1..].windows(2) {
            let (earlier, later) = (RunId::generate_at(pair[0], &Ones), RunId::first_at(pair[1]));
            assert!(earlier < later, "{earlier} {later}");
            assert_eq!(earlier.as_str().len(), 30);
        }
    }

    #[test]
    fn base32_writes_five_bits_a_letter() {
        assert_eq!(base32(&[0xff; 5]), "zzzzzzzz");
        assert_eq!(base32(&[0, 0]), "0000");
    }
}
