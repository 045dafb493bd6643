//! What other servers gave us to be let in again.

use async_trait::async_trait;

use crate::{error::StoreError, secret::Secret};

/// Keeps what a login at another server has yielded: tokens, and as whom they were given. A store keeps it encrypted.
#[async_trait]
pub trait ServerLogins: Send + Sync + std::fmt::Debug {
    /// The login at a server, if there is one.
    async fn find(&self, server: &str) -> Result<Option<Secret>, StoreError>;

    /// Puts a login in the place of the one there was.
    async fn put(&self, server: &str, login: &Secret) -> Result<(), StoreError>;

    /// Takes a login away; false where there was none.
    async fn remove(&self, server: &str) -> Result<bool, StoreError>;
}
