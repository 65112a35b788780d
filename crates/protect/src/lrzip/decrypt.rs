//! Decryption of items.

use aes::Aes128;
use aes::cipher::{BlockCipherDecrypt, KeyInit, StreamCipher};

use super::gcm::{PieceAuthentication, keystream};
use super::keys::{ArchiveKeys, BLOCK_BYTES, ItemKind, NONCE_BYTES, SALT_BYTES, TAG_BYTES, chain};

impl ArchiveKeys {
    /// Decrypts an item in place. Returns `None` if it is too short or, with AES-256-GCM, not
    /// authentic. With AES-128-CBC, a short block is returned with its random padding.
    #[must_use]
    pub fn decrypt(&self, item: ItemKind, mut stored: Vec<u8>) -> Option<Vec<u8>> {
        match self {
            ArchiveKeys::Cbc {
                hash,
                salted_password,
            } => {
                let salt: [u8; SALT_BYTES] = match item {
                    // The digest has no salt of its own.
                    ItemKind::Digest => *salted_password.first_chunk()?,
                    _ => {
                        let salt = *stored.first_chunk()?;
                        stored.drain(..SALT_BYTES);
                        salt
                    }
                };
                let mut chain = CbcChain::new(hash, &salt, salted_password)?;
                chain.decrypt(&mut stored)?;
                Some(stored)
            }
            ArchiveKeys::Gcm { header, data, .. } => {
                let cipher = match item {
                    ItemKind::BlockHeader => header,
                    ItemKind::Data | ItemKind::Digest => data,
                };
                let (nonce, rest) = stored.split_first_chunk_mut::<NONCE_BYTES>()?;
                let (encrypted, tag) = rest.split_last_chunk_mut::<TAG_BYTES>()?;
                let associated = self.associated_data(item);
                let mut authentication = PieceAuthentication::new(cipher, nonce, &associated);
                authentication.update(encrypted);
                if !authentication.has_tag(tag) {
                    return None;
                }
                keystream(cipher, nonce)
                    .try_apply_keystream(encrypted)
                    .ok()?;
                stored.truncate(stored.len() - TAG_BYTES);
                stored.drain(..NONCE_BYTES);
                Some(stored)
            }
        }
    }
}

/// The state of AES-128-CBC with ciphertext stealing inside an item.
pub(super) struct CbcChain {
    cipher: Aes128,
    /// The previous encrypted block; initially the initial vector.
    previous: [u8; BLOCK_BYTES],
}

impl CbcChain {
    pub(super) fn new(hash: &[u8; 64], salt: &[u8], salted_password: &[u8]) -> Option<CbcChain> {
        let key = chain(hash, salt, salted_password);
        let initial = chain(&key, salt, salted_password);
        Some(CbcChain {
            cipher: Aes128::new_from_slice(key.get(..BLOCK_BYTES)?).ok()?,
            previous: *initial.first_chunk()?,
        })
    }

    /// Decrypts the next bytes: whole blocks, or the rest of the item, at least one block. An
    /// incomplete last block was filled with the end of the previous one, and both were swapped.
    pub(super) fn decrypt(&mut self, encrypted: &mut [u8]) -> Option<()> {
        let (blocks, tail) = encrypted.as_chunks_mut::<BLOCK_BYTES>();
        if !tail.is_empty() {
            let last = blocks.last_mut()?;
            self.cipher.decrypt_block(last.into());
            for (byte, stolen) in tail.iter_mut().zip(last.iter_mut()) {
                let encrypted = *byte;
                *byte ^= *stolen;
                *stolen = encrypted;
            }
        }
        for block in blocks {
            let encrypted = *block;
            self.cipher.decrypt_block(block.into());
            block
                .iter_mut()
                .zip(self.previous)
                .for_each(|(byte, previous)| *byte ^= previous);
            self.previous = encrypted;
        }
        Some(())
    }
}
