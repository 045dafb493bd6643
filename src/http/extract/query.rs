//! Query strings and the ids of paths.
//!
//! A name that is not known, or stands there twice, is refused: a filter that is quietly not applied is worse
//! than an error.

use axum::{
    extract::{FromRequestParts, Path, Query, rejection::PathRejection},
    http::request::Parts,
};

use crate::http::error::ApiError;

/// What a route's query string may say.
pub(in crate::http) trait QueryForm: Sized {
    /// The names it knows.
    const NAMES: &'static [&'static str];

    /// Reads the values; an error names the one at fault and the rule it breaks.
    fn read(values: Values) -> Result<Self, ApiError>;
}

/// The values of a query string, each name once.
#[derive(Debug)]
pub(in crate::http) struct Values(Vec<(String, String)>);

impl Values {
    /// Takes the value of that name.
    pub(in crate::http) fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(at).1)
    }

    /// Takes `limit`, the size of a page.
    pub(in crate::http) fn limit(&mut self, default: u32, max: u32) -> Result<u32, ApiError> {
        let Some(text) = self.take("limit") else {
            return Ok(default);
        };
        // Digits alone: no sign, no blank.
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let limit = text
            .parse()
            .ok()
            .filter(|limit| is_number && (1..=max).contains(limit));
        limit.ok_or_else(|| {
            let rule = format!("`limit` must be a whole number between 1 and {max}");
            ApiError::invalid_value("limit", rule)
        })
    }
}

/// A query string of the type's form.
#[derive(Debug)]
pub(in crate::http) struct ApiQuery<T>(pub(in crate::http) T);

impl<T: QueryForm, S: Send + Sync> FromRequestParts<S> for ApiQuery<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        read(Query::try_from_uri(&parts.uri).map_or_else(|_| Vec::new(), |Query(pairs)| pairs)).map(Self)
    }
}

fn read<T: QueryForm>(pairs: Vec<(String, String)>) -> Result<T, ApiError> {
    for (at, (name, value)) in pairs.iter().enumerate() {
        if !T::NAMES.contains(&name.as_str()) {
            let known: Vec<String> = T::NAMES.iter().map(|known| format!("`{known}`")).collect();
            return Err(ApiError::unknown_parameter(
                name,
                format!("unknown query parameter `{name}`; there are {}", known.join(", ")),
            ));
        }
        if pairs.iter().skip(at + 1).any(|(other, _)| other == name) {
            return Err(ApiError::invalid_value(
                name,
                format!("`{name}` stands in the query string more than once; send it once"),
            ));
        }
        if value.contains(char::REPLACEMENT_CHARACTER) {
            return Err(ApiError::invalid_value(
                name,
                format!("`{name}` is not UTF-8 in percent escapes"),
            ));
        }
    }
    T::read(Values(pairs))
}

/// The one variable segment of a path, percent escapes undone.
#[derive(Debug)]
pub(in crate::http) struct PathText(pub(in crate::http) String);

impl<S: Send + Sync> FromRequestParts<S> for PathText {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        // By name, so that a fault can name it, too.
        let path: Result<Path<Vec<(String, String)>>, PathRejection> =
            Path::from_request_parts(parts, state).await;
        match path {
            Ok(Path(mut segments)) => segments
                .pop()
                .map(|(_, text)| Self(text))
                .ok_or_else(|| ApiError::internal("a route has no variable segment")),
            Err(_) => Err(ApiError::invalid_value(
                if parts.uri.path().starts_with("/v1/models/") {
                    "model"
                } else if parts.uri.path().starts_with("/v1/admin/kb/") {
                    "path"
                } else {
                    "id"
                },
                "the last part of the address is not UTF-8 in percent escapes",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Form(Option<String>);

    impl QueryForm for Form {
        const NAMES: &'static [&'static str] = &["word", "other"];

        fn read(mut values: Values) -> Result<Self, ApiError> {
            Ok(Self(values.take("word")))
        }
    }

    fn of(query: &str) -> Result<Form, ApiError> {
        let uri = format!("/?{query}").parse().unwrap();
        let Query(pairs) = Query::try_from_uri(&uri).unwrap();
        read(pairs)
    }

    #[test]
    fn names_are_known_and_stand_there_once() {
        assert_eq!(of("").unwrap(), Form(None));
        assert_eq!(of("word=a%20b+c").unwrap(), Form(Some("a b c".into())));
        assert_eq!(of("other=1&word").unwrap(), Form(Some(String::new())));
        let table = [
            ("words=1", "unknown_parameter", "words", "`word`, `other`"),
            ("=1", "unknown_parameter", "", "there are"),
            ("word=1&word=1", "invalid_value", "word", "more than once"),
            (
                "other=&word=1&other=2",
                "invalid_value",
                "other",
                "more than once",
            ),
            ("word=%ff", "invalid_value", "word", "not UTF-8"),
        ];
        for (query, code, param, words) in table {
            let error = of(query).unwrap_err();
            let body = error.body();
            assert_eq!(
                (body.code, body.param.as_deref().unwrap_or_default()),
                (Some(code), param),
                "{query}"
            );
            assert!(body.message.contains(words), "{query}: {}", body.message);
        }
    }
}
