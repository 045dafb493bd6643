//! The knowledge base: reading documents, searching them, and answers that name them.

mod answers;
mod parse;
