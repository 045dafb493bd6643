//! Every line of the address corpus, through the client that tools use, in a world of its own: the line's
//! names, and servers that answer what the line says.

// `cfg(test)` is always on here; it tells clippy that the helpers belong to tests, too.
#[cfg(test)]
#[path = "ssrf_corpus/lines.rs"]
mod lines;
#[cfg(test)]
#[path = "ssrf_corpus/world.rs"]
mod world;
