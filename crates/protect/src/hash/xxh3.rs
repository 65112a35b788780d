//! XXH3-64 with seed 0: the fast checksum of frames and blocks.
//!
//! Source: Yann Collet, xxHash specification, section XXH3 (64-bit variant). It detects accidents;
//! it is no defence against someone who wants a collision (that is what BLAKE3 and, later,
//! authenticated encryption are for).
//!
//! The library picks its vector form when it runs, so a binary for any x86-64 uses AVX2 where there
//! is AVX2.

use std::hash::Hasher;

use twox_hash::XxHash3_64;

/// XXH3-64 (seed 0) of `bytes`.
#[must_use]
pub fn checksum64(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// Bytes of a piece in [`pieces_checksum`]; the last piece may be shorter.
pub const PIECE_BYTES: usize = 1 << 16;

/// XXH3-64 of the XXH3-64s (little endian) of the pieces of `bytes`: pieces can be summed by
/// themselves, in any order, and whoever needs their sums anyway gets this one for nothing.
#[must_use]
pub fn pieces_checksum(bytes: &[u8]) -> u64 {
    let sums: Vec<u64> = bytes.chunks(PIECE_BYTES).map(checksum64).collect();
    join_piece_checksums(&sums)
}

/// [`pieces_checksum`] of bytes whose pieces have these checksums.
#[must_use]
pub fn join_piece_checksums(sums: &[u64]) -> u64 {
    let mut joined = Checksum64::new();
    sums.iter()
        .for_each(|sum| joined.update(&sum.to_le_bytes()));
    joined.value()
}

/// XXH3-64 (seed 0) over parts: the same value as [`checksum64`] of the parts joined.
#[derive(Clone)]
pub struct Checksum64 {
    state: XxHash3_64,
}

impl Checksum64 {
    /// A checksum of no bytes yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: XxHash3_64::new(),
        }
    }

    /// Appends `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        self.state.write(bytes);
    }

    /// The checksum of everything appended so far; more may follow.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.state.finish()
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
