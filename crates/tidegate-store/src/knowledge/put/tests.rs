use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use super::*;
use crate::{
    Options, files,
    tests::{Opened, folder},
};

/// Steps of SQLite's machine between two looks at how many there were.
const STEPS: i32 = 100;

/// Copies vectors to `count` new chunks that are all equal; gives how many steps it took, and how many got one.
async fn copied(count: i64, has_vectors: bool) -> (usize, i64) {
    let (_folder, path) = folder();
    Opened::at(&path).await.close().await;
    let options = Options {
        path,
        ..Options::default()
    };
    let mut connection = files::writer(&options).await.unwrap();
    let chunks = "INSERT INTO kb_models (name) VALUES ('m'); \
         INSERT INTO kb_chunks (expires_at, ordinal, citation, sha256, place, text, heading) \
         SELECT 1, value, 'c' || value, iif(value = 0, randomblob(32), zeroblob(32)), '{}', '', '' \
         FROM json_each($1); \
         INSERT INTO kb_vectors (id, vector) SELECT (1 << 40) | key, x'0000803f' FROM kb_chunks \
         WHERE ordinal IN (0, $2)";
    let ordinals: Vec<i64> = (0..=count).collect();
    sqlx::query(chunks)
        .bind(row::json(&ordinals))
        .bind(if has_vectors { 1 } else { -1 })
        .execute(&mut connection)
        .await
        .unwrap();
    let keys: Vec<ChunkKey> = sqlx::query_scalar("SELECT key FROM kb_chunks WHERE ordinal > 0")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&looks);
    let look = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        true
    };
    connection
        .lock_handle()
        .await
        .unwrap()
        .set_progress_handler(STEPS, look);
    copy_vectors(&mut connection, &keys).await.unwrap();
    connection.lock_handle().await.unwrap().remove_progress_handler();
    let rows = "SELECT count(*) FROM kb_chunks JOIN kb_vectors ON id = (1 << 40) | key \
         WHERE ordinal > 0 AND vector = x'0000803f'";
    let found = sqlx::query_scalar(rows).fetch_one(&mut connection).await.unwrap();
    (
        looks.load(Ordering::Relaxed) * usize::try_from(STEPS).unwrap(),
        found,
    )
}

/// A document may hold the same passage thousands of times; what that costs grows with their number and not with its
/// square.
#[tokio::test]
async fn each_of_many_equal_chunks_costs_the_same() {
    for has_vectors in [true, false] {
        let (few, _) = copied(500, has_vectors).await;
        let (many, found) = copied(2_000, has_vectors).await;
        assert_eq!(found, if has_vectors { 2_000 } else { 0 });
        assert!(many < 8 * few.max(1_000), "{few} steps for 500, {many} for 2,000");
    }
}
