//! The index: maps a fingerprint to the store offset of its first occurrence.
//!
//! A bucket of eight entries fills one cache line, so a lookup costs one cache miss. An entry has
//! 64 bits: a 16-bit tag and a 48-bit store address plus one (0 is an empty slot). Other bits of
//! the fingerprint select the bucket.
//!
//! While there are few entries, they are in a [small table](self::small) instead.
//!
//! An insertion keeps the oldest entry: a fingerprint that is already present is not inserted
//! again, so the index grows with *unique* data only. When the index is nearly full, it is thinned
//! by age: the older half of the store loses every other entry, those whose tag has a low rank (few
//! trailing zero bits). So long repeats of very old data can still be found, and short repeats of
//! recent data. (lrzip thins the same way, but the whole table at once and at a fixed 64 MB.)
//!
//! The result of a lookup depends only on the insertions before it. The engine fixes their order,
//! so archives do not depend on threads.
#![forbid(unsafe_code)]

mod small;

use self::small::SmallTable;
use crate::check_in::STEPS_PER_CHECK_IN;
use crate::prefetch::prefetch;

const SLOTS: usize = 8;
const ADDRESS_BITS: u32 = 48;
const ADDRESS_MASK: u64 = (1 << ADDRESS_BITS) - 1;
/// The share of used slots, in percent, above which the index is thinned.
const FULL_PERCENT: usize = 70;

/// How many words are thinned between two check-ins.
const WORDS_PER_CHECK_IN: usize = 1 << 16;

/// The small table takes at most this fraction (one part in `SMALL_INDEX_SHARE`) of additional
/// memory, until its entries move to the buckets.
pub const SMALL_INDEX_SHARE: usize = 8;

/// Memory for an index: a power of two of words, all zero at first.
///
/// It is a trait so that the engine can map large pages as the machine allows.
pub trait IndexWords: Send + Sync {
    /// Returns the words.
    fn words(&self) -> &[u64];
    /// Returns the words for writing.
    fn words_mut(&mut self) -> &mut [u64];
}

impl IndexWords for Vec<u64> {
    fn words(&self) -> &[u64] {
        self
    }
    fn words_mut(&mut self) -> &mut [u64] {
        self
    }
}

/// The largest address that an index can hold (256 TiB of unique data): the format's limits end far
/// below.
pub const ADDRESS_MAX: u64 = ADDRESS_MASK - 1;

/// The map from fingerprints to store offsets.
pub struct FingerprintIndex<W> {
    /// The entries, until there are too many for it; then `None`.
    small: Option<SmallTable>,
    memory: W,
    bucket_shift: u32,
    used: usize,
    /// Addresses below this are evicted: lookups do not return them and insertions reuse their
    /// slots.
    floor: u64,
}

impl FingerprintIndex<()> {
    /// The smallest number of words.
    pub const WORDS_MIN: usize = 2 * SLOTS;
}

