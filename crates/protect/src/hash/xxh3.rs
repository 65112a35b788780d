//! XXH3-64 with seed 0, the fast checksum of frames and blocks.
//!
//! Source: Yann Collet, xxHash specification, section XXH3 (64-bit variant). It detects accidents,
//! not deliberate collisions; BLAKE3 and, later, authenticated encryption do that.
//!
//! The library selects its vector form at run time, so a binary for any x86-64 processor uses AVX2
//! where available.

use std::hash::Hasher;

use twox_hash::XxHash3_64;

/// Returns the XXH3-64 (seed 0) of `bytes`.
#[must_use]
pub fn checksum64(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// The length of a chunk in [`chunked_checksum64`] in bytes. The last chunk may be shorter.
pub const CHECKSUM_CHUNK_BYTES: usize = 1 << 16;

/// Returns the XXH3-64 of the checksums (XXH3-64, little endian) of the chunks of `bytes`. Chunks
/// can be hashed in any order, and a caller that already has their checksums need not read the
/// bytes again.
#[must_use]
pub fn chunked_checksum64(bytes: &[u8]) -> u64 {
    let sums: Vec<u64> = bytes.chunks(CHECKSUM_CHUNK_BYTES).map(checksum64).collect();
    join_chunk_checksums(&sums)
}

/// Returns the [`chunked_checksum64`] of bytes whose chunks have these checksums.
#[must_use]
pub fn join_chunk_checksums(sums: &[u64]) -> u64 {
    let mut joined = Checksum64::new();
    sums.iter()
        .for_each(|sum| joined.update(&sum.to_le_bytes()));
    joined.value()
}

/// A hasher of XXH3-64 (seed 0). Its value equals [`checksum64`] of all bytes appended.
#[derive(Clone)]
pub struct Checksum64 {
    state: XxHash3_64,
}

impl Checksum64 {
    /// Creates a hasher of an empty input.
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

    /// Returns the checksum of everything appended so far. More bytes may be appended.
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

    /// The test vector of the xxHash project for an empty input.
    #[test]
    fn empty_input_matches_the_published_vector() {
        assert_eq!(checksum64(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(Checksum64::new().value(), checksum64(b""));
    }

    #[test]
    fn one_flipped_bit_changes_the_checksum() {
        let clean = vec![0x5a_u8; 300];
        for bit in 0..clean.len() * 8 {
            let mut damaged = clean.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(checksum64(&damaged), checksum64(&clean), "bit {bit}");
        }
    }

    proptest::proptest! {
        #[test]
        fn parts_match_the_whole(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..3000), cut in 0_usize..3000) {
            crate::property::checksum_of_parts(&bytes, cut);
        }
    }
}
