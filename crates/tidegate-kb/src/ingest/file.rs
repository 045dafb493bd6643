//! One file on its way into the index.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use sha2::{Digest as _, Sha256};
use tidegate_core::{
    embedding::{EmbedError, Purpose},
    error::StoreError,
    knowledge::DocumentState,
    port::{Failure, FileMark, KnownFile, NewChunk, NewDocument, StoredChunk},
};
use tidegate_io::files::{Node, ReadFault, Roots, Whole};

use super::{Shared, scan};
use crate::{
    authority, chunk,
    parse::{Parsed, by_name},
};

/// Texts that are embedded at once, so that progress is seen and a failure costs little.
pub(super) const EMBED_MAX: usize = 32;

/// Chunks that are read at once where a document is renamed.
const PAGE: usize = 1_000;

/// A file that was changed so lately before it was read may change again within the same tick of the file system's
/// clock, in nanoseconds.
const TICK_NS: i64 = 50_000_000;

/// A file to look into.
#[derive(Debug, Clone)]
pub(super) struct Job {
    /// Where and what it is.
    pub(super) node: Node,
    /// What is known of it.
    pub(super) known: Option<KnownFile>,
    /// Whether somebody may be waiting for it.
    pub(super) is_urgent: bool,
    /// Whether it is read even if its bytes are known.
    pub(super) is_forced: bool,
}

/// What became of it.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It is in the index.
    Indexed {
        /// Its chunks.
        chunks: usize,
    },
    /// It was as it is known.
    Unchanged,
    /// It cannot be read, and is listed.
    Failed,
    /// It is not there.
    Gone,
    /// It changed meanwhile and is to be tried again.
    Changing,
    /// The store failed; it is listed where that can be written, and tried again at the next scan.
    Store(StoreError),
}

/// Known files that are not where they were; a new file of the same content may be one of them.
#[derive(Debug, Default)]
pub(super) struct Moves(Mutex<HashMap<[u8; 32], Vec<KnownFile>>>);

impl Moves {
    pub(super) fn offer(&self, file: KnownFile) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.entry(file.mark.sha256).or_default().push(file);
    }

    /// Takes a file of that content which may become the one at `to`.
    fn claim(&self, sha256: &[u8; 32], may_move: impl Fn(&KnownFile) -> bool) -> Option<KnownFile> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = files.get_mut(sha256)?;
        let at = same.iter().position(may_move)?;
        Some(same.swap_remove(at))
    }

    /// Everything that nobody took.
    pub(super) fn rest(&self) -> Vec<String> {
        let files = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        files.into_values().flatten().map(|file| file.path).collect()
    }
}

impl Shared {
    /// Brings one file into the index.
    pub(super) async fn index(&self, roots: Roots, job: &Job, moves: &Moves) -> Outcome {
        match self.try_index(roots, job, moves).await {
            Ok(outcome) => outcome,
            Err(error) => {
                self.list_unsaved(job, &error).await;
                Outcome::Store(error)
            }
        }
    }

    /// Lists a file that the store did not take, or it would merely be missing. An earlier self of it that can be
    /// searched stays as it is. The recipe is no file's, so that the next scan reads it again.
    async fn list_unsaved(&self, job: &Job, error: &StoreError) {
        let Ok(known) = self.store.files_at(&job.node.path).await else {
            return;
        };
        let known = known.into_iter().find(|known| known.path == job.node.path);
        if known.as_ref().is_some_and(|known| !known.failed) {
            return;
        }
        let failure = Failure {
            code: "not_stored".to_owned(),
            reason: error.to_string(),
            hint: "mend what the reason names; the file is read again at the next scan".to_owned(),
        };
        let recipe = scan::refusal(&failure);
        if let Err(error) = self.fail(&job.node, known.as_ref(), failure, recipe).await {
            tracing::debug!(document = %job.node.path, %error, "a document that was not stored is not listed either");
        }
    }

    async fn try_index(&self, roots: Roots, job: &Job, moves: &Moves) -> Result<Outcome, StoreError> {
        // It may have been shut while it waited.
        if !self.may_enter(&job.node.path) {
            return Ok(Outcome::Gone);
        }
        let (path, bytes_max) = (job.node.path.clone(), self.options.file_bytes_max);
        let reading = tokio::task::spawn_blocking(move || {
            let whole = roots.read_whole(&path, bytes_max)?;
            let sha256: [u8; 32] = Sha256::digest(&whole.bytes).into();
            Ok((whole, sha256))
        });
        let (whole, sha256) = match reading
            .await
            .map_err(|error| StoreError::Internal(error.to_string()))?
        {
            Ok(read) => read,
            Err(fault) => return self.unreadable(job, &fault).await,
        };
        let file = self.known_file(job, &whole, sha256);
        // Asked again: another process may have put it meanwhile.
        let known = self.store.files_at(&file.path).await?;
        let known = known.into_iter().find(|known| known.path == file.path);
        if !job.is_forced && known.as_ref().is_some_and(|known| holds(known, &file)) {
            self.store.mark(&file).await?;
            return Ok(Outcome::Unchanged);
        }
        if known.is_none()
            && let Some(from) = moves.claim(&sha256, |from| self.may_move(from, &file.path))
        {
            if self.rename(&from, &file).await? {
                return Ok(Outcome::Unchanged);
            }
            moves.offer(from);
        }
        self.read(file, whole.bytes).await
    }

