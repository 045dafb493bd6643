//! The knowledge base: parsing, chunking and retrieval of the operator's documents.
//!
//! Empty until documents are indexed. What it will promise: a query never sees half a document, an answer
//! names its source, and no embedder is needed for words to be found. Today the agent reads the knowledge bank
//! with its file tools.
