//! The knowledge base: parsing, chunking, embedding and retrieval of the operator's documents.
//!
//! What it promises: a query never sees half a document, an answer names its source or says that there is none, a
//! broken or hostile file costs that file only, and no embedder is needed for words to be found. Reading order:
//! [`ingest`] is a file's way in, [`base`] a question's way out.

pub mod authority;
pub mod base;
pub mod chroma;
pub mod chunk;
pub mod embed;
mod explain;
pub mod floor;
pub mod fusion;
pub mod index;
pub mod ingest;
pub mod matrix;
pub mod parse;
pub mod query;
