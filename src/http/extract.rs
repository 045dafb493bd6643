//! What handlers take: a JSON body, a path segment, a query. Each refuses in the envelope.

pub(super) mod query;

use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_path_to_error::Segment;

use super::{AppState, body, error::ApiError, wire::json::Object};

/// How deep a body may be nested; the JSON reader's own bound, kept here for the parts it skips.
const DEPTH_MAX: usize = 127;

/// A body that is the text of a JSON object.
#[derive(Debug)]
pub(super) struct JsonText(pub(super) Bytes);

impl FromRequest<AppState> for JsonText {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, Self::Rejection> {
        let (parts, body) = request.into_parts();
        media_type(&parts.headers)?;
        let bytes = body::read(&parts.headers, body, &app.parts.options, parts.extensions.get()).await?;
        check_text(&bytes)?;
        Ok(Self(bytes))
    }
}

/// A body that is a JSON object of the type's form.
#[derive(Debug)]
pub(super) struct ApiJson<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<AppState> for ApiJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, Self::Rejection> {
        let JsonText(text) = JsonText::from_request(request, app).await?;
        parse(&text).map(Self)
    }
}

/// The same where the body may be left out.
#[derive(Debug)]
pub(super) struct ApiJsonOrNothing<T>(pub(super) T);

impl<T: DeserializeOwned + Default> FromRequest<AppState> for ApiJsonOrNothing<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, Self::Rejection> {
        let (parts, body) = request.into_parts();
        media_type(&parts.headers)?;
        let bytes = body::read(&parts.headers, body, &app.parts.options, parts.extensions.get()).await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        check_text(&bytes)?;
        parse(&bytes).map(Self)
    }
}

/// Whether a body is not what it says but packed.
pub(super) fn is_compressed(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .any(|encoding| !encoding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity"))
}

/// JSON under any or no type is read; what can only be something else is not.
fn media_type(headers: &HeaderMap) -> Result<(), ApiError> {
    if is_compressed(headers) {
        return Err(ApiError::media_type(
            "compressed bodies are not read; send the JSON as it is",
        ));
    }
    let Some(kind) = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
    else {
        return Ok(());
    };
    let kind = kind
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let other = ["multipart/", "image/", "audio/", "video/", "font/"];
    if other.iter().any(|prefix| kind.starts_with(prefix)) || kind == "application/octet-stream" {
        return Err(ApiError::media_type(format!(
            "`{kind}` is not read here; send application/json"
        )));
    }
    Ok(())
}

/// What the JSON reader would not say as well, or at all for the parts it skips.
fn check_text(bytes: &[u8]) -> Result<(), ApiError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        ApiError::invalid_json(format!("the body is not UTF-8 (byte {})", error.valid_up_to()))
    })?;
    match text.trim_start().bytes().next() {
        None => Err(ApiError::invalid_json(
            "the body is empty; a JSON object is expected",
        )),
        Some(_) if is_too_deep(bytes) => Err(ApiError::invalid_json(format!(
            "the body is nested deeper than {DEPTH_MAX} levels"
        ))),
        Some(_) => Ok(()),
    }
}

/// Whether brackets outside of strings are nested too deep. One pass, whatever the bytes.
fn is_too_deep(bytes: &[u8]) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in bytes {
        match (in_string, *byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => in_string = !in_string,
            (false, b'{' | b'[') => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return true;
                }
            }
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            (true | false, _) => {}
        }
    }
    false
}

/// Reads an object. The error names the field by a dotted path.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let Object(value) = serde_path_to_error::deserialize(&mut reader).map_err(|error| fault(&error))?;
    reader
        .end()
        .map_err(|error| ApiError::invalid_json(format!("the body goes on after its end: {error}")))?;
    Ok(value)
}

fn fault(error: &serde_path_to_error::Error<serde_json::Error>) -> ApiError {
    let inner = error.inner();
    let text = inner.to_string();
    match inner.classify() {
        // The reader's words for half of a surrogate pair name neither the fault nor its cure.
        Category::Syntax if text.contains("hex escape") => ApiError::invalid_json(format!(
            "the body is not valid JSON: a `\\u` escape is cut short or half of a surrogate pair; send the character \
             itself as UTF-8, or both halves ({text})"
        )),
        Category::Io | Category::Syntax | Category::Eof => {
            ApiError::invalid_json(format!("the body is not valid JSON: {text}"))
        }
        Category::Data => {
            let text = text.split(" at line ").next().unwrap_or_default();
            field_fault(dotted(error.path()), &in_plain_words(text))
        }
    }
}

