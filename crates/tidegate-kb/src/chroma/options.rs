//! What the operator says about a Chroma server, and what of it cannot be.

use tidegate_core::secret::Secret;
use url::Url;

/// The default of [`Options::url`]: where Chroma listens when it is started without arguments.
pub const URL: &str = "http://127.0.0.1:8000";
/// The default of [`Options::collection`].
pub const COLLECTION: &str = "tidegate";
/// The default of [`Options::database`], which every Chroma has.
pub const DATABASE: &str = "default_database";
/// The default of [`Options::timeout_ms`]: somebody waits. A search among 100,000 vectors takes a hundredth of it.
pub const TIMEOUT_MS: u64 = 5_000;
/// The default of [`Options::batch_rows`]: 3 MB of JSON with vectors of 1,024 numbers. Chroma takes 5,461 rows at most.
pub const BATCH_ROWS: usize = 256;
/// The most rows in a request, whatever is asked for.
const BATCH_ROWS_MAX: usize = 4_096;
/// What a search may take, in milliseconds.
const TIMEOUTS_MS: std::ops::RangeInclusive<u64> = 100..=60_000;
/// The lengths of a collection's name that Chroma takes.
const NAME_LENGTHS: std::ops::RangeInclusive<usize> = 3..=512;

/// How to reach a collection.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the server is, up to but without `/api`.
    pub url: String,
    /// The collection's name; it is made where it does not exist.
    pub collection: String,
    /// The token, where one is asked for. The tenant is the one that the server gives it.
    pub token: Option<Secret>,
    /// The database that the collection is in.
    pub database: String,
    /// How long the server may take for a search, in milliseconds.
    pub timeout_ms: u64,
    /// How many vectors one request writes.
    pub batch_rows: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            url: URL.to_owned(),
            collection: COLLECTION.to_owned(),
            token: None,
            database: DATABASE.to_owned(),
            timeout_ms: TIMEOUT_MS,
            batch_rows: BATCH_ROWS,
        }
    }
}

/// A setting that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}`: {problem}")]
pub struct OptionFault {
    /// The option's name.
    pub name: &'static str,
    /// What is wrong, and what would do.
    pub problem: String,
}

impl Options {
    /// What can be found wrong without asking the server.
    pub fn faults(&self) -> Vec<OptionFault> {
        let mut faults = Vec::new();
        let mut add = |name, problem: &str| {
            faults.push(OptionFault {
                name,
                problem: problem.to_owned(),
            });
        };
        if let Err(problem) = self.address() {
            add("chroma_url", &problem);
        }
        if !is_name(&self.collection) || !NAME_LENGTHS.contains(&self.collection.len()) {
            add(
                "chroma_collection",
                "a name is 3 to 512 of a-z, A-Z, 0-9, `.`, `_` and `-`, and begins and ends with a letter or digit",
            );
        }
        if !is_name(&self.database) {
            add(
                "chroma_database",
                "a name is made of a-z, A-Z, 0-9, `.`, `_` and `-`, and begins and ends with a letter or digit",
            );
        }
        if !TIMEOUTS_MS.contains(&self.timeout_ms) {
            let (least, most) = (TIMEOUTS_MS.start(), TIMEOUTS_MS.end());
            add(
                "chroma_timeout_ms",
                &format!("{} is not within {least} to {most}", self.timeout_ms),
            );
        }
        faults
    }

    /// The same with the address in the form that is used, or what is wrong.
    pub(super) fn checked(mut self) -> Result<Self, OptionFault> {
        if let Some(fault) = self.faults().into_iter().next() {
            return Err(fault);
        }
        if let Ok(address) = self.address() {
            self.url = address;
        }
        self.batch_rows = self.batch_rows.clamp(1, BATCH_ROWS_MAX);
        Ok(self)
    }

    /// The address without a slash at its end.
    fn address(&self) -> Result<String, String> {
        let url = Url::parse(self.url.trim())
            .map_err(|problem| format!("it is no address ({problem}); write one such as `{URL}`"))?;
        let problem = if !matches!(url.scheme(), "http" | "https") {
            "it must begin with http:// or https://, which is all that Chroma speaks"
        } else if !url.username().is_empty() || url.password().is_some() {
            "it holds a user name or a password, which would be shown with the address; set `kb.chroma_token`"
        } else if url.query().is_some() || url.fragment().is_some() {
            "it goes on with `?` or `#`; leave that away"
        } else if is_api(url.path()) {
            "it goes on with the path of Chroma's API, which is added by itself; write it without `/api`"
        } else {
            return Ok(url.as_str().trim_end_matches('/').to_owned());
        };
        Err(problem.to_owned())
    }
}

/// Whether a path ends where the API begins: `/api`, `/api/v2`. One before it, as of a proxy, is fine.
fn is_api(path: &str) -> bool {
    let path = path.trim_end_matches('/');
    let stem = path.strip_suffix("/v1").or_else(|| path.strip_suffix("/v2"));
    stem.unwrap_or(path).ends_with("/api")
}

/// Names stand in addresses, so nothing that means something there is let through.
fn is_name(text: &str) -> bool {
    let ends = text.chars().next().zip(text.chars().next_back());
    ends.is_some_and(|(first, last)| first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut Options);

    #[test]
    fn an_address_is_brought_into_form_and_a_wrong_setting_named() {
        let with = |change: fn(&mut Options)| {
            let mut options = Options::default();
            change(&mut options);
            options.checked()
        };
        assert_eq!(with(|_| ()).unwrap().url, URL);
        let url = with(|options| "https://vectors.example.org/chroma/".clone_into(&mut options.url));
        assert_eq!(url.unwrap().url, "https://vectors.example.org/chroma");
        let wrong: [(Change, &str); 12] = [
            (
                |options| "http://host:8000/api/v2/".clone_into(&mut options.url),
                "chroma_url",
            ),
            (
                |options| "http://host/chroma/api".clone_into(&mut options.url),
                "chroma_url",
            ),
            (
                |options| "localhost:8000".clone_into(&mut options.url),
                "chroma_url",
            ),
            (|options| "chroma".clone_into(&mut options.url), "chroma_url"),
            (
                |options| "http://a:b@host".clone_into(&mut options.url),
                "chroma_url",
            ),
            (
                |options| "http://a@host".clone_into(&mut options.url),
                "chroma_url",
            ),
            (
                |options| "http://host/?a=b".clone_into(&mut options.url),
                "chroma_url",
            ),
            (
                |options| "kb".clone_into(&mut options.collection),
                "chroma_collection",
            ),
            (
                |options| "a/../b".clone_into(&mut options.collection),
                "chroma_collection",
            ),
            (
                |options| "-abc-".clone_into(&mut options.collection),
                "chroma_collection",
            ),
            (|options| options.database.clear(), "chroma_database"),
            (|options| options.timeout_ms = 0, "chroma_timeout_ms"),
        ];
        for (change, name) in wrong {
            assert_eq!(with(change).unwrap_err().name, name);
        }
    }
}
