//! The timers of one worker: their records, and the wheel of their reminders. Plain data under the
//! worker's lock.
//!
//! The worker at which a timer was added is its *home*. A timer that has migrated to another worker
//! is a *guest* there; the record at its home remains and says where the timer is.

use std::collections::BTreeMap;

use crate::records::{RecordKey, RecordStatus, Records};
use crate::reminder::Reminder;
use crate::timer_id::{Expired, TimerId};
use crate::wheel::Wheel;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// The timer is pending here.
    Pending,
    /// The timer has migrated there; it may have ended or migrated again since.
    Migrated(TimerId),
    /// The timer has fired, was cancelled, or never was here.
    Gone,
}

pub(crate) struct Shard<P> {
    worker: usize,
    wheel: Wheel,
    records: Records<P>,
    /// By slot: the ids of guests.
    guests: BTreeMap<usize, TimerId>,
    /// By slot: where timers of this worker have migrated to.
    migrated: BTreeMap<usize, TimerId>,
}

impl<P> Shard<P> {
    pub(crate) fn new(worker: usize) -> Shard<P> {
        Shard {
            worker,
            wheel: Wheel::new(),
            records: Records::new(),
            guests: BTreeMap::new(),
            migrated: BTreeMap::new(),
        }
    }

    pub(crate) fn pending(&self) -> usize {
        self.records.pending()
    }

    pub(crate) fn next_ns(&self) -> u64 {
        self.wheel.next_ns()
    }

    /// The keys that the next insertions will get, as an endless iterator.
    pub(crate) fn upcoming(&self) -> impl Iterator<Item = RecordKey> {
        self.records.upcoming()
    }

    pub(crate) fn insert(&mut self, deadline_ns: u64, payload: P) -> TimerId {
        let key = self.records.insert(deadline_ns, payload);
        self.wheel.insert(Reminder {
            deadline_ns,
            sequence: key.sequence,
            slot: key.slot,
        });
        self.id(key, deadline_ns)
    }

    /// Inserts a guest with the id `id`.
    pub(crate) fn insert_guest(&mut self, payload: P, id: TimerId) {
        let here = self.insert(id.deadline_ns, payload);
        self.guests.insert(here.key.slot, id);
    }

    pub(crate) fn id(&self, key: RecordKey, deadline_ns: u64) -> TimerId {
        TimerId {
            worker: self.worker,
            key,
            deadline_ns,
        }
    }

    pub(crate) fn find(&self, key: RecordKey) -> Lookup {
        let migrated = || self.migrated.get(&key.slot).copied();
        match self.records.status(key) {
            RecordStatus::Pending => Lookup::Pending,
            RecordStatus::Migrated => migrated().map_or(Lookup::Gone, Lookup::Migrated),
            RecordStatus::Gone => Lookup::Gone,
        }
    }

    /// Cancels the timer that is here with this key.
    #[inline(always)] // See `TimerSystem::cancel`.
    pub(crate) fn cancel(&mut self, key: RecordKey, deadline_ns: u64) -> Option<P> {
        let payload = self.records.take(key)?;
        self.mark_stale(deadline_ns);
        if !self.guests.is_empty() {
            self.guests.remove(&key.slot);
        }
        Some(payload)
    }

    /// Takes the payload of a pending timer out of its record, which then refers to `to`.
    pub(crate) fn migrate_out(&mut self, id: TimerId, to: TimerId) -> Option<P> {
        let payload = self.records.migrate_out(id.key)?;
        self.migrated.insert(id.key.slot, to);
        self.mark_stale(id.deadline_ns);
        Some(payload)
    }

    /// Records that a timer that had migrated is now at `to`.
    pub(crate) fn redirect(&mut self, key: RecordKey, to: TimerId) {
        if self.records.status(key) == RecordStatus::Migrated {
            self.migrated.insert(key.slot, to);
        }
    }

    /// Frees the record of a timer that had migrated and has ended.
    pub(crate) fn free_migrated(&mut self, key: RecordKey) {
        if self.records.status(key) == RecordStatus::Migrated {
            self.migrated.remove(&key.slot);
            self.records.free_migrated(key);
        }
    }

    /// Removes the next timer with a deadline up to `now_ns`, in the order of deadline and then of
    /// insertion. For a guest, also returns the id whose home still has a record.
    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<(Expired<P>, Option<TimerId>)> {
        loop {
            let records = &self.records;
            let live = |slot, deadline_ns| records.live(slot, deadline_ns);
            let Reminder {
                slot,
                sequence,
                deadline_ns,
            } = self.wheel.pop_due(now_ns, live)?;
            let key = RecordKey { slot, sequence };
            let Some(payload) = self.records.take(key) else {
                continue; // It was cancelled; the reminder is stale.
            };
            let guest_of = self.guests.remove(&slot);
            let expired = Expired {
                id: guest_of.unwrap_or_else(|| self.id(key, deadline_ns)),
                deadline_ns,
                payload,
            };
            return Some((expired, guest_of));
        }
    }

    fn mark_stale(&mut self, deadline_ns: u64) {
        let records = &self.records;
        let live = |slot, deadline_ns| records.live(slot, deadline_ns);
        self.wheel.mark_stale(deadline_ns, live);
    }

    /// The number of records that are not free. If nothing is pending it must be 0; otherwise
    /// records leak.
    #[cfg(any(test, feature = "property"))]
    pub(crate) fn leaked_records(&self) -> usize {
        self.guests.len() + self.migrated.len() + self.records.len() - self.records.free()
    }

    /// The numbers of records in memory and of reminders in the wheel.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn lengths(&self) -> (usize, usize) {
        (self.records.len(), self.wheel.len())
    }
}
