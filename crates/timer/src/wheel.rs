//! The timing wheel: reminders by deadline. Plain data without clock or thread.
//!
//! Hierarchical timing wheels (Varghese and Lauck, SOSP 1987, scheme 7): eight levels of 64 buckets
//! cover all 64 bits of a time in nanoseconds, so nothing overflows. A bucket of level 0 is one
//! tick long, one of the next level 64 ticks. The level of a reminder is the highest base-64 digit
//! in which its tick differs from the wheel's tick. All of a level therefore precedes all of the
//! next, and a bucket does not change until time reaches its start. Then its reminders move to
//! lower levels ([`Wheel::open_next`]), or are sorted at once if the whole bucket is due. Reminders
//! of the current tick are sorted ([`CurrentTick`]), so expiry is exact: in the order of deadline
//! and then of insertion.
//!
//! A reminder is not removed when its timer is cancelled; it becomes stale. Finding it in its
//! bucket would cost two more cache misses than the cancellation itself. [`Bucket::mark_stale`]
//! bounds the number of stale reminders.
//!
//! Only the caller can tell live reminders from stale ones: `live` returns the sequence number of
//! the timer that is pending in a slot with a deadline.

use crate::bucket::{Blocks, Bucket, PackedReminder};
use crate::current_tick::CurrentTick;
use crate::reminder::Reminder;

/// The length of a tick: 2^16 ns = 65.5 µs. Shorter ticks move reminders more often, longer ticks
/// sort more of them at once.
const TICK_SHIFT: u32 = 16;
const DIGIT_BITS: u32 = 6;
const BUCKETS_PER_LEVEL: usize = 1 << DIGIT_BITS;
const LEVELS: usize = 8;
const _: () = assert!(
    TICK_SHIFT + DIGIT_BITS * LEVELS as u32 == u64::BITS,
    "every time has a bucket"
);

pub(crate) struct Wheel {
    /// Reminders of this tick and earlier are in `current`, later ones in buckets.
    tick: u64,
    current: CurrentTick,
    /// One bit per bucket that is not empty.
    occupied: [u64; LEVELS],
    buckets: Box<[Bucket]>,
    blocks: Blocks,
}

enum Location {
    CurrentTick,
    Bucket { level: usize, index: usize },
}

impl Wheel {
    pub(crate) fn new() -> Wheel {
        let buckets = std::iter::repeat_with(|| Bucket::EMPTY);
        Wheel {
            tick: 0,
            current: CurrentTick::default(),
            occupied: [0; LEVELS],
            buckets: buckets.take(LEVELS * BUCKETS_PER_LEVEL).collect(),
            blocks: Blocks::new(),
        }
    }

    /// The location of a reminder. It does not change while the reminder is in a bucket, whatever
    /// the time; see the head of this file.
    fn location(&self, deadline_ns: u64) -> Location {
        let tick = deadline_ns >> TICK_SHIFT;
        if tick <= self.tick {
            return Location::CurrentTick;
        }
        let level = (tick ^ self.tick).ilog2() / DIGIT_BITS;
        let digit = (tick >> (level * DIGIT_BITS)) as usize % BUCKETS_PER_LEVEL;
        Location::Bucket {
            level: level as usize,
            index: digit,
        }
    }

    pub(crate) fn insert(&mut self, reminder: Reminder) {
        match self.location(reminder.deadline_ns) {
            Location::CurrentTick => self.current.insert(reminder),
            Location::Bucket { level, index } => {
                let Reminder {
                    deadline_ns,
                    sequence,
                    slot,
                } = reminder;
                self.put(
                    level,
                    index,
                    PackedReminder::new(deadline_ns, slot, sequence),
                );
            }
        }
    }

    fn put(&mut self, level: usize, index: usize, reminder: PackedReminder) {
        self.occupied[level] |= 1 << index;
        self.buckets[level * BUCKETS_PER_LEVEL + index].push(&mut self.blocks, reminder);
    }

