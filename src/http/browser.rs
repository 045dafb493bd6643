//! Whom a request claims to come to and from: `Host`, `Origin`, `Sec-Fetch-Site`, one credential.
//!
//! A daemon on loopback is reachable by every page that a browser on the machine opens. A page can point its
//! own name at 127.0.0.1, and a request without a pre-flight arrives before anyone can forbid reading the
//! answer; so the names are checked here, before the key, on every route.

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use super::{AppState, Options, error::ApiError, refused::Refused};

/// Hosts that are accepted where the operator lists none.
const LOOPBACK_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];
/// The headers that may carry a key. A request carries one of them, once.
pub(super) static CREDENTIALS: [HeaderName; 3] = [
    header::AUTHORIZATION,
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-api-key"),
];
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// What a listed page may send and read.
const CORS_METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE");
const CORS_EXPOSED: HeaderValue = HeaderValue::from_static(
    "x-request-id, x-run-id, mcp-session-id, retry-after, x-should-retry, openai-processing-ms, x-ratelimit-limit-requests, \
     x-ratelimit-remaining-requests, x-ratelimit-reset-requests",
);
/// How long a browser may remember a pre-flight, in seconds.
const CORS_MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// Answers what could not be read as a request, refuses what does not come from where requests may come from; answers pre-flights of listed origins.
pub(super) async fn check(State(app): State<AppState>, mut request: Request, next: Next) -> Response {
    if let Some(Refused(error)) = request.extensions_mut().remove() {
        return error.into_response();
    }
    let options = &app.parts.options;
    if let Err(error) = host(request.uri(), request.version(), request.headers(), options)
        .and_then(|()| one_credential(request.headers()))
    {
        return error.into_response();
    }
    let origin = match origin(request.headers(), options) {
        Ok(origin) => origin,
        Err(error) => return error.into_response(),
    };
    let Some(origin) = origin else {
        return next.run(request).await;
    };
    let mut response = if is_preflight(&request) {
        preflight(request.headers())
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, CORS_EXPOSED);
    response
}

/// Exactly one host, and one of ours (RFC 9112, 3.2). An absolute address names a host too, and must name
/// one of ours as well.
fn host(uri: &Uri, version: Version, headers: &HeaderMap, options: &Options) -> Result<(), ApiError> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let named = match (hosts.next(), hosts.next()) {
        (Some(only), None) => Some(only.to_str().unwrap_or_default()),
        (None, _) => None,
        (Some(_), Some(_)) => return Err(ApiError::bad_head("a request has exactly one Host header")),
    };
    let addressed = uri.authority().map(axum::http::uri::Authority::as_str);
    if named.is_none() && (version < Version::HTTP_2 || addressed.is_none()) {
        return Err(ApiError::bad_head("a request has exactly one Host header"));
    }
    if [named, addressed]
        .into_iter()
        .flatten()
        .all(|host| is_allowed(host, options))
    {
        return Ok(());
    }
    Err(ApiError::forbidden_source(
        "this Host is not served here; list the name in `server.allowed_hosts` if it should be",
    ))
}

fn is_allowed(authority: &str, options: &Options) -> bool {
    let Some(host) = host_of(authority) else {
        return false;
    };
    if options.allowed_hosts.is_empty() {
        return LOOPBACK_HOSTS
            .iter()
            .any(|allowed| host.eq_ignore_ascii_case(allowed));
    }
    options
        .allowed_hosts
        .iter()
        .any(|allowed| host.eq_ignore_ascii_case(host_of(allowed).unwrap_or(allowed)))
}

/// The host without its port; `None` where the port is none.
fn host_of(authority: &str) -> Option<&str> {
    let (host, port) = if authority.starts_with('[') {
        let end = authority.find(']')? + 1;
        authority.split_at_checked(end)?
    } else {
        authority
            .find(':')
            .map_or((authority, ""), |colon| authority.split_at(colon))
    };
    let port_ok = port.is_empty()
        || port
            .strip_prefix(':')
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
    (port_ok && !host.is_empty()).then_some(host)
}

fn one_credential(headers: &HeaderMap) -> Result<(), ApiError> {
    let count: usize = CREDENTIALS
        .iter()
        .map(|name| headers.get_all(name).iter().count())
        .sum();
    if count > 1 {
        return Err(ApiError::bad_head(
            "a request carries one key, once: either Authorization, or api-key, or x-api-key",
        ));
    }
    Ok(())
}

