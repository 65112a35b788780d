//! AES-256-GCM (NIST SP 800-38D) from its two parts, each of which takes an item in pieces.

use aes::cipher::{BlockCipherEncrypt, InnerIvInit};
use aes::{Aes256, Block};
use ctr::{Ctr32BE, CtrCore};
use ghash::GHash;
use ghash::universal_hash::UniversalHash;

use super::keys::{NONCE_BYTES, TAG_BYTES};

pub(super) fn keystream(cipher: &Aes256, nonce: &[u8; NONCE_BYTES]) -> Ctr32BE<Aes256> {
    let core = CtrCore::inner_iv_init(cipher.clone(), &counter_block(nonce, 2));
    Ctr32BE::from_core(core)
}

/// The counter block with a number: 1 for the tag, 2 and more for content.
fn counter_block(nonce: &[u8; NONCE_BYTES], number: u32) -> Block {
    let mut counter = Block::default();
    let (start, count) = counter.split_at_mut(NONCE_BYTES);
    start.copy_from_slice(nonce);
    count.copy_from_slice(&number.to_be_bytes());
    counter
}

/// Computes the tag of an item, piece by piece.
pub struct PieceAuthentication {
    hash: GHash,
    /// The encrypted counter of the tag.
    mask: [u8; TAG_BYTES],
    associated_bytes: u64,
    encrypted_bytes: u64,
}

impl std::fmt::Debug for PieceAuthentication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PieceAuthentication")
    }
}

impl PieceAuthentication {
    pub(super) fn new(
        cipher: &Aes256,
        nonce: &[u8; NONCE_BYTES],
        associated: &[u8],
    ) -> PieceAuthentication {
        let mut key = Block::default();
        cipher.encrypt_block(&mut key);
        let mut mask = counter_block(nonce, 1);
        cipher.encrypt_block(&mut mask);
        let mut hash = GHash::new(&key);
        hash.update_padded(associated);
        PieceAuthentication {
            hash,
            mask: mask.into(),
            associated_bytes: associated.len() as u64,
            encrypted_bytes: 0,
        }
    }

    /// Adds the next encrypted piece: a multiple of
    /// [`PIECE_UNIT_BYTES`](super::PIECE_UNIT_BYTES), or the rest of the item.
    pub fn update(&mut self, piece: &[u8]) {
        self.hash.update_padded(piece);
        self.encrypted_bytes += piece.len() as u64;
    }

    /// Returns whether the item has this tag.
    #[must_use]
    pub fn has_tag(self, tag: &[u8]) -> bool {
        let differs = self.tag().into_iter().zip(tag);
        let differs = differs.fold(0, |differs, (own, tag)| differs | (own ^ tag));
        tag.len() == TAG_BYTES && differs == 0
    }

    pub(super) fn tag(mut self) -> [u8; TAG_BYTES] {
        let bits = [self.associated_bytes, self.encrypted_bytes].map(|bytes| bytes * 8);
        let mut lengths = Block::default();
        for (to, bits) in lengths.chunks_exact_mut(8).zip(bits) {
            to.copy_from_slice(&bits.to_be_bytes());
        }
        self.hash.update(&[lengths]);
        let mut tag: [u8; TAG_BYTES] = self.hash.finalize().into();
        for (byte, mask) in tag.iter_mut().zip(self.mask) {
            *byte ^= mask;
        }
        tag
    }
}
