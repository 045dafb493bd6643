//! HTTP templates: a fixed host, and arguments as encoded parts of path, query, headers and JSON body.

use std::{collections::BTreeSet, fmt};

use serde_json::{Map, Value};
use tidegate_core::tool::FailureCode;

use super::Text;
use crate::{
    arguments::{Argument, Problem, Values},
    output::add,
};

/// Headers that belong to the connection and that a row may not set.
const RESERVED_HEADERS: [&str; 9] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "keep-alive",
];

/// A request, as a row gives it.
#[derive(Clone, PartialEq)]
pub(crate) struct HttpTemplate {
    /// Scheme and authority: fixed.
    base: String,
    segments: Vec<Text>,
    query: Vec<Text>,
    headers: Vec<(String, Text)>,
    body: Option<Body>,
}

/// A request, ready to be sent.
#[derive(Clone, PartialEq)]
pub(crate) struct HttpRequest {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Value>,
}

/// A JSON body with placeholders in its texts.
#[derive(Debug, Clone, PartialEq)]
enum Body {
    Fixed(Value),
    Text(Text),
    List(Vec<Body>),
    Object(Vec<(String, Body)>),
}

impl HttpTemplate {
    /// Reads `url`, `headers` and `body` of a row. The error says what to change.
    pub(crate) fn parse<'h>(
        url: &str,
        headers: impl IntoIterator<Item = (&'h String, &'h String)>,
        body: Option<&Value>,
    ) -> Result<Self, String> {
        let (base, path, query) = split(url)?;
        let segments = path.split('/').map(Text::parse).collect::<Result<Vec<_>, _>>()?;
        if segments
            .iter()
            .any(|segment| segment.literal().is_some_and(is_dot_segment))
        {
            return Err(format!(
                "`url` has a `.` or `..` in its path: write `{url}` without it"
            ));
        }
        let query = match query {
            Some(query) => query.split('&').map(Text::parse).collect::<Result<Vec<_>, _>>()?,
            None => Vec::new(),
        };
        let headers = headers
            .into_iter()
            .map(|(name, value)| header(name, value))
            .collect::<Result<Vec<_>, _>>()?;
        let body = match body {
            Some(Value::String(text)) => {
                let value: Value = serde_json::from_str(text).map_err(|error| {
                    format!("`body` is text that is no JSON ({error}); write it as a table")
                })?;
                Some(Body::parse(&value)?)
            }
            Some(value) => Some(Body::parse(value)?),
            None => None,
        };
        Ok(Self {
            base: base.to_owned(),
            segments,
            query,
            headers,
            body,
        })
    }

    /// Scheme, host and port, as the row gives them.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Every text that the row itself sends: what stands beside the placeholders in path, query, headers and
    /// body. The operator's credential for the service is one of them.
    pub(crate) fn own_texts(&self) -> Vec<String> {
        let mut texts: Vec<&str> = self.segments.iter().flat_map(Text::literals).collect();
        texts.extend(self.query.iter().flat_map(Text::literals));
        texts.extend(self.headers.iter().flat_map(|(_, value)| value.literals()));
        let mut texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
        if let Some(body) = &self.body {
            body.collect_literals(&mut texts);
        }
        texts
    }

    /// Whether the row has a body.
    pub(crate) fn has_body(&self) -> bool {
        self.body.is_some()
    }

    /// The names of all placeholders.
    pub(crate) fn placeholders(&self) -> BTreeSet<&str> {
        let mut names: BTreeSet<&str> = self.path_placeholders();
        names.extend(self.query.iter().flat_map(Text::placeholders));
        names.extend(self.headers.iter().flat_map(|(_, value)| value.placeholders()));
        if let Some(body) = &self.body {
            body.collect_placeholders(&mut names);
        }
        names
    }

    /// The names of the placeholders in the path, none of which may be missing from a call.
    pub(crate) fn path_placeholders(&self) -> BTreeSet<&str> {
        self.segments.iter().flat_map(Text::placeholders).collect()
    }

    /// The request for these arguments.
    pub(crate) fn render(&self, values: &Values<'_>) -> Result<HttpRequest, Problem> {
        let mut url = self.base.clone();
        for (position, segment) in self.segments.iter().enumerate() {
            if position > 0 {
                url.push('/');
            }
            let Some(text) = segment.render(values, encoded) else {
                return Err(refusal(segment, "is missing"));
            };
            // A URL reader resolves these before the request is sent, also when they are percent-encoded.
            if segment.literal().is_none() && (text.is_empty() || is_dot_segment(&text)) {
                return Err(refusal(segment, "may not be empty, `.` or `..`"));
            }
            url.push_str(&text);
        }
        let pairs: Vec<String> = self
            .query
            .iter()
            .filter_map(|pair| pair.render(values, encoded))
            .collect();
        if !pairs.is_empty() {
            url.push('?');
            url.push_str(&pairs.join("&"));
        }
        let mut headers = Vec::with_capacity(self.headers.len());
        for (name, template) in &self.headers {
            let Some(value) = template.render(values, Argument::to_text) else {
                continue;
            };
            if !value.chars().all(is_header_character) {
                return Err(refusal(
                    template,
                    "may hold printable ASCII characters only, on one line",
                ));
            }
            headers.push((name.clone(), value));
        }
        Ok(HttpRequest {
            url,
            headers,
            body: self
                .body
                .as_ref()
                .map(|body| body.render(values).unwrap_or(Value::Null)),
        })
    }
}