/// The origin, if it is a listed one; `None` where the request does not come from a page.
fn origin(headers: &HeaderMap, options: &Options) -> Result<Option<HeaderValue>, ApiError> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let Some(origin) = origins.next() else {
        return match headers.get(&SEC_FETCH_SITE).map(HeaderValue::as_bytes) {
            Some(b"cross-site" | b"same-site") => Err(not_listed()),
            Some(_) | None => Ok(None),
        };
    };
    let text = origin.to_str().unwrap_or_default();
    let listed = options
        .cors_origins
        .iter()
        .any(|allowed| allowed.trim_end_matches('/').eq_ignore_ascii_case(text));
    if origins.next().is_some() || !listed {
        return Err(not_listed());
    }
    Ok(Some(origin.clone()))
}

fn not_listed() -> ApiError {
    ApiError::forbidden_source(
        "pages of this origin may not call the API; list the origin in `server.cors_origins` if they should",
    )
}

fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

fn preflight(headers: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let answer = response.headers_mut();
    answer.insert(header::ACCESS_CONTROL_ALLOW_METHODS, CORS_METHODS);
    answer.insert(header::ACCESS_CONTROL_MAX_AGE, CORS_MAX_AGE);
    // The SDKs send a dozen headers of their own; a listed page may send what it asks for.
    if let Some(asked) = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        answer.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn only_the_names_of_this_machine_are_hosts() {
        let options = Options::default();
        let uri = Uri::from_static("/v1/models");
        let table = [
            ("127.0.0.1:8088", true),
            ("LOCALHOST", true),
            ("[::1]:8088", true),
            ("localhost:", false),
            ("localhost:80a", false),
            ("127.0.0.1.evil.test", false),
            ("localhost.evil.test:8088", false),
            ("evil.test", false),
            ("[::1", false),
            ("", false),
        ];
        for (value, allowed) in table {
            let found = host(&uri, Version::HTTP_11, &headers(&[("host", value)]), &options);
            assert_eq!(found.is_ok(), allowed, "{value}");
        }
        assert!(host(&uri, Version::HTTP_11, &headers(&[]), &options).is_err());
        let twice = headers(&[("host", "localhost"), ("host", "localhost")]);
        assert!(host(&uri, Version::HTTP_11, &twice, &options).is_err());
        let absolute = Uri::from_static("http://evil.test/v1/models");
        assert!(
            host(
                &absolute,
                Version::HTTP_11,
                &headers(&[("host", "localhost")]),
                &options
            )
            .is_err()
        );
        let h2 = Uri::from_static("http://localhost:8088/v1/models");
        assert!(host(&h2, Version::HTTP_2, &headers(&[]), &options).is_ok());
    }

    #[test]
    fn a_listed_host_replaces_the_loopback_names() {
        let options = Options {
            allowed_hosts: vec!["agent.example".into()],
            ..Options::default()
        };
        assert!(is_allowed("Agent.Example:443", &options));
        assert!(!is_allowed("localhost", &options));
    }

    #[test]
    fn only_listed_origins_pass() {
        let options = Options {
            cors_origins: vec!["https://chat.example".into()],
            ..Options::default()
        };
        assert!(origin(&headers(&[]), &options).unwrap().is_none());
        assert!(
            origin(&headers(&[("origin", "https://chat.example")]), &options)
                .unwrap()
                .is_some()
        );
        for bad in [
            "null",
            "http://chat.example",
            "https://chat.example.evil.test",
            "http://127.0.0.1:1",
        ] {
            let map = HeaderMap::from_iter([(header::ORIGIN, HeaderValue::from_static(bad))]);
            assert!(origin(&map, &options).is_err(), "{bad}");
        }
        assert!(origin(&headers(&[("sec-fetch-site", "cross-site")]), &options).is_err());
        assert!(
            origin(&headers(&[("sec-fetch-site", "none")]), &options)
                .unwrap()
                .is_none()
        );
        let listed = [
            ("origin", "https://chat.example"),
            ("sec-fetch-site", "cross-site"),
        ];
        assert!(origin(&headers(&listed), &options).unwrap().is_some());
    }

    #[test]
    fn two_credentials_are_one_too_many() {
        assert!(one_credential(&headers(&[("authorization", "a")])).is_ok());
        assert!(one_credential(&headers(&[("authorization", "a"), ("authorization", "a")])).is_err());
        assert!(one_credential(&headers(&[("api-key", "a"), ("x-api-key", "a")])).is_err());
    }
}
