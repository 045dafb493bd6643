use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlx::{Connection as _, SqliteConnection};
use tidegate_core::{error::StoreError, id::KeyId, port::KeyStore as _};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::Command;
use crate::{
    Options, Store,
    conformance::key,
    error::failed,
    tests::{Morning, Opened, folder},
};

/// How a write can end so that its connection is of no more use.
#[derive(Debug, Clone, Copy)]
enum Ruin {
    /// The disk is full within a statement of one row, for which SQLite takes everything back by itself.
    Full,
    /// The disk is full within a statement that can be taken back alone.
    FullAmongRows,
    /// The disk is full after a savepoint was made.
    FullInSavepoint,
    /// The transaction has ended when the command says that it went well.
    Ended,
    /// The commit is refused, and the transaction goes on.
    Commit,
    /// The command panics in its transaction.
    Panic,
}

impl Ruin {
    const ALL: [Self; 6] = [
        Self::Full,
        Self::FullAmongRows,
        Self::FullInSavepoint,
        Self::Ended,
        Self::Commit,
        Self::Panic,
    ];

    async fn run(self, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        match self {
            Self::Full => {
                cap(connection).await?;
                for id in 1..2_000 {
                    let row = "INSERT INTO held_in_test (id, filler) VALUES ($1, zeroblob(50000))";
                    sqlx::query(row).bind(id).execute(&mut *connection).await?;
                }
            }
            Self::FullAmongRows => {
                cap(connection).await?;
                let rows =
                    "INSERT INTO held_in_test (id, filler) SELECT value, zeroblob(50000) FROM json_each($1)";
                let ids: Vec<i64> = (1..2_000).collect();
                sqlx::query(rows)
                    .bind(crate::row::json(&ids))
                    .execute(connection)
                    .await?;
            }
            Self::FullInSavepoint => {
                cap(connection).await?;
                let mut savepoint = connection.begin().await?;
                for id in 1..2_000 {
                    let row = "INSERT INTO held_in_test (id, filler) VALUES ($1, zeroblob(50000))";
                    sqlx::query(row).bind(id).execute(&mut *savepoint).await?;
                }
            }
            Self::Ended => {
                sqlx::raw_sql("ROLLBACK").execute(connection).await?;
            }
            Self::Commit => {
                let sql = "PRAGMA defer_foreign_keys = ON; \
                     INSERT INTO kb_chunks (document, ordinal, citation, sha256, place, text, heading) \
                     VALUES (-1, 0, 'c', zeroblob(32), '{}', '', '')";
                sqlx::raw_sql(sql).execute(connection).await?;
            }
            Self::Panic => panic!("a command of this test panics"),
        }
        Ok(())
    }

    fn says(self) -> &'static str {
        match self {
            Self::Full | Self::FullAmongRows | Self::FullInSavepoint => "the disk is full; free some space",
            Self::Ended => "no transaction is active",
            Self::Commit => "FOREIGN KEY constraint failed",
            Self::Panic => "failed unexpectedly",
        }
    }
}

/// Leaves the connection some room, for as long as it lives: too little for what is written next.
async fn cap(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let table = "CREATE TABLE held_in_test (id INTEGER PRIMARY KEY, filler BLOB)";
    sqlx::raw_sql(table).execute(&mut *connection).await?;
    let pages: i64 = sqlx::query_scalar("PRAGMA page_count")
        .fetch_one(&mut *connection)
        .await?;
    let mut pragma = sqlx::QueryBuilder::<sqlx::Sqlite>::new("PRAGMA max_page_count = ");
    pragma.push(pages + 200);
    pragma.build().persistent(false).execute(connection).await?;
    Ok(())
}

#[async_trait]
impl Command for Ruin {
    type Output = ();

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        self.run(connection)
            .await
            .map_err(failed("ruining a transaction"))
    }
}

/// The same as the only statements of a command that brings its own transaction.
struct Alone(Ruin);

#[async_trait]
impl Command for Alone {
    type Output = ();

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<(), StoreError> {
        self.0.apply(connection).await
    }

    async fn apply_alone(&self, connection: &mut SqliteConnection) -> Option<Result<(), StoreError>> {
        let begun = sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut *connection).await;
        let done = match begun {
            Ok(_) => self.0.run(connection).await,
            Err(error) => Err(error),
        };
        let done = match done {
            Ok(()) => sqlx::raw_sql("COMMIT").execute(connection).await.map(drop),
            Err(error) => Err(error),
        };
        Some(done.map_err(failed("ruining a transaction")))
    }
}

/// What a connection that writes is set to.
struct Pragmas;

#[async_trait]
impl Command for Pragmas {
    type Output = Vec<i64>;

