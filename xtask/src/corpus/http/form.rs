//! The forms of `input`.

use std::io::Write;

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use serde_json::{Map, Value, json};

use super::Judged;
use super::case::text;
use super::fill::{ABSENT, BYTES_MAX, Places};

/// The head of a chat request whose body follows.
const POST_HEAD: &str = "POST {SEND} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {TOKEN}\r\n\
                         Content-Type: application/json\r\n";

/// The configuration that the daemon under test has. Lines for another one are left out.
const CONFIG: [(&str, &str); 2] = [("auth", "bearer"), ("bind", "loopback")];

/// What is put to the daemon.
pub(super) enum Input {
    /// A text, sent as it stands.
    Raw(String),
    /// A head without its end, and the body's bytes.
    Bytes { head: String, body: Vec<u8> },
    /// A body made by a rule, after the usual head.
    Body(Generated),
    /// A whole request made by a rule.
    Whole(Generated),
    /// A text, one piece at a time, and then silence.
    Slow { text: String, bytes_per_s: u64 },
    /// A text, after which the client closes its side.
    HalfClose(String),
    /// Connections that send nothing.
    OpenIdle(usize),
    /// Connections that are opened, used once and left, again and again.
    Reconnect { to: String, times: usize },
    /// A request whose answer is read slowly.
    SlowRead {
        request: String,
        bytes_per_s: u64,
        seconds: u64,
    },
    /// Two wrong keys, compared in time.
    Timing { rounds: usize },
    /// A question to a model that answers in an odd way.
    Model(ModelReply),
}

/// A text made of parts, most of it by repetition.
pub(super) struct Generated {
    start: String,
    repeat: (String, usize),
    middle: String,
    repeat_end: (String, usize),
    end: String,
    packed: Option<Packed>,
}

#[derive(Clone, Copy)]
struct Packed {
    zeros: usize,
    gzip_rounds: usize,
}

/// What the scripted model does.
pub(super) enum ModelReply {
    /// A tool call with arguments nested so deep.
    JsonDepth(usize),
    /// So many tool calls in one reply.
    ToolCalls(usize),
    /// The same refused call, for ever.
    ToolLoop,
    /// A call that runs this command.
    Command(String),
    /// Text without end.
    Endless { bytes_per_s: u64, seconds: u64 },
    /// So many bytes of text.
    TextBytes(usize),
    /// A status.
    Status(u16),
    /// Exactly this text as the answer's body.
    Garbage(String),
    /// No answer.
    Never,
    /// Half an answer.
    Cut,
    /// Nothing at all.
    Empty,
}

impl Input {
    /// Reads an input; the error says why the line is left out.
    pub(super) fn read(input: &Value, config: &Map<String, Value>) -> Result<Self, Judged> {
        if let Some((key, value)) = config.iter().find(|(key, value)| {
            !CONFIG
                .iter()
                .any(|(known, only)| known == key && value.as_str() == Some(only))
        }) {
            let needs = format!("needs the configuration `{key} = {value}`");
            return Err(Judged::Unknown(needs));
        }
        let whole = input.to_string();
        if let Some(absent) = ABSENT.iter().find(|route| whole.contains(**route)) {
            return Err(Judged::Absent(format!("the route {absent}")));
        }
        if input.get("mcp_reply").is_some() {
            return Err(Judged::Absent("MCP".to_owned()));
        }
        let nothing = Map::new();
        let input = input.as_object().unwrap_or(&nothing);
        let unknown = || {
            Judged::Unknown(format!(
                "the form {:?} is not known here yet",
                input.keys().collect::<Vec<_>>()
            ))
        };
        let key = input
            .keys()
            .find(|key| key.as_str() != "body_hex")
            .ok_or_else(unknown)?;
        let value = &input[key];
        let parsed = match key.as_str() {
            "raw" => value.as_str().map(|raw| Self::Raw(raw.to_owned())),
            "raw_prefix" => value
                .as_str()
                .zip(input.get("body_hex").and_then(Value::as_str))
                .and_then(|(head, hex)| {
                    Some(Self::Bytes {
                        head: head.to_owned(),
                        body: bytes_of_hex(hex)?,
                    })
                }),
            "gen_body" => Generated::read(value).map(Self::Body),
            "gen_raw" => Generated::read(value).map(Self::Whole),
            "slow" => value["text"].as_str().map(|text| Self::Slow {
                text: text.to_owned(),
                bytes_per_s: value["bytes_per_s"].as_u64().unwrap_or(1).max(1),
            }),
            "half_close" => value.as_str().map(|raw| Self::HalfClose(raw.to_owned())),
            "open_idle" => count(value).map(Self::OpenIdle),
            "reconnect" => value["to"]
                .as_str()
                .zip(count(&value["times"]))
                .map(|(to, times)| Self::Reconnect {
                    to: to.to_owned(),
                    times,
                }),
            "slow_read" => value["request"].as_str().map(|request| Self::SlowRead {
                request: request.to_owned(),
                bytes_per_s: value["read_bytes_per_s"].as_u64().unwrap_or(1).max(1),
                seconds: value["seconds"].as_u64().unwrap_or(20),
            }),
            "timing" => count(&value["n"]).map(|rounds| Self::Timing { rounds }),
            "model_reply" => ModelReply::read(value).map(Self::Model),
            "gen_command" => {
                let command = text(value).or_else(|| text(&json!({"gen": value})));
                command.map(|command| Self::Model(ModelReply::Command(command)))
            }
            _ => None,
        };
        parsed.ok_or_else(unknown)
    }