impl<W: IndexWords> FingerprintIndex<W> {
    /// Creates an index over `memory`, which must be all zero and whose length must be a power of
    /// two, at least [`FingerprintIndex::WORDS_MIN`].
    pub fn new(memory: W) -> FingerprintIndex<W> {
        let words = memory.words().len();
        assert!(
            words.is_power_of_two() && words >= FingerprintIndex::WORDS_MIN,
            "an index cannot have {words} words"
        );
        let bucket_bits = (words / SLOTS).trailing_zeros();
        FingerprintIndex {
            small: SmallTable::new(words / SMALL_INDEX_SHARE),
            memory,
            bucket_shift: 64 - bucket_bits,
            used: 0,
            floor: 0,
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.small.as_ref().map_or(self.used, SmallTable::len)
    }

    /// Returns the number of entries for which there is room.
    pub fn capacity(&self) -> usize {
        self.memory.words().len()
    }

    /// Returns whether the allocator refused to let the index grow. Then it holds less than it
    /// should, and what is found no longer depends on the content alone.
    pub fn was_refused(&self) -> bool {
        self.small.as_ref().is_some_and(SmallTable::was_refused)
    }

    /// Returns the memory that the index will ask for when it grows next, in bytes; 0 if it does
    /// not grow.
    pub fn growth_bytes(&self) -> usize {
        self.small.as_ref().map_or(0, SmallTable::growth_bytes)
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Evicts addresses below `floor` (out of reach, or no longer readable). The floor never
    /// decreases.
    pub fn evict_below(&mut self, floor: u64) {
        self.floor = self.floor.max(floor);
    }

    #[inline]
    fn bucket(&self, fingerprint: u64) -> usize {
        (fingerprint >> self.bucket_shift) as usize * SLOTS
    }

    /// Prefetches the memory that [`FingerprintIndex::get`] and [`FingerprintIndex::insert`] access
    /// for `fingerprint`.
    #[inline]
    pub(crate) fn prefetch(&self, fingerprint: u64) {
        match &self.small {
            Some(small) => small.prefetch(fingerprint),
            None => prefetch(&self.memory.words()[self.bucket(fingerprint)]),
        }
    }

    /// Returns the store offset of the first retained occurrence of `fingerprint`. It may be wrong
    /// (tags have 16 bits), so the caller must compare the bytes.
    #[inline]
    pub(crate) fn get(&self, fingerprint: u64) -> Option<u64> {
        let address = match &self.small {
            Some(small) => small.get(fingerprint),
            None => self.get_in_buckets(fingerprint),
        };
        address.filter(|&address| address >= self.floor)
    }

    #[inline]
    fn get_in_buckets(&self, fingerprint: u64) -> Option<u64> {
        let bucket = self.bucket(fingerprint);
        let tag = tag(fingerprint);
        let entries = &self.memory.words()[bucket..bucket + SLOTS];
        let entry = entries
            .iter()
            .find(|&&entry| entry != 0 && entry >> ADDRESS_BITS == tag)?;
        Some((entry & ADDRESS_MASK) - 1)
    }

    /// Inserts the fingerprint unless it is already present. In a full bucket the new entry
    /// replaces the entry of lowest rank, if that is lower than its own.
    pub(crate) fn insert(&mut self, fingerprint: u64, offset_in_store: u64, check_in: fn()) {
        debug_assert!(offset_in_store <= ADDRESS_MAX);
        let Some(small) = &mut self.small else {
            return self.insert_in_buckets(fingerprint, offset_in_store);
        };
        small.insert(fingerprint, offset_in_store, self.floor, check_in);
        if small.is_full() {
            self.move_to_buckets(check_in);
        }
    }

    /// Inserts anchors of an earlier run, in ascending order of addresses, and thins the index if
    /// it is nearly full. `store_end` is the length of the store.
    pub fn insert_anchors(
        &mut self,
        anchors: impl Iterator<Item = (u64, u64)>,
        store_end: u64,
        check_in: fn(),
    ) {
        for (number, (fingerprint, offset_in_store)) in anchors.enumerate() {
            if number.is_multiple_of(STEPS_PER_CHECK_IN) {
                check_in();
            }
            self.insert(fingerprint, offset_in_store, check_in);
        }
        self.thin_if_nearly_full(store_end, check_in);
    }

    #[cold]
    fn move_to_buckets(&mut self, check_in: fn()) {
        let entries = self
            .small
            .take()
            .into_iter()
            .flat_map(SmallTable::into_entries);
        for (number, (fingerprint, address)) in entries.enumerate() {
            if number.is_multiple_of(STEPS_PER_CHECK_IN) {
                check_in();
            }
            if address >= self.floor {
                self.insert_in_buckets(fingerprint, address);
            }
        }
    }

    fn insert_in_buckets(&mut self, fingerprint: u64, offset_in_store: u64) {
        let bucket = self.bucket(fingerprint);
        let tag = tag(fingerprint);
        let new = tag << ADDRESS_BITS | (offset_in_store + 1);
        let floor = self.floor;
        let is_live = |entry: u64| entry != 0 && (entry & ADDRESS_MASK) > floor;
        let entries = &mut self.memory.words_mut()[bucket..bucket + SLOTS];
        if let Some(same) = entries
            .iter_mut()
            .find(|entry| **entry != 0 && **entry >> ADDRESS_BITS == tag)
        {
            if !is_live(*same) {
                *same = new;
            }
            return;
        }
        if let Some(free) = entries.iter_mut().find(|entry| !is_live(**entry)) {
            self.used += usize::from(*free == 0);
            *free = new;
            return;
        }
        if let Some(lowest) = entries.iter_mut().min_by_key(|entry| rank(**entry))
            && rank(*lowest) < rank(new)
        {
            *lowest = new;
        }
    }

    /// Thins the index if it is nearly full. Call it between epochs; `store_end` is the length of
    /// the store.
    pub fn thin_if_nearly_full(&mut self, store_end: u64, check_in: fn()) {
        let capacity = self.memory.words().len();
        let mut cut = store_end / 2;
        while self.used * 100 > capacity * FULL_PERCENT {
            self.thin_below(cut, check_in);
            // If the older half holds too few entries, the next round includes newer ones.
            cut = cut + (store_end - cut) / 2 + 1;
        }
    }

    /// Removes entries with addresses below `cut`: the entries of the lowest rank that occurs among
    /// them, and those below the floor. The remaining ones have at least one more trailing zero bit
    /// in their tags.
    fn thin_below(&mut self, cut: u64, check_in: fn()) {
        let floor = self.floor;
        let is_old = |entry: u64| entry != 0 && (entry & ADDRESS_MASK) <= cut;
        let words = self.memory.words_mut();
        let lowest_of = |words: &[u64]| {
            check_in();
            let old = words.iter().filter(|entry| is_old(**entry));
            old.map(|entry| rank(*entry)).min()
        };
        let pieces = words.chunks(WORDS_PER_CHECK_IN);
        let lowest = pieces.filter_map(lowest_of).min().unwrap_or(0);
        let mut removed = 0;
        for (number, bucket) in words.chunks_exact_mut(SLOTS).enumerate() {
            if number.is_multiple_of(WORDS_PER_CHECK_IN / SLOTS) {
                check_in();
            }
            let mut retained = 0;
            for slot in 0..SLOTS {
                let entry = bucket[slot];
                let is_removed =
                    is_old(entry) && (rank(entry) <= lowest || (entry & ADDRESS_MASK) <= floor);
                removed += usize::from(is_removed);
                if entry != 0 && !is_removed {
                    bucket[retained] = entry;
                    retained += 1;
                }
            }
            bucket[retained..].fill(0);
        }
        self.used -= removed;
    }
}

#[inline]
fn tag(fingerprint: u64) -> u64 {
    fingerprint & 0xFFFF
}

/// The rank of an entry: one entry in `2^r` has rank `r` or above.
fn rank(entry: u64) -> u32 {
    ((entry >> ADDRESS_BITS) | 1 << 16).trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(n: u64) -> u64 {
        let mut z = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z ^ (z >> 27)
    }

    #[test]
    fn an_insertion_keeps_the_oldest_entry() {
        let mut index = FingerprintIndex::new(vec![0; 1024]);
        index.insert(7, 100, || ());
        index.insert(7, 200, || ());
        assert_eq!(index.get(7), Some(100));
        assert_eq!(index.get(8), None);
        assert_eq!(index.len(), 1);
    }

    #[test]
    fn entries_below_the_floor_are_evicted_and_replaced() {
        let mut index = FingerprintIndex::new(vec![0; 1024]);
        index.insert(7, 100, || ());
        index.insert(9, 0, || ());
        index.evict_below(101);
        assert_eq!(index.get(7), None);
        assert_eq!(index.get(9), None);
        index.insert(7, 300, || ());
        assert_eq!(index.get(7), Some(300));
    }

    #[test]
    fn entries_remain_when_the_small_table_moves_to_the_buckets() {
        let words = 1 << 16;
        let mut index = FingerprintIndex::new(vec![0; words]);
        let entries = words as u64 / 4;
        for n in 0..entries {
            index.insert(spread(n), n * 128, || ());
            assert_eq!(index.small.is_some(), n + 1 < words as u64 / 32);
        }
        let found = (0..entries)
            .filter(|&n| index.get(spread(n)) == Some(n * 128))
            .count() as u64;
        // Tags have 16 bits and buckets eight entries, so a few lookups return another entry.
        assert!(found > entries * 999 / 1000, "{found} of {entries}");
        assert!(entries - (index.len() as u64) < entries / 1000);
    }

    #[test]
    fn a_full_index_loses_old_entries_and_keeps_recent_ones() {
        let words = 1 << 14;
        let mut index = FingerprintIndex::new(vec![0; words]);
        let total = 8 * words as u64;
        for n in 0..total {
            index.insert(spread(n), n * 128, || ());
            if n % 512 == 0 {
                index.thin_if_nearly_full(n * 128, || ());
                assert!(index.len() * 100 <= words * FULL_PERCENT);
            }
        }
        let found = |from: u64, to: u64| {
            (from..to)
                .filter(|&n| index.get(spread(n)) == Some(n * 128))
                .count()
        };
        let recent = found(total - 2000, total);
        let old = found(0, 2000);
        assert!(recent > 1500, "{recent} of the last 2000 are found");
        assert!(old > 0 && old < 1000, "{old} of the first 2000 are found");
        let used = index
            .memory
            .words()
            .iter()
            .filter(|word| **word != 0)
            .count();
        assert_eq!(used, index.len());
    }
}
