//! The Model Context Protocol as a server: the real binary, driven by the SDK's own client over HTTP and standard
//! input, and by hand where a client would never do it.

mod agent;
mod approvals;
mod client;
mod documents;
mod hostile;
mod offered;
mod sessions;
mod settings;
mod stdio;
mod walk;