    /// The bytes of the forms that are one request.
    pub(super) fn bytes(&self, places: &Places) -> Result<Option<Vec<u8>>> {
        Ok(match self {
            Self::Raw(text) | Self::HalfClose(text) => Some(places.fill(text).into_bytes()),
            Self::Bytes { head, body } => {
                let head = places.fill(head);
                Some(
                    [
                        format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes(),
                        body,
                    ]
                    .concat(),
                )
            }
            Self::Body(generated) => {
                let body = generated.bytes(places)?;
                let head = places.fill(POST_HEAD);
                Some(
                    [
                        format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes(),
                        &body,
                    ]
                    .concat(),
                )
            }
            Self::Whole(generated) => Some(generated.bytes(places)?),
            Self::Slow { .. }
            | Self::OpenIdle(_)
            | Self::Reconnect { .. }
            | Self::SlowRead { .. }
            | Self::Timing { .. }
            | Self::Model(_) => None,
        })
    }
}

impl Generated {
    fn read(value: &Value) -> Option<Self> {
        let value = value.get("gen").unwrap_or(value);
        let text = |names: [&str; 2]| {
            let found = names.iter().find_map(|name| value[*name].as_str());
            found.unwrap_or_default().to_owned()
        };
        let repeat = |names: [&str; 2]| {
            let found = names
                .iter()
                .map(|name| &value[*name])
                .find(|found| found.is_array());
            let found = found.and_then(|pair| Some((pair[0].as_str()?.to_owned(), count(&pair[1])?)));
            found.unwrap_or_default()
        };
        let packed = [
            ("gzip_of_zeros", 1),
            ("gzip_twice_of_zeros", 2),
            ("deflate_of_zeros", 0),
        ];
        let packed = packed.into_iter().find_map(|(name, gzip_rounds)| {
            Some(Packed {
                zeros: count(&value[name])?,
                gzip_rounds,
            })
        });
        value.is_object().then(|| Self {
            start: text(["start", "prefix"]),
            repeat: repeat(["repeat", "repeat"]),
            middle: text(["middle", "middle"]),
            repeat_end: repeat(["repeat_end", "suffix_repeat"]),
            end: text(["end", "suffix"]),
            packed,
        })
    }

    fn bytes(&self, places: &Places) -> Result<Vec<u8>> {
        let packed = self.packed.map(Packed::bytes).transpose()?.unwrap_or_default();
        let length = packed.len().to_string();
        let part = |text: &str| places.fill(&text.replace("{LEN}", &length)).into_bytes();
        let mut bytes = part(&self.start);
        bytes.extend(repeated(&self.repeat, places)?);
        bytes.extend(packed);
        bytes.extend(part(&self.middle));
        bytes.extend(repeated(&self.repeat_end, places)?);
        bytes.extend(part(&self.end));
        Ok(bytes)
    }
}

