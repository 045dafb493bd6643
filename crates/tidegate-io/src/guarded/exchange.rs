//! One request and its answer over one connection.

use std::{future::Future, pin::pin, time::Duration};

use http_body_util::Full;
use hyper::{
    HeaderMap, Request,
    client::conn::http1,
    header::{
        ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderName, HeaderValue, LOCATION,
    },
};
use hyper_util::rt::TokioIo;
use tidegate_gate::guards::address::Destination;
use tokio::time::timeout;

use super::{
    Error, Hop, Stream,
    body::{self, Packing},
};
use crate::http::root_cause;

/// The longest head of an answer, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// The longest description of an answer's kind that is repeated, in bytes.
const CONTENT_TYPE_BYTES_MAX: usize = 200;

/// Headers that belong to the connection. They come from the destination and the body, never from a caller.
const RESERVED_HEADERS: [&str; 13] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "proxy-connection",
    "proxy-authorization",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "keep-alive",
    "accept-encoding",
    "content-encoding",
];

/// Media types that are text without saying so.
const TEXT_TYPES: [&str; 12] = [
    "application/json",
    "application/ld+json",
    "application/ndjson",
    "application/x-ndjson",
    "application/xml",
    "application/xhtml+xml",
    "application/javascript",
    "application/x-javascript",
    "application/x-www-form-urlencoded",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
];

/// Bounds of one exchange.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    pub(super) bytes_max: usize,
    pub(super) first_byte: Duration,
    pub(super) takes_text_only: bool,
    /// Whether a redirect's own body is read, since it is the answer.
    pub(super) reads_redirects: bool,
}

/// What one server said.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: String,
    pub(super) body: Vec<u8>,
    pub(super) is_cut: bool,
    locations: Vec<HeaderValue>,
}

impl Answer {
    /// Whether it sends the client elsewhere.
    pub(super) fn is_redirect(&self) -> bool {
        (300..400).contains(&self.status) && self.status != 304 && !self.locations.is_empty()
    }

    /// Where to: one place, in text.
    pub(super) fn location(&self) -> Result<&str, Error> {
        match self.locations.as_slice() {
            [location] => std::str::from_utf8(location.as_bytes())
                .map_err(|_reason| Error::Redirect("to something that is no text")),
            _ => Err(Error::Redirect("to several places at once")),
        }
    }
}

/// Sends the request and reads the answer.
pub(super) async fn run(
    stream: Box<dyn Stream>,
    destination: &Destination,
    hop: &Hop,
    limits: &Limits,
) -> Result<Answer, Error> {
    let request = request(destination, hop)?;
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(crate::http::HEADERS_MAX)
        .handshake::<_, Full<bytes::Bytes>>(TokioIo::new(stream))
        .await
        .map_err(|problem| broken(&problem))?;
    let work = async {
        let response = timeout(limits.first_byte, sender.send_request(request))
            .await
            .map_err(|_elapsed| Error::Timeout("the answer"))?
            .map_err(|problem| broken(&problem))?;
        read(response, limits).await
    };
    beside(work, connection).await
}

/// Drives the connection while the work goes on, and no longer.
async fn beside<T>(
    work: impl Future<Output = Result<T, Error>>,
    connection: impl Future<Output = Result<(), hyper::Error>>,
) -> Result<T, Error> {
    let mut work = pin!(work);
    let mut connection = pin!(connection);
    tokio::select! {
        biased;
        done = &mut work => done,
        // The peer has closed; what it said before is still in the buffers, or the work sees the fault itself.
        _closed = &mut connection => work.await,
    }
}

fn broken(problem: &hyper::Error) -> Error {
    Error::Broken(root_cause(problem))
}

fn request(destination: &Destination, hop: &Hop) -> Result<Request<Full<bytes::Bytes>>, Error> {
    let mut headers = HeaderMap::new();
    for (name, value) in &hop.headers {
        let (Ok(name), Ok(mut value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) else {
            // A wrong name may itself be a secret in the wrong place, so it is not repeated.
            return Err(Error::Request(
                "a header holds characters that HTTP does not allow",
            ));
        };
        if RESERVED_HEADERS.contains(&name.as_str()) {
            return Err(Error::Request("a header belongs to the connection"));
        }
        value.set_sensitive(true);
        headers.append(name, value);
    }
    let host = HeaderValue::try_from(destination.authority())
        .map_err(|_reason| Error::Request("the host cannot be sent"))?;
    headers.insert(HOST, host);
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip, deflate"));
    headers
        .entry("user-agent")
        .or_insert(HeaderValue::from_static(concat!(
            "tidegate/",
            env!("CARGO_PKG_VERSION")
        )));
    headers.entry("accept").or_insert(HeaderValue::from_static("*/*"));
    let mut request = Request::builder()
        .method(hop.method.name())
        .uri(destination.path_and_query())
        .body(Full::new(hop.body.clone().unwrap_or_default()))
        .map_err(|_reason| Error::Request("the path cannot be sent"))?;
    *request.headers_mut() = headers;
    Ok(request)
}

async fn read(response: hyper::Response<hyper::body::Incoming>, limits: &Limits) -> Result<Answer, Error> {
    let (head, body) = response.into_parts();
    let status = head.status.as_u16();
    let mut answer = Answer {
        status,
        content_type: content_type(&head.headers),
        body: Vec::new(),
        is_cut: false,
        locations: head.headers.get_all(LOCATION).iter().cloned().collect(),
    };
    let is_text = is_text(&answer.content_type);
    if limits.takes_text_only && !is_text {
        if head.status.is_success() {
            return Err(Error::ContentType {
                content_type: answer.content_type,
            });
        }
        return Ok(answer);
    }
    if answer.is_redirect() && !limits.reads_redirects {
        return Ok(answer);
    }
    let mut encodings = head.headers.get_all(CONTENT_ENCODING).iter();
    let encoding = encodings
        .next()
        .map(|value| value.to_str().unwrap_or("unreadable"));
    if encodings.next().is_some() {
        return Err(Error::Encoding);
    }
    (answer.body, answer.is_cut) = body::read(body, Packing::of(encoding)?, limits.bytes_max).await?;
    Ok(answer)
}

fn content_type(headers: &HeaderMap) -> String {
    let text = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    text.get(..text.floor_char_boundary(CONTENT_TYPE_BYTES_MAX))
        .unwrap_or_default()
        .to_owned()
}

/// Whether a media type is text. One that is not given is taken for text and judged by its bytes.
fn is_text(content_type: &str) -> bool {
    let essence = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    essence.is_empty()
        || essence.starts_with("text/")
        || TEXT_TYPES.contains(&essence.as_str())
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || essence.ends_with("+yaml")
}
