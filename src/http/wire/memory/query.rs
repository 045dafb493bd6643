//! What the query strings of memory may say.

use serde::{
    Deserialize as _,
    de::{IntoDeserializer as _, value::Error},
};
use tidegate_core::{
    id::{FactId, UserId},
    memory::FactState,
};
use utoipa::IntoParams;

use crate::http::{
    error::ApiError,
    extract::query::{QueryForm, Values},
};

/// Facts or people on a page that names no limit.
const LIMIT_DEFAULT: u32 = 100;
/// Facts or people on a page.
const LIMIT_MAX: u32 = 500;
/// Facts that a search finds where it names no limit.
const FOUND_DEFAULT: u32 = 8;
/// Facts that a search finds.
const FOUND_MAX: u32 = 50;
/// Bytes of a question; a longer one is refused.
const QUESTION_BYTES_MAX: usize = 4096;
/// Bytes of an id; a longer text is none.
const ID_BYTES_MAX: usize = 2048;

/// Whose memory.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the fields are the description of the query string")]
pub(in crate::http) struct WhoseMemory {
    /// A user of this key, by the name that chat completions have in `user`; for another one than the request's own the
    /// key needs the scope `admin`. Absent: the request's own user.
    user: Option<String>,
}

/// What [`WhoseMemory`] asks for.
#[derive(Debug)]
pub(in crate::http) struct Whose(pub(in crate::http) Option<String>);

impl QueryForm for Whose {
    const NAMES: &'static [&'static str] = &["user"];

    fn read(mut values: Values) -> Result<Self, ApiError> {
        Ok(Self(values.take("user")))
    }
}

/// Which facts to list.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the fields are the description of the query string")]
pub(in crate::http) struct ListFacts {
    /// A user of this key; for another one than the request's own the key needs the scope `admin`.
    user: Option<String>,
    /// Begin after the fact with this id.
    after: Option<String>,
    /// How many a page has at most; 100 where absent.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// Only facts in this state: `candidate`, `stable`, `contested`, `superseded`, `expired` or `retracted`.
    state: Option<String>,
    /// Only facts of this kind.
    kind: Option<String>,
}

/// The page that [`ListFacts`] asks for.
#[derive(Debug)]
pub(in crate::http) struct FactPage {
    pub(in crate::http) user: Option<String>,
    pub(in crate::http) after: Option<FactId>,
    pub(in crate::http) limit: usize,
    pub(in crate::http) state: Option<FactState>,
    pub(in crate::http) kind: Option<String>,
}

impl QueryForm for FactPage {
    const NAMES: &'static [&'static str] = &["user", "after", "limit", "state", "kind"];

    fn read(mut values: Values) -> Result<Self, ApiError> {
        let limit = values.limit(LIMIT_DEFAULT, LIMIT_MAX)?;
        let state = values.take("state").map(|name| state_named(&name)).transpose()?;
        Ok(Self {
            user: values.take("user"),
            after: values.take("after").map(FactId::new),
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            state,
            kind: values.take("kind"),
        })
    }
}

fn state_named(name: &str) -> Result<FactState, ApiError> {
    FactState::deserialize(name.into_deserializer()).map_err(|_: Error| {
        ApiError::invalid_value(
            "state",
            "`state` is one of candidate, stable, contested, superseded, expired, retracted",
        )
    })
}

/// What to look for.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the fields are the description of the query string")]
pub(in crate::http) struct SearchMemory {
    /// A question in words.
    q: String,
    /// A user of this key; for another one than the request's own the key needs the scope `admin`.
    user: Option<String>,
    /// How many facts at most; 8 where absent.
    #[param(minimum = 1, maximum = 50)]
    limit: Option<u32>,
}

/// The question that [`SearchMemory`] asks.
#[derive(Debug)]
pub(in crate::http) struct Question {
    pub(in crate::http) user: Option<String>,
    pub(in crate::http) text: String,
    pub(in crate::http) limit: usize,
}

impl QueryForm for Question {
    const NAMES: &'static [&'static str] = &["q", "user", "limit"];

    fn read(mut values: Values) -> Result<Self, ApiError> {
        let limit = values.limit(FOUND_DEFAULT, FOUND_MAX)?;
        let text = values.take("q").ok_or_else(|| ApiError::missing("q"))?;
        if text.trim().is_empty() || text.len() > QUESTION_BYTES_MAX {
            let rule = format!("`q` is a question of 1 to {QUESTION_BYTES_MAX} bytes");
            return Err(ApiError::invalid_value("q", rule));
        }
        Ok(Self {
            user: values.take("user"),
            text,
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
        })
    }
}

/// Which people to list.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the fields are the description of the query string")]
pub(in crate::http) struct ListPeople {
    /// Begin after the person with this id.
    after: Option<String>,
    /// How many a page has at most; 100 where absent.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

/// The page that [`ListPeople`] asks for.
#[derive(Debug)]
pub(in crate::http) struct PeoplePage {
    pub(in crate::http) after: Option<UserId>,
    pub(in crate::http) limit: usize,
}

impl QueryForm for PeoplePage {
    const NAMES: &'static [&'static str] = &["after", "limit"];

    fn read(mut values: Values) -> Result<Self, ApiError> {
        let limit = values.limit(LIMIT_DEFAULT, LIMIT_MAX)?;
        let after = match values.take("after") {
            Some(id) if id.len() > ID_BYTES_MAX => {
                return Err(ApiError::invalid_value("after", "`after` is the id of a person"));
            }
            Some(id) => {
                let id = UserId::deserialize(id.as_str().into_deserializer());
                Some(id.map_err(|error: Error| ApiError::internal(error.to_string()))?)
            }
            None => None,
        };
        Ok(Self {
            after,
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
        })
    }
}
