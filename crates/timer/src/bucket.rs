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
/// Blocks are allocated 504 KiB at a time.
const BLOCKS_PER_CHUNK: usize = 1024;
const NO_BLOCK: u32 = u32::MAX;
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

    fn allocate(&mut self) -> u32 {
        if self.first_free != NO_BLOCK {
            let index = self.first_free;
            let block = self.at(index);
            block.length = 0;
            self.first_free = std::mem::replace(&mut block.next, NO_BLOCK);
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
            next: NO_BLOCK,
        });
        self.count += 1;
        index
    }

    /// Frees a block; returns the one after it.
    fn free(&mut self, index: u32) -> u32 {
        let next_free = self.first_free;
        self.first_free = index;
        std::mem::replace(&mut self.at(index).next, next_free)
    }
}

/// A queue of blocks. Only the newest one has free entries.
pub(crate) struct Bucket {
    oldest: u32,
    newest: u32,
    length: usize,
    /// No reminder is earlier. Exact as long as no reminder is stale.
    pub(crate) earliest_ns: u64,
    /// The number of stale reminders; a stale one that is taken for a live one (see
    /// [`PackedReminder::sequence`]) remains counted.
    stale: usize,
}

impl Bucket {
    pub(crate) const EMPTY: Bucket = Bucket {
        oldest: NO_BLOCK,
        newest: NO_BLOCK,
        length: 0,
        earliest_ns: u64::MAX,
        stale: 0,
    };

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn push(&mut self, blocks: &mut Blocks, reminder: PackedReminder) {
        if self.newest == NO_BLOCK || blocks.at(self.newest).length as usize == PER_BLOCK {
            let added = blocks.allocate();
            match self.newest {
                NO_BLOCK => self.oldest = added,
                newest => blocks.at(newest).next = added,
            }
            self.newest = added;
        }
        let block = blocks.at(self.newest);
        block.reminders[block.length as usize] = reminder;
        block.length += 1;
        self.length += 1;
        self.earliest_ns = self.earliest_ns.min(reminder.deadline_ns);
    }

    /// Removes the oldest block of reminders. Returns it with the number of its valid entries, or
    /// `None` if the bucket is empty.
    pub(crate) fn pop_block(
        &mut self,
        blocks: &mut Blocks,
    ) -> Option<([PackedReminder; PER_BLOCK], usize)> {
        if self.oldest == NO_BLOCK {
            return None;
        }
        let Block {
            reminders, length, ..
        } = *blocks.at(self.oldest);
        self.oldest = blocks.free(self.oldest);
        if self.oldest == NO_BLOCK {
            self.newest = NO_BLOCK;
        }
        self.length -= length as usize;
        Some((reminders, length as usize))
    }

    /// Counts a reminder that has become stale. Returns whether more than half are: then the caller
    /// sweeps.
    #[inline]
    pub(crate) fn mark_stale(&mut self) -> bool {
        self.stale += 1;
        self.stale * 2 > self.length
    }

    /// Removes the stale reminders of the oldest block.
    ///
    /// There are thus at most about as many stale reminders as live ones, and no cancellation pays
    /// for a long sweep. A block at a time, because whether one reminder is stale is as likely as
    /// not: checks one by one would be mispredicted, and wait for memory one after the other.
    #[cold]
    pub(crate) fn sweep(
        &mut self,
        blocks: &mut Blocks,
        live: impl Fn(usize, u64) -> Option<u64> + Copy,
    ) {
        let Some((mut reminders, count)) = self.pop_block(blocks) else {
            return;
        };
        let mut kept = 0;
        for index in 0..count {
            let reminder = reminders[index];
            reminders[kept] = reminder;
            kept += usize::from(reminder.sequence(live).is_some());
        }
        for &reminder in &reminders[..kept] {
            self.push(blocks, reminder);
        }
        self.stale = self.stale.saturating_sub(count - kept);
        if self.length == 0 {
            *self = Bucket::EMPTY;
        }
    }
}