impl fmt::Debug for HttpTemplate {
    /// Header values, query and body may hold the operator's credentials: they are never printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTemplate")
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest").finish_non_exhaustive()
    }
}

impl Body {
    fn parse(value: &Value) -> Result<Self, String> {
        Ok(match value {
            Value::String(text) => Self::Text(Text::parse(text)?),
            Value::Array(items) => Self::List(items.iter().map(Self::parse).collect::<Result<_, _>>()?),
            Value::Object(map) => Self::Object(
                map.iter()
                    .map(|(key, value)| Ok((key.clone(), Self::parse(value)?)))
                    .collect::<Result<_, String>>()?,
            ),
            Value::Null | Value::Bool(_) | Value::Number(_) => Self::Fixed(value.clone()),
        })
    }

    /// The body with the arguments in it; `None` for a part whose argument was not given.
    fn render(&self, values: &Values<'_>) -> Option<Value> {
        match self {
            Self::Fixed(value) => Some(value.clone()),
            // A text that is nothing but a placeholder keeps the argument's own type.
            Self::Text(text) => match text.lone_placeholder() {
                Some(name) => values.get(name).map(Argument::to_json),
                None => text.render(values, Argument::to_text).map(Value::from),
            },
            Self::List(items) => Some(items.iter().filter_map(|item| item.render(values)).collect()),
            Self::Object(members) => {
                let members = members
                    .iter()
                    .filter_map(|(key, member)| Some((key.clone(), member.render(values)?)));
                Some(Value::Object(members.collect::<Map<_, _>>()))
            }
        }
    }

    fn collect_literals(&self, texts: &mut Vec<String>) {
        match self {
            Self::Fixed(value) => texts.push(value.to_string()),
            Self::Text(text) => texts.extend(text.literals().map(str::to_owned)),
            Self::List(items) => items.iter().for_each(|item| item.collect_literals(texts)),
            Self::Object(members) => members.iter().for_each(|(key, member)| {
                texts.push(key.clone());
                member.collect_literals(texts);
            }),
        }
    }

    fn collect_placeholders<'b>(&'b self, names: &mut BTreeSet<&'b str>) {
        match self {
            Self::Fixed(_) => {}
            Self::Text(text) => names.extend(text.placeholders()),
            Self::List(items) => items.iter().for_each(|item| item.collect_placeholders(names)),
            Self::Object(members) => members
                .iter()
                .for_each(|(_, member)| member.collect_placeholders(names)),
        }
    }
}

/// Scheme and authority, path, and query, of a URL template.
fn split(url: &str) -> Result<(&str, &str, Option<&str>), String> {
    if let Some(bad) = url.chars().find(|letter| {
        letter.is_control() || letter.is_whitespace() || matches!(letter, '\\' | '#') || !letter.is_ascii()
    }) {
        return Err(format!(
            "`url` holds `{}`; write it percent-encoded, without white space, backslash or fragment",
            bad.escape_debug()
        ));
    }
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))
        .ok_or_else(|| format!("`url` must begin with `https://` or `http://`; `{url}` does not"))?;
    let authority_length = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, _) = rest.split_at(authority_length);
    if authority.is_empty() || authority.contains(['{', '}', '@', '%']) {
        return Err(format!(
            "`url` must name one fixed host, without placeholder or user name, before the path; `{url}` does not"
        ));
    }
    let (base, tail) = url.split_at(url.len() - rest.len() + authority_length);
    Ok(match tail.split_once('?') {
        Some((path, query)) => (base, path, Some(query)),
        None => (base, tail, None),
    })
}

fn header(name: &str, value: &str) -> Result<(String, Text), String> {
    let is_token = |letter: char| letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter);
    if name.is_empty() || !name.chars().all(is_token) {
        return Err(format!("`{}` is no header name", name.escape_debug()));
    }
    if RESERVED_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(format!(
            "the header `{name}` belongs to the connection; remove it"
        ));
    }
    if !value.chars().all(is_header_character) {
        return Err(format!(
            "the value of the header `{name}` must be printable ASCII on one line"
        ));
    }
    Ok((name.to_owned(), Text::parse(value)?))
}

fn is_header_character(letter: char) -> bool {
    matches!(letter, ' '..='~')
}

fn is_dot_segment(segment: &str) -> bool {
    let plain = segment.to_ascii_lowercase().replace("%2e", ".");
    plain == "." || plain == ".."
}

/// Percent-encoded: everything but the unreserved characters of RFC 3986 §2.3.
fn encoded(argument: &Argument) -> String {
    let mut text = String::new();
    for byte in argument.to_text().bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            text.push(char::from(byte));
        } else {
            add(&mut text, format_args!("%{byte:02X}"));
        }
    }
    text
}

fn refusal(part: &Text, why: &str) -> Problem {
    let names: Vec<String> = part
        .placeholders()
        .iter()
        .map(|name| format!("`{name}`"))
        .collect();
    Problem {
        code: FailureCode::InvalidArguments,
        message: format!("{} {why}.", names.join(", ")),
    }
}
