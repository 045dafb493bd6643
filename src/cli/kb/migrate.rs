//! `kb migrate`: from the database to Chroma and back, with both sides counted. It may be run as often as one likes, and
//! while the daemon runs: what is there already stays.

use std::sync::Arc;

use serde_json::json;
use tidegate_core::{
    clock::Clock,
    port::{ChunkKey, ChunkStore},
};
use tidegate_kb::{
    chroma::{Chroma, Copied},
    index::IndexError,
};
use tidegate_store::Store;

use super::{TICK, progress};
use crate::{
    app::knowledge::{PlaceName, open_chroma},
    cli::{
        args::kb::{Destination, Migrate},
        error::Error,
        output::{self, Out},
    },
    config::Settings,
};

/// Chunks without a vector that are looked at together.
const PAGE: usize = 256;

/// What moving back came to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Restored {
    chunks: u64,
    /// Chunks that the model has been asked about.
    embedded: u64,
    /// Vectors that were in Chroma alone.
    fetched: u64,
    /// Why no more were fetched, where that was not for want of any.
    problem: Option<String>,
}

/// Runs the command.
pub(super) async fn run(
    settings: &Settings,
    store: &Arc<Store>,
    clock: &Arc<dyn Clock>,
    command: &Migrate,
    out: Out<'_>,
) -> Result<(), Error> {
    let chunks = Arc::clone(store) as Arc<dyn ChunkStore>;
    let options = &settings.config.kb;
    let chroma = open_chroma(options, &chunks, clock).map_err(|fault| Error::Refused(fault.to_string()))?;
    match command.to {
        Destination::Chroma => {
            let copied = copy(&chroma).await.map_err(unreached)?.ok_or_else(no_vectors)?;
            let (collection, url) = (&options.chroma_collection, &options.chroma_url);
            if copied.kept != copied.rows {
                return Err(Error::Refused(format!(
                    "the collection `{collection}` at {url} holds {} rows and the database {} vectors: documents are \
                     being indexed, or somebody else writes to the collection; run this again",
                    copied.rows, copied.kept
                )));
            }
            let is_set = options.vectors == PlaceName::Chroma;
            if command.output.json {
                let view = json!({"to": "chroma", "model": copied.model, "vectors": copied.kept, "rows": copied.rows, "is_set": is_set});
                return Ok(output::json(out, &view)?);
            }
            let text = format!(
                "The collection `{collection}` at {url} holds {} vectors of {}, as many as the database.",
                copied.rows, copied.model
            );
            writeln!(out, "{}", output::plain(&text))?;
            next(out, "chroma", is_set)
        }
        Destination::Embedded => {
            let restored = restore(&*chunks, &chroma).await?;
            let is_set = options.vectors == PlaceName::Embedded;
            if command.output.json {
                let view = json!({"to": "embedded", "chunks": restored.chunks, "embedded": restored.embedded, "fetched": restored.fetched, "problem": restored.problem, "is_set": is_set});
                return Ok(output::json(out, &view)?);
            }
            tell(&restored, out)?;
            next(out, "embedded", is_set)
        }
    }
}

/// Copies to Chroma, with a bar; `None` where there is nothing to copy yet.
pub(super) async fn copy(chroma: &Chroma) -> Result<Option<Copied>, IndexError> {
    let bar = progress::Bar::new();
    let copying = chroma.copy();
    tokio::pin!(copying);
    let outcome = loop {
        tokio::select! {
            outcome = &mut copying => break outcome,
            () = tokio::time::sleep(TICK) => if let Some((done, of)) = chroma.copied() {
                bar.show_copied(done, of);
            }
        }
    };
    bar.end();
    outcome
}

/// Fetches what only Chroma has, and counts what the database has then.
async fn restore(store: &dyn ChunkStore, chroma: &Chroma) -> Result<Restored, Error> {
    let model = store.serving_model().await?.ok_or_else(no_vectors)?;
    let before = store.counts(Some(&model)).await?;
    let mut restored = Restored::default();
    let mut after = ChunkKey::MIN;
    while restored.problem.is_none() {
        let chunks = store.unembedded(&model, after, PAGE).await?;
        let Some(last) = chunks.last() else { break };
        after = last.key;
        match chroma.recover(&model, &chunks).await {
            Ok(found) => {
                restored.fetched += u64::try_from(found.len()).unwrap_or_default();
                let vectors = found.into_iter().map(|(key, vector)| (key, Some(vector)));
                store.put_vectors(&model, vectors.collect()).await?;
            }
            Err(error) => restored.problem = Some(error.to_string()),
        }
    }
    let counts = store.counts(Some(&model)).await?;
    if counts.version == before.version && restored.fetched > 0
        || counts.embedded < before.embedded.min(counts.chunks)
    {
        return Err(Error::Refused(format!(
            "the database has {} vectors where there were {} and {} came back from Chroma; run this again",
            counts.embedded, before.embedded, restored.fetched
        )));
    }
    restored.chunks = counts.chunks;
    restored.embedded = counts.embedded;
    Ok(restored)
}

fn tell(restored: &Restored, out: Out<'_>) -> Result<(), Error> {
    let Restored {
        chunks,
        embedded,
        fetched,
        problem,
    } = restored;
    let came_back = match fetched {
        0 => "none had to be fetched from Chroma".to_owned(),
        fetched => format!("{fetched} of them came back from Chroma"),
    };
    writeln!(
        out,
        "The database has vectors for {embedded} of {chunks} chunks; {came_back}."
    )?;
    let missing = chunks.saturating_sub(*embedded);
    if missing > 0 {
        writeln!(
            out,
            "{missing} are embedded anew when documents are indexed: `tidegate kb index`, or the daemon by itself."
        )?;
    }
    if let Some(problem) = problem {
        writeln!(out, "No more were fetched: {}", output::plain(problem))?;
    }
    Ok(())
}

/// What to set, for the move to have an effect.
fn next(out: Out<'_>, place: &str, is_set: bool) -> Result<(), Error> {
    if is_set {
        writeln!(out, "Searches go there: `kb.vectors` is \"{place}\".")?;
    } else {
        writeln!(
            out,
            "Set `vectors = \"{place}\"` in the section [kb] of tidegate.toml and restart the daemon; until then nothing changes."
        )?;
    }
    Ok(())
}

fn no_vectors() -> Error {
    Error::Refused("the documents have no vectors yet; `tidegate kb index` makes them".to_owned())
}

fn unreached(error: IndexError) -> Error {
    match error {
        IndexError::Store(error) => Error::Store(error),
        error @ (IndexError::Unavailable(_) | IndexError::Dimensions { .. }) => {
            Error::Refused(error.to_string())
        }
    }
}
