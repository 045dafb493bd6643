//! What the query strings and the paths of key administration may say.

use jiff::civil::Date;
use tidegate_core::{id::KeyId, port::PageRequest};
use utoipa::IntoParams;

use crate::{
    http::{
        error::ApiError,
        extract::query::{QueryForm, Values},
    },
    keys,
};

/// Keys on a page that names no limit.
const LIMIT_DEFAULT: u32 = 20;
/// Keys on a page.
const LIMIT_MAX: u32 = 100;
/// Days of usage in one answer.
const DAYS_MAX: i32 = 366;
/// Days of usage where the request names none.
const DAYS_DEFAULT: i32 = 30;

/// Which keys to list.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the fields are the description of the query string")]
pub(in crate::http) struct ListKeys {
    /// Begin after the key with this id.
    after: Option<String>,
    /// How many keys a page has at most; 20 where absent.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u32>,
    /// `asc` or `desc` by creation; `asc` where absent.
    order: Option<String>,
}

/// The page that [`ListKeys`] asks for.
#[derive(Debug)]
pub(in crate::http) struct Page(pub(in crate::http) PageRequest);

impl QueryForm for Page {
    const NAMES: &'static [&'static str] = &["after", "limit", "order"];

    fn read(mut values: Values) -> Result<Self, ApiError> {
        let limit = values.limit(LIMIT_DEFAULT, LIMIT_MAX)?;
        let newest_first = match values.take("order").as_deref() {
            None | Some("asc") => false,
            Some("desc") => true,
            Some(_) => {
                let rule = "`order` must be `asc` or `desc`";
                return Err(ApiError::invalid_value("order", rule));
            }
        };
        let after = values
            .take("after")
            .map(|text| key_id("after", &text))
            .transpose()?;
        Ok(Self(PageRequest {
            after,
            limit,
            newest_first,
        }))
    }
}

/// A key's public id, in a query string or a path.
pub(in crate::http) fn key_id(param: &str, text: &str) -> Result<KeyId, ApiError> {
    if text.len() == keys::ID_CHARS && text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(KeyId::new(text));
    }
    let rule = format!(
        "`{param}` must be the public id of a key, {} letters and digits; GET /v1/admin/keys lists them",
        keys::ID_CHARS
    );
    Err(ApiError::invalid_value(param, rule))
}

/// Which days.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the fields are the description of the query string")]
pub(in crate::http) struct UsageQuery {
    /// The first day, `2026-01-31`; 29 days before the last where absent. One answer covers at most 366 days.
    from: Option<String>,
    /// The last day; today where absent.
    to: Option<String>,
}

/// The days that [`UsageQuery`] names.
#[derive(Debug, Default)]
pub(in crate::http) struct Days {
    pub(in crate::http) from: Option<Date>,
    pub(in crate::http) to: Option<Date>,
}

impl QueryForm for Days {
    const NAMES: &'static [&'static str] = &["from", "to"];

    fn read(mut values: Values) -> Result<Self, ApiError> {
        let mut day = |param: &str| {
            let parsed = values.take(param).map(|text| text.parse::<Date>()).transpose();
            parsed.map_err(|_| {
                ApiError::invalid_value(param, format!("`{param}` must be a day such as 2026-01-31"))
            })
        };
        Ok(Self {
            from: day("from")?,
            to: day("to")?,
        })
    }
}

impl Days {
    /// The first day and the last.
    pub(in crate::http) fn bounds(&self, today: Date) -> Result<(Date, Date), ApiError> {
        let back = |from: Date, days: i32| from.saturating_sub(jiff::Span::new().days(days));
        let last = self.to.unwrap_or(today);
        let first = self.from.unwrap_or_else(|| back(last, DAYS_DEFAULT - 1));
        if first > last {
            return Err(ApiError::invalid_value("from", "`from` must not be after `to`"));
        }
        if first <= back(last, DAYS_MAX) {
            let rule =
                format!("`from` must lie less than {DAYS_MAX} days before `to`; ask for shorter spans");
            return Err(ApiError::invalid_value("from", rule));
        }
        Ok((first, last))
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn days_have_an_order_and_a_bound() {
        let today = date(2026, 3, 1);
        let of = |from: Option<Date>, to: Option<Date>| Days { from, to }.bounds(today);
        assert_eq!(of(None, None).unwrap(), (date(2026, 1, 31), today));
        let day = date(2026, 2, 28);
        assert_eq!(of(Some(day), Some(day)).unwrap(), (day, day));
        assert_eq!(of(Some(date(2025, 3, 1)), None).unwrap().0, date(2025, 3, 1));
        for (from, to) in [
            (date(2026, 3, 2), date(2026, 3, 1)),
            (date(2025, 2, 28), date(2026, 3, 1)),
            (Date::MIN, Date::MAX),
        ] {
            assert!(of(Some(from), Some(to)).is_err(), "{from} {to}");
        }
        assert!(
            of(Some(Date::MIN), Some(Date::MIN)).is_err(),
            "nothing lies before the first day"
        );
    }
}
