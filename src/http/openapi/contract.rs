//! What every route has from the layers around it, and no handler says: headers in and out, and the statuses of
//! refusals.

use serde_json::{Map, Value, json};
use tidegate_core::caller::Mode;

use crate::http::{
    Options, PUBLIC_ROUTES,
    auth::{CONVERSATION_BYTES_MAX, CONVERSATION_HEADER, MODE_HEADER},
};

const CHAT: &str = "/v1/chat/completions";
const CAPABILITIES: &str = "/v1/capabilities";
const UPLOADS: &str = "/v1/admin/kb/documents/{path}";

/// A refusal: its status, the name of its component, when it comes, and the headers that it has besides those
/// of every answer.
struct Refusal {
    status: &'static str,
    name: &'static str,
    when: &'static str,
    headers: &'static [&'static str],
}

const fn refusal(
    status: &'static str,
    name: &'static str,
    when: &'static str,
    headers: &'static [&'static str],
) -> Refusal {
    Refusal {
        status,
        name,
        when,
        headers,
    }
}

/// Every refusal that a route can answer with.
const REFUSALS: [Refusal; 16] = [
    refusal(
        "400",
        "BadRequest",
        "the request is malformed, or a value in its head, address or body breaks a rule; `param` names the field",
        &[],
    ),
    refusal(
        "401",
        "Unauthorized",
        "no key, or one that is malformed, unknown, disabled or expired",
        &["www-authenticate"],
    ),
    refusal(
        "403",
        "Forbidden",
        "the key lacks the scope of the route, or the Host or Origin is not one that is served",
        &[],
    ),
    refusal(
        "404",
        "NotFound",
        "there is no such thing, or this key may not see it",
        &[],
    ),
    refusal(
        "405",
        "MethodNotAllowed",
        "the route has no such method; `allow` lists those it has",
        &["allow"],
    ),
    refusal("408", "RequestTimeout", "the body did not arrive in time", &[]),
    refusal(
        "413",
        "ContentTooLarge",
        "the body is larger than one may be",
        &[],
    ),
    refusal("414", "UriTooLong", "the address is longer than one may be", &[]),
    refusal(
        "415",
        "UnsupportedMediaType",
        "the body is compressed or of a type that cannot be JSON",
        &[],
    ),
    refusal(
        "422",
        "UnprocessableContent",
        "the model's server takes the request for well-formed and cannot work on it",
        &[],
    ),
    refusal(
        "429",
        "TooManyRequests",
        "the key's requests a minute, turns at once or tokens of the day are used up, or the model's server says so",
        &["retry-after", "x-should-retry"],
    ),
    refusal(
        "431",
        "HeadTooLarge",
        "the head has more fields or bytes than one may have",
        &[],
    ),
    refusal(
        "500",
        "InternalError",
        "the server failed; its log has the details under the answer's `x-request-id`",
        &[],
    ),
    refusal(
        "502",
        "BadGateway",
        "the model's server cannot be reached or answers what it must not",
        &["x-should-retry"],
    ),
    refusal(
        "503",
        "ServiceUnavailable",
        "the server is stopping, has as much under way as it may, or no model is configured",
        &["retry-after", "x-should-retry"],
    ),
    refusal(
        "504",
        "GatewayTimeout",
        "the model or the turn took longer than it may",
        &["x-should-retry"],
    ),
];

