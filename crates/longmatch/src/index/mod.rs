//! The index: where in the store a fingerprint was first seen.
//!
//! Buckets of eight entries fill one cache line each, so that a lookup costs one miss. An entry is 64 bits: a 16
//! bit tag and the 48 bit address in the store, plus one (0 is an empty slot). Other bits of the fingerprint
//! choose the bucket.
//!
//! As long as it holds little, another table stands for it: [`young`](self::young).
//!
//! Insertion keeps the oldest: a fingerprint that is there already is not inserted again, so the index grows with
//! *unique* data only. When it is nearly full it thins with age: the older half of the store loses every other
//! entry, those with a tag of low rank (trailing zero bits). What is very old stays findable by long repeats,
//! what is recent by short ones. (lrzip thins the same way, but the whole table at once and at a fixed 64 MB.)
//!
//! What a lookup sees depends on the insertions before it and nothing else; the engine fixes their order, and so
//! archives do not depend on threads.
#![forbid(unsafe_code)]

mod young;

use self::young::Young;
use crate::prefetch::prefetch;

/// Entries in a bucket.
const SLOTS: usize = 8;
const ADDRESS_BITS: u32 = 48;
const ADDRESS_MASK: u64 = (1 << ADDRESS_BITS) - 1;
/// Share of the slots, in percent, above which the index is thinned.
const FULL_PERCENT: usize = 70;

/// The young index takes at most one part in so many of the memory besides, while it hands over.
pub const SMALL_INDEX_SHARE: usize = 8;

/// Memory for an index: a power of two of words that start out as zero.
///
/// A trait because pages of this size are best mapped by who knows the machine.
pub trait IndexWords: Send + Sync {
    /// The words.
    fn words(&self) -> &[u64];
    /// The words, to change.
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

/// Largest address an index can hold: archives end long before (256 TiB of unique data).
pub const ADDRESS_MAX: u64 = ADDRESS_MASK - 1;

/// Fingerprint → offset in the store.
pub struct Index<W> {
    /// What there is until it gets too much for it; then it is gone.
    young: Option<Young>,
    memory: W,
    bucket_shift: u32,
    used: usize,
    /// Addresses below this are forgotten: lookups do not return them and insertions take their slots.
    floor: u64,
}

impl Index<()> {
    /// Smallest number of words.
    pub const WORDS_MIN: usize = 2 * SLOTS;
}

impl<W: IndexWords> Index<W> {
    /// An index over `memory`, all zero, whose length is a power of two from [`Index::WORDS_MIN`] on.
    pub fn new(memory: W) -> Index<W> {
        let words = memory.words().len();
        assert!(
            words.is_power_of_two() && words >= Index::WORDS_MIN,
            "an index cannot have {words} words"
        );
        let bucket_bits = (words / SLOTS).trailing_zeros();
        Index {
            young: Young::new(words / SMALL_INDEX_SHARE),
            memory,
            bucket_shift: 64 - bucket_bits,
            used: 0,
            floor: 0,
        }
    }

