//! Who has spent what: counted in memory, safe on the disk a block ahead.
//!
//! For each key and day the memory holds what is spent and how far tokens are reserved on the disk. A call
//! that fits into the reserved block costs no write. When the block is used up the next one is reserved, and
//! committed, before the call may start. What a call really cost is counted at once and written within a
//! flush interval. So after a crash at any point `reserved_tokens` on the disk covers all that was spent, and
//! whoever opens the day next counts it all as spent ([`sql::LoadDay`]).
//!
//! A quota is refused once it is spent. Several calls of one key that start at the same time could each find
//! a little left; so calls under way are counted at the most they may take, and the one that would no longer
//! fit waits for them to report. They give back what they did not take; where that is not enough, or does not
//! come in time, the call makes do with what is left. That is how a quota is overrun by one call at most. A
//! call that never reports (its task died) holds the others up for `reservation_ttl_ms`, and near the end of
//! the quota only.

mod day;
pub(crate) mod sql;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use jiff::civil::Date;
use tidegate_core::{
    error::StoreError,
    id::KeyId,
    port::{DayUsage, Grant, Ledger, LedgerError, Need, Reservation, UsageRecord},
};
use tokio::time::Instant;

use self::day::{Day, Room};
use crate::{error::failed, options::Options, row, store::Store};

/// A key's day.
type Slot = (KeyId, Date);

/// What the process knows of the ledger.
#[derive(Debug)]
pub(crate) struct Book {
    days: Mutex<HashMap<Slot, Arc<Day>>>,
    rows: Mutex<Vec<UsageRecord>>,
    rows_max: usize,
    /// Reservations made so far.
    reservations: AtomicU64,
    /// Held while rows are on their way to the disk, so that a day is not loaded in between: it would be
    /// unknown whether the sum on the disk has them.
    flushing: tokio::sync::Mutex<()>,
}

impl Book {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            days: Mutex::default(),
            rows: Mutex::default(),
            rows_max: options.usage_rows_max.max(1),
            reservations: AtomicU64::default(),
            flushing: tokio::sync::Mutex::default(),
        }
    }

    /// Remembers what the disk said about a day at the start, until the day is loaded.
    pub(crate) fn expect(&self, key_id: &KeyId, day: Date, spent_tokens: u64) {
        self.day(key_id, day).expect(spent_tokens);
    }

    fn day(&self, key_id: &KeyId, day: Date) -> Arc<Day> {
        let mut days = self.days.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(days.entry((key_id.clone(), day)).or_default())
    }

    fn known(&self, key_id: &KeyId, day: Date) -> Option<Arc<Day>> {
        let days = self.days.lock().unwrap_or_else(PoisonError::into_inner);
        days.get(&(key_id.clone(), day)).map(Arc::clone)
    }

    fn next_reservation(&self) -> Reservation {
        Reservation::new(self.reservations.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, mut record: UsageRecord) {
        sql::cut(&mut record.usage);
        let tokens = record.usage.total_tokens();
        let day = self.day(&record.key_id, record.day);
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = rows.len() < self.rows_max;
        day.book(tokens, kept, record.reservation);
        if kept {
            rows.push(record);
        } else {
            tracing::warn!("the disk does not take usage rows; a call is counted but not itemised");
        }
    }

    /// Takes what is to be written: the rows, and the tokens of those that there was no room for.
    fn take(&self) -> sql::WriteUsage {
        let rows = std::mem::take(&mut *self.rows.lock().unwrap_or_else(PoisonError::into_inner));
        let days = self.days.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = days.iter().filter_map(|((key_id, date), day)| {
            let tokens = day.take_lost();
            (tokens > 0).then(|| (key_id.clone(), *date, tokens))
        });
        sql::WriteUsage {
            lost: lost.collect(),
            rows: Arc::new(rows),
        }
    }

    /// Takes back what could not be written.
    fn put_back(&self, mut rows: Vec<UsageRecord>, lost: &[(KeyId, Date, u64)]) {
        let mut newer = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.append(&mut newer);
        for row in rows.drain(self.rows_max.min(rows.len())..) {
            self.day(&row.key_id, row.day).lose(row.usage.total_tokens());
        }
        *newer = rows;
        for (key_id, day, tokens) in lost {
            self.day(key_id, *day).lose(*tokens);
        }
    }

    fn slots(&self) -> Vec<(Slot, Arc<Day>)> {
        let days = self.days.lock().unwrap_or_else(PoisonError::into_inner);
        days.iter()
            .map(|(slot, day)| (slot.clone(), Arc::clone(day)))
            .collect()
    }

    fn forget(&self, slot: &Slot) {
        let mut days = self.days.lock().unwrap_or_else(PoisonError::into_inner);
        days.remove(slot);
    }
}

