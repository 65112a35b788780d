//! MD5 (R. Rivest, RFC 1321, 1992): one input at a time, or many side by side.
//!
//! MD5 tells whether a file is the one that somebody else has, in the language that everybody
//! speaks. It is no defence against forgers: collisions are made in seconds.
//!
//! | file | what |
//! |---|---|
//! | `rounds.rs` | the 64 steps, for one word or a vector of them; how the chain is kept short |
//! | `lanes/` | many inputs at once: which input is in which lane; AVX-512, AVX2, NEON; and one input with AVX-512 |
//! | `plain.rs` | the RFC to the letter, for comparison |
//!
//! [`Md5`] takes one input in pieces, in constant memory. [`update_many`] and [`finish_many`] do
//! the same for many inputs at once, [`md5_many`] for inputs that are there as a whole.

mod lanes;
#[cfg(any(test, feature = "property"))]
pub(crate) mod plain;
mod rounds;

#[cfg(test)]
mod tests;

use lanes::Job;
pub use lanes::LANES_MAX;

/// Bytes of an MD5 digest.
pub const MD5_BYTES: usize = 16;

/// Bytes of a block.
const BLOCK_BYTES: usize = 64;

/// MD5 of `bytes`.
#[must_use]
pub fn md5(bytes: &[u8]) -> [u8; MD5_BYTES] {
    let mut hash = Md5::new();
    hash.update(bytes);
    hash.finish()
}

/// MD5 of each of `inputs`, many at once.
#[must_use]
pub fn md5_many(inputs: &[&[u8]]) -> Vec<[u8; MD5_BYTES]> {
    let mut hashes = vec![Md5::new(); inputs.len()];
    update_many(hashes.iter_mut().zip(inputs.iter().copied()));
    finish_many(hashes)
}

/// MD5 fed from front to back.
#[derive(Clone)]
pub struct Md5 {
    state: [u32; 4],
    length_bytes: u64,
    /// Bytes that do not fill a block yet; `length_bytes % 64` of them count.
    pending: [u8; BLOCK_BYTES],
}

impl Md5 {
    /// The hash of no bytes yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: rounds::INITIAL_STATE,
            length_bytes: 0,
            pending: [0; BLOCK_BYTES],
        }
    }

    /// Appends `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        let blocks = self.take(bytes);
        lanes::compress_alone(&mut self.state, blocks);
    }

    /// The digest of everything appended.
    #[must_use]
    pub fn finish(mut self) -> [u8; MD5_BYTES] {
        let (padding, count) = self.padding();
        rounds::compress_blocks(&mut self.state, &padding[..count]);
        self.digest()
    }

    /// Counts `bytes`, completes and compresses the pending block, keeps what does not fill one,
    /// and returns the blocks between, which are still to be compressed.
    fn take<'bytes>(&mut self, mut bytes: &'bytes [u8]) -> &'bytes [[u8; BLOCK_BYTES]] {
        let pending = self.pending_bytes();
        self.length_bytes = self.length_bytes.wrapping_add(bytes.len() as u64);
        if pending > 0 {
            let (first, rest) = bytes.split_at(bytes.len().min(BLOCK_BYTES - pending));
            self.pending[pending..pending + first.len()].copy_from_slice(first);
            if pending + first.len() < BLOCK_BYTES {
                return &[];
            }
            rounds::compress_blocks(&mut self.state, std::slice::from_ref(&self.pending));
            bytes = rest;
        }
        let (blocks, rest) = bytes.as_chunks();
        self.pending[..rest.len()].copy_from_slice(rest);
        blocks
    }

    fn pending_bytes(&self) -> usize {
        (self.length_bytes % BLOCK_BYTES as u64) as usize
    }

    /// The last blocks: what is pending, a one bit, zeros, the length in bits modulo 2^64 (RFC
    /// 1321, sections 3.1 and 3.2); and whether they are one or two.
    fn padding(&self) -> ([[u8; BLOCK_BYTES]; 2], usize) {
        let pending = self.pending_bytes();
        let mut blocks = [[0; BLOCK_BYTES]; 2];
        blocks[0][..pending].copy_from_slice(&self.pending[..pending]);
        blocks[0][pending] = 0x80;
        let count = 1 + usize::from(pending + 1 + size_of::<u64>() > BLOCK_BYTES);
        let length_bits = self.length_bytes.wrapping_mul(8);
        blocks[count - 1][BLOCK_BYTES - size_of::<u64>()..]
            .copy_from_slice(&length_bits.to_le_bytes());
        (blocks, count)
    }

    fn digest(&self) -> [u8; MD5_BYTES] {
        let mut digest = [0; MD5_BYTES];
        let (words, _) = digest.as_chunks_mut();
        for (bytes, word) in words.iter_mut().zip(self.state) {
            *bytes = word.to_le_bytes();
        }
        digest
    }
}

impl Default for Md5 {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Md5 {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Md5({} bytes)", self.length_bytes)
    }
}

/// Appends bytes to each of many hashes, as [`Md5::update`] does, several at a time. The more of
/// them ([`LANES_MAX`] and above), and the less their lengths differ, the better.
pub fn update_many<'hash, 'bytes>(
    inputs: impl IntoIterator<Item = (&'hash mut Md5, &'bytes [u8])>,
) {
    let jobs = inputs.into_iter().map(|(hash, bytes)| {
        let blocks = hash.take(bytes);
        Job {
            state: &mut hash.state,
            blocks,
        }
    });
    lanes::compress_jobs(&mut jobs.collect::<Vec<_>>());
}

/// The digest of each of many hashes, as [`Md5::finish`] makes it, several at a time.
#[must_use]
pub fn finish_many(mut hashes: Vec<Md5>) -> Vec<[u8; MD5_BYTES]> {
    let paddings: Vec<_> = hashes.iter().map(Md5::padding).collect();
    let jobs = hashes.iter_mut().zip(&paddings);
    let jobs = jobs.map(|(hash, (blocks, count))| Job {
        state: &mut hash.state,
        blocks: &blocks[..*count],
    });
    lanes::compress_jobs(&mut jobs.collect::<Vec<_>>());
    hashes.iter().map(Md5::digest).collect()
}
