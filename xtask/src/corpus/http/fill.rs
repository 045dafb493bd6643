//! Fills the places of a template: addresses, keys, routes, repetitions.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::case::{GENERATED_BYTES_MAX, repetitions, replace_each};

/// The most bytes one filled text may have.
pub(super) const BYTES_MAX: usize = GENERATED_BYTES_MAX;

/// The routes that exist, by their name in the corpora. `{CONV}` stands for things that clients name by id;
/// runs are the ones there are.
pub(super) const ROUTES: [(&str, &str); 6] = [
    ("{HEALTH}", "/health"),
    ("{LIST_NOSLASH}", "v1/models"),
    ("{LIST}", "/v1/models"),
    ("{SEND}", "/v1/chat/completions"),
    ("{CONV}", "/v1/runs"),
    ("{APPROVE}", "/v1/approvals/appr_unknown/decision"),
];

/// The routes that do not exist yet.
pub(super) const ABSENT: [&str; 5] = ["{EVENTS}", "{MODE}", "{CONFIG}", "{METRICS}", "{UPLOAD}"];

/// What the places stand for.
pub(super) struct Places {
    pairs: Vec<(&'static str, String)>,
}

impl Places {
    pub(super) fn new(host: &str, port: u16, key: &str) -> Self {
        let mut pairs = vec![
            ("{HOST}", host.to_owned()),
            ("{PORT}", port.to_string()),
            ("{TOKEN_UPPER}", key.to_uppercase()),
            (
                "{TOKEN_MINUS_LAST}",
                key.get(..key.len().saturating_sub(1))
                    .unwrap_or_default()
                    .to_owned(),
            ),
            ("{TOKEN_BASE64}", STANDARD.encode(key)),
            ("{TOKEN}", key.to_owned()),
            ("{64K}", "a".repeat(65_535)),
        ];
        pairs.extend(ROUTES.map(|(name, path)| (name, path.to_owned())));
        Self { pairs }
    }

    /// The text with every place filled.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for (place, value) in &self.pairs {
            if filled.contains(place) {
                filled = filled.replace(place, value);
            }
        }
        chunks(&repetitions(&filled))
    }
}

/// `{chunk:T}` is one chunk of a chunked body with the text T.
fn chunks(text: &str) -> String {
    replace_each(text, "{chunk:", |inside| {
        Some(format!("{:x}\r\n{inside}\r\n", inside.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled() {
        let places = Places::new("127.0.0.1:80", 80, "tg_abc");
        for (text, expected) in [
            ("GET {LIST} {HOST} {PORT}", "GET /v1/models 127.0.0.1:80 80"),
            ("{TOKEN} {TOKEN_UPPER} {TOKEN_MINUS_LAST}", "tg_abc TG_ABC tg_ab"),
            ("{rep:ab:3}{rep:x:no}", "ababab{rep:x:no}"),
            ("{chunk:hello}", "5\r\nhello\r\n"),
            ("{\"a\":1}", "{\"a\":1}"),
        ] {
            assert_eq!(places.fill(text), expected);
        }
    }
}
