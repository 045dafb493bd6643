//! Why a step with Chroma came to nothing, and what that means for whoever waits.

use tidegate_core::error::StoreError;
use tidegate_io::http;

use crate::index::IndexError;

/// Why a step with Chroma came to nothing.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// The database failed, not Chroma.
    Store(StoreError),
    /// It does not answer, or not in time, or not so that it can be read: it is left alone for a while.
    Away(String),
    /// It answers, and the operator must change something; the text says what.
    Refused(String),
    /// The collection is not there any more: it is looked up anew.
    Gone,
    /// The vectors are not all there yet.
    Behind {
        /// So many are.
        done: u64,
        /// Of so many.
        total: u64,
    },
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Fault> for IndexError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Store(error) => Self::Store(error),
            Fault::Away(text) | Fault::Refused(text) => Self::Unavailable(text),
            Fault::Gone => Self::Unavailable(
                "the collection in Chroma was taken away; it is made anew with the next search".to_owned(),
            ),
            Fault::Behind { done, total } => Self::Unavailable(behind(done, total)),
        }
    }
}

/// How far copying is, in a sentence.
pub(super) fn behind(done: u64, total: u64) -> String {
    format!(
        "the vectors are being copied to Chroma, {done} of {total} so far; `tidegate kb migrate --to chroma` copies \
         them all and waits for it"
    )
}

/// What an answer's status means. The server's own words are left out: they may repeat texts of documents, and come
/// with a trace.
pub(super) fn of_status(status: u16) -> Fault {
    match status {
        401 | 403 => Fault::Refused(format!(
            "Chroma answered with status {status}: set `kb.chroma_token` to one that may use the database and the \
             collection"
        )),
        404 | 410 => Fault::Gone,
        413 => Fault::Refused(
            "Chroma answered with status 413: it, or a proxy before it, takes smaller requests than the vectors need"
                .to_owned(),
        ),
        300..=399 => Fault::Refused(format!(
            "Chroma answered with status {status}: it points elsewhere; set `kb.chroma_url` to the address itself"
        )),
        408 | 409 | 425 | 429 | 500..=599 => Fault::Away(format!("Chroma answered with status {status}")),
        _ => Fault::Refused(format!(
            "Chroma answered with status {status}: it does not take the request; is `kb.chroma_url` a Chroma of \
             version 1, and does `kb.chroma_collection` hold vectors of tidegate alone?"
        )),
    }
}

/// What a call through the client's library ended with. It tells a status by its first three digits, and everything
/// else by text.
pub(super) fn of_call(error: &(dyn std::error::Error + Send + Sync + 'static)) -> Fault {
    let text = error.to_string();
    let status = text.split(' ').next().filter(|word| word.len() == 3);
    if let Some(status) = status.and_then(|word| word.parse().ok()) {
        return of_status(status);
    }
    if text.starts_with("error decoding") || text.starts_with("expected ") {
        return unreadable();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    Fault::Away(format!("Chroma does not answer ({cause})"))
}

/// What a call through our own client ended with.
pub(super) fn of_http(error: &http::Error) -> Fault {
    match error {
        http::Error::Connect(_) | http::Error::ConnectTimeout | http::Error::Broken(_) => {
            Fault::Away(format!("Chroma does not answer ({error})"))
        }
        http::Error::TooLarge { .. } => unreadable(),
        http::Error::Build(_) | http::Error::Request(_) => Fault::Refused(error.to_string()),
    }
}

/// An answer that is none.
pub(super) fn unreadable() -> Fault {
    Fault::Away(
        "Chroma gave an answer that cannot be read; is `kb.chroma_url` a Chroma of version 1?".to_owned(),
    )
}
