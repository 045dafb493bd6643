//! What is remembered of people, kept.
//!
//! A person is a [`UserId`] and nothing else: every method that touches what is kept of one takes it, compares it byte
//! by byte, and sees no other person's rows. Ids that only look alike belong to different people.
//!
//! **Nothing comes back.** What was forgotten or erased must not return from something that was under way meanwhile:
//! a turn can be completed only while its row is there ([`CaptureQueue::complete`]), and notes can be put only while
//! what they were derived from is as it was ([`MemoryStore::put_notes`]).

use async_trait::async_trait;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::VectorPage;
use crate::{
    clock::Timestamp,
    error::StoreError,
    id::{FactId, KeyId, RunId, UserId},
    memory::Observation,
};

/// A row of one person, in the order in which rows were added. No key is given out twice.
pub type RowKey = i64;

/// The state of what is kept of one person. It changes with every write, and a state never comes back, not even
/// after an erasure. The default is that of a person of whom nothing was ever kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct MemoryVersion(pub u64);

/// Some of a person's observations, in the order in which they were added.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ObservationPage {
    /// The observations.
    pub observations: Vec<Observation>,
    /// Where the next page begins; `None` where this is the last one.
    pub next: Option<RowKey>,
    /// The state that the page is of. Pages of different states do not belong together.
    pub version: MemoryVersion,
}

/// What recall searches: one fact in words, to be found by its words and by its meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNote {
    /// The fact.
    pub fact: FactId,
    /// What it is about. With `value`, what the note goes with when the fact is forgotten.
    pub kind: String,
    /// Its value.
    pub value: String,
    /// The words. They say nothing of other facts.
    pub text: String,
}

/// A note that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Its key; another one as soon as the text changes.
    pub key: RowKey,
    /// The fact.
    pub fact: FactId,
    /// What it is about.
    pub kind: String,
    /// Its value.
    pub value: String,
    /// The words.
    pub text: String,
}

/// What went when a fact was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Forgotten {
    /// Observations.
    pub observations: u64,
    /// Notes.
    pub notes: u64,
    /// Turns that waited to be learned from: the fact may stand in any of them.
    pub captures: u64,
}

/// What was erased of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Erased {
    /// Runs, with their journals.
    pub runs: u64,
    /// Held turns.
    pub held_turns: u64,
    /// Approvals, waiting and ended.
    pub approvals: u64,
    /// Usage rows that now name the key alone.
    pub usage_rows: u64,
    /// Turns that waited to be learned from.
    pub captures: u64,
    /// Observations.
    pub observations: u64,
    /// Notes, with their words in the index and their vectors.
    pub notes: u64,
    /// Whether the text is out of the files by now. Else somebody was reading an older state all the while; it
    /// leaves them as soon as that has ended.
    pub is_out_of_files: bool,
}

/// A person of whom something is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// Who.
    pub user: UserId,
    /// Observations.
    pub observations: u64,
    /// Notes.
    pub notes: u64,
    /// When the newest observation was said.
    pub last_at: Option<Timestamp>,
}

/// Which observations may stay. Both bounds apply to each person on their own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Retention {
    /// Of this person only; else of everybody.
    pub user: Option<UserId>,
    /// Of this kind only; else of all kinds together.
    pub kind: Option<String>,
    /// What was said before goes.
    pub before: Option<Timestamp>,
    /// No more than the newest so many stay.
    pub newest_max: Option<u32>,
}

/// What one step of pruning did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Observations that went; notes of facts without any other went with them.
    pub observations: u64,
    /// Whose. What follows from the rest is to be derived again.
    pub users: Vec<UserId>,
    /// Where the next step begins; `None` where nothing is left to prune.
    pub next: Option<RowKey>,
}

/// One of the two things memory does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Learning from turns. Off: nothing is queued, and what was queued is dropped.
    Learning,
    /// Telling the model what is remembered.
    Recall,
}

/// Whose switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SwitchOwner {
    /// One person.
    User(UserId),
    /// Every person of a key.
    Key(KeyId),
}

/// How the switches of one owner stand. Both are on until somebody turns them off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switches {
    /// [`Switch::Learning`].
    pub learning: bool,
    /// [`Switch::Recall`].
    pub recall: bool,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            learning: true,
            recall: true,
        }
    }
}

impl Switches {
    /// On where both are.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            learning: self.learning && other.learning,
            recall: self.recall && other.recall,
        }
    }
}

/// Observations and notes of people.
#[async_trait]
pub trait MemoryStore: Send + Sync + std::fmt::Debug {
    /// The state of what is kept of `user`. Cheap enough to ask in every request.
    async fn version(&self, user: &UserId) -> Result<MemoryVersion, StoreError>;

