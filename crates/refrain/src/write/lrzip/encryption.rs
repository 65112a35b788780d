//! Encrypts the items of an archive, in order.

use refrain_format::lrzip::{Cipher, EncryptionOverhead};
use refrain_protect::lrzip::{ArchiveKeys, ItemKind, SeededRandom};

use crate::error::{Error, Result};

pub(crate) struct ItemEncryption {
    overhead: EncryptionOverhead,
    secret: Option<(ArchiveKeys, SeededRandom)>,
}

/// The width of the numbers in encrypted headers.
const ENCRYPTED_WIDTH_BYTES: u8 = 8;

impl ItemEncryption {
    pub(crate) fn none() -> ItemEncryption {
        ItemEncryption {
            overhead: EncryptionOverhead::for_cipher(None),
            secret: None,
        }
    }

    pub(crate) fn new(cipher: &Cipher, keys: ArchiveKeys, random: SeededRandom) -> ItemEncryption {
        ItemEncryption {
            overhead: EncryptionOverhead::for_cipher(Some(cipher)),
            secret: Some((keys, random)),
        }
    }

    /// The width of numbers in headers of a chunk whose own width is `width_bytes`.
    pub(crate) fn number_width_bytes(&self, width_bytes: u8) -> u8 {
        match self.secret {
            None => width_bytes,
            Some(_) => ENCRYPTED_WIDTH_BYTES,
        }
    }

    /// The bytes that an item takes in the archive.
    pub(crate) fn stored_bytes(&self, length_bytes: u64) -> u64 {
        self.overhead.stored_bytes(length_bytes)
    }

    /// Appends an item to `out`, encrypted if the archive is.
    ///
    /// # Errors
    /// `Limit` for an item that exceeds what the cipher can hold.
    pub(crate) fn encrypt(
        &mut self,
        item: ItemKind,
        plain: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let Some((keys, random)) = &mut self.secret else {
            out.extend_from_slice(plain);
            return Ok(());
        };
        let too_long = || Error::limit("a block is longer than its cipher allows");
        keys.encrypt(item, plain, random, out).ok_or_else(too_long)
    }
}
