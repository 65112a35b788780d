//! The timers of one worker: records, and the wheel that reminds of them. Plain data; whoever holds it decides.

use std::collections::BTreeMap;

use super::records::{Content, Key, Records, Standing};
use super::wheel::{Reminder, Wheel};
use super::{Expired, TimerId};

/// Where the timer of an id is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Pending, here.
    Pending,
    /// At another worker, or it was when this one heard of it last.
    Away(TimerId),
    /// Fired, cancelled, or never here.
    Gone,
}

pub(super) struct Shard<P> {
    worker: usize,
    wheel: Wheel,
    records: Records<P>,
    /// By slot: under which id its owner knows a timer that migrated to here.
    guests: BTreeMap<usize, TimerId>,
    /// By slot: where a timer of this worker has migrated to.
    away: BTreeMap<usize, TimerId>,
}

/// A timer that was taken out.
pub(super) struct Taken<P> {
    pub(super) deadline_ns: u64,
    pub(super) payload: P,
    /// Set if the timer had migrated to here: its id, whose worker still keeps a record.
    pub(super) guest_of: Option<TimerId>,
}

impl<P> Shard<P> {
    pub(super) fn new(worker: usize) -> Shard<P> {
        Shard {
            worker,
            wheel: Wheel::new(),
            records: Records::new(),
            guests: BTreeMap::new(),
            away: BTreeMap::new(),
        }
    }

    pub(super) fn pending(&self) -> usize {
        self.records.pending()
    }

    /// No timer is due before this time.
    pub(super) fn next_ns(&self) -> u64 {
        self.wheel.next_ns()
    }

    /// The ids that the next insertions will get, without end.
    pub(super) fn upcoming(&self) -> impl Iterator<Item = TimerId> {
        let worker = self.worker;
        let keys = self.records.upcoming();
        keys.map(move |key| TimerId { worker, key })
    }

    pub(super) fn insert(&mut self, deadline_ns: u64, payload: P) -> TimerId {
        self.insert_content(Content {
            deadline_ns,
            is_guest: false,
            payload,
        })
    }

    /// Takes in a timer that its owner knows as `id`.
    pub(super) fn insert_guest(&mut self, deadline_ns: u64, payload: P, id: TimerId) -> TimerId {
        let here = self.insert_content(Content {
            deadline_ns,
            is_guest: true,
            payload,
        });
        self.guests.insert(here.key.slot, id);
        here
    }

    fn insert_content(&mut self, content: Content<P>) -> TimerId {
        let deadline_ns = content.deadline_ns;
        let key = self.records.insert(content);
        self.wheel.insert(Reminder {
            deadline_ns,
            sequence: key.sequence,
            slot: key.slot,
        });
        TimerId {
            worker: self.worker,
            key,
        }
    }

    pub(super) fn find(&self, key: Key) -> Found {
        let away = || self.away.get(&key.slot).copied();
        match self.records.standing(key) {
            Standing::Pending => Found::Pending,
            Standing::Away => away().map_or(Found::Gone, Found::Away),
            Standing::Gone => Found::Gone,
        }
    }

    /// Ends a pending timer before its time.
    pub(super) fn cancel(&mut self, key: Key) -> Option<Taken<P>> {
        let content = self.records.take(key)?;
        self.reminder_went_stale(content.deadline_ns);
        Some(self.taken(key, content))
    }

    /// Takes a pending timer out of its record, which from now on leads to `to`.
    pub(super) fn send_away(&mut self, key: Key, to: TimerId) -> Option<Taken<P>> {
        let content = self.records.send_away(key)?;
        self.away.insert(key.slot, to);
        self.reminder_went_stale(content.deadline_ns);
        Some(self.taken(key, content))
    }

    /// A timer that is away has gone on to `to`.
    pub(super) fn redirect(&mut self, key: Key, to: TimerId) {
        if self.records.standing(key) == Standing::Away {
            self.away.insert(key.slot, to);
        }
    }

    /// A timer that was away has ended.
    pub(super) fn forget(&mut self, key: Key) {
        if self.records.standing(key) == Standing::Away {
            self.away.remove(&key.slot);
            self.records.forget(key);
        }
    }

    /// The next timer with a deadline up to `now_ns`, by deadline and then by insertion. It ends here. Beside it the
    /// id under which another worker still keeps a record of it.
    pub(super) fn pop_due(&mut self, now_ns: u64) -> Option<(Expired<P>, Option<TimerId>)> {
        loop {
            let records = &self.records;
            let live = |slot, deadline_ns| records.live(slot, deadline_ns);
            let Reminder { slot, sequence, .. } = self.wheel.pop_due(now_ns, live)?;
            let key = Key { slot, sequence };
            let Some(content) = self.records.take(key) else {
                continue; // Cancelled meanwhile.
            };
            let taken = self.taken(key, content);
            let worker = self.worker;
            let expired = Expired {
                id: taken.guest_of.unwrap_or(TimerId { worker, key }),
                deadline_ns: taken.deadline_ns,
                payload: taken.payload,
            };
            return Some((expired, taken.guest_of));
        }
    }

    /// The ids of all pending timers, as their owners know them.
    pub(super) fn pending_ids(&self) -> impl Iterator<Item = TimerId> {
        let worker = self.worker;
        let pending = self.records.all_pending();
        pending.filter_map(move |(key, is_guest)| match is_guest {
            true => self.guests.get(&key.slot).copied(),
            false => Some(TimerId { worker, key }),
        })
    }

    fn taken(&mut self, key: Key, content: Content<P>) -> Taken<P> {
        let is_guest = content.is_guest;
        Taken {
            deadline_ns: content.deadline_ns,
            payload: content.payload,
            guest_of: is_guest.then(|| self.guests.remove(&key.slot)).flatten(),
        }
    }

    fn reminder_went_stale(&mut self, deadline_ns: u64) {
        let records = &self.records;
        let live = |slot, deadline_ns| records.live(slot, deadline_ns);
        self.wheel.went_stale(deadline_ns, live);
    }

    /// What is left of timers that have ended, when nothing is pending: records that are not free.
    #[cfg(any(test, feature = "property"))]
    pub(super) fn leftovers(&self) -> usize {
        self.guests.len() + self.away.len() + self.records.len() - self.records.free()
    }

    /// Records in memory, and reminders in the wheel.
    #[cfg(all(test, not(loom)))]
    pub(super) fn lengths(&self) -> (usize, usize) {
        (self.records.len(), self.wheel.len())
    }
}
