//! Shapes that no ordinary text has: tokens by the way their issuers write them, and private keys.

use std::{ops::Range, sync::LazyLock};

use regex::Regex;

use super::{RedactorError, headers::Headers, join};

/// How each kind of token begins, and what may follow. What follows is as long as the issuers make it, or shorter.
const TOKENS: [(&str, &str); 27] = [
    // Our own keys.
    ("tg_", r"tg_[0-9A-Za-z]{6,32}_[0-9A-Za-z_-]{20,}"),
    // Providers' keys: `sk-…`, `rk-…`, `sk_live_…`.
    ("sk-", r"sk-[0-9A-Za-z_-]{16,}"),
    ("sk_", r"sk_[0-9A-Za-z_-]{16,}"),
    ("rk-", r"rk-[0-9A-Za-z_-]{16,}"),
    ("rk_", r"rk_[0-9A-Za-z_-]{16,}"),
    ("pk_live_", r"pk_live_[0-9A-Za-z]{16,}"),
    ("whsec_", r"whsec_[0-9A-Za-z+/=]{24,}"),
    ("ghp_", r"ghp_[0-9A-Za-z]{30,}"),
    ("gho_", r"gho_[0-9A-Za-z]{30,}"),
    ("ghu_", r"ghu_[0-9A-Za-z]{30,}"),
    ("ghs_", r"ghs_[0-9A-Za-z]{30,}"),
    ("ghr_", r"ghr_[0-9A-Za-z]{30,}"),
    ("github_pat_", r"github_pat_[0-9A-Za-z_]{22,}"),
    ("glpat-", r"glpat-[0-9A-Za-z_-]{20,}"),
    ("xox", r"xox[a-z]-[0-9A-Za-z-]{10,}"),
    ("xapp-", r"xapp-[0-9A-Za-z-]{20,}"),
    ("AKIA", r"AKIA[0-9A-Z]{16}\b"),
    ("ASIA", r"ASIA[0-9A-Z]{16}\b"),
    ("AIza", r"AIza[0-9A-Za-z_-]{35}"),
    ("ya29.", r"ya29\.[0-9A-Za-z_-]{20,}"),
    ("npm_", r"npm_[0-9A-Za-z]{36}"),
    ("pypi-", r"pypi-[0-9A-Za-z_-]{40,}"),
    ("hf_", r"hf_[0-9A-Za-z]{30,}"),
    ("dop_v1_", r"dop_v1_[0-9a-f]{64}"),
    ("SG.", r"SG\.[0-9A-Za-z_-]{20,}\.[0-9A-Za-z_-]{20,}"),
    ("AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    // JSON Web Tokens (RFC 7519): two encoded JSON objects and a signature.
    (
        "eyJ",
        r"eyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{4,}\.[0-9A-Za-z_-]{8,}",
    ),
];

/// Private keys in PEM (RFC 7468), to the end of the block or of the text.
const PEM: &str = r"(?s)-----BEGIN [0-9A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [0-9A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\z)";

/// The beginning of such a block that may not be whole yet, at the end of a text.
const PEM_OPEN: &str =
    r"-(?:-(?:-(?:-(?:-(?:B(?:E(?:G(?:I(?:N(?: [0-9A-Z ]{0,60}-{0,4})?)?)?)?)?)?)?)?)?)?\z";

/// What tells the end of a private key that has begun.
const PEM_END: &str = r"-----END [0-9A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----";

/// The expressions, made once: they are constants.
static SHAPES: LazyLock<Result<Shapes, String>> =
    LazyLock::new(|| Shapes::new().map_err(|problem| problem.to_string()));

/// The expressions.
pub(super) struct Shapes {
    all: Regex,
    pem: Regex,
    pem_open: Regex,
    pem_end: Regex,
    headers: Headers,
}

impl Shapes {
    pub(super) fn get() -> Result<&'static Self, RedactorError> {
        SHAPES.as_ref().map_err(|problem| RedactorError(problem.clone()))
    }

    fn new() -> Result<Self, regex::Error> {
        let build = Regex::new;
        let tokens: Vec<&str> = TOKENS.iter().map(|(_, shape)| *shape).collect();
        Ok(Self {
            all: build(&format!(r"\b(?:{})|{PEM}", tokens.join("|")))?,
            pem: build(PEM)?,
            pem_open: build(PEM_OPEN)?,
            pem_end: build(PEM_END)?,
            headers: Headers::new()?,
        })
    }

    /// Adds where shapes stand that begin at `from` or behind it.
    pub(super) fn find(&self, text: &str, from: usize, found: &mut Vec<Range<usize>>) {
        self.headers.find(text, from, found);
        let mut from = from;
        while let Some(hit) = self.all.find_at(text, from) {
            if is_random(hit.as_str()) {
                join(found, hit.range());
            }
            from = hit.end();
        }
    }

    /// Where the end of the text may be a shape, or the beginning of one, that goes on behind it.
    pub(super) fn open_from(&self, text: &str) -> usize {
        open_token(text)
            .min(self.open_pem(text))
            .min(self.headers.open_from(text))
    }

    /// Behind the end of the private key that the text is in the middle of.
    pub(super) fn end_of_pem(&self, text: &str) -> Option<usize> {
        self.pem_end.find(text).map(|found| found.end())
    }

    /// Whether the text begins with a private key.
    pub(super) fn is_pem(&self, text: &str) -> bool {
        self.pem.find(text).is_some_and(|found| found.start() == 0)
    }

    fn open_pem(&self, text: &str) -> usize {
        if let Some(found) = self.pem.find_iter(text).last()
            && found.end() == text.len()
            && !self.pem_end.is_match(found.as_str())
        {
            return found.start();
        }
        self.pem_open.find(text).map_or(text.len(), |found| found.start())
    }
}

/// A token ends with the first letter that none is made of.
fn open_token(text: &str) -> usize {
    let start = text
        .char_indices()
        .rev()
        .take_while(|(_, letter)| is_of_token(*letter))
        .last()
        .map_or(text.len(), |(at, _)| at);
    let token = text.get(start..).unwrap_or_default();
    token
        .char_indices()
        .map(|(at, _)| at)
        .find(|at| {
            let (before, rest) = token.split_at(*at);
            let stands_apart = !before.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
            stands_apart
                && TOKENS
                    .iter()
                    .any(|(opener, _)| rest.starts_with(opener) || opener.starts_with(rest))
        })
        .map_or(text.len(), |at| start + at)
}

/// What tokens are made of.
pub(super) fn is_of_token(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | '+' | '/' | '=')
}

/// Whether a find of a shape looks made by a machine: `sk-` and some words joined by dashes do not.
fn is_random(text: &str) -> bool {
    text.starts_with("-----") || text.chars().any(|letter| letter.is_ascii_digit())
}
