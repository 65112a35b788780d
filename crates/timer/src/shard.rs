//! The timers of one worker: their records, and the wheel of their reminders. Plain data under the
//! worker's lock.

use crate::records::{RecordKey, Records};
use crate::reminder::Reminder;
use crate::timer_id::{Expired, TimerId};
use crate::wheel::Wheel;

pub(crate) struct Shard<P> {
    worker: usize,
    wheel: Wheel,
    records: Records<P>,
}

impl<P> Shard<P> {
    pub(crate) fn new(worker: usize) -> Shard<P> {
        Shard {
            worker,
            wheel: Wheel::new(),
            records: Records::new(),
        }
    }

    pub(crate) fn pending(&self) -> usize {
        self.records.pending()
    }

    pub(crate) fn next_ns(&self) -> u64 {
        self.wheel.next_ns()
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

    fn id(&self, key: RecordKey, deadline_ns: u64) -> TimerId {
        TimerId {
            worker: self.worker,
            key,
            deadline_ns,
        }
    }

    /// Cancels the timer with this key.
    #[inline(always)] // See `TimerSystem::cancel`.
    pub(crate) fn cancel(&mut self, key: RecordKey, deadline_ns: u64) -> Option<P> {
        let payload = self.records.take(key)?;
        self.mark_stale(deadline_ns);
        Some(payload)
    }

    /// Removes the next timer with a deadline up to `now_ns`, in the order of deadline and then of
    /// insertion.
    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<Expired<P>> {
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
            return Some(Expired {
                id: self.id(key, deadline_ns),
                deadline_ns,
                payload,
            });
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
        self.records.len() - self.records.free()
    }

    /// The numbers of records in memory and of reminders in the wheel.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn lengths(&self) -> (usize, usize) {
        (self.records.len(), self.wheel.len())
    }
}
