//! The forms in which a route may be asked for: without `/v1`, with doubled or trailing slashes.
//!
//! They are served in place: several clients lose the body or the key on a redirect. Percent escapes are left
//! alone, so that an escaped slash never becomes a separator.

use axum::http::{Uri, uri::PathAndQuery};

/// First segments that belong under `/v1` and are also served without it.
const UNDER_V1: [&str; 6] = ["chat", "models", "runs", "admin", "approvals", "capabilities"];

/// Rewrites the address to the one form that the route table knows.
pub(super) fn normalise(uri: &Uri) -> Option<Uri> {
    let path = normalised(uri.path())?;
    let path_and_query = match uri.query() {
        Some(query) => PathAndQuery::try_from(format!("{path}?{query}")),
        None => PathAndQuery::try_from(path),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path_and_query.ok()?);
    Uri::from_parts(parts).ok()
}

/// `None` where the path has the right form already.
fn normalised(path: &str) -> Option<String> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let bare = segments.first().is_some_and(|first| UNDER_V1.contains(first));
    let mut wanted = String::with_capacity(path.len() + 4);
    if bare {
        wanted.push_str("/v1");
    }
    for segment in &segments {
        wanted.push('/');
        wanted.push_str(segment);
    }
    if wanted.is_empty() {
        wanted.push('/');
    }
    (wanted != path).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_forms_become_the_one_form() {
        let table = [
            ("/v1/chat/completions", "/v1/chat/completions"),
            ("/v1/chat/completions/", "/v1/chat/completions"),
            ("/v1//chat/completions?a=b", "/v1/chat/completions?a=b"),
            ("/chat/completions", "/v1/chat/completions"),
            ("/models/a%2fb/", "/v1/models/a%2fb"),
            ("/v1/models/org/name:7b", "/v1/models/org/name:7b"),
            ("/health", "/health"),
            ("//", "/"),
            ("/", "/"),
            ("/v1/runs/..", "/v1/runs/.."),
        ];
        for (given, wanted) in table {
            let uri: Uri = given.parse().unwrap();
            let found = normalise(&uri).unwrap_or(uri);
            assert_eq!(found.to_string(), wanted);
        }
    }
}
