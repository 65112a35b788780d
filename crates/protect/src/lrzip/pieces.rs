//! Decryption of items in pieces, for blocks that are larger than memory.

use aes::cipher::{BlockEncrypt, InnerIvInit, KeyInit, StreamCipher, generic_array::GenericArray};
use aes::{Aes256, Block};
use ctr::{Ctr32BE, CtrCore};
use ghash::GHash;
use ghash::universal_hash::UniversalHash;

use super::decrypt::CbcChain;
use super::keys::{ArchiveKeys, BLOCK_BYTES, ItemKind, NONCE_BYTES, SALT_BYTES, TAG_BYTES};

/// The lengths of pieces are multiples of this number of bytes.
pub const PIECE_UNIT_BYTES: usize = BLOCK_BYTES;

/// The least length in bytes of the last piece of an item that has several.
pub const LAST_PIECE_BYTES_MIN: usize = 2 * BLOCK_BYTES;

/// The parts of an item in an archive: a beginning, the encrypted bytes, a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemParts {
    /// The number of bytes before the encrypted ones.
    pub start_bytes: usize,
    /// The number of bytes after them; 0 if the item is not authenticated.
    pub tag_bytes: usize,
}

/// Decrypts the encrypted bytes of one block, piece by piece.
pub struct PieceDecryption(Cipher);

enum Cipher {
    Cbc(Box<CbcChain>),
    Gcm(Box<Ctr32BE<Aes256>>),
}

/// Computes the tag of one block, piece by piece.
pub struct PieceAuthentication {
    hash: GHash,
    /// The encrypted counter of the tag.
    mask: [u8; TAG_BYTES],
    associated_bytes: u64,
    encrypted_bytes: u64,
}

impl std::fmt::Debug for PieceDecryption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PieceDecryption")
    }
}

impl std::fmt::Debug for PieceAuthentication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PieceAuthentication")
    }
}

impl ArchiveKeys {
    /// Returns the parts of a block in the archive.
    #[must_use]
    pub fn block_parts(&self) -> ItemParts {
        let (start_bytes, tag_bytes) = match self {
            ArchiveKeys::Cbc { .. } => (SALT_BYTES, 0),
            ArchiveKeys::Gcm { .. } => (NONCE_BYTES, TAG_BYTES),
        };
        ItemParts {
            start_bytes,
            tag_bytes,
        }
    }

    /// Starts the decryption of the block that begins with `start`. `None` if that is too short.
    #[must_use]
    pub fn decrypt_block_in_pieces(&self, start: &[u8]) -> Option<PieceDecryption> {
        Some(PieceDecryption(match self {
            ArchiveKeys::Cbc {
                hash,
                salted_password,
            } => {
                let salt: &[u8; SALT_BYTES] = start.first_chunk()?;
                Cipher::Cbc(Box::new(CbcChain::new(hash, salt, salted_password)?))
            }
            ArchiveKeys::Gcm { data_cipher, .. } => {
                let counter = counter_block(start, 2)?;
                let core = CtrCore::inner_iv_init((**data_cipher).clone(), &counter);
                Cipher::Gcm(Box::new(Ctr32BE::from_core(core)))
            }
        }))
    }

    /// Starts the authentication of the block that begins with `start`. `None` if that is too short
    /// or the cipher has no authentication.
    #[must_use]
    pub fn authenticate_block_in_pieces(&self, start: &[u8]) -> Option<PieceAuthentication> {
        let ArchiveKeys::Gcm { data_cipher, .. } = self else {
            return None;
        };
        let mut key = Block::default();
        data_cipher.encrypt_block(&mut key);
        let mut mask = counter_block(start, 1)?;
        data_cipher.encrypt_block(&mut mask);
        let associated = self.associated_data(ItemKind::Data);
        let mut hash = GHash::new(&key);
        hash.update_padded(&associated);
        Some(PieceAuthentication {
            hash,
            mask: mask.into(),
            associated_bytes: associated.len() as u64,
            encrypted_bytes: 0,
        })
    }
}

/// The block that AES-256-GCM encrypts for a number: the tag has number 1, content begins at 2.
fn counter_block(start: &[u8], number: u32) -> Option<Block> {
    let mut counter = Block::default();
    let (nonce, count) = counter.split_at_mut(NONCE_BYTES);
    nonce.copy_from_slice(start.first_chunk::<NONCE_BYTES>()?);
    count.copy_from_slice(&number.to_be_bytes());
    Some(counter)
}

impl PieceDecryption {
    /// Decrypts the next piece: a multiple of [`PIECE_UNIT_BYTES`], or the rest of the block, which
    /// has at least [`LAST_PIECE_BYTES_MIN`] bytes unless it is the whole block. `None` if it is
    /// too short, or the block too long for the cipher (64 GiB).
    #[must_use]
    pub fn decrypt(&mut self, piece: &mut [u8]) -> Option<()> {
        match &mut self.0 {
            Cipher::Cbc(chain) => chain.decrypt(piece),
            Cipher::Gcm(counter) => counter.try_apply_keystream(piece).ok(),
        }
    }
}

impl PieceAuthentication {
    /// Adds the next encrypted piece: a multiple of [`PIECE_UNIT_BYTES`], or the rest of the block.
    pub fn update(&mut self, piece: &[u8]) {
        self.hash.update_padded(piece);
        self.encrypted_bytes += piece.len() as u64;
    }

    /// Returns whether the block has this tag.
    #[must_use]
    pub fn has_tag(mut self, tag: &[u8]) -> bool {
        let mut lengths = GenericArray::default();
        let bits = [self.associated_bytes * 8, self.encrypted_bytes * 8];
        for (to, bits) in lengths.chunks_exact_mut(8).zip(bits) {
            to.copy_from_slice(&bits.to_be_bytes());
        }
        self.hash.update(&[lengths]);
        let hash = self.hash.finalize();
        let differs = hash
            .iter()
            .zip(self.mask)
            .zip(tag)
            .fold(0, |differs, ((hash, mask), tag)| {
                differs | (hash ^ mask ^ tag)
            });
        tag.len() == TAG_BYTES && differs == 0
    }
}
