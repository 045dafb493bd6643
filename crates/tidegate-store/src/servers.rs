//! What is known of other MCP servers: how their tools were defined when they were accepted, and the logins at them.
//!
//! Logins are sealed (ChaCha20-Poly1305, RFC 8439), each with a nonce of its own and bound to its server's name, so that
//! a row cannot be put in another's place. The key is not in the database: a copy of the file alone opens nothing.

use std::sync::Arc;

use async_trait::async_trait;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};
use tidegate_core::{
    clock::Entropy,
    error::StoreError,
    port::{ServerLogins, ToolPin, ToolPins},
    secret::Secret,
};

use crate::{error::failed, row, store::Store, writer::Command};

/// Bytes of the key that logins are sealed with.
pub const LOGIN_KEY_BYTES: usize = 32;

const PINS_OF: &str = "SELECT * FROM mcp_pins WHERE server = $1 ORDER BY tool";

const PUT_PIN: &str = "INSERT INTO mcp_pins (server, tool, digest, definition, accepted_at) VALUES ($1, $2, $3, $4, $5) \
     ON CONFLICT (server, tool) DO UPDATE SET digest = excluded.digest, definition = excluded.definition, \
     accepted_at = excluded.accepted_at";

const FORGET_PINS: &str = "DELETE FROM mcp_pins WHERE server = $1";

const LOGIN_OF: &str = "SELECT sealed FROM mcp_logins WHERE server = $1";

const PUT_LOGIN: &str = "INSERT INTO mcp_logins (server, sealed) VALUES ($1, $2) \
     ON CONFLICT (server) DO UPDATE SET sealed = excluded.sealed";

const REMOVE_LOGIN: &str = "DELETE FROM mcp_logins WHERE server = $1";

#[async_trait]
impl ToolPins for Store {
    async fn of_server(&self, server: &str) -> Result<Vec<ToolPin>, StoreError> {
        sqlx::query(PINS_OF)
            .bind(server.to_owned())
            .fetch_all(self.readers())
            .await
            .and_then(|rows| rows.iter().map(pin).collect())
            .map_err(failed("reading what tools were accepted"))
    }

    async fn put(&self, pins: &[ToolPin]) -> Result<(), StoreError> {
        self.writer().run(PutPins(pins.to_vec())).await
    }

    async fn forget_server(&self, server: &str) -> Result<u64, StoreError> {
        self.writer()
            .run(Delete {
                sql: FORGET_PINS,
                server: server.to_owned(),
            })
            .await
    }
}

fn pin(row: &SqliteRow) -> Result<ToolPin, sqlx::Error> {
    Ok(ToolPin {
        server: row.try_get("server")?,
        tool: row.try_get("tool")?,
        digest: row.try_get("digest")?,
        definition: row.try_get("definition")?,
        accepted_at: row::time(row, "accepted_at")?,
    })
}

struct PutPins(Vec<ToolPin>);

#[async_trait]
impl Command for PutPins {
    type Output = ();

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        for pin in &self.0 {
            sqlx::query(PUT_PIN)
                .bind(pin.server.clone())
                .bind(pin.tool.clone())
                .bind(pin.digest.clone())
                .bind(pin.definition.clone())
                .bind(row::micros(pin.accepted_at))
                .execute(&mut *connection)
                .await
                .map_err(failed("accepting a tool"))?;
        }
        Ok(())
    }
}

struct Delete {
    sql: &'static str,
    server: String,
}

#[async_trait]
impl Command for Delete {
    type Output = u64;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<u64, StoreError> {
        sqlx::query(self.sql)
            .bind(self.server.clone())
            .execute(connection)
            .await
            .map(|done| done.rows_affected())
            .map_err(failed("forgetting a server"))
    }
}

struct PutLogin {
    server: String,
    sealed: Vec<u8>,
}

#[async_trait]
impl Command for PutLogin {
    type Output = ();

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        sqlx::query(PUT_LOGIN)
            .bind(self.server.clone())
            .bind(self.sealed.clone())
            .execute(connection)
            .await
            .map(drop)
            .map_err(failed("keeping a login"))
    }
}

/// Logins at other servers, in the store, sealed.
#[derive(Debug)]
pub struct SealedLogins {
    store: Arc<Store>,
    key: LessSafeKey,
    entropy: Arc<dyn Entropy>,
}

impl SealedLogins {
    /// `entropy` makes the nonces.
    pub fn new(
        store: Arc<Store>,
        key: &[u8; LOGIN_KEY_BYTES],
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, StoreError> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, key);
        let key = key.map_err(|_| StoreError::Internal("the key of logins is none".to_owned()))?;
        Ok(Self {
            store,
            key: LessSafeKey::new(key),
            entropy,
        })
    }

    fn seal(&self, server: &str, plain: &str) -> Result<Vec<u8>, StoreError> {
        let mut nonce = [0; NONCE_LEN];
        self.entropy.fill(&mut nonce);
        let mut sealed = plain.as_bytes().to_vec();
        self.key
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(server.as_bytes()),
                &mut sealed,
            )
            .map_err(|_| StoreError::Internal("a login cannot be sealed".to_owned()))?;
        let mut whole = nonce.to_vec();
        whole.append(&mut sealed);
        Ok(whole)
    }

    /// The login in a row; `None` where it was sealed with another key, or for another server.
    fn open(&self, server: &str, whole: &[u8]) -> Option<Secret> {
        let (nonce, sealed) = whole.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let plain = self
            .key
            .open_in_place(nonce, Aad::from(server.as_bytes()), &mut sealed)
            .ok()?;
        std::str::from_utf8(plain).ok().map(Secret::new)
    }
}

