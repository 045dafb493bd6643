//! The knowledge base: parsing, chunking and retrieval of the operator's documents.
//!
//! Empty until documents are indexed. What it will promise: a query never sees half a document, an answer
//! names its source, and no embedder is needed for words to be found. Today the agent reads the knowledge bank
//! with its file tools.

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