    fn known_file(&self, job: &Job, whole: &Whole, sha256: [u8; 32]) -> KnownFile {
        let now = i64::try_from(self.clock.now().as_nanosecond()).unwrap_or(i64::MAX);
        let settled = now.saturating_sub(whole.modified_ns) > TICK_NS;
        KnownFile {
            path: job.node.path.clone(),
            mark: FileMark {
                bytes: whole.bytes.len() as u64,
                modified_ns: if settled {
                    whole.modified_ns
                } else {
                    scan::NO_MARK_NS
                },
                sha256,
            },
            recipe: self.recipe.clone(),
            failed: false,
        }
    }

    /// Whether a document that is moved stays what it is: by the operator's table, whatever it says of itself.
    fn may_move(&self, from: &KnownFile, to: &str) -> bool {
        let same = |declared| self.authority.of(&from.path, declared) == self.authority.of(to, declared);
        let format = by_name(&from.path) == by_name(to);
        !from.failed
            && from.recipe == self.recipe
            && format
            && [None, Some("primary"), Some("interpretation")]
                .into_iter()
                .all(same)
    }

    /// Gives a document another path, unless its title is its old name; whether it was done.
    async fn rename(&self, from: &KnownFile, to: &KnownFile) -> Result<bool, StoreError> {
        let Some(document) = self.store.document(&from.path).await? else {
            return Ok(false);
        };
        let DocumentState::Indexed { .. } = document.state else {
            return Ok(false);
        };
        if document.title == title_by_name(&from.path) {
            return Ok(false);
        }
        let mut chunks: Vec<StoredChunk> = Vec::new();
        loop {
            let page = self
                .store
                .document_chunks(&from.path, chunks.len() as u64, PAGE)
                .await?;
            let is_last = page.len() < PAGE;
            chunks.extend(page);
            if is_last {
                break;
            }
        }
        let parts = chunks.iter().map(|chunk| (&chunk.place, chunk.text.as_str()));
        let citations = chunk::citations_of(&to.path, parts);
        self.store.rename(&from.path, &to.path, citations).await?;
        self.store.mark(to).await?;
        Ok(true)
    }

    pub(super) async fn unreadable(&self, job: &Job, fault: &ReadFault) -> Result<Outcome, StoreError> {
        let (code, hint) = match fault {
            ReadFault::Gone => return Ok(Outcome::Gone),
            // A link that came after the folder was looked at: the next look judges it as one.
            ReadFault::Changing | ReadFault::Link => return Ok(Outcome::Changing),
            ReadFault::Twin => {
                let (failure, node) = (scan::twin(), &job.node);
                let recipe = scan::refusal(&failure);
                return self.fail(node, job.known.as_ref(), failure, recipe).await;
            }
            ReadFault::Outside => ("link_outside", "copy what it leads to into the knowledge bank"),
            ReadFault::NotAFile => ("not_a_file", "take it out of the knowledge bank"),
            ReadFault::TooLarge { .. } => ("too_large", "split it, or raise `kb.file_bytes_max`"),
            ReadFault::Denied => ("unreadable", "make it readable for the user that runs the server"),
            ReadFault::Name(_) => ("name_not_usable", "rename it"),
            ReadFault::Io(_) => ("unreadable", "see whether the disk is sound"),
        };
        let failure = Failure {
            code: code.to_owned(),
            reason: fault.to_string(),
            hint: hint.to_owned(),
        };
        let recipe = match fault {
            // Only another size or name makes a difference.
            ReadFault::TooLarge { .. } => self.too_large(),
            ReadFault::Gone
            | ReadFault::Changing
            | ReadFault::Link
            | ReadFault::Twin
            | ReadFault::Outside
            | ReadFault::NotAFile
            | ReadFault::Denied
            | ReadFault::Name(_)
            | ReadFault::Io(_) => scan::refusal(&failure),
        };
        self.fail(&job.node, job.known.as_ref(), failure, recipe).await
    }

    /// Lists a file as failed, unless it is already listed so.
    pub(super) async fn fail(
        &self,
        node: &Node,
        known: Option<&KnownFile>,
        failure: Failure,
        recipe: String,
    ) -> Result<Outcome, StoreError> {
        let file = KnownFile {
            path: node.path.clone(),
            mark: FileMark {
                bytes: node.bytes,
                modified_ns: node.modified_ns,
                sha256: [0; 32],
            },
            recipe,
            failed: true,
        };
        if known != Some(&file) {
            self.put(failed(file, failure, self.clock.now())).await?;
        }
        Ok(Outcome::Failed)
    }

