//! The API's description: as a document for programs, and as a page for people. Both behind any valid key.

use axum::{
    extract::State,
    http::{HeaderName, HeaderValue, header},
    response::{Html, IntoResponse as _, Response},
};
use serde_json::Value;

use crate::http::AppState;

/// The page needs nothing from anywhere and runs nothing.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);
const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
    summary{cursor:pointer;padding:.4rem 0;border-top:1px solid #ccc}code,pre{font-family:ui-monospace,monospace}\
    pre{background:#f4f4f4;color:#111;padding:.8rem;overflow:auto;max-height:30rem}.verb{display:inline-block;\
    min-width:5rem;font-weight:600;text-transform:uppercase}@media(prefers-color-scheme:dark){body{background:#111;\
    color:#eee}}";

/// The OpenAPI document
#[utoipa::path(get, path = "/openapi.json", tag = "docs", responses((status = 200, description = "this document", body = Object)))]
pub(in crate::http) async fn document(State(app): State<AppState>) -> Response {
    let json = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, json)], app.document.clone()).into_response()
}

/// The document as a page
#[utoipa::path(get, path = "/docs", tag = "docs", responses((status = 200, description = "a page", body = String, content_type = "text/html")))]
pub(in crate::http) async fn page(State(app): State<AppState>) -> Response {
    let nosniff = (
        HeaderName::from_static("x-content-type-options"),
        HeaderValue::from_static("nosniff"),
    );
    let headers = [(header::CONTENT_SECURITY_POLICY, POLICY), nosniff];
    (headers, Html(app.page.clone())).into_response()
}

/// Writes the page from the document's text.
pub(in crate::http) fn render(document: &str) -> String {
    let document: Value = serde_json::from_str(document).unwrap_or_default();
    let mut body = Vec::new();
    let text = |pointer: &str| {
        escaped(
            document
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default(),
        )
    };
    body.push(format!(
        "<h1>{} {}</h1><p>{}</p>",
        text("/info/title"),
        text("/info/version"),
        text("/info/description")
    ));
    body.push("<h2>Routes</h2>".to_owned());
    for (path, operations) in members(document.get("paths")) {
        for (verb, operation) in members(Some(operations)) {
            operation_html(&mut body, path, verb, operation);
        }
    }
    body.push("<h2>Shapes</h2>".to_owned());
    for (name, schema) in members(document.pointer("/components/schemas")) {
        let anchor = escaped(name);
        body.push(format!(
            "<details id=\"{anchor}\"><summary><code>{anchor}</code></summary>{}</details>",
            json_html(schema)
        ));
    }
    let body = body.concat();
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>tidegate API</title><style>{STYLE}</style></head><body>{body}</body></html>"
    )
}

fn operation_html(body: &mut Vec<String>, path: &str, verb: &str, operation: &Value) {
    let text = |field: &str| escaped(operation.get(field).and_then(Value::as_str).unwrap_or_default());
    let (verb, path) = (escaped(verb), escaped(path));
    body.push(format!(
        "<details><summary><span class=\"verb\">{verb}</span><code>{path}</code> {}</summary>",
        text("summary")
    ));
    body.push(format!("<p>{}</p>", text("description")));
    for (title, field) in [
        ("Parameters", "parameters"),
        ("Body", "requestBody"),
        ("Answers", "responses"),
    ] {
        if let Some(part) = operation.get(field) {
            body.push(format!("<h4>{title}</h4>{}", json_html(part)));
        }
    }
    body.push("</details>".to_owned());
}

fn members(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_object).into_iter().flatten()
}

fn json_html(value: &Value) -> String {
    format!(
        "<pre>{}</pre>",
        escaped(&serde_json::to_string_pretty(value).unwrap_or_default())
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
