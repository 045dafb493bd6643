//! The keys of an entry that are objects of their own.

use serde_json::Value;
use tidegate_io::child::Limits;

use super::{super::OAuth, Reader, expand};

impl Reader<'_> {
    pub(super) fn oauth(&mut self) -> Option<OAuth> {
        let map = match self.map.get("oauth")? {
            Value::Bool(false) | Value::Null => return None,
            Value::Bool(true) => return Some(OAuth::default()),
            Value::Object(map) => map,
            Value::Number(_) | Value::String(_) | Value::Array(_) => {
                self.problem(
                    "oauth",
                    "must be true or an object such as {\"scopes\": [\"read\"]}",
                );
                return None;
            }
        };
        let mut oauth = OAuth::default();
        for (key, value) in map {
            let path = format!("oauth.{key}");
            match (key.as_str(), value.as_str()) {
                ("scopes", _) => oauth.scopes = self.list(&path, Some(value)),
                ("client_id" | "clientId", Some(text)) => oauth.client_id = Some(text.to_owned()),
                ("client_secret" | "clientSecret", Some(text)) => {
                    match expand::value(text, self.references) {
                        Ok(secret) => oauth.client_secret = Some(secret),
                        Err(problem) => self.problem(&path, &problem),
                    }
                }
                _ => self.problem(
                    &path,
                    "is not known; known are scopes, client_id, client_secret, all texts",
                ),
            }
        }
        if oauth.client_secret.is_some() && oauth.client_id.is_none() {
            self.problem("oauth.client_secret", "needs `client_id` beside it");
        }
        Some(oauth)
    }

    pub(super) fn limits(&mut self) -> Limits {
        let mut limits = Limits::default();
        let Some(value) = self.map.get("limits") else {
            return limits;
        };
        let Value::Object(map) = value else {
            self.problem("limits", "must be an object such as {\"memory_mb\": 2048}");
            return limits;
        };
        for (key, value) in map {
            let Some(number) = value.as_u64().filter(|number| *number > 0) else {
                self.problem(&format!("limits.{key}"), "must be a whole number above 0");
                continue;
            };
            match key.as_str() {
                "open_files" => limits.open_files_max = Some(number),
                "file_mb" => limits.file_bytes_max = Some(number.saturating_mul(1 << 20)),
                "memory_mb" => limits.memory_bytes_max = Some(number.saturating_mul(1 << 20)),
                _ => self.problem(
                    &format!("limits.{key}"),
                    "is not known; known are open_files, file_mb, memory_mb",
                ),
            }
        }
        limits
    }
}
