//! The wheel: reminders by deadline. Plain data, no clock, no thread.
//!
//! Hierarchical timing wheels (Varghese and Lauck, SOSP 1987, scheme 7): eight levels of 64 buckets, so that all 64
//! bits of a time in nanoseconds have a place and nothing overflows. A bucket of level 0 is one tick long, one of the
//! next level 64 ticks. A reminder lies at the level of the highest base-64 digit in which its tick differs from the
//! wheel's; so all of a level comes before all of the next, and a bucket holds the same reminders as long as time
//! has not reached its start. When it does, they move down ([`Wheel::open_next`]), or, when the whole bucket is due,
//! they are sorted at once. What lies within the current tick is sorted ([`Near`]): expiry is exact, in the order of
//! deadline and then of insertion.
//!
//! A reminder is not taken out when its timer is cancelled: it goes stale. Finding it in its bucket would cost two
//! more cache misses than the cancellation itself. [`Bucket::went_stale`] keeps stale ones few.
//!
//! Which reminders are live only the caller knows: `live` gives the sequence number of the timer that is pending in a
//! slot with a deadline.

use super::bucket::{Blocks, Bucket, Packed};
use super::near::Near;

/// Something is due: `slot` says what, `sequence` which use of the slot, and the order among equals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reminder {
    pub(super) deadline_ns: u64,
    pub(super) sequence: u64,
    pub(super) slot: usize,
}

/// Length of a tick: 2^16 ns = 65.5 µs. Shorter ticks move reminders down more often, longer ones sort more at once.
const TICK_SHIFT: u32 = 16;
const DIGIT_BITS: u32 = 6;
const BUCKETS_PER_LEVEL: usize = 1 << DIGIT_BITS;
const LEVELS: usize = 8;
const _: () = assert!(
    TICK_SHIFT + DIGIT_BITS * LEVELS as u32 == u64::BITS,
    "every time has a place"
);

pub(super) struct Wheel {
    /// Everything of this tick and before is in `near`, everything later in a bucket.
    tick: u64,
    near: Near,
    /// One bit per bucket that is not empty.
    occupied: [u64; LEVELS],
    buckets: Box<[Bucket]>,
    blocks: Blocks,
}

/// Where a reminder lies.
enum Place {
    Near,
    Bucket { level: usize, index: usize },
}

impl Wheel {
    pub(super) fn new() -> Wheel {
        let buckets = std::iter::repeat_with(|| Bucket::EMPTY);
        Wheel {
            tick: 0,
            near: Near::default(),
            occupied: [0; LEVELS],
            buckets: buckets.take(LEVELS * BUCKETS_PER_LEVEL).collect(),
            blocks: Blocks::new(),
        }
    }

    /// The same as long as the reminder is in the wheel, whatever the time: see the head of this file.
    fn place(&self, deadline_ns: u64) -> Place {
        let tick = deadline_ns >> TICK_SHIFT;
        if tick <= self.tick {
            return Place::Near;
        }
        let level = (tick ^ self.tick).ilog2() / DIGIT_BITS;
        let digit = (tick >> (level * DIGIT_BITS)) as usize % BUCKETS_PER_LEVEL;
        Place::Bucket {
            level: level as usize,
            index: digit,
        }
    }

    pub(super) fn insert(&mut self, reminder: Reminder) {
        match self.place(reminder.deadline_ns) {
            Place::Near => self.near.insert(reminder),
            Place::Bucket { level, index } => {
                let Reminder {
                    deadline_ns,
                    sequence,
                    slot,
                } = reminder;
                self.put(level, index, Packed::new(deadline_ns, slot, sequence));
            }
        }
    }

    fn put(&mut self, level: usize, index: usize, reminder: Packed) {
        self.occupied[level] |= 1 << index;
        self.buckets[level * BUCKETS_PER_LEVEL + index].push(&mut self.blocks, reminder);
    }

    /// A reminder at `deadline_ns` is not live any more.
    pub(super) fn went_stale(
        &mut self,
        deadline_ns: u64,
        live: impl Fn(usize, u64) -> Option<u64> + Copy,
    ) {
        match self.place(deadline_ns) {
            Place::Near => self.near.went_stale(live),
            Place::Bucket { level, index } => {
                let bucket = &mut self.buckets[level * BUCKETS_PER_LEVEL + index];
                bucket.went_stale(&mut self.blocks, live);
                if bucket.len() == 0 {
                    self.occupied[level] &= !(1 << index);
                }
            }
        }
    }

    /// The earliest reminder with `deadline_ns <= now_ns`, taken out. It may have gone stale in the meantime.
    ///
    /// A `now_ns` below an earlier one takes nothing that it should not.
    pub(super) fn pop_due(
        &mut self,
        now_ns: u64,
        live: impl Fn(usize, u64) -> Option<u64> + Copy,
    ) -> Option<Reminder> {
        loop {
            if let Some(reminder) = self.near.pop_due(now_ns) {
                return Some(reminder);
            }
            // What is near and not due is of the current tick, and all buckets are later.
            if !self.near.is_empty() || !self.open_next(now_ns >> TICK_SHIFT, live) {
                return None;
            }
        }
    }

    /// No reminder is due before this time; `u64::MAX` when there is none. After [`Wheel::pop_due`] returned `None`
    /// it lies behind that call's `now_ns`, so who sleeps until then never finds the wheel unchanged.
    pub(super) fn next_ns(&self) -> u64 {
        let first_bucket = || Some(self.buckets[self.first_bucket()?.bucket].earliest_ns);
        let near = self.near.first_ns();
        near.or_else(first_bucket).unwrap_or(u64::MAX)
    }

    fn first_bucket(&self) -> Option<FirstBucket> {
        let level = self.occupied.iter().position(|&bits| bits != 0)?;
        let index = self.occupied[level].trailing_zeros() as usize;
        let shift = level as u32 * DIGIT_BITS;
        let span_mask = (1u64 << shift) - 1;
        // The digits above the bucket's own are those of the wheel.
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

    /// Moves time on to the next bucket, if it begins by `now_tick`, and its reminders down or into `near`.
    fn open_next(
        &mut self,
        now_tick: u64,
        live: impl Fn(usize, u64) -> Option<u64> + Copy,
    ) -> bool {
        debug_assert!(self.near.is_empty());
        let Some(first) = self.first_bucket() else {
            return false;
        };
        if first.first_tick > now_tick {
            return false;
        }
        self.occupied[first.level] &= !(1 << first.index);
        let mut bucket = std::mem::replace(&mut self.buckets[first.bucket], Bucket::EMPTY);
        let is_due = first.last_tick <= now_tick || first.level == 0;
        self.tick = if is_due {
            first.last_tick
        } else {
            first.first_tick
        };
        while let Some((reminders, count)) = bucket.pop_block(&mut self.blocks) {
            for &packed in &reminders[..count] {
                let Some(sequence) = packed.sequence(live) else {
                    continue;
                };
                match self.place(packed.deadline_ns) {
                    Place::Near => self.near.collect(packed.unpack(sequence)),
                    Place::Bucket { level, index } => self.put(level, index, packed),
                }
            }
        }
        self.near.sort();
        true
    }

    /// Reminders in the wheel, stale ones included.
    #[cfg(all(test, not(loom)))]
    pub(super) fn len(&self) -> usize {
        let in_buckets: usize = self.buckets.iter().map(Bucket::len).sum();
        in_buckets + self.near.len()
    }
}

struct FirstBucket {
    bucket: usize,
    level: usize,
    index: usize,
    first_tick: u64,
    last_tick: u64,
}