    /// Entries in use.
    pub fn len(&self) -> usize {
        self.young.as_ref().map_or(self.used, Young::len)
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets addresses below `floor` (out of reach, or no longer readable). Never goes back.
    pub fn evict_below(&mut self, floor: u64) {
        self.floor = self.floor.max(floor);
    }

    /// Where the bucket of `fingerprint` starts.
    #[inline]
    fn bucket(&self, fingerprint: u64) -> usize {
        (fingerprint >> self.bucket_shift) as usize * SLOTS
    }

    /// Brings what [`Index::get`] and [`Index::insert`] look at into the cache.
    #[inline]
    pub(crate) fn prefetch(&self, fingerprint: u64) {
        match &self.young {
            Some(young) => young.prefetch(fingerprint),
            None => prefetch(&self.memory.words()[self.bucket(fingerprint)]),
        }
    }

    /// The store offset where this fingerprint was first seen, as far as is remembered. May be wrong (16 bit
    /// tags): verify.
    #[inline]
    pub(crate) fn get(&self, fingerprint: u64) -> Option<u64> {
        let address = match &self.young {
            Some(young) => young.get(fingerprint),
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

    /// Inserts unless the fingerprint is there already. In a full bucket the entry of lowest rank goes.
    pub(crate) fn insert(&mut self, fingerprint: u64, offset_in_store: u64) {
        debug_assert!(offset_in_store <= ADDRESS_MAX);
        let Some(young) = &mut self.young else {
            return self.insert_in_buckets(fingerprint, offset_in_store);
        };
        young.insert(fingerprint, offset_in_store, self.floor);
        if young.is_full() {
            self.grow_up();
        }
    }

    /// Moves all entries into the buckets.
    #[cold]
    fn grow_up(&mut self) {
        let entries = self.young.take().into_iter().flat_map(Young::into_entries);
        for (fingerprint, address) in entries {
            if address >= self.floor {
                self.insert_in_buckets(fingerprint, address);
            }
        }
    }

    fn insert_in_buckets(&mut self, fingerprint: u64, offset_in_store: u64) {
        let bucket = self.bucket(fingerprint);
        let tag = tag(fingerprint);
        let fresh = tag << ADDRESS_BITS | (offset_in_store + 1);
        let floor = self.floor;
        let is_live = |entry: u64| entry != 0 && (entry & ADDRESS_MASK) > floor;
        let entries = &mut self.memory.words_mut()[bucket..bucket + SLOTS];
        if let Some(same) = entries
            .iter_mut()
            .find(|entry| **entry != 0 && **entry >> ADDRESS_BITS == tag)
        {
            if !is_live(*same) {
                *same = fresh;
            }
            return;
        }
        if let Some(free) = entries.iter_mut().find(|entry| !is_live(**entry)) {
            self.used += usize::from(*free == 0);
            *free = fresh;
            return;
        }
        if let Some(lowest) = entries.iter_mut().min_by_key(|entry| rank(**entry))
            && rank(*lowest) < rank(fresh)
        {
            *lowest = fresh;
        }
    }

    /// To be called between epochs: thins the index if it is nearly full. `store_end` is the store's length.
    pub fn thin_if_nearly_full(&mut self, store_end: u64) {
        let capacity = self.memory.words().len();
        let mut cut = store_end / 2;
        while self.used * 100 > capacity * FULL_PERCENT {
            self.thin_below(cut);
            // Should the older half hold too little, take more.
            cut = cut + (store_end - cut) / 2 + 1;
        }
    }

    /// Of the entries with an address below `cut`, keeps those of a rank above the lowest among them in each
    /// bucket's share: one more trailing zero bit of the tag is asked for than the rarest kept now.
    fn thin_below(&mut self, cut: u64) {
        let floor = self.floor;
        let is_old = |entry: u64| entry != 0 && (entry & ADDRESS_MASK) <= cut;
        let words = self.memory.words_mut();
        let lowest = words
            .iter()
            .filter(|entry| is_old(**entry))
            .map(|entry| rank(*entry))
            .min()
            .unwrap_or(0);
        let mut removed = 0;
        for bucket in words.chunks_exact_mut(SLOTS) {
            let mut kept = 0;
            for slot in 0..SLOTS {
                let entry = bucket[slot];
                let goes =
                    is_old(entry) && (rank(entry) <= lowest || (entry & ADDRESS_MASK) <= floor);
                removed += usize::from(goes);
                if entry != 0 && !goes {
                    bucket[kept] = entry;
                    kept += 1;
                }
            }
            bucket[kept..].fill(0);
        }
        self.used -= removed;
    }
}

#[inline]
fn tag(fingerprint: u64) -> u64 {
    fingerprint & 0xFFFF
}

/// How rare an entry is: entries of rank `r` and above are one in `2^r`.
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
    fn the_oldest_is_kept() {
        let mut index = Index::new(vec![0; 1024]);
        index.insert(7, 100);
        index.insert(7, 200);
        assert_eq!(index.get(7), Some(100));
        assert_eq!(index.get(8), None);
        assert_eq!(index.len(), 1);
    }

    #[test]
    fn what_is_below_the_floor_is_forgotten_and_replaced() {
        let mut index = Index::new(vec![0; 1024]);
        index.insert(7, 100);
        index.insert(9, 0);
        index.evict_below(101);
        assert_eq!(index.get(7), None);
        assert_eq!(index.get(9), None);
        index.insert(7, 300);
        assert_eq!(index.get(7), Some(300));
    }

    #[test]
    fn what_the_young_index_knew_is_known_when_it_is_grown_up() {
        let words = 1 << 16;
        let mut index = Index::new(vec![0; words]);
        let entries = words as u64 / 4;
        for n in 0..entries {
            index.insert(spread(n), n * 128);
            assert_eq!(index.young.is_some(), n + 1 < words as u64 / 32);
        }
        let found = (0..entries)
            .filter(|&n| index.get(spread(n)) == Some(n * 128))
            .count() as u64;
        // Tags of 16 bits in buckets of eight: a few are taken for others.
        assert!(found > entries * 999 / 1000, "{found} of {entries}");
        assert!(entries - (index.len() as u64) < entries / 1000);
    }

    #[test]
    fn a_full_index_thins_the_old_and_keeps_the_recent() {
        let words = 1 << 14;
        let mut index = Index::new(vec![0; words]);
        let total = 8 * words as u64;
        for n in 0..total {
            index.insert(spread(n), n * 128);
            if n % 512 == 0 {
                index.thin_if_nearly_full(n * 128);
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
