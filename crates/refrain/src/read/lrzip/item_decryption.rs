//! Decryption of the items of an archive: block headers, blocks, and the digest.

use std::sync::Arc;

use refrain_format::lrzip::Header;
use refrain_protect::lrzip::{ArchiveKeys, ItemParts, PieceAuthentication, PieceDecryption};

pub(super) use refrain_protect::lrzip::ItemKind;

use crate::error::{Error, Result};
use crate::options::PasswordSource;
use crate::store::lrzip::keys::make_keys;

/// Decrypts the items of one archive.
#[derive(Clone)]
pub(super) struct Items {
    /// `None` if they are not encrypted.
    keys: Option<Arc<ArchiveKeys>>,
}

impl Items {
    /// Derives the keys for the archive with this header from the password, if it is encrypted.
    pub(super) fn new(header: &Header, password: Option<&PasswordSource>) -> Result<Items> {
        let Some(cipher) = &header.cipher else {
            return Ok(Items { keys: None });
        };
        let keys = make_keys(cipher, header.version, password)?;
        Ok(Items {
            keys: Some(Arc::new(keys)),
        })
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.keys.is_some()
    }

    /// Decrypts an item, or returns it unchanged if the archive is not encrypted.
    pub(super) fn decrypt(&self, item: ItemKind, stored: Vec<u8>) -> Result<Vec<u8>> {
        let Some(keys) = &self.keys else {
            return Ok(stored);
        };
        keys.decrypt(item, stored).ok_or_else(|| match item {
            ItemKind::BlockHeader => wrong_password(),
            _ => not_authentic(),
        })
    }

    pub(super) fn block_parts(&self) -> Option<ItemParts> {
        self.keys.as_ref().map(|keys| keys.block_parts())
    }

    /// Starts the decryption of the block that begins with `start`.
    pub(super) fn decrypt_in_pieces(&self, start: &[u8]) -> Option<PieceDecryption> {
        self.keys.as_ref()?.decrypt_block_in_pieces(start)
    }

    /// Starts the authentication of the block that begins with `start`, if its cipher has one.
    pub(super) fn authenticate_in_pieces(&self, start: &[u8]) -> Option<PieceAuthentication> {
        self.keys.as_ref()?.authenticate_block_in_pieces(start)
    }

    /// The number of bytes of the digest in the archive.
    pub(super) fn digest_bytes(&self) -> usize {
        const MD5_BYTES: usize = 16;
        self.keys
            .as_ref()
            .map_or(MD5_BYTES, |keys| keys.digest_bytes())
    }
}

/// The error for an item with a wrong tag.
pub(super) fn not_authentic() -> Error {
    Error::damaged("an encrypted block is not authentic: it was modified")
}

/// The most likely cause if the first header cannot be decrypted.
pub(super) fn wrong_password() -> Error {
    Error::locked("the password is wrong (or the archive is damaged)")
}
