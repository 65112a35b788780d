//! Encryption of what is written, item by item, in the order of the archive.

use refrain_format::lrzip::{Cipher, EncryptionOverhead};
use refrain_protect::lrzip::{ArchiveKeys, ItemKind, SeededRandom};

use crate::error::{Error, Result};

/// Encrypts what is written, if the archive is encrypted.
pub(crate) struct ItemEncryption {
    overhead: EncryptionOverhead,
    secret: Option<(ArchiveKeys, SeededRandom)>,
}

/// Width of the numbers in encrypted heads.
const SEALED_WIDTH_BYTES: u8 = 8;

impl ItemEncryption {
    /// Leaves everything as it is.
    pub(crate) fn open() -> ItemEncryption {
        ItemEncryption {
            overhead: EncryptionOverhead::of(None),
            secret: None,
        }
    }

    /// Encrypts with the keys of a cipher.
    pub(crate) fn new(cipher: &Cipher, keys: ArchiveKeys, draw: SeededRandom) -> ItemEncryption {
        ItemEncryption {
            overhead: EncryptionOverhead::of(Some(cipher)),
            secret: Some((keys, draw)),
        }
    }

    /// Width of the numbers in heads, where the chunk's is `width_bytes`.
    pub(crate) fn head_width_bytes(&self, width_bytes: u8) -> u8 {
        match self.secret {
            None => width_bytes,
            Some(_) => SEALED_WIDTH_BYTES,
        }
    }

    /// Bytes in the archive of an item.
    pub(crate) fn stored_bytes(&self, length_bytes: u64) -> u64 {
        self.overhead.stored_bytes(length_bytes)
    }

    /// Appends an item to `out`.
    ///
    /// # Errors
    /// `Limit` for an item that the cipher cannot hold.
    pub(crate) fn seal(&mut self, item: ItemKind, plain: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let Some((keys, draw)) = &mut self.secret else {
            out.extend_from_slice(plain);
            return Ok(());
        };
        let too_long = || Error::limit("a block is longer than its cipher allows");
        keys.encrypt(item, plain, draw, out).ok_or_else(too_long)
    }
}
