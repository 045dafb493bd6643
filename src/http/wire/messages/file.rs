//! File parts. They go to a model's server as they are, so only what is known to name no address passes.

use serde_json::Value;
use tidegate_core::message::Part;

use crate::http::{error::ApiError, wire::json::Free};

/// What the contract knows of a file.
const FIELDS: [&str; 3] = ["filename", "file_id", "file_data"];

/// An object of texts. `remote` is whether the data may be an http(s) address for the model's server to fetch.
pub(super) fn file(file: Option<Free>, remote: bool, at: &str) -> Result<Part, ApiError> {
    let file = match file.map(|free| free.0) {
        None | Some(Value::Null) => return Err(ApiError::missing(at)),
        Some(file) => file,
    };
    let Value::Object(map) = &file else {
        return Err(ApiError::invalid_type(at, "`file` must be an object"));
    };
    for (name, value) in map {
        let param = format!("{at}.{name}");
        if !FIELDS.contains(&name.as_str()) {
            let message =
                format!("a file has no field `{name}`; it has `filename`, `file_id` and `file_data`");
            return Err(ApiError::unknown_parameter(param, message));
        }
        match value {
            Value::String(data) if name == "file_data" => check_data(data, remote, &param)?,
            Value::String(_) | Value::Null => {}
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                return Err(ApiError::invalid_type(
                    param,
                    format!("`{name}` must be a string"),
                ));
            }
        }
    }
    Ok(Part::File { file })
}

fn check_data(data: &str, remote: bool, param: &str) -> Result<(), ApiError> {
    let scheme = data
        .split_once(':')
        .map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("data") => Ok(()),
        Some("http" | "https") if remote => Ok(()),
        Some("http" | "https") => Err(ApiError::unsupported(
            param,
            "files at http(s) addresses are not fetched here; send the file as a `data:` URL or in base64, or let \
             the operator set `server.remote_images`",
        )),
        None if is_base64(data) => Ok(()),
        Some(_) | None => Err(ApiError::invalid_value(
            param,
            "`file_data` must be a `data:` URL or base64",
        )),
    }
}

/// Letters of base64 in either alphabet (RFC 4648, sections 4 and 5), lines broken or not, padding at the end.
fn is_base64(text: &str) -> bool {
    text.trim_end_matches(['=', '\r', '\n'])
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'\r' | b'\n'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_is_its_data_and_not_an_address() {
        let table = [
            (json!({"file_id": "f"}), None),
            (
                json!({"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}),
                None,
            ),
            (json!({"file_data": "DATA:text/plain,a"}), None),
            (json!({"file_data": "QUJD\nREU=\n"}), None),
            (json!({"file_data": "__-9", "filename": null}), None),
            (
                json!({"file_data": "https://inside.example/a"}),
                Some(("unsupported_value", ".file_data")),
            ),
            (
                json!({"file_data": "HTTP://127.0.0.1/"}),
                Some(("unsupported_value", ".file_data")),
            ),
            (
                json!({"file_data": "file:///etc/passwd"}),
                Some(("invalid_value", ".file_data")),
            ),
            (
                json!({"file_data": " https://inside.example/a"}),
                Some(("invalid_value", ".file_data")),
            ),
            (
                json!({"file_data": "//inside.example:80/a"}),
                Some(("invalid_value", ".file_data")),
            ),
            (
                json!({"file_data": "inside.example"}),
                Some(("invalid_value", ".file_data")),
            ),
            (json!({"file_data": 1}), Some(("invalid_type", ".file_data"))),
            (
                json!({"file_url": "https://inside.example/a"}),
                Some(("unknown_parameter", ".file_url")),
            ),
            (json!({"url": "data:,"}), Some(("unknown_parameter", ".url"))),
            (json!("f"), Some(("invalid_type", ""))),
            (json!(null), Some(("missing_required_parameter", ""))),
        ];
        for (value, fault) in table {
            let outcome = file(Some(Free(value.clone())), false, "at");
            match fault {
                None => assert_eq!(outcome.unwrap(), Part::File { file: value }),
                Some((code, place)) => {
                    let error = outcome.unwrap_err();
                    let found = (error.status(), error.body().code, error.body().param.clone());
                    assert_eq!(found, (400, Some(code), Some(format!("at{place}"))), "{value}");
                }
            }
        }
    }

    #[test]
    fn where_addresses_may_be_given_only_http_is_one() {
        for (data, ok) in [
            ("https://pictures.example/a", true),
            ("http://pictures.example/a", true),
            ("data:,a", true),
            ("QUJD", true),
            ("file:///etc/passwd", false),
            ("gopher://x", false),
        ] {
            assert_eq!(check_data(data, true, "at").is_ok(), ok, "{data}");
        }
    }
}
