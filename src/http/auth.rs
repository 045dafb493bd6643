//! Who is asking: one layer around every route and the fallback, on the head, before one body byte is read.
//!
//! Order: well-formed, known and of the right hash, enabled, not expired, scope, requests a minute, tokens a day.

use axum::{
    extract::{FromRequestParts, MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, header::AUTHORIZATION, request::Parts},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use tidegate_core::{
    caller::{Caller, Mode, Scope},
    id::{KeyId, UserId},
    key::{Disconnect, KeyRecord},
};
use tracing::Span;

use super::{AppState, browser::CREDENTIALS, error::ApiError, limits::Allowance};
use crate::keys::{self, admit::NotAdmitted};

/// Routes that answer without a key, and why.
pub const PUBLIC_ROUTES: [(&str, &str); 3] = [
    (
        "/health",
        "container health checks have no key; it says `ok` and nothing else",
    ),
    (
        "/health/live",
        "the same, for orchestrators that ask whether to restart",
    ),
    (
        "/health/ready",
        "the same, for orchestrators that ask whether to send requests; no paths, hosts or ids",
    ),
];

/// What a route asks of a key.
struct Need {
    /// Any of these opens it; empty: any key does.
    scopes: &'static [Scope],
    /// Whether it spends tokens, so that the day's quota is looked at.
    spends: bool,
}

/// What the route of that pattern asks. A path without a route asks for a key like any other: what exists
/// is nobody's business without one.
fn need(route: Option<&MatchedPath>) -> Need {
    match route.map(MatchedPath::as_str) {
        Some("/v1/chat/completions") => Need {
            scopes: &[Scope::Chat, Scope::Tools],
            spends: true,
        },
        // What it opens is decided with each message: see `crate::mcp`.
        Some("/mcp") => Need {
            scopes: &[Scope::Chat, Scope::Tools],
            spends: false,
        },
        Some("/v1/approvals/{id}/decision") => Need {
            scopes: &[Scope::ApprovalsDecideOwn, Scope::ApprovalsDecideAny],
            spends: false,
        },
        Some(path) if path.starts_with("/v1/approvals") => Need {
            scopes: &[Scope::ApprovalsRead],
            spends: false,
        },
        // Whose it may be is decided with the request: see `routes::memory`.
        Some(path) if path.starts_with("/v1/memory") => Need {
            scopes: &[Scope::Chat, Scope::Admin],
            spends: false,
        },
        Some(path) if path.starts_with("/v1/admin/") => Need {
            scopes: &[Scope::Admin],
            spends: false,
        },
        Some(_) | None => Need {
            scopes: &[],
            spends: false,
        },
    }
}

/// Whether the route of that pattern answers without a key.
pub(super) fn is_public(route: Option<&MatchedPath>) -> bool {
    route.is_some_and(|route| PUBLIC_ROUTES.iter().any(|(path, _)| *path == route.as_str()))
}

/// An authenticated caller, as a handler receives it.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    /// Who, with the user of the configured header or the key itself.
    pub(super) caller: Caller,
    /// What a lost connection does to the key's runs.
    pub(super) on_disconnect: Disconnect,
    /// The mode the request asks for; it can only lower the key's.
    pub(super) mode: Option<Mode>,
    /// Which conversation the request belongs to, where it says so.
    pub(super) conversation: Option<String>,
}

impl Identity {
    /// The same caller on behalf of the user that the body names.
    pub(super) fn with_user(mut self, supplied: &str, param: &str) -> Result<Self, ApiError> {
        if !supplied.trim().is_empty() {
            self.caller.user = UserId::of(&self.caller.key_id, Some(supplied))
                .map_err(|fault| ApiError::invalid_value(param, fault.to_string()))?;
        }
        Ok(self)
    }
}

impl<S: Sync> FromRequestParts<S> for Identity {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        // Fails closed: a route that was added outside the layer answers nobody.
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or_else(|| ApiError::internal("a route lies outside the authentication layer"))
    }
}

/// The layer.
pub(super) async fn authenticate(State(app): State<AppState>, mut request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    if is_public(route) {
        return next.run(request).await;
    }
    let (identity, allowance) = match admit(&app, request.headers(), &need(route)).await {
        Ok(admitted) => admitted,
        Err(error) => return error.into_response(),
    };
    Span::current().record("key_id", identity.caller.key_id.as_str());
    request.extensions_mut().insert(identity);
    let mut response = next.run(request).await;
    if let Some(allowance) = allowance {
        allowance.write(response.headers_mut());
    }
    response
}

async fn admit(
    app: &AppState,
    headers: &HeaderMap,
    need: &Need,
) -> Result<(Identity, Option<Allowance>), ApiError> {
    let parts = &app.parts;
    let credential = credential(headers)?;
    let now = parts.clock.now();
    let record = keys::admit::admit(&*parts.keys, credential, now)
        .await
        .map_err(not_admitted)?;
    if !need.scopes.is_empty()
        && !need
            .scopes
            .iter()
            .any(|scope| record.policy.scopes.contains(scope))
    {
        let names: Vec<String> = need
            .scopes
            .iter()
            .map(|scope| format!("`{}`", scope.name()))
            .collect();
        return Err(ApiError::scope_missing(&names.join(" or ")));
    }
    let allowance = record
        .policy
        .requests_per_minute
        .map(|limit| app.limits.check(&record.id, limit))
        .transpose()?;
    if need.spends {
        quota(app, &record)?;
    }
    parts.keys.touch(&record.id, now);
    let user = user_of(headers, parts.options.user_header.as_deref(), &record.id)?;
    let mode = mode_of(headers)?;
    let conversation = conversation_of(headers)?;
    Ok((
        Identity {
            mode,
            conversation,
            ..identity(record, user)
        },
        allowance,
    ))
}

