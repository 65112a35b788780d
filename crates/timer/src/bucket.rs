//! Buckets: unordered sets of reminders in blocks of one shared arena.
//!
//! Blocks move from bucket to bucket, so memory is reused. (A vector per bucket was measured:
//! adding the first million timers took 103 ns each, mostly for new pages in the kernel and for
//! copies of growing vectors.) The arena is as large as the most reminders at one time required.

use crate::reminder::Reminder;

/// A reminder as stored in a bucket: 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedReminder {
    pub(crate) deadline_ns: u64,
    /// The slot in the high bits, the low bits of the sequence number in the low bits.
    slot_and_tag: u64,
}

const TAG_BITS: u32 = 24;
const TAG_MASK: u64 = (1 << TAG_BITS) - 1;

impl PackedReminder {
    // A slot has 40 bits: more records than that exceed any address space.
    pub(crate) fn new(deadline_ns: u64, slot: usize, sequence: u64) -> PackedReminder {
        PackedReminder {
            deadline_ns,
            slot_and_tag: (slot as u64) << TAG_BITS | sequence & TAG_MASK,
        }
    }

    fn slot(self) -> usize {
        (self.slot_and_tag >> TAG_BITS) as usize
    }

    pub(crate) fn with_sequence(self, sequence: u64) -> Reminder {
        Reminder {
            deadline_ns: self.deadline_ns,
            sequence,
            slot: self.slot(),
        }
    }

    /// The timer's full sequence number if the timer is live. `live` returns the sequence number of
    /// the timer that is pending in a slot with a deadline.
    ///
    /// If a slot is reused for the same deadline exactly 2^24 timers later, an old reminder is
    /// taken for the new one. The timer then has two reminders, and the second finds nothing to
    /// fire.
    pub(crate) fn sequence(self, live: impl Fn(usize, u64) -> Option<u64>) -> Option<u64> {
        live(self.slot(), self.deadline_ns)
            .filter(|sequence| (sequence ^ self.slot_and_tag) & TAG_MASK == 0)
    }
}

/// Together with the two numbers a block is 504 bytes long, almost eight cache lines.
const PER_BLOCK: usize = 31;
/// Blocks are allocated 64 KiB at a time.
const BLOCKS_PER_CHUNK: usize = 128;
const NO_BLOCK: u32 = u32::MAX;
/// The number of reminders checked for each one that becomes stale. With one, stale reminders could
/// accumulate without bound.
const SWEPT_PER_STALE: usize = 2;

#[derive(Clone, Copy)]
struct Block {
    reminders: [PackedReminder; PER_BLOCK],
    length: u32,
    next: u32,
}

pub(crate) struct Blocks {
    chunks: Vec<Vec<Block>>,
    first_free: u32,
    count: u32,
}

impl Blocks {
    pub(crate) fn new() -> Blocks {
        Blocks {
            chunks: Vec::new(),
            first_free: NO_BLOCK,
            count: 0,
        }
    }

    fn at(&mut self, index: u32) -> &mut Block {
        let index = index as usize;
        &mut self.chunks[index / BLOCKS_PER_CHUNK][index % BLOCKS_PER_CHUNK]
    }

    /// Allocates an empty block that precedes `next`.
    fn allocate(&mut self, next: u32) -> u32 {
        if self.first_free != NO_BLOCK {
            let index = self.first_free;
            let block = self.at(index);
            let next_free = std::mem::replace(&mut block.next, next);
            block.length = 0;
            self.first_free = next_free;
            return index;
        }
        let index = self.count;
        if (index as usize).is_multiple_of(BLOCKS_PER_CHUNK) {
            self.chunks.push(Vec::with_capacity(BLOCKS_PER_CHUNK));
        }
        let empty = PackedReminder::new(0, 0, 0);
        self.chunks[index as usize / BLOCKS_PER_CHUNK].push(Block {
            reminders: [empty; PER_BLOCK],
            length: 0,
            next,
        });
        self.count += 1;
        index
    }

