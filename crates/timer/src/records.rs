//! The records of one worker's timers, by slot. They are authoritative; the wheel only reminds.

/// Identifies one use of a slot. Sequence numbers are not reused (at one per nanosecond they last
/// for 584 years), so a key of an earlier use of the slot matches nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RecordKey {
    pub(crate) slot: usize,
    pub(crate) sequence: u64,
}

enum RecordState<P> {
    /// `next` is the next free slot, or [`NO_SLOT`].
    Free {
        next: usize,
    },
    Pending(P),
}

struct Record<P> {
    sequence: u64,
    deadline_ns: u64,
    state: RecordState<P>,
}

/// The end of the free list. Not an `Option<usize>`: its two words, just written one by one, cannot
/// be forwarded to one load of both. See `TimerId::deadline_ns`.
const NO_SLOT: usize = usize::MAX;

/// Records are allocated in chunks and never move. A vector would copy them all under the lock when
/// it grows.
const RECORDS_PER_CHUNK: usize = 16 * 1024;

/// See the head of this file. Takes as much memory as the most simultaneous timers so far needed.
pub(crate) struct Records<P> {
    chunks: Vec<Vec<Record<P>>>,
    count: usize,
    first_free: usize,
    sequence: u64,
    pending: usize,
}

impl<P> Records<P> {
    pub(crate) fn new() -> Records<P> {
        Records {
            chunks: Vec::new(),
            count: 0,
            first_free: NO_SLOT,
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

    #[inline]
    fn state_mut(&mut self, key: RecordKey) -> Option<&mut RecordState<P>> {
        let chunk = self.chunks.get_mut(key.slot / RECORDS_PER_CHUNK)?;
        let record = chunk.get_mut(key.slot % RECORDS_PER_CHUNK)?;
        (record.sequence == key.sequence).then_some(&mut record.state)
    }

    pub(crate) fn insert(&mut self, deadline_ns: u64, payload: P) -> RecordKey {
        self.sequence += 1;
        self.pending += 1;
        let sequence = self.sequence;
        let record = Record {
            sequence,
            deadline_ns,
            state: RecordState::Pending(payload),
        };
        let slot = self.first_free;
        if slot == NO_SLOT {
            let slot = self.count;
            self.count += 1;
            if slot.is_multiple_of(RECORDS_PER_CHUNK) {
                self.chunks.push(Vec::with_capacity(RECORDS_PER_CHUNK));
            }
            self.chunks[slot / RECORDS_PER_CHUNK].push(record);
            return RecordKey { slot, sequence };
        }
        let free = &mut self.chunks[slot / RECORDS_PER_CHUNK][slot % RECORDS_PER_CHUNK];
        if let RecordState::Free { next } = std::mem::replace(free, record).state {
            self.first_free = next;
        }
        RecordKey { slot, sequence }
    }

    #[cfg(any(test, feature = "property"))]
    fn free_after(&self, slot: usize) -> Option<usize> {
        match self.at(slot)?.state {
            RecordState::Free { next } => Some(next),
            _ => None,
        }
    }

    /// The sequence number of the timer that is pending in `slot` with this deadline.
    pub(crate) fn live(&self, slot: usize, deadline_ns: u64) -> Option<u64> {
        let record = self.at(slot)?;
        let is_pending = matches!(record.state, RecordState::Pending(_));
        (is_pending && record.deadline_ns == deadline_ns).then_some(record.sequence)
    }

    /// Takes the payload of a pending timer out of its record and frees the record.
    pub(crate) fn take(&mut self, key: RecordKey) -> Option<P> {
        let next = self.first_free;
        let state = self.state_mut(key)?;
        if !matches!(state, RecordState::Pending(_)) {
            return None;
        }
        let RecordState::Pending(payload) = std::mem::replace(state, RecordState::Free { next })
        else {
            return None;
        };
        self.pending -= 1;
        self.first_free = key.slot;
        Some(payload)
    }

    /// The number of free slots that were used before.
    #[cfg(any(test, feature = "property"))]
    pub(crate) fn free(&self) -> usize {
        let slots = std::iter::successors(Some(self.first_free), |&slot| self.free_after(slot));
        slots.take_while(|&slot| slot != NO_SLOT).count()
    }

    #[cfg(any(test, feature = "property"))]
    pub(crate) fn len(&self) -> usize {
        self.count
    }
}
