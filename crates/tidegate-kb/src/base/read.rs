//! Reading a document from its chunks, in parts.

use tidegate_core::{
    knowledge::{Document, DocumentPart, DocumentText, ReadFrom},
    port::{ChunkStore, KnowledgeError, StoredChunk},
};

/// Chunks that are read at once.
const BATCH: usize = 64;

/// A part of a document, of at most `chars_max` characters and at least one chunk.
pub(super) async fn read(
    store: &dyn ChunkStore,
    from: &ReadFrom,
    chars_max: usize,
) -> Result<DocumentText, KnowledgeError> {
    let (path, ordinal) = match from {
        ReadFrom::Citation(citation) => {
            let cited = store.cited(citation).await?;
            let cited = cited.ok_or_else(|| {
                KnowledgeError::NotFound(format!("no passage has the citation {citation}; search again"))
            })?;
            let ordinal = before(store, &cited, chars_max).await?;
            (cited.path, ordinal)
        }
        ReadFrom::Document { path, ordinal } => (path.clone(), *ordinal),
        ReadFrom::Page { path, page } => (path.clone(), first_on(store, path, *page).await?),
    };
    let document = store.document(&path).await?;
    let document = document.ok_or_else(|| {
        KnowledgeError::NotFound(format!(
            "no document is at `{path}`; list the documents to see their paths"
        ))
    })?;
    parts(store, document, ordinal, chars_max).await
}

/// Where to begin so that the passage is read with the one before it, if there is room for both.
async fn before(
    store: &dyn ChunkStore,
    cited: &StoredChunk,
    chars_max: usize,
) -> Result<u64, KnowledgeError> {
    let Some(previous) = cited.ordinal.checked_sub(1) else {
        return Ok(0);
    };
    let neighbour = store.document_chunks(&cited.path, previous, 1).await?;
    let chars = |chunk: &StoredChunk| chunk.text.chars().count();
    let fits = neighbour.iter().map(chars).sum::<usize>() + chars(cited) <= chars_max;
    Ok(if fits { previous } else { cited.ordinal })
}

/// The ordinal of the first chunk on a page, or on the next one that has any.
async fn first_on(store: &dyn ChunkStore, path: &str, page: u32) -> Result<u64, KnowledgeError> {
    let mut ordinal = 0;
    // Ends with the document: every round goes on by at least one chunk.
    loop {
        let chunks = store.document_chunks(path, ordinal, BATCH).await?;
        let Some(last) = chunks.last() else {
            return Err(KnowledgeError::NotFound(format!(
                "`{path}` has no page {page}, or no pages at all"
            )));
        };
        if let Some(found) = chunks
            .iter()
            .find(|chunk| chunk.place.page.is_some_and(|found| found >= page))
        {
            return Ok(found.ordinal);
        }
        ordinal = last.ordinal + 1;
    }
}

async fn parts(
    store: &dyn ChunkStore,
    document: Document,
    ordinal: u64,
    chars_max: usize,
) -> Result<DocumentText, KnowledgeError> {
    let chunks = match document.state {
        tidegate_core::knowledge::DocumentState::Indexed { chunks, .. } => chunks,
        tidegate_core::knowledge::DocumentState::Failed {
            ref reason, ref hint, ..
        } => {
            return Err(KnowledgeError::NotFound(format!(
                "`{}` could not be read: {reason}; {hint}",
                document.path
            )));
        }
    };
    let mut parts: Vec<DocumentPart> = Vec::new();
    let (mut at, mut room, mut next) = (ordinal, chars_max, None);
    'reading: loop {
        let batch = store.document_chunks(&document.path, at, BATCH).await?;
        let full = batch.len() == BATCH;
        for chunk in batch {
            let chars = chunk.text.chars().count();
            if !parts.is_empty() && chars > room {
                next = Some(chunk.ordinal);
                break 'reading;
            }
            room = room.saturating_sub(chars);
            at = chunk.ordinal + 1;
            parts.push(DocumentPart {
                citation: chunk.citation,
                ordinal: chunk.ordinal,
                place: chunk.place,
                text: chunk.text,
            });
        }
        if !full {
            break;
        }
    }
    if parts.is_empty() && chunks > 0 {
        return Err(KnowledgeError::NotFound(format!(
            "`{}` has {chunks} parts, from 0 on; there is none from {ordinal} on",
            document.path
        )));
    }
    Ok(DocumentText {
        document,
        parts,
        next,
        chunks,
    })
}
