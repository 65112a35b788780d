//! Encryption of items.

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit, StreamCipher};

use super::gcm::{PieceAuthentication, keystream};
use super::keys::{ArchiveKeys, BLOCK_BYTES, ItemKind, SALT_BYTES, chain};
use super::random::SeededRandom;

impl ArchiveKeys {
    /// Encrypts an item and appends it to `out`. With AES-128-CBC, an item shorter than a block of
    /// the cipher is padded with random bytes. Returns `None` for an item above the limit of
    /// AES-256-GCM (64 GiB).
    #[must_use]
    pub fn encrypt(
        &self,
        item: ItemKind,
        plain: &[u8],
        random: &mut SeededRandom,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        match self {
            ArchiveKeys::Cbc {
                hash,
                salted_password,
            } => {
                let salt: [u8; SALT_BYTES] = match item {
                    // The digest has no salt of its own.
                    ItemKind::Digest => *salted_password.first_chunk()?,
                    _ => {
                        let salt = random.bytes();
                        out.extend_from_slice(&salt);
                        salt
                    }
                };
                let start = out.len();
                out.extend_from_slice(plain);
                if plain.len() < BLOCK_BYTES {
                    let padding: [u8; BLOCK_BYTES] = random.bytes();
                    out.extend_from_slice(&padding[plain.len()..]);
                }
                let key = chain(hash, &salt, salted_password);
                let initial = chain(&key, &salt, salted_password);
                let cipher = Aes128::new_from_slice(key.get(..BLOCK_BYTES)?).ok()?;
                encrypt_cbc(&cipher, initial.first_chunk()?, out, start);
            }
            ArchiveKeys::Gcm { data, header, .. } => {
                let cipher = match item {
                    ItemKind::BlockHeader => header,
                    ItemKind::Data | ItemKind::Digest => data,
                };
                let nonce = random.nonce();
                out.extend_from_slice(&nonce);
                let start = out.len();
                out.extend_from_slice(plain);
                let encrypted = out.get_mut(start..)?;
                keystream(cipher, &nonce)
                    .try_apply_keystream(encrypted)
                    .ok()?;
                let associated = self.associated_data(item);
                let mut authentication = PieceAuthentication::new(cipher, &nonce, &associated);
                authentication.update(encrypted);
                out.extend_from_slice(&authentication.tag());
            }
        }
        Some(())
    }
}

/// Encrypts `out` from `start` with AES-128-CBC. This is at least one block. An incomplete last
/// block is filled with the end of the previous one, and both are swapped (ciphertext stealing).
fn encrypt_cbc(cipher: &Aes128, initial: &[u8; BLOCK_BYTES], out: &mut [u8], start: usize) {
    let Some(raw) = out.get_mut(start..) else {
        return;
    };
    let (blocks, tail) = raw.as_chunks_mut::<BLOCK_BYTES>();
    let mut previous = *initial;
    for block in blocks.iter_mut() {
        xor(block, &previous);
        cipher.encrypt_block(block.into());
        previous = *block;
    }
    if let (false, Some(last)) = (tail.is_empty(), blocks.last_mut()) {
        let mut filled = previous;
        xor(&mut filled, tail);
        cipher.encrypt_block((&mut filled).into());
        *last = filled;
        let stolen_bytes = previous.len().min(tail.len());
        tail.copy_from_slice(&previous[..stolen_bytes]);
    }
}

fn xor(bytes: &mut [u8], with: &[u8]) {
    bytes
        .iter_mut()
        .zip(with)
        .for_each(|(byte, with)| *byte ^= with);
}
