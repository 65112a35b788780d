//! The hash table of bit histories, shared by all contexts of a model.
//!
//! A context has one bucket per nibble: 15 states, one for each node of the binary tree of the four
//! bits. A context therefore touches two cache lines per byte, not eight (Mahoney, "Data
//! Compression Explained", 4.1.3.3; hash table layout of the ICM in the ZPAQ specification). A line
//! of 64 bytes contains four buckets: four check bytes, then four times 15 states.

use super::bit_history::HistoryState;
use super::lanes::prefetch;
use crate::host::Host;

/// The bytes of a line: a cache line of common machines.
pub(crate) const LINE_BYTES: usize = 64;
const WAYS: usize = 4;
pub(crate) const NODES: usize = 15;
const _: () = assert!(WAYS * (1 + NODES) == LINE_BYTES);

/// The lines of the two nibbles differ only in these bits: both are in one page.
const NIBBLE_SPREAD_MASK: usize = 63;

/// The smallest and the largest size, log2 of lines.
pub(crate) const LINES_LOG_MIN: u32 = 10;
pub(crate) const LINES_LOG_MAX: u32 = 24;

/// The memory of a table, reused from block to block and cleared for each.
#[derive(Default)]
pub(crate) struct TableMemory {
    bytes: Vec<u8>,
}

impl TableMemory {
    /// Returns a cleared table of `1 << lines_log` lines; `None` when memory cannot be allocated.
    pub(crate) fn table(&mut self, host: Host, lines_log: u32) -> Option<Table<'_>> {
        let wanted = LINE_BYTES << lines_log;
        // One more line, so that the table can start at a cache line.
        let allocated = wanted + LINE_BYTES;
        if self.bytes.capacity() < allocated {
            self.bytes = Vec::new();
            self.bytes.try_reserve_exact(allocated).ok()?;
        }
        self.bytes.clear();
        host.resize(&mut self.bytes, allocated);
        let start = self.bytes.as_ptr().align_offset(LINE_BYTES).min(LINE_BYTES);
        Some(Table {
            bytes: &mut self.bytes[start..start + wanted],
            shift: 32 - lines_log,
        })
    }
}

/// Bit histories by context hash.
pub(crate) struct Table<'a> {
    bytes: &'a mut [u8],
    shift: u32,
}

/// The offset of the states of a bucket. `BucketOffset::default()` is valid, too.
#[derive(Clone, Copy, Default)]
pub(crate) struct BucketOffset(u32);

impl Table<'_> {
    /// The line for a context hash; for the second nibble also depends on the first one plus 16.
    #[inline(always)]
    fn line(&self, hash: u32, nibble: u32) -> usize {
        (hash >> self.shift) as usize ^ ((nibble as usize * 2) & NIBBLE_SPREAD_MASK)
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u32, nibble: u32) {
        prefetch(&self.bytes[self.line(hash, nibble) * LINE_BYTES]);
    }

    /// Finds the bucket of a context, or replaces the least used one of the line. `nibble` is 0 for
    /// the first nibble of a byte, and 16 to 31 for the second one.
    #[inline(always)]
    pub(crate) fn bucket(&mut self, hash: u32, nibble: u32) -> BucketOffset {
        let start = self.line(hash, nibble) * LINE_BYTES;
        let check = (hash.wrapping_add(nibble.wrapping_mul(0x9D)) & 0xFF) as u8;
        let line = &mut self.bytes[start..start + LINE_BYTES];
        let checks = u32::from_le_bytes([line[0], line[1], line[2], line[3]]);
        let way = match first_equal_byte(checks, check) {
            Some(way) => way,
            None => {
                let way = least_used(line);
                line[way] = check;
                line[WAYS + way * NODES..][..NODES].fill(0);
                way
            }
        };
        BucketOffset((start + WAYS + way * NODES) as u32)
    }

    /// The history at a node (0..15) of a bucket. Histories are read and written in place: copying
    /// buckets for the duration of a nibble took half as long again, since bytes just stored had to
    /// be loaded as words.
    #[inline(always)]
    pub(crate) fn state(&self, slot: BucketOffset, node: usize) -> HistoryState {
        self.bytes[slot.0 as usize + node]
    }

    #[inline(always)]
    pub(crate) fn set_state(&mut self, slot: BucketOffset, node: usize, state: HistoryState) {
        self.bytes[slot.0 as usize + node] = state;
    }
}

/// The index of the lowest byte of `word` that equals `byte`: bytes become zero where equal, and
/// the lowest zero byte is the lowest one that a subtraction borrows from.
#[inline(always)]
fn first_equal_byte(word: u32, byte: u8) -> Option<usize> {
    let differing = word ^ (u32::from(byte) * 0x0101_0101);
    let zero = differing.wrapping_sub(0x0101_0101) & !differing & 0x8080_8080;
    (zero != 0).then_some(zero.trailing_zeros() as usize / 8)
}

/// The bucket whose first node, which every bit passes, has the shortest history.
#[inline(always)]
fn least_used(line: &[u8]) -> usize {
    let use_count = |way: usize| u32::from(line[WAYS + way * NODES]) << 2 | way as u32;
    let least = use_count(0)
        .min(use_count(1))
        .min(use_count(2))
        .min(use_count(3));
    (least & 3) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_find_their_buckets_again() {
        let mut memory = TableMemory::default();
        let mut table = memory.table(Host::default(), LINES_LOG_MIN).unwrap();
        for context in 0..100_u32 {
            let hash = context.wrapping_mul(0x9E37_79B1);
            for nibble in [0, 16, 31] {
                let slot = table.bucket(hash, nibble);
                table.set_state(slot, 0, 1 + context as u8);
                table.set_state(slot, NODES - 1, nibble as u8);
            }
        }
        for context in 0..100_u32 {
            let hash = context.wrapping_mul(0x9E37_79B1);
            for nibble in [0, 16, 31] {
                let slot = table.bucket(hash, nibble);
                assert_eq!(table.state(slot, 0), 1 + context as u8);
                assert_eq!(table.state(slot, NODES - 1), nibble as u8);
            }
        }
    }

    #[test]
    fn replaces_the_least_used_bucket_and_clears_reused_memory() {
        let mut memory = TableMemory::default();
        let mut table = memory.table(Host::default(), LINES_LOG_MIN).unwrap();
        for check in 0..4 {
            let slot = table.bucket(check, 0);
            table.set_state(slot, 0, [9, 3, 7, 5][check as usize]);
        }
        assert_eq!(table.bucket(99, 0).0, table.bucket(99, 0).0);
        assert_eq!(table.bucket(99, 0).0 as usize, WAYS + NODES);
        let found = table.bucket(2, 0);
        assert_eq!(table.state(found, 0), 7);
        let mut table = memory.table(Host::default(), LINES_LOG_MIN).unwrap();
        let slot = table.bucket(2, 0);
        assert_eq!(table.state(slot, 0), 0);
    }

    #[test]
    fn lines_start_at_cache_lines() {
        let mut memory = TableMemory::default();
        let table = memory.table(Host::default(), LINES_LOG_MIN).unwrap();
        assert_eq!(table.bytes.as_ptr() as usize % LINE_BYTES, 0);
    }
}
