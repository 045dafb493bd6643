//! A look at the folder and at what is known of it. Nothing is changed by it.

use std::sync::Arc;

use tidegate_core::{error::StoreError, port::KnownFile};
use tidegate_io::files::{Node, Roots, Tree};

use super::{
    Shared,
    scan::{self, Difference},
};

/// Known files that are read from the store at once.
const PAGE: usize = 5_000;

impl Shared {
    /// Opens the folder. Anew each time: it may have been replaced by another one.
    pub(super) async fn open(&self) -> Result<Roots, String> {
        let folder = self.options.folder.clone();
        let opening = tokio::task::spawn_blocking(move || Roots::open(&[folder]));
        opening.await.map_err(|error| error.to_string())?.map_err(|_| {
            let folder = self.options.folder.display();
            format!("the knowledge bank `{folder}` cannot be opened; the index stays as it is")
        })
    }

    /// The folder, in which second names of guarded files are known by what there is now. Looked up anew for whatever
    /// was announced together, since a look through all guarded files for each is too dear.
    pub(super) fn guarded(&self, roots: Roots) -> Roots {
        roots.guarding(Arc::new((self.may_read.twins)().remembering()))
    }

    /// What stands at a path and below it.
    pub(super) async fn tree(self: &Arc<Self>, roots: Roots, below: String) -> Option<(Tree, Roots)> {
        let shared = Arc::clone(self);
        let walking = tokio::task::spawn_blocking(move || {
            let tree = roots.tree(&below, shared.options.files_max, &|path, _| {
                shared.may_enter(path)
            });
            (tree, roots)
        });
        walking.await.ok()
    }

    /// What is to be done. `serves` says whether the configured model's vectors are those that are searched.
    pub(super) async fn difference(
        self: &Arc<Self>,
        nodes: Vec<Node>,
        known: Vec<KnownFile>,
        roots: Roots,
        serves: bool,
    ) -> Option<Difference> {
        let shared = Arc::clone(self);
        let comparing = tokio::task::spawn_blocking(move || {
            scan::difference(nodes, known, &scan::leads(&roots), &|known| {
                shared.is_current(known, serves)
            })
        });
        comparing.await.ok()
    }

    /// Everything that is known of the folder.
    pub(super) async fn all_known(&self) -> Result<Vec<KnownFile>, StoreError> {
        let mut all: Vec<KnownFile> = Vec::new();
        loop {
            let page = self
                .store
                .files(all.last().map(|file| file.path.as_str()), PAGE)
                .await?;
            let is_last = page.len() < PAGE;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// How many files the index has yet to follow.
    pub(super) async fn behind(self: &Arc<Self>) -> Option<u64> {
        let roots = self.guarded(self.open().await.ok()?);
        let known = self.all_known().await.ok()?;
        let (tree, roots) = self.tree(roots, String::new()).await?;
        if tree.nodes.iter().any(|node| node.path.is_empty()) {
            return None;
        }
        let serving = self.store.serving_model().await.ok()?;
        let serves = serving.is_none_or(|serving| serving == self.embedder.model().id);
        let difference = self.difference(tree.nodes, known, roots, serves).await?;
        let waits = |(node, known): &&(Node, Option<KnownFile>)| {
            known.as_ref().is_none_or(|known| !scan::is_done(node, known))
        };
        let looked_at = difference.look.iter().filter(waits).count();
        u64::try_from(looked_at + difference.refused.len() + difference.vanished.len()).ok()
    }
}