    async fn read(&self, mut file: KnownFile, bytes: Vec<u8>) -> Result<Outcome, StoreError> {
        let parsed = match self.parser.parse(&file.path, bytes).await {
            Ok(parsed) => parsed,
            Err(problem) => {
                tracing::info!(document = %file.path, code = problem.code(), reason = %problem, "a document cannot be read");
                if problem.is_passing() {
                    self.problems.set("parser", Some(problem.to_string()));
                    file.recipe = scan::refusal(&Failure::from(&problem));
                }
                file.failed = true;
                self.put(failed(file, Failure::from(problem), self.clock.now()))
                    .await?;
                return Ok(Outcome::Failed);
            }
        };
        self.problems.set("parser", None);
        for warning in &parsed.warnings {
            tracing::debug!(document = %file.path, warning, "a document was read with a warning");
        }
        let title = parsed.title.clone().unwrap_or_else(|| title_by_name(&file.path));
        let declared = parsed.front_matter.get(authority::FIELD).map(String::as_str);
        let (format, authority) = (parsed.format, self.authority.of(&file.path, declared));
        let chunks = self.chunks(&file.path, parsed).await?;
        if chunks.is_empty() {
            let failure = Failure::from(crate::parse::Problem::NoText);
            file.failed = true;
            self.put(failed(file, failure, self.clock.now())).await?;
            return Ok(Outcome::Failed);
        }
        let chunks = self.embedded(chunks).await?;
        let count = chunks.len();
        tracing::debug!(document = %file.path, chunks = count, "a document is indexed");
        let at = self.clock.now();
        self.put(NewDocument {
            file,
            title,
            format,
            authority,
            at,
            content: Ok(chunks),
        })
        .await?;
        Ok(Outcome::Indexed { chunks: count })
    }

    async fn put(&self, document: NewDocument) -> Result<(), StoreError> {
        self.store
            .put(document, &self.embedder.model().id)
            .await
            .map(drop)
    }

    /// Cuts and numbers, on a thread of its own: a large book takes a second.
    async fn chunks(&self, path: &str, parsed: Parsed) -> Result<Vec<NewChunk>, StoreError> {
        let (path, embedder, limits) = (
            path.to_owned(),
            std::sync::Arc::clone(&self.embedder),
            self.limits,
        );
        let cutting = tokio::task::spawn_blocking(move || {
            let pieces = chunk::split(&parsed, &|text| embedder.tokens(text), &limits);
            let citations = chunk::citations(&path, &pieces);
            pieces
                .into_iter()
                .zip(citations)
                .map(|(piece, citation)| NewChunk {
                    citation,
                    sha256: piece.sha256,
                    place: piece.place,
                    text: piece.text,
                    vector: None,
                })
                .collect()
        });
        cutting
            .await
            .map_err(|error| StoreError::Internal(format!("cutting a document: {error}")))
    }

    /// The chunks with the vectors that are known or can be had. Without an embedder they are indexed all the same.
    async fn embedded(&self, mut chunks: Vec<NewChunk>) -> Result<Vec<NewChunk>, StoreError> {
        let hashes: Vec<[u8; 32]> = chunks.iter().map(|chunk| chunk.sha256).collect();
        let known = self
            .store
            .vectors_by_hash(&self.embedder.model().id, &hashes)
            .await?;
        for (chunk, vector) in chunks.iter_mut().zip(known) {
            chunk.vector = vector;
        }
        let mut unknown: Vec<&mut NewChunk> =
            chunks.iter_mut().filter(|chunk| chunk.vector.is_none()).collect();
        for part in unknown.chunks_mut(EMBED_MAX) {
            let texts: Vec<String> = part
                .iter()
                .map(|chunk| chunk::embedded_text(&chunk.place, &chunk.text))
                .collect();
            match self.embed(&texts).await {
                Ok(vectors) => {
                    for (chunk, vector) in part.iter_mut().zip(vectors) {
                        chunk.vector = Some(vector);
                    }
                }
                // They are filled in later.
                Err(_) => break,
            }
        }
        Ok(chunks)
    }

    /// Vectors, and a note of how the embedder does.
    pub(super) async fn embed(&self, texts: &[String]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let vectors = self
            .embedder
            .embed(&texts, Purpose::Document)
            .await
            .and_then(|vectors| {
                if vectors.len() == texts.len() {
                    Ok(vectors)
                } else {
                    Err(EmbedError::Broken(format!(
                        "{} vectors for {} texts",
                        vectors.len(),
                        texts.len()
                    )))
                }
            });
        let problem = vectors
            .as_ref()
            .err()
            .map(|error| format!("documents wait for their vectors: {error}"));
        self.problems.set("embedder", problem);
        vectors
    }
}

fn failed(file: KnownFile, failure: Failure, at: tidegate_core::clock::Timestamp) -> NewDocument {
    NewDocument {
        title: title_by_name(&file.path),
        format: by_name(&file.path),
        authority: tidegate_core::knowledge::Authority::default(),
        at,
        content: Err(failure),
        file,
    }
}

/// Whether the index holds what would come of reading the file.
fn holds(known: &KnownFile, file: &KnownFile) -> bool {
    known.mark.sha256 == file.mark.sha256 && known.recipe == file.recipe
}

/// A file's name without its extension.
fn title_by_name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem.to_owned(),
        Some(_) | None => name.to_owned(),
    }
}
