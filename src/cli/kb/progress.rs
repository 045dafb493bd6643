//! How far indexing is, as a bar on standard error; nothing where that is no terminal.

use indicatif::{ProgressBar, ProgressStyle};
use tidegate_kb::ingest::Progress;

/// The bar.
#[derive(Debug)]
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// A bar that shows itself on a terminal only.
    pub(super) fn new() -> Self {
        let bar = ProgressBar::new(0);
        // A template that cannot be read leaves the plain bar.
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}") {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Shows how far it is.
    pub(super) fn show(&self, progress: &Progress) {
        let (message, done, of) = if progress.is_embedding && progress.pending == 0 {
            ("embedding", progress.embedded, progress.to_embed)
        } else {
            ("reading", progress.done, progress.done + progress.pending)
        };
        self.0.set_message(message);
        self.0.set_length(of);
        self.0.set_position(done);
    }

    /// Shows how many rows of how many were copied.
    pub(super) fn show_copied(&self, done: u64, of: u64) {
        self.0.set_message("copying");
        self.0.set_length(of);
        self.0.set_position(done);
    }

    /// Takes it away.
    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}