#[async_trait]
impl Ledger for Store {
    /// A call that does not know what it may take: it holds what is left up to its estimate.
    async fn reserve(
        &self,
        key_id: &KeyId,
        day: Date,
        limit_tokens: Option<u64>,
        estimate_tokens: u64,
    ) -> Result<Reservation, LedgerError> {
        let need = Need {
            least_tokens: 1,
            most_tokens: estimate_tokens,
        };
        let grant = self.reserve_up_to(key_id, day, limit_tokens, need).await?;
        Ok(grant.reservation)
    }

    async fn reserve_up_to(
        &self,
        key_id: &KeyId,
        day: Date,
        limit_tokens: Option<u64>,
        need: Need,
    ) -> Result<Grant, LedgerError> {
        // Whoever is first in line waits no longer than this, so that those behind it are not held up for more.
        let patience = Duration::from_millis(self.options().reservation_wait_ms);
        let in_all = patience + Duration::from_millis(self.options().write_timeout_ms);
        let reserving = self.reserve_in_turn(key_id, day, limit_tokens, need, Instant::now() + patience);
        tokio::time::timeout(in_all, reserving)
            .await
            .unwrap_or_else(|_| Err(StoreError::Internal("reserving tokens took too long".to_owned()).into()))
    }

    fn record(&self, record: UsageRecord) {
        self.book().record(record);
    }

    fn spent_tokens(&self, key_id: &KeyId, day: Date) -> u64 {
        self.book().known(key_id, day).map_or(0, |day| day.spent_tokens())
    }

    /// A day that a crash left open and that nobody has used since shows its open block as estimated.
    async fn usage(&self, key_id: &KeyId, first: Date, last: Date) -> Result<Vec<DayUsage>, StoreError> {
        self.flush_rows().await?;
        let rows = sqlx::query(sql::USAGE)
            .bind(key_id.as_str().to_owned())
            .bind(first.to_string())
            .bind(last.to_string())
            .fetch_all(self.readers())
            .await
            .map_err(failed("reading usage"))?;
        let mut days = Vec::with_capacity(rows.len());
        for row in &rows {
            let (mut usage, open_tokens) = sql::day_usage(row).map_err(failed("reading usage"))?;
            let ours = self
                .book()
                .known(key_id, usage.day)
                .is_some_and(|day| day.is_loaded());
            if !ours {
                usage.estimated_tokens = usage.estimated_tokens.saturating_add(open_tokens);
            }
            if usage.calls > 0 || usage.estimated_tokens > 0 {
                days.push(usage);
            }
        }
        Ok(days)
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.flush_rows().await?;
        for ((key_id, date), day) in self.book().slots() {
            self.close_day(&key_id, date, &day).await?;
        }
        Ok(())
    }
}

impl Store {
    async fn reserve_in_turn(
        &self,
        key_id: &KeyId,
        date: Date,
        limit_tokens: Option<u64>,
        need: Need,
        patient_until: Instant,
    ) -> Result<Grant, LedgerError> {
        let day = self.book().day(key_id, date);
        let _turn = day.turn().await;
        if !day.is_loaded() {
            self.load_day(key_id, date, &day).await?;
        }
        let tokens = match limit_tokens {
            Some(limit_tokens) => self.room(&day, limit_tokens, need, patient_until).await?,
            None => need.most_tokens,
        };
        if let Some(reserved_tokens) = day.block_end(limit_tokens, tokens, self.options().quota_block_tokens)
        {
            let command = sql::ReserveBlock {
                key_id: key_id.clone(),
                day: date,
                reserved_tokens,
            };
            self.writer().run(command).await?;
            day.extend(reserved_tokens);
        }
        let reservation = self.book().next_reservation();
        day.begin_call(reservation, tokens, Instant::now());
        Ok(Grant { reservation, tokens })
    }

    /// Waits for room in a quota.
    async fn room(
        &self,
        day: &Day,
        limit_tokens: u64,
        need: Need,
        patient_until: Instant,
    ) -> Result<u64, LedgerError> {
        let ttl = Duration::from_millis(self.options().reservation_ttl_ms);
        loop {
            let reported = day.reported();
            let now = Instant::now();
            match day.room(limit_tokens, need, now < patient_until, now, ttl) {
                Room::Free { tokens } => return Ok(tokens),
                Room::Spent { left_tokens } => {
                    return Err(LedgerError::QuotaSpent {
                        limit_tokens,
                        left_tokens,
                    });
                }
                // Either a call reports, or the oldest of them is given up, or this one makes do with less.
                Room::Wait { until } => {
                    drop(tokio::time::timeout_at(until.min(patient_until), reported).await);
                }
            }
        }
    }

