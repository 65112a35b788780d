//! The records of one worker's timers, by slot. They are authoritative; the wheel only reminds.

/// Identifies one use of a slot. Sequence numbers are not reused (at one per nanosecond they last
/// for 584 years), so a key of an earlier use of the slot matches nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RecordKey {
    pub(crate) slot: usize,
    pub(crate) sequence: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordStatus {
    Pending,
    /// The timer has migrated. The record remains until the timer ends at its new worker.
    Migrated,
    /// The timer has ended.
    Gone,
}

pub(crate) struct PendingTimer<P> {
    pub(crate) deadline_ns: u64,
    /// Whether the timer migrated here from another worker.
    pub(crate) is_guest: bool,
    pub(crate) payload: P,
}

enum RecordState<P> {
    Free { next: Option<usize> },
    Pending(PendingTimer<P>),
    Migrated,
}

struct Record<P> {
    sequence: u64,
    state: RecordState<P>,
}

/// Records are allocated in chunks and never move. A vector would copy them all under the lock when
/// it grows.
const RECORDS_PER_CHUNK: usize = 1024;

/// See the head of this file. Takes as much memory as the most simultaneous timers so far needed.
pub(crate) struct Records<P> {
    chunks: Vec<Vec<Record<P>>>,
    count: usize,
    first_free: Option<usize>,
    sequence: u64,
    pending: usize,
}

impl<P> Records<P> {
    pub(crate) fn new() -> Records<P> {
        Records {
            chunks: Vec::new(),
            count: 0,
            first_free: None,
            sequence: 0,
            pending: 0,
        }
    }

    pub(crate) fn pending(&self) -> usize {
        self.pending
    }

    fn at(&self, slot: usize) -> Option<&Record<P>> {
        let chunk = self.chunks.get(slot / RECORDS_PER_CHUNK)?;
        chunk.get(slot % RECORDS_PER_CHUNK)
    }

    fn state_mut(&mut self, key: RecordKey) -> Option<&mut RecordState<P>> {
        let chunk = self.chunks.get_mut(key.slot / RECORDS_PER_CHUNK)?;
        let record = chunk.get_mut(key.slot % RECORDS_PER_CHUNK)?;
        (record.sequence == key.sequence).then_some(&mut record.state)
    }

    pub(crate) fn insert(&mut self, timer: PendingTimer<P>) -> RecordKey {
        self.sequence += 1;
        self.pending += 1;
        let sequence = self.sequence;
        let state = RecordState::Pending(timer);
        let record = Record { sequence, state };
        let Some(slot) = self.first_free else {
            let slot = self.count;
            self.count += 1;
            if slot.is_multiple_of(RECORDS_PER_CHUNK) {
                self.chunks.push(Vec::with_capacity(RECORDS_PER_CHUNK));
            }
            self.chunks[slot / RECORDS_PER_CHUNK].push(record);
            return RecordKey { slot, sequence };
        };
        let free = &mut self.chunks[slot / RECORDS_PER_CHUNK][slot % RECORDS_PER_CHUNK];
        if let RecordState::Free { next } = std::mem::replace(free, record).state {
            self.first_free = next;
        }
        RecordKey { slot, sequence }
    }

    /// The keys that the next insertions will get, as an endless iterator.
    pub(crate) fn upcoming(&self) -> impl Iterator<Item = RecordKey> {
        let mut free = self.first_free;
        let mut fresh = self.count..;
        (self.sequence + 1..).map_while(move |sequence| {
            let Some(slot) = free else {
                let slot = fresh.next()?;
                return Some(RecordKey { slot, sequence });
            };
            free = match self.at(slot)?.state {
                RecordState::Free { next } => next,
                _ => None,
            };
            Some(RecordKey { slot, sequence })
        })
    }

    pub(crate) fn status(&self, key: RecordKey) -> RecordStatus {
        let record = self
            .at(key.slot)
            .filter(|record| record.sequence == key.sequence);
        match record.map(|record| &record.state) {
            Some(RecordState::Pending(_)) => RecordStatus::Pending,
            Some(RecordState::Migrated) => RecordStatus::Migrated,
            Some(RecordState::Free { .. }) | None => RecordStatus::Gone,
        }
    }

    /// The sequence number of the timer that is pending in `slot` with this deadline.
    pub(crate) fn live(&self, slot: usize, deadline_ns: u64) -> Option<u64> {
        let record = self.at(slot)?;
        match &record.state {
            RecordState::Pending(timer) if timer.deadline_ns == deadline_ns => {
                Some(record.sequence)
            }
            _ => None,
        }
    }

    /// Takes a pending timer out of its record and frees the record.
    pub(crate) fn take(&mut self, key: RecordKey) -> Option<PendingTimer<P>> {
        let next = self.first_free;
        let timer = self.replace(key, RecordState::Free { next })?;
        self.first_free = Some(key.slot);
        Some(timer)
    }

    /// Takes a pending timer out of its record, which remains and is marked as migrated.
    pub(crate) fn migrate_out(&mut self, key: RecordKey) -> Option<PendingTimer<P>> {
        self.replace(key, RecordState::Migrated)
    }

    fn replace(&mut self, key: RecordKey, state: RecordState<P>) -> Option<PendingTimer<P>> {
        let current = self.state_mut(key)?;
        if !matches!(current, RecordState::Pending(_)) {
            return None;
        }
        let RecordState::Pending(timer) = std::mem::replace(current, state) else {
            return None;
        };
        self.pending -= 1;
        Some(timer)
    }

    pub(crate) fn free_migrated(&mut self, key: RecordKey) {
        let next = self.first_free;
        if let Some(state @ RecordState::Migrated) = self.state_mut(key) {
            *state = RecordState::Free { next };
            self.first_free = Some(key.slot);
        }
    }

    /// All pending timers, each with whether it is a guest.
    pub(crate) fn all_pending(&self) -> impl Iterator<Item = (RecordKey, bool)> {
        let records = self.chunks.iter().flatten().enumerate();
        records.filter_map(|(slot, record)| match &record.state {
            RecordState::Pending(timer) => {
                let sequence = record.sequence;
                Some((RecordKey { slot, sequence }, timer.is_guest))
            }
            _ => None,
        })
    }

    /// The number of free slots that were used before.
    #[cfg(any(test, feature = "property"))]
    pub(crate) fn free(&self) -> usize {
        let slot_after = |slot: &usize| match self.at(*slot)?.state {
            RecordState::Free { next } => next,
            _ => None,
        };
        std::iter::successors(self.first_free, slot_after).count()
    }

    #[cfg(any(test, feature = "property"))]
    pub(crate) fn len(&self) -> usize {
        self.count
    }
}