    pub(crate) fn mark_stale(
        &mut self,
        deadline_ns: u64,
        live: impl Fn(usize, u64) -> Option<u64> + Copy,
    ) {
        match self.location(deadline_ns) {
            Location::CurrentTick => self.current.mark_stale(live),
            Location::Bucket { level, index } => {
                let bucket = &mut self.buckets[level * BUCKETS_PER_LEVEL + index];
                if bucket.mark_stale() {
                    bucket.sweep(&mut self.blocks, live);
                    if bucket.len() == 0 {
                        self.occupied[level] &= !(1 << index);
                    }
                }
            }
        }
    }

    /// Removes and returns the earliest reminder with `deadline_ns <= now_ns`. It may be stale.
    ///
    /// Calls with decreasing `now_ns` are valid.
    pub(crate) fn pop_due(
        &mut self,
        now_ns: u64,
        live: impl Fn(usize, u64) -> Option<u64> + Copy,
    ) -> Option<Reminder> {
        loop {
            if let Some(reminder) = self.current.pop_due(now_ns) {
                return Some(reminder);
            }
            // Remaining reminders in `current` are of the current tick, and all buckets are later.
            if !self.current.is_empty() || !self.open_next(now_ns >> TICK_SHIFT, live) {
                return None;
            }
        }
    }

    /// No reminder is due before this time; `u64::MAX` if there is none.
    ///
    /// After [`Wheel::pop_due`] returned `None` it is later than that call's `now_ns`, so a thread
    /// that sleeps until then makes progress.
    pub(crate) fn next_ns(&self) -> u64 {
        let first_bucket = || Some(self.buckets[self.first_bucket()?.bucket].earliest_ns);
        let current = self.current.first_ns();
        current.or_else(first_bucket).unwrap_or(u64::MAX)
    }

    fn first_bucket(&self) -> Option<FirstBucket> {
        let level = self.occupied.iter().position(|&bits| bits != 0)?;
        let index = self.occupied[level].trailing_zeros() as usize;
        let shift = level as u32 * DIGIT_BITS;
        let span_mask = (1u64 << shift) - 1;
        // The digits above the bucket's own equal the wheel's.
        let above = self.tick & !((span_mask << DIGIT_BITS) | (BUCKETS_PER_LEVEL as u64 - 1));
        let first_tick = above | (index as u64) << shift;
        Some(FirstBucket {
            bucket: level * BUCKETS_PER_LEVEL + index,
            level,
            index,
            first_tick,
            last_tick: first_tick | span_mask,
        })
    }

    /// Advances time to the next bucket if that begins by `now_tick`, and moves its reminders to
    /// lower levels or into `current`.
    fn open_next(
        &mut self,
        now_tick: u64,
        live: impl Fn(usize, u64) -> Option<u64> + Copy,
    ) -> bool {
        debug_assert!(self.current.is_empty());
        let Some(first) = self.first_bucket() else {
            return false;
        };
        if first.first_tick > now_tick {
            return false;
        }
        self.occupied[first.level] &= !(1 << first.index);
        let mut bucket = std::mem::replace(&mut self.buckets[first.bucket], Bucket::EMPTY);
        let is_due = first.last_tick <= now_tick || first.level == 0;
        self.tick = if is_due { first.last_tick } else { first.first_tick };
        while let Some((reminders, count)) = bucket.pop_block(&mut self.blocks) {
            for &packed in &reminders[..count] {
                let Some(sequence) = packed.sequence(live) else {
                    continue;
                };
                match self.location(packed.deadline_ns) {
                    Location::CurrentTick => self.current.collect(packed.with_sequence(sequence)),
                    Location::Bucket { level, index } => self.put(level, index, packed),
                }
            }
        }
        self.current.sort();
        true
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn len(&self) -> usize {
        let in_buckets: usize = self.buckets.iter().map(Bucket::len).sum();
        in_buckets + self.current.len()
    }
}

struct FirstBucket {
    bucket: usize,
    level: usize,
    index: usize,
    first_tick: u64,
    last_tick: u64,
}