    async fn load_day(&self, key_id: &KeyId, date: Date, day: &Day) -> Result<(), StoreError> {
        let _still = self.book().flushing.lock().await;
        let (spent, reserved) = self
            .writer()
            .run(sql::LoadDay {
                key_id: key_id.clone(),
                day: date,
            })
            .await?;
        day.load(spent, reserved);
        Ok(())
    }

    /// Writes the rows that wait for the disk.
    pub(crate) async fn flush_rows(&self) -> Result<(), StoreError> {
        let _alone = self.book().flushing.lock().await;
        let batch = self.book().take();
        if batch.rows.is_empty() && batch.lost.is_empty() {
            return Ok(());
        }
        let (rows, lost) = (Arc::clone(&batch.rows), batch.lost.clone());
        match self.writer().run_to_end(batch).await {
            Ok(()) => {
                for row in rows.iter() {
                    self.book()
                        .day(&row.key_id, row.day)
                        .note_written(row.usage.total_tokens());
                }
                for (key_id, date, tokens) in &lost {
                    self.book().day(key_id, *date).note_written(*tokens);
                }
                Ok(())
            }
            Err(error) => {
                self.book().put_back(rows.to_vec(), &lost);
                Err(error)
            }
        }
    }

    /// Gives back what is reserved and not spent.
    async fn close_day(&self, key_id: &KeyId, date: Date, day: &Day) -> Result<(), StoreError> {
        let _turn = day.turn().await;
        if day.is_loaded() {
            self.writer()
                .run_to_end(sql::CloseBlock {
                    key_id: key_id.clone(),
                    day: date,
                })
                .await?;
            day.close();
        }
        Ok(())
    }

    /// Gives back of a block what calls held and did not take.
    async fn trim_day(&self, key_id: &KeyId, date: Date, day: &Day) -> Result<(), StoreError> {
        // While somebody reserves there is nothing to give back for long.
        let Some(_turn) = day.free_turn() else {
            return Ok(());
        };
        let Some(reserved_tokens) = day.surplus_end() else {
            return Ok(());
        };
        let command = sql::TrimBlock {
            key_id: key_id.clone(),
            day: date,
            reserved_tokens,
        };
        self.writer().run(command).await
    }

    /// What the worker does every interval: rows, last-used times, held turns that have expired, blocks that
    /// are too long, and days that are over.
    pub(crate) async fn flush_tick(&self) -> Result<(), StoreError> {
        self.flush_rows().await?;
        self.flush_uses().await?;
        self.drop_expired_turns().await?;
        let yesterday = self.clock().today().yesterday();
        for (slot, day) in self.book().slots() {
            let is_over = yesterday.as_ref().is_ok_and(|yesterday| slot.1 < *yesterday);
            if is_over && day.is_idle() {
                self.close_day(&slot.0, slot.1, &day).await?;
                self.book().forget(&slot);
            } else {
                self.trim_day(&slot.0, slot.1, &day).await?;
            }
        }
        Ok(())
    }

    /// Removes the usage of days before `before`; returns how many rows of calls went.
    pub async fn prune_usage(&self, before: Date) -> Result<u64, StoreError> {
        let mut pruned = 0;
        loop {
            let gone = self.writer().run(sql::Prune { before }).await?;
            pruned += gone;
            if gone < u64::from(sql::PRUNE_BATCH) {
                return Ok(pruned);
            }
        }
    }

    /// What the worker does at the end.
    pub(crate) async fn flush_last(&self) -> Result<(), StoreError> {
        self.flush().await?;
        self.flush_uses().await
    }

    /// Takes over what the disk knows of days that may still be asked for, so that a quota that was spent
    /// before a restart shows as spent at once.
    pub(crate) async fn expect_days(&self) -> Result<(), sqlx::Error> {
        let today = self.clock().today();
        let first = today.yesterday().unwrap_or(today);
        let rows = sqlx::query(sql::EXPECT)
            .bind(first.to_string())
            .fetch_all(self.readers())
            .await?;
        for row in &rows {
            let key_id: KeyId = row::named(row, "key_id")?;
            self.book()
                .expect(&key_id, sql::date(row)?, row::tokens(row, "spent_tokens")?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