fn repeated((text, times): &(String, usize), places: &Places) -> Result<Vec<u8>> {
    let filled = places.fill(text);
    let length = filled
        .len()
        .checked_mul(*times)
        .filter(|length| *length <= BYTES_MAX);
    length.context("a generated text is too long")?;
    if filled.contains("{i}") {
        return Ok((0..*times)
            .map(|number| filled.replace("{i}", &number.to_string()))
            .collect::<String>()
            .into_bytes());
    }
    Ok(filled.repeat(*times).into_bytes())
}

impl Packed {
    fn bytes(self) -> Result<Vec<u8>> {
        let zeros = vec![0; self.zeros.min(BYTES_MAX)];
        if self.gzip_rounds == 0 {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&zeros)?;
            return Ok(encoder.finish()?);
        }
        let mut bytes = zeros;
        for _ in 0..self.gzip_rounds {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&bytes)?;
            bytes = encoder.finish()?;
        }
        Ok(bytes)
    }
}

impl ModelReply {
    fn read(value: &Value) -> Option<Self> {
        let (key, inner) = value.as_object()?.iter().next()?;
        match key.as_str() {
            "json_depth" => count(inner).map(Self::JsonDepth),
            "tool_calls" => count(inner).map(Self::ToolCalls),
            "tool_loop" => Some(Self::ToolLoop),
            "endless_stream_bytes_per_s" => Some(Self::Endless {
                bytes_per_s: inner.as_u64()?,
                seconds: value["seconds"].as_u64().unwrap_or(60),
            }),
            "text_bytes" | "bytes" => count(inner).map(Self::TextBytes),
            "status" => inner
                .as_u64()
                .and_then(|status| u16::try_from(status).ok())
                .map(Self::Status),
            "garbage" | "raw" | "body" => inner.as_str().map(|text| Self::Garbage(text.to_owned())),
            "never_answers" => Some(Self::Never),
            "half_chunk" | "cut" => Some(Self::Cut),
            "empty" | "nothing" => Some(Self::Empty),
            _ => None,
        }
    }
}

fn count(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|count| usize::try_from(count).ok())
}

fn bytes_of_hex(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &Value) -> Result<Input, Judged> {
        Input::read(input, &Map::new())
    }

    #[test]
    fn a_generated_body_follows_its_rule() {
        let input = json!({"gen_body": {"start": "<", "repeat": ["k{i},", 3], "middle": "m", "repeat_end": [")", 2], "end": ">"}});
        let places = Places::new("127.0.0.1:80", 80, "key");
        let bytes = read(&input).unwrap().bytes(&places).unwrap().unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(
            text.ends_with("Content-Length: 14\r\n\r\n<k0,k1,k2,m))>"),
            "{text}"
        );
    }

    #[test]
    fn packed_zeros_say_their_length() {
        let input = json!({"gen_raw": {"start": "L {LEN}\n", "gzip_of_zeros": 1_000_000, "end": ""}});
        let places = Places::new("127.0.0.1:80", 80, "key");
        let bytes = read(&input).unwrap().bytes(&places).unwrap().unwrap();
        let end = bytes.iter().position(|&byte| byte == b'\n').unwrap();
        let length: usize = std::str::from_utf8(&bytes[2..end]).unwrap().parse().unwrap();
        assert_eq!(length, bytes.len() - end - 1);
        assert!(length < 10_000);
    }

    #[test]
    fn what_cannot_be_put_is_left_out_with_a_reason() {
        for input in [
            json!({"raw": "GET {EVENTS} HTTP/1.1\r\n\r\n"}),
            json!({"mcp_reply": {"tools": 1}}),
            json!({"gen_command": {"repeat": ["a"]}}),
            json!({"model_reply": {"sings": true}}),
            json!({}),
        ] {
            assert!(read(&input).is_err());
        }
        assert!(
            matches!(read(&json!({"raw_prefix": "x", "body_hex": "c0af"})), Ok(Input::Bytes { body, .. }) if body == [0xc0, 0xaf])
        );
    }
}
