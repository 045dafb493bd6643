//! Where vectors are searched: settings → the index over them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tidegate_core::{clock::Clock, port::ChunkStore};
use tidegate_kb::{
    chroma::{self, Chroma},
    index::VectorIndex,
    matrix::Embedded,
};

use super::{Error, Options};

/// Where vectors are searched, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlaceName {
    /// In this process.
    #[default]
    Embedded,
    /// In a Chroma collection.
    Chroma,
}

impl Options {
    /// How Chroma is reached, for the crate that does.
    pub(crate) fn chroma(&self) -> chroma::Options {
        chroma::Options {
            url: self.chroma_url.clone(),
            collection: self.chroma_collection.clone(),
            token: self.chroma_secret.clone(),
            database: self.chroma_database.clone(),
            timeout_ms: self.chroma_timeout_ms,
            ..chroma::Options::default()
        }
    }
}

/// The index in Chroma, whether or not searches go by it: what is moved there is moved before.
pub fn open_chroma(
    options: &Options,
    chunks: &Arc<dyn ChunkStore>,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<Chroma>, Error> {
    let chroma = Chroma::new(Arc::clone(chunks), options.chroma(), Arc::clone(clock));
    chroma
        .map(Arc::new)
        .map_err(|fault| Error::Part(format!("kb: {fault}")))
}

/// The index that searches go by; once more as what it is, where that is Chroma.
pub(super) type Opened = (Arc<dyn VectorIndex>, Option<Arc<Chroma>>);

/// Opens the index that searches go by.
pub(super) fn index(
    options: &Options,
    chunks: &Arc<dyn ChunkStore>,
    clock: &Arc<dyn Clock>,
) -> Result<Opened, Error> {
    match options.vectors {
        PlaceName::Embedded => Ok((Arc::new(Embedded::new(Arc::clone(chunks))), None)),
        PlaceName::Chroma => {
            let chroma = open_chroma(options, chunks, clock)?;
            Ok((Arc::clone(&chroma) as _, Some(chroma)))
        }
    }
}