#[async_trait]
impl ServerLogins for SealedLogins {
    async fn find(&self, server: &str) -> Result<Option<Secret>, StoreError> {
        let sealed: Option<Vec<u8>> = sqlx::query_scalar(LOGIN_OF)
            .bind(server.to_owned())
            .fetch_optional(self.store.readers())
            .await
            .map_err(failed("reading a login"))?;
        let Some(sealed) = sealed else {
            return Ok(None);
        };
        let login = self.open(server, &sealed);
        if login.is_none() {
            tracing::warn!(
                server,
                "the login at this MCP server was sealed with another key and is of no use; log in again"
            );
        }
        Ok(login)
    }

    async fn put(&self, server: &str, login: &Secret) -> Result<(), StoreError> {
        let sealed = self.seal(server, login.expose())?;
        self.store
            .writer()
            .run(PutLogin {
                server: server.to_owned(),
                sealed,
            })
            .await
    }

    async fn remove(&self, server: &str) -> Result<bool, StoreError> {
        let removed = self.store.writer().run(Delete {
            sql: REMOVE_LOGIN,
            server: server.to_owned(),
        });
        Ok(removed.await? > 0)
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::{sync::CancellationToken, task::TaskTracker};

    use super::*;
    use crate::{
        Options,
        conformance::at,
        tests::{Morning, Opened, folder},
    };

    fn pinned(server: &str, tool: &str, digest: &str) -> ToolPin {
        ToolPin {
            server: server.to_owned(),
            tool: tool.to_owned(),
            digest: digest.to_owned(),
            definition: "{}".to_owned(),
            accepted_at: at(1),
        }
    }

    #[derive(Debug)]
    struct Counting(std::sync::atomic::AtomicU8);

    impl Entropy for Counting {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        }
    }

    fn logins(store: &Arc<Store>, key: u8) -> SealedLogins {
        SealedLogins::new(
            Arc::clone(store),
            &[key; LOGIN_KEY_BYTES],
            Arc::new(Counting(7.into())),
        )
        .unwrap()
    }

    #[tokio::test]
    async fn accepted_tools_are_kept_by_server() {
        let (_folder, path) = folder();
        let opened = Opened::at(&path).await;
        let store: &dyn ToolPins = &opened.store;
        store
            .put(&[
                pinned("a", "read", "1"),
                pinned("a", "list", "1"),
                pinned("b", "read", "1"),
            ])
            .await
            .unwrap();
        store.put(&[pinned("a", "read", "2")]).await.unwrap();
        assert_eq!(
            store.of_server("a").await.unwrap(),
            [pinned("a", "list", "1"), pinned("a", "read", "2")]
        );
        assert_eq!(store.forget_server("a").await.unwrap(), 2);
        assert_eq!(store.forget_server("A").await.unwrap(), 0);
        assert_eq!(store.of_server("b").await.unwrap().len(), 1);
        opened.close().await;
    }

    #[tokio::test]
    async fn logins_are_sealed_for_their_server_and_key() {
        let (_folder, path) = folder();
        let options = Options {
            path,
            ..Options::default()
        };
        let (store, worker) = Store::open(options, Arc::new(Morning)).await.unwrap();
        let (store, shutdown) = (Arc::new(store), CancellationToken::new());
        let tracker = TaskTracker::new();
        tracker.spawn(worker.run(shutdown.clone()));
        tracker.close();
        let ours = logins(&store, 1);
        let login = Secret::new("refresh-token-4711");
        assert!(ours.find("a").await.unwrap().is_none());
        ours.put("a", &login).await.unwrap();
        let first: Vec<u8> = sqlx::query_scalar(LOGIN_OF)
            .bind("a")
            .fetch_one(store.readers())
            .await
            .unwrap();
        ours.put("a", &login).await.unwrap();
        let second: Vec<u8> = sqlx::query_scalar(LOGIN_OF)
            .bind("a")
            .fetch_one(store.readers())
            .await
            .unwrap();
        assert_ne!(first, second, "each has a nonce of its own");
        let found = ours.find("a").await.unwrap().unwrap();
        assert_eq!(found.expose(), login.expose());
        assert!(!String::from_utf8_lossy(&second).contains("token"));
        // A row in another's place, and another key.
        store
            .writer()
            .run(PutLogin {
                server: "b".to_owned(),
                sealed: second,
            })
            .await
            .unwrap();
        assert!(ours.find("b").await.unwrap().is_none());
        assert!(logins(&store, 2).find("a").await.unwrap().is_none());
        assert!(ours.open("a", b"short").is_none());
        assert!(ours.remove("a").await.unwrap());
        assert!(!ours.remove("a").await.unwrap());
        shutdown.cancel();
        tracker.wait().await;
    }
}