/// Tells the reader's data errors apart by their first words, which are all that it offers.
fn field_fault(path: String, text: &str) -> ApiError {
    let named = |rest: &str| {
        let name = rest.split('`').nth(1).unwrap_or_default().to_owned();
        if path.is_empty() {
            name
        } else {
            format!("{path}.{name}")
        }
    };
    let place = if path.is_empty() {
        "the body".to_owned()
    } else {
        format!("`{path}`")
    };
    if text.starts_with("missing field") {
        ApiError::missing(named(text))
    } else if text.starts_with("unknown field") {
        // The reader has stepped into the field already.
        let param = if path.is_empty() { named(text) } else { path };
        ApiError::unknown_parameter(param, text)
    } else if let Some(rest) = text.strip_prefix("invalid type: ") {
        ApiError::invalid_type(path, format!("{place} has the wrong type: {rest}"))
    } else {
        ApiError::invalid_value(path, format!("{place}: {text}"))
    }
}

fn dotted(path: &serde_path_to_error::Path) -> String {
    let segments: Vec<String> = path
        .iter()
        .filter_map(|segment| match segment {
            Segment::Seq { index } => Some(index.to_string()),
            Segment::Map { key } => Some(key.clone()),
            Segment::Enum { .. } | Segment::Unknown => None,
        })
        .collect();
    segments.join(".")
}

/// Says "a whole number" where the reader says `i64`.
fn in_plain_words(text: &str) -> String {
    let mut plain = text.to_owned();
    for (theirs, ours) in [
        ("expected i64", "expected a whole number"),
        ("expected u64", "expected a whole number from 0"),
        ("expected u32", "expected a whole number from 0"),
        ("expected f64", "expected a number"),
    ] {
        plain = plain.replace(theirs, ours);
    }
    plain
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Form {
        #[serde(rename = "number")]
        _number: Option<f64>,
        #[serde(rename = "items")]
        _items: Option<Vec<Object<Item>>>,
    }

    #[derive(Debug, Deserialize)]
    struct Item {
        #[serde(rename = "name")]
        _name: String,
    }

    #[test]
    fn every_fault_names_its_field() {
        let table = [
            ("{", "invalid_json", None),
            ("{} x", "invalid_json", None),
            ("[]", "invalid_type", None),
            ("{\"number\":1,}", "invalid_json", None),
            ("{'a':1}", "invalid_json", None),
            ("{\"number\":\"x\"}", "invalid_type", Some("number")),
            (
                "{\"items\":[{\"name\":\"a\"},{\"name\":1}]}",
                "invalid_type",
                Some("items.1.name"),
            ),
            ("{\"items\":[[\"a\"]]}", "invalid_type", Some("items.0")),
            (
                "{\"items\":[{}]}",
                "missing_required_parameter",
                Some("items.0.name"),
            ),
            ("{\"other\":1}", "unknown_parameter", Some("other")),
            ("{\"number\":1,\"number\":2}", "invalid_value", None),
        ];
        for (text, code, param) in table {
            let error = parse::<Form>(text.as_bytes()).unwrap_err();
            assert_eq!(error.status(), 400, "{text}");
            assert_eq!(
                (error.body().code, error.body().param.as_deref()),
                (Some(code), param),
                "{text}"
            );
        }
        assert!(parse::<Form>(b"{\"number\":null}").is_ok());
    }

    #[test]
    fn text_that_is_none_is_refused_before_it_is_read() {
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(20_000), "]".repeat(20_000));
        for bad in [
            b"".as_slice(),
            b"  ",
            b"{\"a\":\"\xff\"}",
            b"\xff\xfe{\0",
            deep.as_bytes(),
        ] {
            let error = check_text(bad).unwrap_err();
            assert_eq!((error.status(), error.body().code), (400, Some("invalid_json")));
        }
        assert!(check_text(format!("{{\"a\":\"{}\\\"[\"}}", "[".repeat(500)).as_bytes()).is_ok());
    }

    #[test]
    fn only_types_that_cannot_be_json_are_refused() {
        let table = [
            (header::CONTENT_TYPE, "application/json; charset=utf-8", true),
            (header::CONTENT_TYPE, "text/plain", true),
            (header::CONTENT_TYPE, "Multipart/Form-Data; boundary=x", false),
            (header::CONTENT_TYPE, "application/octet-stream", false),
            (header::CONTENT_ENCODING, "gzip", false),
            (header::CONTENT_ENCODING, "Identity", true),
        ];
        for (name, value, ok) in table {
            let headers = HeaderMap::from_iter([(name, HeaderValue::from_static(value))]);
            assert_eq!(media_type(&headers).is_ok(), ok, "{value}");
        }
        assert!(media_type(&HeaderMap::new()).is_ok());
    }
}
