//! What a provider is told in confidence, and cut out of everything it says: some servers repeat the headers
//! they were sent.

use std::{borrow::Cow, fmt};

use tidegate_core::secret::Secret;

/// A shorter text is no secret, and would be found in ordinary words.
const BYTES_MIN: usize = 4;
/// What stands where a secret stood.
const CUT: &str = "…";

/// The credentials of one provider.
#[derive(Clone, Default)]
pub(crate) struct Credentials {
    /// Longest first: cutting a shorter one that is part of it would leave the rest.
    texts: Vec<Secret>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Credentials {
    /// Takes the credentials as they are sent.
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut texts: Vec<String> = Vec::new();
        for secret in secrets {
            let secret = secret.trim();
            // `Bearer sk-…` is one value to us; a server may speak of the second half alone.
            let bare = secret.split_once(' ').map(|(_, rest)| rest.trim());
            for text in [Some(secret), bare].into_iter().flatten() {
                texts.extend([text.to_owned(), escaped(text)]);
            }
        }
        texts.retain(|text| text.len() >= BYTES_MIN);
        texts.sort_unstable_by(|one, two| two.len().cmp(&one.len()).then_with(|| one.cmp(two)));
        texts.dedup();
        Self {
            texts: texts.into_iter().map(Secret::new).collect(),
        }
    }

    /// The text without any of them.
    pub(crate) fn cut<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.texts {
            if text.contains(secret.expose()) {
                text = Cow::Owned(text.replace(secret.expose(), CUT));
            }
        }
        text
    }
}

/// As it stands inside JSON text: an error that is no plain string is repeated as JSON.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_secret_is_cut() {
        let credentials = Credentials::new(["sk-abcd", "sk-abcd-long", "Basic dXNlcjpw", "a\"b\\c", "x", ""]);
        for (said, left) in [
            ("key sk-abcd is odd", "key … is odd"),
            ("sk-abcd-long", "…"),
            ("Basic dXNlcjpw or dXNlcjpw", "… or …"),
            ("raw a\"b\\c", "raw …"),
            (r#"{"got": "a\"b\\c"}"#, r#"{"got": "…"}"#),
            ("nothing of x here", "nothing of x here"),
        ] {
            assert_eq!(credentials.cut(said), left);
        }
        assert!(!format!("{credentials:?}").contains("sk-"));
    }
}
