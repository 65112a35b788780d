//! The index as long as it is small: whole fingerprints, in a table that doubles.
//!
//! Fingerprints fall everywhere in the large table, so the first ones already touch all of its pages: an input of a megabyte paid
//! for 128 MiB of fresh memory (65 ms of the 80 it took). A table that grows needs the whole fingerprint to find the new place of an
//! entry, twice the memory of the large table's entries; so it stays small, and hands over to that one.

use crate::prefetch::prefetch;

/// An entry; an address plus one, since 0 is an empty slot.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    fingerprint: u64,
    address_plus_one: u64,
}

/// IndexWords of an entry, of which two slots are there for each.
const WORDS_PER_ENTRY: usize = 4;
/// Slots at first.
const SLOTS_MIN: usize = 1 << 10;

/// Fingerprint → offset in the store, for few of them. Linear probing; at most half of the slots are in use.
#[derive(Debug)]
pub(super) struct Young {
    slots: Vec<Slot>,
    used: usize,
    entries_max: usize,
}

impl Young {
    /// A table that may take up to `words_max` words; `None` when that is too few to begin with.
    pub(super) fn new(words_max: usize) -> Option<Young> {
        let entries_max = words_max / WORDS_PER_ENTRY;
        (entries_max >= SLOTS_MIN / 2).then(|| Young {
            slots: vec![Slot::default(); SLOTS_MIN],
            used: 0,
            entries_max,
        })
    }

    /// Entries in use.
    pub(super) fn len(&self) -> usize {
        self.used
    }

    /// Whether it must not grow any more.
    pub(super) fn is_full(&self) -> bool {
        self.used >= self.entries_max
    }

    /// Where `fingerprint` is looked for first: by its highest bits, as in the large table, so that handing over goes through that in order.
    #[inline]
    fn home(&self, fingerprint: u64) -> usize {
        (fingerprint >> (64 - self.slots.len().trailing_zeros())) as usize
    }

    /// Brings the slot of `fingerprint` into the cache.
    #[inline]
    pub(super) fn prefetch(&self, fingerprint: u64) {
        prefetch(&self.slots[self.home(fingerprint)]);
    }

    /// The slot of `fingerprint`, or the empty one where it belongs.
    #[inline]
    fn find(&self, fingerprint: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = self.home(fingerprint);
        loop {
            let slot = self.slots[at];
            if slot.address_plus_one == 0 || slot.fingerprint == fingerprint {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// The address of `fingerprint`.
    #[inline]
    pub(super) fn get(&self, fingerprint: u64) -> Option<u64> {
        self.slots[self.find(fingerprint)]
            .address_plus_one
            .checked_sub(1)
    }

    /// Inserts unless the fingerprint is there already with an address from `floor` on.
    pub(super) fn insert(&mut self, fingerprint: u64, address: u64, floor: u64) {
        let at = self.find(fingerprint);
        let slot = &mut self.slots[at];
        if slot.address_plus_one > floor {
            return;
        }
        self.used += usize::from(slot.address_plus_one == 0);
        *slot = Slot {
            fingerprint,
            address_plus_one: address + 1,
        };
        if self.used * 2 > self.slots.len() {
            self.double();
        }
    }

    fn double(&mut self) {
        let slots = vec![Slot::default(); self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, slots);
        for slot in old.into_iter().filter(|slot| slot.address_plus_one != 0) {
            let at = self.find(slot.fingerprint);
            self.slots[at] = slot;
        }
    }

    /// All fingerprints and their addresses, by the highest bits of the former.
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

    /// Fingerprints of which many share their highest bits.
    fn fingerprint(n: u64) -> u64 {
        n.wrapping_mul(0x9E37_79B9_7F4A_7C15) & !(0xFF << 40)
    }

    #[test]
    fn it_remembers_what_a_map_remembers() {
        let mut young = Young::new(1 << 16).unwrap();
        let mut twin: HashMap<u64, u64> = HashMap::new();
        let mut floor = 0;
        for n in 0..10_000_u64 {
            // Some come twice, some again when they are forgotten.
            for key in [n, n / 2] {
                let key = fingerprint(key);
                young.insert(key, n * 100, floor);
                let known = twin.entry(key).or_insert(n * 100);
                if *known < floor {
                    *known = n * 100;
                }
            }
            if n % 1000 == 0 {
                floor = n * 50;
            }
        }
        assert_eq!(young.len(), twin.len());
        for n in 0..12_000 {
            let key = fingerprint(n);
            assert_eq!(young.get(key), twin.get(&key).copied());
        }
        let mut entries: Vec<_> = young.into_entries().collect();
        let mut expected: Vec<_> = twin.into_iter().collect();
        entries.sort_unstable();
        expected.sort_unstable();
        assert!(entries == expected);
    }

    #[test]
    fn it_says_when_it_is_full() {
        assert!(Young::new(1000).is_none());
        let mut young = Young::new(1 << 12).unwrap();
        for n in 0..1 << 10 {
            assert!(!young.is_full());
            young.insert(fingerprint(n), n, 0);
        }
        assert!(young.is_full());
    }
}
