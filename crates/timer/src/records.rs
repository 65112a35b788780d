//! The records of one worker's timers, by slot. What they say decides; everything else only reminds.

/// A use of a slot. The sequence number is never used again (at one per nanosecond it lasts for 584 years), so what
/// names an earlier use of the slot finds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) slot: usize,
    pub(super) sequence: u64,
}

/// What stands in a record that a key names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Pending,
    /// The timer has migrated. The record is kept until it ends, wherever that is.
    Away,
    /// It has ended.
    Gone,
}

/// A timer that left its record.
pub(super) struct Content<P> {
    pub(super) deadline_ns: u64,
    /// It had migrated to here.
    pub(super) is_guest: bool,
    pub(super) payload: P,
}

enum State<P> {
    Free { next: Option<usize> },
    Pending(Content<P>),
    Away,
}

struct Record<P> {
    sequence: u64,
    state: State<P>,
}

/// Records come by the chunk and never move: a vector would copy them all when it grows, under the lock.
const RECORDS_PER_CHUNK: usize = 1024;

/// See the head of this file. It is as large as the most timers there ever were at once.
pub(super) struct Records<P> {
    chunks: Vec<Vec<Record<P>>>,
    /// Slots that were used once.
    count: usize,
    first_free: Option<usize>,
    /// The last sequence number given.
    sequence: u64,
    pending: usize,
}

impl<P> Records<P> {
    pub(super) fn new() -> Records<P> {
        Records {
            chunks: Vec::new(),
            count: 0,
            first_free: None,
            sequence: 0,
            pending: 0,
        }
    }

    /// Timers that are pending here.
    pub(super) fn pending(&self) -> usize {
        self.pending
    }

    fn at(&self, slot: usize) -> Option<&Record<P>> {
        let chunk = self.chunks.get(slot / RECORDS_PER_CHUNK)?;
        chunk.get(slot % RECORDS_PER_CHUNK)
    }

    fn named(&mut self, key: Key) -> Option<&mut State<P>> {
        let chunk = self.chunks.get_mut(key.slot / RECORDS_PER_CHUNK)?;
        let record = chunk.get_mut(key.slot % RECORDS_PER_CHUNK)?;
        (record.sequence == key.sequence).then_some(&mut record.state)
    }

    pub(super) fn insert(&mut self, content: Content<P>) -> Key {
        self.sequence += 1;
        self.pending += 1;
        let sequence = self.sequence;
        let state = State::Pending(content);
        let record = Record { sequence, state };
        let Some(slot) = self.first_free else {
            let slot = self.count;
            self.count += 1;
            if slot.is_multiple_of(RECORDS_PER_CHUNK) {
                self.chunks.push(Vec::with_capacity(RECORDS_PER_CHUNK));
            }
            self.chunks[slot / RECORDS_PER_CHUNK].push(record);
            return Key { slot, sequence };
        };
        let place = &mut self.chunks[slot / RECORDS_PER_CHUNK][slot % RECORDS_PER_CHUNK];
        if let State::Free { next } = std::mem::replace(place, record).state {
            self.first_free = next;
        }
        Key { slot, sequence }
    }

    /// The keys that the next insertions will get, without end.
    pub(super) fn upcoming(&self) -> impl Iterator<Item = Key> {
        let mut free = self.first_free;
        let mut fresh = self.count..;
        (self.sequence + 1..).map_while(move |sequence| {
            let Some(slot) = free else {
                let slot = fresh.next()?;
                return Some(Key { slot, sequence });
            };
            free = match self.at(slot)?.state {
                State::Free { next } => next,
                _ => None,
            };
            Some(Key { slot, sequence })
        })
    }

    pub(super) fn standing(&self, key: Key) -> Standing {
        let record = self
            .at(key.slot)
            .filter(|record| record.sequence == key.sequence);
        match record.map(|record| &record.state) {
            Some(State::Pending(_)) => Standing::Pending,
            Some(State::Away) => Standing::Away,
            Some(State::Free { .. }) | None => Standing::Gone,
        }
    }

    /// The sequence number of the timer that is pending in `slot` with this deadline.
    pub(super) fn live(&self, slot: usize, deadline_ns: u64) -> Option<u64> {
        let record = self.at(slot)?;
        match &record.state {
            State::Pending(content) if content.deadline_ns == deadline_ns => Some(record.sequence),
            _ => None,
        }
    }

    /// Takes a pending timer out of its record, which is free then.
    pub(super) fn take(&mut self, key: Key) -> Option<Content<P>> {
        let next = self.first_free;
        let content = self.replace(key, State::Free { next })?;
        self.first_free = Some(key.slot);
        Some(content)
    }

    /// Takes a pending timer out of its record, which is kept.
    pub(super) fn send_away(&mut self, key: Key) -> Option<Content<P>> {
        self.replace(key, State::Away)
    }

    fn replace(&mut self, key: Key, left: State<P>) -> Option<Content<P>> {
        let state = self.named(key)?;
        if !matches!(state, State::Pending(_)) {
            return None;
        }
        let State::Pending(content) = std::mem::replace(state, left) else {
            return None;
        };
        self.pending -= 1;
        Some(content)
    }

    /// Frees the record of a timer that was away.
    pub(super) fn forget(&mut self, key: Key) {
        let next = self.first_free;
        if let Some(state @ State::Away) = self.named(key) {
            *state = State::Free { next };
            self.first_free = Some(key.slot);
        }
    }

    /// All pending timers, and whether they are guests.
    pub(super) fn all_pending(&self) -> impl Iterator<Item = (Key, bool)> {
        let records = self.chunks.iter().flatten().enumerate();
        records.filter_map(|(slot, record)| match &record.state {
            State::Pending(content) => {
                let sequence = record.sequence;
                Some((Key { slot, sequence }, content.is_guest))
            }
            _ => None,
        })
    }

    /// Slots that are free, and were not always.
    #[cfg(any(test, feature = "property"))]
    pub(super) fn free(&self) -> usize {
        let slot_after = |slot: &usize| match self.at(*slot)?.state {
            State::Free { next } => next,
            _ => None,
        };
        std::iter::successors(self.first_free, slot_after).count()
    }

    /// Slots that were used once.
    #[cfg(any(test, feature = "property"))]
    pub(super) fn len(&self) -> usize {
        self.count
    }
}
