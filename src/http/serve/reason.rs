//! Says what is wrong with a head that hyper has refused.
//!
//! Hyper tells a status and no more. The head's own bytes tell the rest: they are read again here, once, after
//! the refusal, by the rules of RFC 9112. Nothing of a value is repeated: it may be a key.

use axum::http::StatusCode;

use super::{HEAD_BYTES_MAX, HEADERS_MAX};
use crate::http::error::ApiError;

/// The one coding of a body on its way.
pub(super) const CHUNKED_ALONE: &str =
    "Transfer-Encoding is `chunked`, once, or not there; send the body as it is";

/// The error for a head that was refused with this status. `is_cut`: these are not all of its bytes.
pub(super) fn of(head: &[u8], is_cut: bool, status: u16) -> ApiError {
    match StatusCode::from_u16(status) {
        Ok(StatusCode::URI_TOO_LONG) => ApiError::address_too_long(
            "the request's address is too long; what is long belongs in a JSON body",
        ),
        Ok(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE) => head_too_large(head, is_cut),
        // Hyper knows no other status of its own for a head.
        Ok(_) | Err(_) => ApiError::bad_head(fault(head)),
    }
}

/// The error for a head with more fields or bytes than one may have.
fn head_too_large(head: &[u8], is_cut: bool) -> ApiError {
    let fields = lines(head).skip(1).filter(|line| !line.is_empty()).count();
    if is_cut || head.len() >= HEAD_BYTES_MAX {
        too_many_bytes()
    } else if fields > HEADERS_MAX {
        too_many_fields()
    } else {
        // A length that no body can have is too large for it, too.
        ApiError::bad_head(fault(head))
    }
}

/// More header fields than a request may have.
pub(super) fn too_many_fields() -> ApiError {
    ApiError::head_too_large(format!(
        "a request has at most {HEADERS_MAX} header fields; send fewer"
    ))
}

/// More bytes than a head may have.
pub(super) fn too_many_bytes() -> ApiError {
    ApiError::head_too_large(format!(
        "the head of a request (its first line and its header fields) has at most {HEAD_BYTES_MAX} bytes; what is \
         long belongs in a JSON body"
    ))
}

fn fault(head: &[u8]) -> String {
    if head.starts_with(&[0x16, 0x03]) {
        return "this port speaks plain HTTP, and a TLS handshake came; ask by http:// or put a proxy that ends TLS \
                in front"
            .to_owned();
    }
    let mut lines = lines(head);
    // Empty lines before the first are skipped, as hyper does.
    let first = lines.by_ref().find(|line| !line.is_empty()).unwrap_or_default();
    let version = match request_line(first) {
        Ok(version) => version,
        Err(fault) => return fault.to_owned(),
    };
    let mut lengths = Vec::new();
    for (at, line) in lines.take_while(|line| !line.is_empty()).enumerate() {
        match field(line) {
            Ok((name, value)) if name.eq_ignore_ascii_case(b"content-length") => lengths.push(value),
            Ok((name, value)) if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                if let Some(fault) = encoding(version, value) {
                    return fault.to_owned();
                }
            }
            Ok(_) => {}
            Err(fault) => return format!("header field {} of the request {fault}", at + 1),
        }
    }
    length(&lengths).map_or_else(
        || "the head of the request is not that of an HTTP/1.1 request".to_owned(),
        str::to_owned,
    )
}

/// What stands between line feeds, a carriage return at the end left out.
fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// The version, or what is wrong with the line (RFC 9112, section 3).
fn request_line(line: &[u8]) -> Result<&[u8], &'static str> {
    let mut parts = line.splitn(3, |byte| *byte == b' ');
    let (method, target, version) = (parts.next(), parts.next(), parts.next());
    if !method.is_some_and(is_token) {
        return Err(
            "the request does not begin with a method; its first line reads `GET /v1/models HTTP/1.1`",
        );
    }
    let (Some(target), Some(version)) = (target, version) else {
        return Err("the first line of the request lacks its version; it reads `GET /v1/models HTTP/1.1`");
    };
    if version.contains(&b' ') || target.is_empty() {
        return Err(
            "the first line of the request is a method, an address and a version with one space between them; \
             write a space in an address as %20",
        );
    }
    if version == b"HTTP/2.0" || version == b"HTTP/2" {
        return Err("HTTP/2 begins with its whole preface and no request before it; else speak HTTP/1.1");
    }
    if version != b"HTTP/1.1" && version != b"HTTP/1.0" {
        return Err("the version of the request is not one that is spoken here; send HTTP/1.1");
    }
    Ok(version)
}

