//! The index while it has few entries: whole fingerprints, in a table that doubles.
//!
//! Fingerprints are spread over the whole large table, so even the first ones touch all of its
//! pages: an input of a megabyte paid for 128 MiB of fresh memory (65 ms of its 80 ms). A table
//! that grows needs the whole fingerprint to find the new slot of an entry, so its entries take
//! twice the memory of the large table's. Therefore it stays small, and its entries then move to
//! the large table.

use crate::check_in::{STEPS_PER_CHECK_IN, cleared};
use crate::prefetch::prefetch;

/// The bits of a fingerprint that are compared. The others are not kept in archives.
const COMPARED_BITS: u64 = !0xFFFF_0000;

/// A slot. The address is stored plus one; 0 marks an empty slot.
#[derive(Debug, Clone, Copy, Default)]
struct IndexSlot {
    fingerprint: u64,
    address_plus_one: u64,
}

/// The number of words per entry: a slot has two, and at least half of the slots are in use when
/// the table is full.
const WORDS_PER_ENTRY: usize = 4;
const SLOTS_MIN: usize = 1 << 10;

/// A map from fingerprints to store offsets for few entries. Linear probing; at most three
/// quarters of the slots are in use.
#[derive(Debug)]
pub(super) struct SmallTable {
    slots: Vec<IndexSlot>,
    used: usize,
    entries_max: usize,
    was_refused: bool,
}

impl SmallTable {
    /// Creates a table of at most `words_max` words; `None` if that is too little for the initial
    /// slots.
    pub(super) fn new(words_max: usize) -> Option<SmallTable> {
        let entries_max = words_max / WORDS_PER_ENTRY;
        (entries_max >= SLOTS_MIN / 2).then(|| SmallTable {
            slots: vec![IndexSlot::default(); SLOTS_MIN],
            used: 0,
            entries_max,
            was_refused: false,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.used
    }

    pub(super) fn is_full(&self) -> bool {
        self.used >= self.entries_max
    }

    /// Returns the first slot to probe. The highest bits select it, as they select buckets in the
    /// large table, so moving the entries visits that table in order.
    #[inline]
    fn home(&self, fingerprint: u64) -> usize {
        (fingerprint >> (64 - self.slots.len().trailing_zeros())) as usize
    }

    #[inline]
    pub(super) fn prefetch(&self, fingerprint: u64) {
        prefetch(&self.slots[self.home(fingerprint)]);
    }

    /// Returns the slot of `fingerprint`, or the empty slot in which to insert it.
    #[inline]
    fn find(&self, fingerprint: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = self.home(fingerprint);
        loop {
            let slot = self.slots[at];
            if slot.address_plus_one == 0 || (slot.fingerprint ^ fingerprint) & COMPARED_BITS == 0 {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    #[inline]
    pub(super) fn get(&self, fingerprint: u64) -> Option<u64> {
        self.slots[self.find(fingerprint)]
            .address_plus_one
            .checked_sub(1)
    }

    /// Inserts the fingerprint unless it is already present with an address of at least `floor`.
    pub(super) fn insert(&mut self, fingerprint: u64, address: u64, floor: u64, check_in: fn()) {
        if self.was_refused {
            // A table without an empty slot would be searched for ever.
            return;
        }
        let at = self.find(fingerprint);
        let slot = &mut self.slots[at];
        if slot.address_plus_one > floor {
            return;
        }
        self.used += usize::from(slot.address_plus_one == 0);
        *slot = IndexSlot {
            fingerprint,
            address_plus_one: address + 1,
        };
        if self.used * 4 > self.slots.len() * 3 {
            self.double(check_in);
        }
    }

    /// Whether the allocator refused to let the table grow. Nothing is inserted since then.
    pub(super) fn was_refused(&self) -> bool {
        self.was_refused
    }

    /// The memory that the table asks for when it grows next, in bytes.
    pub(super) fn growth_bytes(&self) -> usize {
        2 * self.slots.len() * size_of::<IndexSlot>()
    }

    fn double(&mut self, check_in: fn()) {
        let Some(slots) = cleared(self.slots.len() * 2, check_in) else {
            self.was_refused = true;
            return;
        };
        let old = std::mem::replace(&mut self.slots, slots);
        let entries = old.into_iter().filter(|slot| slot.address_plus_one != 0);
        for (number, slot) in entries.enumerate() {
            if number.is_multiple_of(STEPS_PER_CHECK_IN) {
                check_in();
            }
            let at = self.find(slot.fingerprint);
            self.slots[at] = slot;
        }
    }

    /// Returns all fingerprints and their addresses, in the order of the fingerprints' highest
    /// bits.
    pub(super) fn into_entries(self) -> impl Iterator<Item = (u64, u64)> {
        self.slots.into_iter().filter_map(|slot| {
            let address = slot.address_plus_one.checked_sub(1)?;
            Some((slot.fingerprint, address))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Returns fingerprints many of which share their highest bits.
    fn fingerprint(n: u64) -> u64 {
        n.wrapping_mul(0x9E37_79B9_7F4A_7C15) & !(0xFF << 40)
    }

    #[test]
    fn matches_the_reference_map() {
        let mut table = SmallTable::new(1 << 16).unwrap();
        let mut reference: HashMap<u64, u64> = HashMap::new();
        let mut floor = 0;
        for n in 0..10_000_u64 {
            // Some are inserted twice, some again after their eviction.
            for key in [n, n / 2] {
                let key = fingerprint(key);
                table.insert(key, n * 100, floor, || ());
                let address = reference.entry(key).or_insert(n * 100);
                if *address < floor {
                    *address = n * 100;
                }
            }
            if n % 1000 == 0 {
                floor = n * 50;
            }
        }
        assert_eq!(table.len(), reference.len());
        for n in 0..12_000 {
            let key = fingerprint(n);
            assert_eq!(table.get(key), reference.get(&key).copied());
        }
        let mut entries: Vec<_> = table.into_entries().collect();
        let mut expected: Vec<_> = reference.into_iter().collect();
        entries.sort_unstable();
        expected.sort_unstable();
        assert!(entries == expected);
    }

    #[test]
    fn reports_when_it_is_full() {
        assert!(SmallTable::new(1000).is_none());
        let mut table = SmallTable::new(1 << 12).unwrap();
        for n in 0..1 << 10 {
            assert!(!table.is_full());
            table.insert(fingerprint(n), n, 0, || ());
        }
        assert!(table.is_full());
    }
}
