//! A set of CPUs (or of stripes) as bits.

use super::cpu::CpuId;

/// The capacity of a [`CpuMask`], and so the largest number of CPUs of a topology.
///
/// 512 covers the largest single machine that one would run a pool on today. On a larger machine
/// the pool uses the first 512 CPUs.
pub const CPUS_MAX: usize = 512;

const WORDS: usize = CPUS_MAX / 64;
const _: () = assert!(WORDS * 64 == CPUS_MAX);

/// A set of CPUs of a topology, by dense index. Also used for sets of stripes, which never
/// outnumber CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CpuMask {
    words: [u64; WORDS],
}

impl CpuMask {
    /// No CPU.
    pub const EMPTY: CpuMask = CpuMask { words: [0; WORDS] };
    /// Every CPU that a mask can hold.
    pub const ALL: CpuMask = CpuMask {
        words: [u64::MAX; WORDS],
    };
    /// The number of 64-bit words of a mask.
    pub const WORDS: usize = WORDS;

    /// The first `count` CPUs.
    pub fn first(count: usize) -> CpuMask {
        let mut mask = CpuMask::EMPTY;
        for (index, word) in mask.words.iter_mut().enumerate() {
            *word = match count.saturating_sub(index * 64) {
                0 => 0,
                bits @ 1..64 => (1 << bits) - 1,
                _ => u64::MAX,
            };
        }
        mask
    }

    /// A mask from its words; CPU 0 is the lowest bit of the first word.
    pub const fn from_words(words: [u64; WORDS]) -> CpuMask {
        CpuMask { words }
    }

    /// The mask's words; CPU 0 is the lowest bit of the first word.
    pub const fn words(&self) -> &[u64; WORDS] {
        &self.words
    }

    /// Adds a CPU; ignores indices of [`CPUS_MAX`] and above.
    pub fn insert(&mut self, cpu: CpuId) {
        if let Some(word) = self.words.get_mut(cpu.index() / 64) {
            *word |= 1 << (cpu.index() % 64);
        }
    }

    /// Removes a CPU.
    pub fn remove(&mut self, cpu: CpuId) {
        if let Some(word) = self.words.get_mut(cpu.index() / 64) {
            *word &= !(1 << (cpu.index() % 64));
        }
    }

    /// Whether the CPU is in the set.
    pub fn contains(&self, cpu: CpuId) -> bool {
        let word = self.words.get(cpu.index() / 64).copied().unwrap_or(0);
        word >> (cpu.index() % 64) & 1 == 1
    }

    /// The intersection.
    #[must_use]
    pub fn and(&self, other: &CpuMask) -> CpuMask {
        CpuMask {
            words: std::array::from_fn(|index| self.words[index] & other.words[index]),
        }
    }

    /// The union.
    #[must_use]
    pub fn or(&self, other: &CpuMask) -> CpuMask {
        CpuMask {
            words: std::array::from_fn(|index| self.words[index] | other.words[index]),
        }
    }

    /// The CPUs of this set that are not in `other`.
    #[must_use]
    pub fn without(&self, other: &CpuMask) -> CpuMask {
        CpuMask {
            words: std::array::from_fn(|index| self.words[index] & !other.words[index]),
        }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The number of CPUs in the set.
    pub fn len(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// Whether every CPU of the set is in `other`.
    pub fn is_subset_of(&self, other: &CpuMask) -> bool {
        self.without(other).is_empty()
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + use<> {
        let words = self.words;
        (0..WORDS).flat_map(move |index| {
            let mut word = words[index];
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros() as usize;
                // Clears the lowest set bit; ends when the word is zero.
                let rest = word.checked_sub(1)? & word;
                word = rest;
                Some(CpuId::new(index * 64 + bit))
            })
        })
    }
}

impl FromIterator<CpuId> for CpuMask {
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> CpuMask {
        let mut mask = CpuMask::EMPTY;
        cpus.into_iter().for_each(|cpu| mask.insert(cpu));
        mask
    }
}

/// The kernel's format for lists of CPUs: `0-3,8`.
impl std::fmt::Display for CpuMask {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut cpus = self.iter().map(CpuId::index).peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while cpus.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            write!(formatter, "{separator}{first}")?;
            if last > first {
                write!(formatter, "-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

impl std::fmt::Debug for CpuMask {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "CpuMask({self})")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn mask_of(cpus: &BTreeSet<usize>) -> CpuMask {
        cpus.iter().map(|&index| CpuId::new(index)).collect()
    }

    proptest! {

        #![proptest_config(ProptestConfig::with_cases(refrain_testkit::scaled(256)))]

        #[test]
        fn behaves_as_a_set(
            left in proptest::collection::btree_set(0..CPUS_MAX, 0..40),
            right in proptest::collection::btree_set(0..CPUS_MAX, 0..40),
        ) {
            let (a, b) = (mask_of(&left), mask_of(&right));
            prop_assert_eq!(a.iter().map(CpuId::index).collect::<BTreeSet<_>>(), left.clone());
            prop_assert_eq!(a.len(), left.len());
            prop_assert_eq!(a.is_empty(), left.is_empty());
            prop_assert_eq!(a.and(&b), mask_of(&(&left & &right)));
            prop_assert_eq!(a.or(&b), mask_of(&(&left | &right)));
            prop_assert_eq!(a.without(&b), mask_of(&(&left - &right)));
            prop_assert_eq!(a.is_subset_of(&b), left.is_subset(&right));
        }
    }

    #[test]
    fn limits_are_respected() {
        assert_eq!(CpuMask::first(0), CpuMask::EMPTY);
        assert_eq!(CpuMask::first(64).len(), 64);
        assert_eq!(CpuMask::first(65).len(), 65);
        assert_eq!(CpuMask::first(CPUS_MAX), CpuMask::ALL);
        assert_eq!(CpuMask::first(usize::MAX), CpuMask::ALL);
        let mut mask = CpuMask::EMPTY;
        mask.insert(CpuId::new(CPUS_MAX));
        assert!(mask.is_empty() && !mask.contains(CpuId::new(CPUS_MAX)));
        let text = mask_of(&BTreeSet::from([0, 1, 2, 5, 63, 64])).to_string();
        assert_eq!(text, "0-2,5,63-64");
    }
}