/// Headers of answers, and what they say.
const HEADERS: [(&str, &str); 12] = [
    (
        "x-request-id",
        "the answer's id, `req_…`; the server's log has it on every line of the request",
    ),
    (
        "openai-processing-ms",
        "how long the answer took to begin, in milliseconds",
    ),
    ("openai-version", "the version of the API whose shapes are spoken"),
    (
        "x-run-id",
        "the id of the run that answers, for GET /v1/runs/{id}",
    ),
    ("retry-after", "seconds until it is worth asking again"),
    (
        "x-should-retry",
        "`true` or `false`: whether a client should ask again by itself, over its own rules",
    ),
    (
        "x-ratelimit-limit-requests",
        "the key's requests a minute; absent where it has no limit",
    ),
    ("x-ratelimit-remaining-requests", "how many of them are left"),
    (
        "x-ratelimit-reset-requests",
        "when all of them are there again, such as `12ms`, `1s` or `6m0s`",
    ),
    ("www-authenticate", "`Bearer`"),
    ("allow", "the methods that the route has"),
    ("connection", "`close` where the connection ends with the answer"),
];
/// Those of every answer.
const ALWAYS: [&str; 3] = ["x-request-id", "openai-processing-ms", "openai-version"];
/// Those of the answers to a key with a limit.
const LIMITED: [&str; 3] = [
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
];

/// Completes the document that the handlers make.
pub(super) fn complete(document: &mut Value, options: &Options) {
    components(document, options);
    document["security"] = json!([{"bearer": []}, {"api-key": []}, {"x-api-key": []}]);
    let Some(paths) = document.get_mut("paths").and_then(Value::as_object_mut) else {
        return;
    };
    for (path, operations) in paths {
        for (method, operation) in operations.as_object_mut().into_iter().flatten() {
            answers(path, method, operation);
            parameters(path, operation, options);
        }
    }
}

fn components(document: &mut Value, options: &Options) {
    let headers = HEADERS.iter().map(|(name, description)| {
        let header = json!({"description": description, "schema": {"type": "string"}});
        ((*name).to_owned(), header)
    });
    let responses = REFUSALS.iter().map(|refusal| {
        let response = json!({
            "description": refusal.when,
            "headers": references(ALWAYS.iter().chain(refusal.headers)),
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Envelope"}}},
        });
        (refusal.name.to_owned(), response)
    });
    let parameters = request_headers(options).map(|header| {
        let parameter = json!({
            "name": header.name, "in": "header", "required": false, "description": header.description,
            "schema": header.schema,
        });
        (header.name.to_owned(), parameter)
    });
    let parts = [
        ("headers", Value::Object(headers.collect())),
        ("responses", Value::Object(responses.collect())),
        ("parameters", Value::Object(parameters.collect())),
        (
            "securitySchemes",
            json!({
                "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "tg_…"},
                "api-key": {"type": "apiKey", "in": "header", "name": "api-key"},
                "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            }),
        ),
    ];
    for (name, part) in parts {
        document["components"][name] = part;
    }
}

/// A header that a client may send.
struct RequestHeader<'a> {
    name: &'a str,
    description: &'static str,
    schema: Value,
    /// The routes that heed it.
    heeded: Heeded,
}

/// Which routes heed a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heeded {
    Everywhere,
    ByTurns,
    /// By turns, and by the report of what a turn may do.
    ByTurnsAndReport,
    /// By turns, and where the user's memory is shown and changed.
    ByTurnsAndMemory,
}

impl Heeded {
    fn holds(self, path: &str) -> bool {
        match self {
            Self::Everywhere => true,
            Self::ByTurns => path == CHAT,
            Self::ByTurnsAndReport => path == CHAT || path == CAPABILITIES,
            Self::ByTurnsAndMemory => path == CHAT || path.starts_with("/v1/memory"),
        }
    }
}

