//! Whose memory a command is about: a key, by its id or its name, and a user of it.

use tidegate_core::{
    id::{KeyId, UserId},
    port::{KeyStore, PageRequest},
};

use super::Desk;
use crate::cli::{args::memory::Whose, error::Error, keys, output};

/// Keys that are fetched at a time, and that are looked through for a name.
const PAGE_KEYS: u32 = 100;
const PAGES_MAX: u32 = 100;

impl Desk {
    /// The person.
    pub(super) async fn user(&self, whose: &Whose) -> Result<UserId, Error> {
        let key = self.key(whose.key.as_deref()).await?;
        UserId::of(&key, whose.user.as_deref()).map_err(|fault| Error::Usage(format!("--user: {fault}")))
    }

    /// The key that is named, or the only one there is.
    pub(super) async fn key(&self, named: Option<&str>) -> Result<KeyId, Error> {
        let Some(named) = named else {
            return self.only_key().await;
        };
        let id = keys::id_of(named);
        if KeyStore::find(&*self.store, &id).await?.is_some() {
            return Ok(id);
        }
        let mut meant = Vec::new();
        self.each_key(|id, name| {
            if name == named.trim() {
                meant.push(id);
            }
            true
        })
        .await?;
        match meant.as_slice() {
            [id] => Ok(id.clone()),
            [] => Err(Error::NotFound(format!(
                "there is no key `{}`; `tidegate keys list` shows them",
                output::plain(named)
            ))),
            _ => Err(Error::Usage(format!(
                "several keys are called `{}`; say which by its id, as `tidegate keys list` shows it",
                output::plain(named)
            ))),
        }
    }

    async fn only_key(&self) -> Result<KeyId, Error> {
        let mut first = Vec::new();
        self.each_key(|id, _| {
            first.push(id);
            first.len() < 2
        })
        .await?;
        match first.as_slice() {
            [id] => Ok(id.clone()),
            [] => Err(Error::NotFound(
                "there are no keys, so nobody is remembered; make one with `tidegate keys create --name NAME`"
                    .to_owned(),
            )),
            _ => Err(Error::Usage(
                "there are several keys, and each has people of its own; say --key KEY, as `tidegate keys list` \
                 shows it"
                    .to_owned(),
            )),
        }
    }

    /// Looks at every key until `wants_more` says no.
    async fn each_key(&self, mut wants_more: impl FnMut(KeyId, String) -> bool) -> Result<(), Error> {
        let mut after = None;
        for _ in 0..PAGES_MAX {
            let request = PageRequest {
                after: after.take(),
                limit: PAGE_KEYS,
                newest_first: false,
            };
            let page = KeyStore::list(&*self.store, &request).await?;
            after = page.keys.last().map(|key| key.id.clone());
            for key in page.keys {
                if !wants_more(key.id, key.policy.name) {
                    return Ok(());
                }
            }
            if !page.has_more || after.is_none() {
                break;
            }
        }
        Ok(())
    }
}
