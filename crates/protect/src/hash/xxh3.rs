//! XXH3-64 with seed 0: the fast checksum of frames and blocks.
//!
//! Source: Yann Collet, xxHash specification, section XXH3 (64-bit variant). It detects accidents; it is no defence against
//! someone who wants a collision (that is what BLAKE3 and, later, authenticated encryption are for).

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// XXH3-64 (seed 0) of `bytes`.
#[must_use]
pub fn checksum64(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// XXH3-64 (seed 0) over parts: the same value as [`checksum64`] of the parts joined.
#[derive(Clone)]
pub struct Checksum64 {
    state: Xxh3,
}

impl Checksum64 {
    /// A checksum of no bytes yet.
    #[must_use]
    pub fn new() -> Self {
        Self { state: Xxh3::new() }
    }

    /// Appends `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
    }

    /// The checksum of everything appended so far; more may follow.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.state.digest()
    }
}

impl Default for Checksum64 {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Checksum64 {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Checksum64({:#018x})", self.value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published test vector of the xxHash project: XXH3-64 of nothing.
    #[test]
    fn empty_input_matches_the_published_vector() {
        assert_eq!(checksum64(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(Checksum64::new().value(), checksum64(b""));
    }

    #[test]
    fn one_flipped_bit_changes_the_checksum() {
        let clean = vec![0x5a_u8; 300];
        for bit in 0..clean.len() * 8 {
            let mut bent = clean.clone();
            bent[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(checksum64(&bent), checksum64(&clean), "bit {bit}");
        }
    }

    proptest::proptest! {
        #[test]
        fn parts_agree_with_the_whole(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..3000), cut in 0_usize..3000) {
            crate::property::checksum_of_parts(&bytes, cut);
        }
    }
}
