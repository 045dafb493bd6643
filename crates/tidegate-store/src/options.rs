use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where the database is, and its bounds. Each field has a default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// The database file; its folder is made with it. It must lie on a local disk.
    pub path: PathBuf,
    /// Connections that read at the same time.
    pub readers_max: u32,
    /// How long a statement waits for another process that is writing.
    pub busy_timeout_ms: u64,
    /// Writes that may be waiting; beyond it, callers wait for room.
    pub write_queue_max: usize,
    /// How long a caller waits for its write to be committed before it gets an error; one that opens a run waits
    /// so long for its turn only, because a run must not open after its caller was refused.
    pub write_timeout_ms: u64,
    /// How often usage rows and last-used times are written.
    pub flush_interval_ms: u64,
    /// Usage rows that may wait for the disk; beyond it only their tokens are kept.
    pub usage_rows_max: usize,
    /// Tokens reserved on the disk at a time. The larger, the fewer writes, and the more a crash counts as
    /// spent. A key with a quota reserves at most a sixteenth of it, beside what its calls under way may take.
    pub quota_block_tokens: u64,
    /// How long a call may wait near the end of a quota for calls under way to report what they cost; then it
    /// makes do with what is left.
    pub reservation_wait_ms: u64,
    /// After how long a call that never reported its cost no longer holds up others. Longer than any call may
    /// take: what a call under way may still spend is no room for another.
    pub reservation_ttl_ms: u64,
    /// Held turns a key may have; the oldest make room.
    pub held_turns_per_key_max: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            path: PathBuf::from("data/tidegate.db"),
            readers_max: 4,
            busy_timeout_ms: 5_000,
            write_queue_max: 1_024,
            write_timeout_ms: 10_000,
            flush_interval_ms: 1_000,
            usage_rows_max: 10_000,
            quota_block_tokens: 20_000,
            reservation_wait_ms: 30_000,
            reservation_ttl_ms: 3_600_000,
            held_turns_per_key_max: 64,
        }
    }
}
