//! The hasher, for one input or many.

use super::block::{BLOCK_BYTES, MD5_BYTES};
use super::lanes::dispatch::{LaneInput, compress_inputs, compress_single};
use super::rounds;

/// Returns the MD5 of `bytes`.
#[must_use]
pub fn md5(bytes: &[u8]) -> [u8; MD5_BYTES] {
    let mut hash = Md5::new();
    hash.update(bytes);
    hash.finish()
}

/// Returns the MD5 of each of `inputs`, computed in parallel lanes.
#[must_use]
pub fn md5_many(inputs: &[&[u8]]) -> Vec<[u8; MD5_BYTES]> {
    let mut hashes = vec![Md5::new(); inputs.len()];
    update_many(hashes.iter_mut().zip(inputs.iter().copied()));
    finish_many(hashes)
}

/// A hasher of one input, which is appended from front to back.
#[derive(Clone)]
pub struct Md5 {
    state: [u32; 4],
    pub(super) length_bytes: u64,
    /// Bytes that do not fill a block yet. The first `length_bytes % 64` are valid.
    pending: [u8; BLOCK_BYTES],
}

impl Md5 {
    /// Creates a hasher of an empty input.
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
        let blocks = self.append(bytes);
        compress_single(&mut self.state, blocks);
    }

    /// Returns the digest of everything appended.
    #[must_use]
    pub fn finish(mut self) -> [u8; MD5_BYTES] {
        let (padding, count) = self.padding();
        rounds::compress_blocks(&mut self.state, &padding[..count]);
        self.digest()
    }

    /// Appends `bytes`: completes and compresses the pending block and keeps what does not fill a
    /// block. Returns the blocks between, which the caller compresses.
    fn append<'bytes>(&mut self, mut bytes: &'bytes [u8]) -> &'bytes [[u8; BLOCK_BYTES]] {
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

    /// Returns the final one or two blocks and their number: the pending bytes, a one bit, zeros,
    /// and the length in bits modulo 2^64 (RFC 1321, sections 3.1 and 3.2).
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

/// Appends bytes to each of many hashers, as [`Md5::update`] does, in parallel lanes. It is fastest
/// for [`LANES_MAX`](super::LANES_MAX) inputs or more whose lengths differ little.
pub fn update_many<'hash, 'bytes>(
    inputs: impl IntoIterator<Item = (&'hash mut Md5, &'bytes [u8])>,
) {
    let inputs = inputs.into_iter().map(|(hash, bytes)| {
        let blocks = hash.append(bytes);
        LaneInput {
            state: &mut hash.state,
            blocks,
        }
    });
    compress_inputs(&mut inputs.collect::<Vec<_>>());
}

/// Returns the digest of each of many hashers, as [`Md5::finish`] does, computed in parallel lanes.
#[must_use]
pub fn finish_many(mut hashes: Vec<Md5>) -> Vec<[u8; MD5_BYTES]> {
    let paddings: Vec<_> = hashes.iter().map(Md5::padding).collect();
    let inputs = hashes.iter_mut().zip(&paddings);
    let inputs = inputs.map(|(hash, (blocks, count))| LaneInput {
        state: &mut hash.state,
        blocks: &blocks[..*count],
    });
    compress_inputs(&mut inputs.collect::<Vec<_>>());
    hashes.iter().map(Md5::digest).collect()
}