    fn free(&mut self, index: u32) -> u32 {
        let next_free = self.first_free;
        self.first_free = index;
        std::mem::replace(&mut self.at(index).next, next_free)
    }
}

pub(crate) struct Bucket {
    /// The newest block. All blocks after it are full.
    first: u32,
    length: usize,
    /// No reminder is earlier. Exact as long as no reminder is stale.
    pub(crate) earliest_ns: u64,
    stale: usize,
    /// The position of the sweep, which runs from the newest reminder to the oldest: the block, and
    /// how many of its reminders are still to be checked.
    cursor: (u32, usize),
}

impl Bucket {
    pub(crate) const EMPTY: Bucket = Bucket {
        first: NO_BLOCK,
        length: 0,
        earliest_ns: u64::MAX,
        stale: 0,
        cursor: (NO_BLOCK, 0),
    };

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn push(&mut self, blocks: &mut Blocks, reminder: PackedReminder) {
        // Only the first block has free entries, unless it is full too.
        if self.length.is_multiple_of(PER_BLOCK) {
            self.first = blocks.allocate(self.first);
        }
        let block = blocks.at(self.first);
        block.reminders[block.length as usize] = reminder;
        block.length += 1;
        self.length += 1;
        self.earliest_ns = self.earliest_ns.min(reminder.deadline_ns);
    }

    /// Removes one block of reminders. Returns it with the number of its valid entries, or `None`
    /// if the bucket is empty.
    pub(crate) fn pop_block(
        &mut self,
        blocks: &mut Blocks,
    ) -> Option<([PackedReminder; PER_BLOCK], usize)> {
        if self.first == NO_BLOCK {
            return None;
        }
        let Block {
            reminders, length, ..
        } = *blocks.at(self.first);
        self.first = blocks.free(self.first);
        self.length -= length as usize;
        Some((reminders, length as usize))
    }

    fn pop(&mut self, blocks: &mut Blocks) -> Option<PackedReminder> {
        if self.length == 0 {
            return None;
        }
        let block = blocks.at(self.first);
        block.length -= 1;
        let reminder = block.reminders[block.length as usize];
        self.length -= 1;
        if block.length == 0 {
            self.first = blocks.free(self.first);
        }
        Some(reminder)
    }

    /// Counts a reminder that has become stale, and checks two reminders if more than half are
    /// stale.
    ///
    /// There are thus at most about as many stale reminders as live ones, and no cancellation pays
    /// for a long sweep.
    pub(crate) fn mark_stale(
        &mut self,
        blocks: &mut Blocks,
        live: impl Fn(usize, u64) -> Option<u64> + Copy,
    ) {
        self.stale += 1;
        if self.stale * 2 <= self.length {
            return;
        }
        for _ in 0..SWEPT_PER_STALE {
            self.sweep_one(blocks, live);
        }
        if self.length == 0 {
            *self = Bucket::EMPTY;
        }
    }

    /// Checks the next reminder. A stale one is replaced by the newest reminder, which was either
    /// checked in this round or added since the round began.
    fn sweep_one(&mut self, blocks: &mut Blocks, live: impl Fn(usize, u64) -> Option<u64>) {
        let (mut block, mut left) = self.cursor;
        if left == 0 {
            let is_round_over = block == NO_BLOCK || blocks.at(block).next == NO_BLOCK;
            block = if is_round_over { self.first } else { blocks.at(block).next };
            if block == NO_BLOCK {
                return;
            }
            left = blocks.at(block).length as usize;
        }
        left -= 1;
        self.cursor = (block, left);
        if blocks.at(block).reminders[left].sequence(live).is_some() {
            return;
        }
        self.stale = self.stale.saturating_sub(1);
        let Some(newest) = self.pop(blocks) else {
            return;
        };
        let reminders_left = blocks.at(block).length as usize;
        if left < reminders_left {
            blocks.at(block).reminders[left] = newest;
        } else if reminders_left == 0 {
            self.cursor = (NO_BLOCK, 0); // The block was the first one and is free now.
        }
    }
}