    async fn apply(&self, connection: &mut SqliteConnection) -> Result<Vec<i64>, StoreError> {
        let mut set = Vec::new();
        for pragma in [
            "PRAGMA secure_delete",
            "PRAGMA foreign_keys",
            "PRAGMA synchronous",
            "PRAGMA wal_autocheckpoint",
            "PRAGMA busy_timeout",
        ] {
            let value = sqlx::query_scalar(pragma).fetch_one(&mut *connection).await;
            set.push(value.map_err(failed("reading a pragma"))?);
        }
        Ok(set)
    }
}

/// What was acknowledged stays, the culprit is told why, and the next write goes through, on a connection that is set
/// like the first one.
#[tokio::test]
async fn a_transaction_that_ends_badly_spoils_no_other_write() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path).await;
    let pragmas = opened.store.writer().run(Pragmas).await.unwrap();
    assert_eq!(pragmas, [1, 1, 1, 10_000, 5_000]);
    let mut names = Vec::new();
    for (at, ruin) in Ruin::ALL.into_iter().enumerate() {
        let (before, after) = (format!("before{at}"), format!("after{at}"));
        opened.store.insert(&key(&before, 0)).await.unwrap();
        let writer = opened.store.writer();
        for is_alone in [false, true] {
            // A savepoint within a transaction that sqlx knows nothing of would not be one.
            if is_alone && matches!(ruin, Ruin::FullInSavepoint) {
                continue;
            }
            let end = if is_alone {
                writer.run(Alone(ruin)).await
            } else {
                writer.run(ruin).await
            };
            let error = end.unwrap_err().to_string();
            assert!(error.contains(ruin.says()), "{ruin:?}: {error}");
            let name = format!("{after}-{}", names.len());
            let done = opened.store.insert(&key(&name, 0)).await;
            assert!(done.is_ok(), "{ruin:?}: {done:?}");
            names.push(name);
        }
        names.push(before);
        assert_eq!(writer.run(Pragmas).await.unwrap(), pragmas, "{ruin:?}");
        assert_eq!(opened.store.write_fault(), None, "{ruin:?}");
    }
    for name in names {
        let found = opened.store.find(&KeyId::new(&name)).await.unwrap();
        assert!(found.is_some(), "{name}");
    }
    opened.close().await;
}

/// Writes that share the transaction of one that ends badly are made all the same.
#[tokio::test]
async fn neighbours_of_a_write_that_ends_badly_are_written() {
    // Not the one whose command says that all is well: no command goes on after an error.
    for ruin in Ruin::ALL.into_iter().filter(|ruin| !matches!(ruin, Ruin::Ended)) {
        let (_folder, path) = folder();
        let options = Options {
            path,
            ..Options::default()
        };
        let (store, worker) = Store::open(options, Arc::new(Morning)).await.unwrap();
        let (first, second) = (key("first", 0), key("second", 0));
        // All of them are in the queue before anybody writes.
        let (left, bad, right, ()) = tokio::join!(
            store.insert(&first),
            store.writer().run(ruin),
            store.insert(&second),
            async {
                while store.writer().waiting() < 3 {
                    tokio::task::yield_now().await;
                }
                let (shutdown, tracker) = (CancellationToken::new(), TaskTracker::new());
                tracker.spawn(worker.run(shutdown.clone()));
                tracker.close();
                shutdown.cancel();
                tracker.wait().await;
            }
        );
        for neighbour in [left, right] {
            assert!(neighbour.is_ok(), "{ruin:?}: {neighbour:?}");
        }
        let error = bad.unwrap_err().to_string();
        assert!(error.contains(ruin.says()), "{ruin:?}: {error}");
    }
}

/// Whoever asks whether writes go through is told so while they do not, and no longer once they would again, though
/// nobody has written meanwhile.
#[tokio::test]
async fn a_fault_is_known_until_a_write_would_go_through() {
    let (_folder, path) = folder();
    let options = Options {
        path,
        busy_timeout_ms: 20,
        ..Options::default()
    };
    let opened = Opened::with(options.clone()).await;
    assert_eq!(opened.store.write_fault(), None);
    let mut other = crate::files::writer(&options).await.unwrap();
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    opened.store.insert(&key("a", 0)).await.unwrap_err();
    until(|| opened.store.write_fault().is_some()).await;
    let fault = opened.store.write_fault().unwrap();
    assert!(fault.contains("another process holds the database"), "{fault}");
    assert!(!fault.contains('/'), "strangers read it: {fault}");
    lock.rollback().await.unwrap();
    until(|| opened.store.write_fault().is_none()).await;

    // A row that is there already is no fault of the database.
    opened.store.insert(&key("a", 0)).await.unwrap();
    opened.store.insert(&key("a", 0)).await.unwrap_err();
    assert_eq!(opened.store.write_fault(), None);
    let store = opened.store.clone();
    opened.close().await;
    assert!(store.write_fault().unwrap().contains("stopped"));
}

async fn until(mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting)
        .await
        .unwrap();
}