    /// Adds observations that did not come from the queue: corrections and imports. One of the same turn, kind, value
    /// and stance as one that is there is the same one and changes nothing. Gives how many are new. A person has a
    /// bounded number of observations; beyond it those added first go.
    async fn append(&self, user: &UserId, observations: Vec<Observation>) -> Result<u64, StoreError>;

    /// Observations of `user` from `from` on, 0 being the first, at most `limit`.
    async fn observations(
        &self,
        user: &UserId,
        from: RowKey,
        limit: usize,
    ) -> Result<ObservationPage, StoreError>;

    /// Forgets one fact: every observation of that kind and value, what was affirmed and what was retracted, its note,
    /// and every turn of `user` that waits to be learned from.
    async fn forget(&self, user: &UserId, kind: &str, value: &str) -> Result<Forgotten, StoreError>;

    /// Erases everything that is stored of a person's words, in every table and every file of the store, and not
    /// only what is remembered: runs, also running ones, with their journals, held turns, approvals, turns that
    /// wait. Usage stays for the key's books, without the person's name. A switch that the person has turned
    /// off stays off.
    async fn erase(&self, user: &UserId) -> Result<Erased, StoreError>;

    /// The people of a key of whom something is kept, in the order of their ids, after `after`, at most `limit`.
    async fn users(
        &self,
        key_id: &KeyId,
        after: Option<&UserId>,
        limit: usize,
    ) -> Result<Vec<Remembered>, StoreError>;

    /// Does one step of pruning, some hundred rows: from 0 first, then from [`Pruned::next`].
    async fn prune_observations(&self, retention: &Retention, from: RowKey) -> Result<Pruned, StoreError>;

    /// The switches of a person and of the person's key, in this order; what either turns off is off.
    async fn switches(&self, user: &UserId) -> Result<(Switches, Switches), StoreError>;

    /// Turns a switch.
    async fn set_switch(&self, owner: &SwitchOwner, switch: Switch, is_on: bool) -> Result<(), StoreError>;

    /// Puts notes that follow from the state `derived_from`: `notes` are added, or take the place of those of the same
    /// fact, and those of the facts in `gone` are removed. One whose text is as it was keeps its key and vector. Gives
    /// the new state, or `None` where the state was another one by then and nothing was changed.
    async fn put_notes(
        &self,
        user: &UserId,
        derived_from: MemoryVersion,
        notes: Vec<NewNote>,
        gone: Vec<FactId>,
    ) -> Result<Option<MemoryVersion>, StoreError>;

    /// Notes of `user` from a key on, 0 being the first, at most `limit`.
    async fn notes(&self, user: &UserId, from: RowKey, limit: usize) -> Result<Vec<Note>, StoreError>;

    /// The notes of these keys, in their order; those that are gone, or of somebody else, are left out.
    async fn notes_of(&self, user: &UserId, keys: &[RowKey]) -> Result<Vec<Note>, StoreError>;

    /// Notes that hold any of `terms`, best first, and the score (greater is better): BM25 over this person's notes
    /// alone, so that nobody's words move another one's ranks. Of equal ones the newer comes first. Terms are plain
    /// words: the store quotes them; one that is given twice counts twice.
    async fn match_notes(
        &self,
        user: &UserId,
        terms: &[String],
        limit: usize,
    ) -> Result<Vec<(RowKey, f32)>, StoreError>;

    /// Vectors of `model` in the order of the keys, from a key on, at most `limit`.
    async fn note_vectors(
        &self,
        user: &UserId,
        model: &str,
        from: RowKey,
        limit: usize,
    ) -> Result<VectorPage, StoreError>;

    /// Keeps what `model` says of notes that are still there, in place of what another model said; `None` where it
    /// knows nothing in the text. Gives how many were kept.
    async fn put_note_vectors(
        &self,
        user: &UserId,
        model: &str,
        vectors: Vec<(RowKey, Option<Vec<f32>>)>,
    ) -> Result<u64, StoreError>;

    /// Notes of `user` that `model` was not asked about, at most `limit`.
    async fn unembedded_notes(
        &self,
        user: &UserId,
        model: &str,
        limit: usize,
    ) -> Result<Vec<Note>, StoreError>;

    /// People with such notes, at most `limit`, for the one who embeds them in the background.
    async fn users_with_unembedded_notes(&self, model: &str, limit: usize)
    -> Result<Vec<UserId>, StoreError>;
}

/// The most text a turn may have, with all that was in sight of it, in bytes. One that has more is not learned from,
/// because what is cut off could not be held against the person's words.
pub const CAPTURE_BYTES_MAX: usize = 512 * 1024;