/// A field's name and value, or what is wrong with the line (RFC 9112, section 5).
fn field(line: &[u8]) -> Result<(&[u8], &[u8]), &'static str> {
    if line.starts_with(b" ") || line.starts_with(b"\t") {
        return Err("begins with a blank; a field stands on one line, and continued lines are not read");
    }
    let colon = line.iter().position(|byte| *byte == b':');
    let Some((name, value)) = colon.and_then(|colon| line.split_at_checked(colon)) else {
        return Err("has no colon; a field reads `name: value`");
    };
    if !is_token(name) {
        return Err("has a name with a character that none may have; no blank stands before its colon");
    }
    let value = value.get(1..).unwrap_or_default();
    if value
        .iter()
        .any(|byte| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f)
    {
        return Err("has a control character in its value; leave it out or encode it");
    }
    Ok((name, value.trim_ascii()))
}

/// Whether a field of the head is a Content-Length.
pub(super) fn names_length(head: &[u8]) -> bool {
    lines(head)
        .filter_map(|line| field(line).ok())
        .any(|(name, _)| name.eq_ignore_ascii_case(b"content-length"))
}

fn encoding(version: &[u8], value: &[u8]) -> Option<&'static str> {
    if version == b"HTTP/1.0" {
        return Some("HTTP/1.0 has no Transfer-Encoding; send Content-Length or speak HTTP/1.1");
    }
    let last = value.rsplit(|byte| *byte == b',').next().unwrap_or_default();
    (!last.trim_ascii().eq_ignore_ascii_case(b"chunked")).then_some(CHUNKED_ALONE)
}

fn length(values: &[&[u8]]) -> Option<&'static str> {
    let is_number = |value: &&[u8]| {
        let digits = std::str::from_utf8(value).unwrap_or_default();
        digits.bytes().all(|byte| byte.is_ascii_digit())
            && digits.parse::<u64>().is_ok_and(|length| length < u64::MAX - 1)
    };
    if !values.iter().all(is_number) {
        return Some("Content-Length is not a number of bytes; send the length of the body in digits");
    }
    values
        .windows(2)
        .any(|pair| pair.first() != pair.last())
        .then_some("Content-Length is given more than once; send it once")
}

/// RFC 9110, section 5.6.2.
fn is_token(text: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_reason() {
        let fields = "a: b\r\n".repeat(HEADERS_MAX + 1);
        let many = format!("GET / HTTP/1.1\r\n{fields}\r\n");
        let long = format!("GET / HTTP/1.1\r\na: {}", "b".repeat(HEAD_BYTES_MAX));
        let endless = "POST / HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\n";
        for (head, is_cut, status, expected, words) in [
            ("GET /a", true, 414, 414, "address is too long"),
            (&many, false, 431, 431, "64 header fields"),
            (&many, true, 431, 431, "65536 bytes"),
            (&long, false, 431, 431, "65536 bytes"),
            (endless, false, 431, 400, "Content-Length"),
            ("", false, 400, 400, "begin with a method"),
            (
                "GET / HTTP/1.1\r\na: b\r\n\r\n",
                false,
                400,
                400,
                "not that of an HTTP/1.1 request",
            ),
            (
                "GET / HTTP/1.1\r\na: b\r\n\r\n",
                false,
                0,
                400,
                "not that of an HTTP/1.1 request",
            ),
        ] {
            let error = of(head.as_bytes(), is_cut, status);
            assert_eq!(error.status(), expected, "{head:.40}");
            assert!(
                error.body().message.contains(words),
                "{head:.40}: {}",
                error.body().message
            );
        }
    }

    proptest::proptest! {
        /// Whatever the bytes are, there is a reason, and it repeats none of them.
        #[test]
        fn any_bytes_have_a_reason(head in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let text = fault(&head);
            proptest::prop_assert!(text.is_ascii() && text.len() < 300);
        }
    }
}