/// The header by which a request lowers its mode.
pub(super) const MODE_HEADER: &str = "x-tidegate-mode";

fn mode_of(headers: &HeaderMap) -> Result<Option<Mode>, ApiError> {
    let mut values = headers.get_all(MODE_HEADER).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let mode = value.to_str().ok().and_then(|name| Mode::from_name(name.trim()));
    if mode.is_none() || values.next().is_some() {
        let names: Vec<&str> = Mode::ALL.into_iter().map(Mode::name).collect();
        return Err(ApiError::bad_head(format!(
            "the header `{MODE_HEADER}` is one of: {}",
            names.join(", ")
        )));
    }
    Ok(mode)
}

/// The header by which a request says which conversation it belongs to.
pub(super) const CONVERSATION_HEADER: &str = "x-tidegate-conversation";

/// The longest name of a conversation, in bytes.
pub(super) const CONVERSATION_BYTES_MAX: usize = 256;

fn conversation_of(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all(CONVERSATION_HEADER).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let name = value.to_str().ok().map(str::trim);
    match name.filter(|name| !name.is_empty() && name.len() <= CONVERSATION_BYTES_MAX) {
        Some(name) if values.next().is_none() => Ok(Some(name.to_owned())),
        Some(_) | None => Err(ApiError::bad_head(format!(
            "the header `{CONVERSATION_HEADER}` is one name of 1 to {CONVERSATION_BYTES_MAX} plain characters"
        ))),
    }
}

/// The key that the request carries. [`super::browser`] has made sure that there is at most one.
fn credential(headers: &HeaderMap) -> Result<&str, ApiError> {
    let none = || refused("no API key was given");
    let (is_authorization, value) = CREDENTIALS
        .iter()
        .find_map(|name| headers.get(name).map(|value| (name == AUTHORIZATION, value)))
        .ok_or_else(none)?;
    let text = value
        .to_str()
        .map_err(|_| refused("the API key is malformed"))?
        .trim();
    let key = if is_authorization {
        let (scheme, key) = text.split_once([' ', '\t']).ok_or_else(none)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(refused("the Authorization scheme is not Bearer"));
        }
        key.trim()
    } else {
        text
    };
    if key.is_empty() { Err(none()) } else { Ok(key) }
}

fn quota(app: &AppState, record: &KeyRecord) -> Result<(), ApiError> {
    let Some(limit_tokens) = record.policy.tokens_per_day else {
        return Ok(());
    };
    let clock = &app.parts.clock;
    if app.parts.ledger.spent_tokens(&record.id, clock.today()) < limit_tokens {
        return Ok(());
    }
    let text = format!("the daily quota of {limit_tokens} tokens of this key is spent");
    Err(ApiError::quota_spent(&text, clock.seconds_left_today()))
}

fn user_of(headers: &HeaderMap, header: Option<&str>, key: &KeyId) -> Result<UserId, ApiError> {
    let supplied = match header.and_then(|name| HeaderName::try_from(name).ok()) {
        Some(name) => headers.get(name).map(|value| {
            value
                .to_str()
                .map_err(|_| ApiError::bad_head("the header that names the user is not plain text"))
        }),
        None => None,
    };
    UserId::of(key, supplied.transpose()?).map_err(|fault| ApiError::bad_head(fault.to_string()))
}

fn identity(record: KeyRecord, user: UserId) -> Identity {
    let on_disconnect = record.policy.on_disconnect;
    Identity {
        caller: keys::admit::caller(record, user),
        on_disconnect,
        mode: None,
        conversation: None,
    }
}

fn not_admitted(reason: NotAdmitted) -> ApiError {
    match reason {
        NotAdmitted::Malformed | NotAdmitted::Unusable => refused(&reason.to_string()),
        NotAdmitted::Store(error) => error.into(),
    }
}

/// One shape for every refusal: what is wrong, and how to send a key. It never repeats what was sent.
fn refused(reason: &str) -> ApiError {
    ApiError::unauthorized(format!(
        "{reason}; send a valid key as `Authorization: Bearer tg_…`"
    ))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_key_is_found_in_each_of_its_headers() {
        let table = [
            ("authorization", "Bearer abc", Some("abc")),
            ("authorization", "bEARER \t abc ", Some("abc")),
            ("authorization", "Bearer", None),
            ("authorization", "Bearer  ", None),
            ("authorization", "Token abc", None),
            ("authorization", "abc", None),
            ("api-key", "abc", Some("abc")),
            ("x-api-key", " abc", Some("abc")),
            ("x-api-key", "", None),
            ("cookie", "abc", None),
        ];
        for (name, value, wanted) in table {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            assert_eq!(credential(&headers).ok(), wanted, "{name}: {value}");
        }
    }

    #[test]
    fn a_user_stays_behind_the_key() {
        let key = KeyId::new("k1");
        let mut headers = HeaderMap::new();
        headers.insert("x-user-id", HeaderValue::from_static("k2:ann"));
        assert_eq!(user_of(&headers, None, &key).unwrap().as_str(), "k1");
        assert_eq!(
            user_of(&headers, Some("X-User-Id"), &key).unwrap().as_str(),
            "k1:k2:ann"
        );
        headers.insert("x-user-id", HeaderValue::from_static("a\tb"));
        assert!(user_of(&headers, Some("X-User-Id"), &key).is_err());
    }
}