fn request_headers(options: &Options) -> impl Iterator<Item = RequestHeader<'_>> {
    let modes: Vec<&str> = Mode::ALL.into_iter().map(Mode::name).collect();
    let fixed = [
        RequestHeader {
            name: MODE_HEADER,
            description: "the permission mode of this turn, or the one that is reported about. It can only lower what \
                          the key may do, never raise it; absent: the key's own ceiling",
            schema: json!({"type": "string", "enum": modes}),
            heeded: Heeded::ByTurnsAndReport,
        },
        RequestHeader {
            name: CONVERSATION_HEADER,
            description: "a name of the conversation that this turn belongs to; an approval opens only the call of the \
                          conversation in which it was asked for. Absent: told by the messages",
            schema: json!({"type": "string", "minLength": 1, "maxLength": CONVERSATION_BYTES_MAX}),
            heeded: Heeded::ByTurns,
        },
        RequestHeader {
            name: "x-client-request-id",
            description: "an id of the client's own; it stands in the server's log beside the answer's `x-request-id`",
            schema: json!({"type": "string", "maxLength": 128}),
            heeded: Heeded::Everywhere,
        },
        RequestHeader {
            name: "x-stainless-retry-count",
            description: "how often the client has asked already; it stands in the server's log",
            schema: json!({"type": "string"}),
            heeded: Heeded::Everywhere,
        },
    ];
    let user = options.user_header.as_deref().map(|name| RequestHeader {
        name,
        description: "the end user on whose behalf the turn runs, or whose memory it is, within the key \
                      (`server.user_header`); `user` in the body or in the query string goes before it",
        schema: json!({"type": "string"}),
        heeded: Heeded::ByTurnsAndMemory,
    });
    fixed.into_iter().chain(user)
}

/// Whether a route shows or changes what is remembered.
fn is_memory(path: &str) -> bool {
    path.starts_with("/v1/memory") || path.starts_with("/v1/admin/memory/") || path.ends_with("/memory")
}

fn parameters(path: &str, operation: &mut Value, options: &Options) {
    let names = request_headers(options).filter(|header| header.heeded.holds(path));
    let references = names.map(|header| json!({"$ref": format!("#/components/parameters/{}", header.name)}));
    let mut all = operation
        .get("parameters")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    all.extend(references);
    operation["parameters"] = Value::Array(all);
}

/// The refusals of a route, and the headers of its good answers.
fn answers(path: &str, method: &str, operation: &mut Value) {
    let is_public = PUBLIC_ROUTES.iter().any(|(route, _)| *route == path);
    let mut answers: Vec<(String, Value)> = operation["responses"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(status, answer)| (status.clone(), answer.clone()))
        .collect();
    for (_, answer) in &mut answers {
        let limited = LIMITED.iter().filter(|_| !is_public);
        let run = (path == CHAT).then_some(&"x-run-id");
        answer["headers"] = references(ALWAYS.iter().chain(limited).chain(run));
    }
    if path == CHAT
        && let Some((_, answer)) = answers.first_mut()
    {
        answer["description"] = json!("the answer; with `stream` its chunks as events, `[DONE]` the last");
        answer["content"]["text/event-stream"] =
            json!({"schema": {"$ref": "#/components/schemas/ChatCompletionChunk"}});
    }
    let has_body = matches!(method, "post" | "patch" | "put");
    let is_upload = method == "put" && path == UPLOADS;
    let refusals = REFUSALS.iter().filter(|refusal| match refusal.status {
        "401" | "429" | "503" => !is_public,
        // What is uploaded need not be there before, and may be of any kind. Memory may be switched off.
        "404" => path == CHAT || is_memory(path) || path.contains('{') && !is_upload,
        "415" => has_body && !is_upload,
        "408" | "413" => has_body,
        "422" => path == CHAT,
        "502" | "504" => path == CHAT || path.starts_with("/v1/models"),
        _ => true,
    });
    answers.extend(refusals.map(|refusal| {
        let reference = format!("#/components/responses/{}", refusal.name);
        (refusal.status.to_owned(), json!({"$ref": reference}))
    }));
    answers.sort_by(|(a, _), (b, _)| a.cmp(b));
    operation["responses"] = Value::Object(answers.into_iter().collect::<Map<_, _>>());
}

fn references<'a>(names: impl Iterator<Item = &'a &'a str>) -> Value {
    let pairs = names.map(|name| {
        let reference = json!({"$ref": format!("#/components/headers/{name}")});
        ((*name).to_owned(), reference)
    });
    Value::Object(pairs.collect())
}
