//! Decryption of items in pieces, for blocks that are larger than memory.

use aes::Aes256;
use aes::cipher::StreamCipher;
use ctr::Ctr32BE;

use super::decrypt::CbcChain;
use super::gcm::{PieceAuthentication, keystream};
use super::keys::{ArchiveKeys, BLOCK_BYTES, ItemKind, NONCE_BYTES, SALT_BYTES, TAG_BYTES};

/// The lengths of pieces are multiples of this number of bytes.
pub const PIECE_UNIT_BYTES: usize = BLOCK_BYTES;

/// The minimum length in bytes of the last of several pieces of an item.
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

impl std::fmt::Debug for PieceDecryption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PieceDecryption")
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
            ArchiveKeys::Gcm { data, .. } => {
                Cipher::Gcm(Box::new(keystream(data, start.first_chunk()?)))
            }
        }))
    }

    /// Starts the authentication of the block that begins with `start`. `None` if that is too short
    /// or the cipher has no authentication.
    #[must_use]
    pub fn authenticate_block_in_pieces(&self, start: &[u8]) -> Option<PieceAuthentication> {
        let ArchiveKeys::Gcm { data, .. } = self else {
            return None;
        };
        let associated = self.associated_data(ItemKind::Data);
        Some(PieceAuthentication::new(
            data,
            start.first_chunk()?,
            &associated,
        ))
    }
}

impl PieceDecryption {
    /// Decrypts the next piece: a multiple of [`PIECE_UNIT_BYTES`], or the rest of the block, which
    /// has at least [`LAST_PIECE_BYTES_MIN`] bytes unless it is the whole block. `None` if it is
    /// too short, or the block is too long for the cipher (64 GiB).
    #[must_use]
    pub fn decrypt(&mut self, piece: &mut [u8]) -> Option<()> {
        match &mut self.0 {
            Cipher::Cbc(chain) => chain.decrypt(piece),
            Cipher::Gcm(counter) => counter.try_apply_keystream(piece).ok(),
        }
    }
}
