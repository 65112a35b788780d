//! The random bytes of an archive, from a seed.

use sha2::{Digest, Sha512};

use super::keys::NONCE_BYTES;

/// The length in bytes of the seed, which is drawn once per archive.
pub const SEED_BYTES: usize = 32;

/// Generates the random bytes of one archive: SHA-512 of a seed and a counter.
///
/// An archive needs only one call of the system's random number generator, and can be reproduced
/// from the seed.
pub struct SeededRandom {
    seed: [u8; SEED_BYTES],
    count: u64,
    /// The beginning of all nonces of the archive.
    nonce_start: [u8; 4],
}

impl std::fmt::Debug for SeededRandom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SeededRandom")
    }
}

impl SeededRandom {
    /// Creates a generator from an unpredictable seed that is not used for any other archive.
    #[must_use]
    pub fn new(seed: [u8; SEED_BYTES]) -> SeededRandom {
        let mut random = SeededRandom {
            seed,
            count: 0,
            nonce_start: [0; 4],
        };
        random.nonce_start = random.bytes();
        random
    }

    /// Returns the next bytes, at most 64.
    #[must_use]
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        const { assert!(N <= 64) };
        let mut hash = Sha512::new();
        hash.update(self.seed);
        hash.update(self.count.to_le_bytes());
        self.count += 1;
        let mut bytes = [0; N];
        bytes
            .iter_mut()
            .zip(hash.finalize())
            .for_each(|(to, from)| *to = from);
        bytes
    }
}

impl SeededRandom {
    /// Returns a unique nonce: a random part that is constant for the archive, and a counter.
    pub(super) fn nonce(&mut self) -> [u8; NONCE_BYTES] {
        let mut nonce = [0; NONCE_BYTES];
        let (start, count) = nonce.split_at_mut(self.nonce_start.len());
        start.copy_from_slice(&self.nonce_start);
        count.copy_from_slice(&self.count.to_le_bytes());
        self.count += 1;
        nonce
    }
}