/// Where a text came from that was in sight of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sight {
    /// A passage of a document.
    Retrieved,
    /// What a tool returned, the client's own included.
    Tool,
    /// What the assistant said before the turn.
    Assistant,
    /// What the client set down as instructions.
    System,
    /// An earlier message of the person, whole.
    Earlier,
}

/// A text that was in sight of a turn and is not what the person said in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Where it came from.
    pub sight: Sight,
    /// The text.
    pub text: String,
}

/// One finished turn, to be learned from later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// The run that it was. One run is queued once.
    pub run: RunId,
    /// Which turn it was; see [`Observation::turn`].
    pub turn: [u8; 32],
    /// The conversation, as a digest.
    pub conversation: String,
    /// The local day.
    pub day: Date,
    /// When it was said.
    pub at: Timestamp,
    /// The newest human turn, whole.
    pub said: String,
    /// What else was in sight, against which the person's words are held.
    pub in_sight: Vec<Seen>,
}

/// What became of a turn that was to be queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enqueued {
    /// It is in the queue and survives the end of the process.
    Queued,
    /// The run is in the queue already.
    Known,
    /// The person or the key has turned learning off.
    LearningOff,
    /// There is no such run of this person: it was erased while the turn was under way.
    RunGone,
    /// Too many turns wait, of this person or in all.
    Full,
    /// It has more than [`CAPTURE_BYTES_MAX`].
    TooLarge,
}

/// The right to work on one queued turn, until it is given back or its time is over and somebody else has taken it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Whose turn it is.
    pub user: UserId,
    /// Its place in the queue.
    pub place: i64,
    /// The how-manieth lease of it this is.
    pub number: i64,
}

/// A turn to work on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedCapture {
    /// The right to do it.
    pub lease: Lease,
    /// The turn.
    pub capture: Capture,
    /// How often it was begun, this time included. A turn that takes the process down with it is counted, too.
    pub attempts: u32,
}

/// How full the queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CaptureCounts {
    /// Turns that wait, also for another attempt.
    pub waiting: u64,
    /// Turns that are being worked on.
    pub leased: u64,
    /// Turns that were given up.
    pub dead: u64,
    /// When the oldest turn that is waiting or worked on was said.
    pub oldest_at: Option<Timestamp>,
}

/// Finished turns that wait to be learned from. A row is there from [`CaptureQueue::enqueue`] until what was learned
/// is kept, so that nothing is lost with the process; and it goes in the same step, so that nothing is learned twice.
#[async_trait]
pub trait CaptureQueue: Send + Sync + std::fmt::Debug {
    /// Queues a turn: one insert, on the caller's own time.
    async fn enqueue(&self, user: &UserId, capture: &Capture) -> Result<Enqueued, StoreError>;

    /// Takes turns that are due at `now`, oldest first, at most `limit`. Whoever has not finished at `until` may find
    /// that somebody else has begun.
    async fn claim(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<ClaimedCapture>, StoreError>;

    /// Keeps what was learned from a turn, as [`MemoryStore::append`] does, and removes the turn, in one step. Gives
    /// how many observations are new; `None` where the turn is no longer the caller's, because it was erased,
    /// forgotten, dropped or taken over: then nothing was kept.
    async fn complete(&self, lease: &Lease, learned: Vec<Observation>) -> Result<Option<u64>, StoreError>;

    /// Puts a turn back that failed, to be tried again at `due_at`. `problem` names the failure and holds none of
    /// the text. False where the turn is no longer the caller's.
    async fn retry(&self, lease: &Lease, due_at: Timestamp, problem: &str) -> Result<bool, StoreError>;

    /// Gives a turn up. It stays among the dead, a bounded number, until [`CaptureQueue::revive`] or pruning. False
    /// where the turn is no longer the caller's.
    async fn bury(&self, lease: &Lease, problem: &str) -> Result<bool, StoreError>;

    /// Puts a turn back that was not worked on after all, as at a shutdown; it is due at `now`, and the attempt
    /// does not count. False where the turn is no longer the caller's.
    async fn release(&self, lease: &Lease, now: Timestamp) -> Result<bool, StoreError>;

    /// At start: what an earlier process was working on is due at once. Gives how many.
    async fn recover_captures(&self, now: Timestamp) -> Result<u64, StoreError>;

    /// Puts all dead turns back, as if never tried. Gives how many.
    async fn revive(&self, now: Timestamp) -> Result<u64, StoreError>;

    /// When the next turn is due; `None` where none waits.
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Turns of one person that wait or are worked on. Those that were given up do not count.
    async fn pending_of(&self, user: &UserId) -> Result<u64, StoreError>;

    /// How full the queue is.
    async fn capture_counts(&self) -> Result<CaptureCounts, StoreError>;

    /// Removes dead turns that were said before `before`; gives how many.
    async fn prune_captures(&self, before: Timestamp) -> Result<u64, StoreError>;
}
