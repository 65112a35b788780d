//! The items of an archive, encrypted.

use aes::Aes128;
use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockEncrypt, KeyInit};
use aes_gcm::Nonce;
use aes_gcm::aead::{Aead, Payload};
use sha2::{Digest, Sha512};

use super::{BLOCK_BYTES, Item, Keys, NONCE_BYTES, SALT_BYTES, chain};

/// Bytes that are drawn once for an archive.
pub const SEED_BYTES: usize = 32;

/// Random bytes for the items of one archive, drawn from a seed: SHA-512 of the seed and a counter.
///
/// One call of the system's random numbers is enough for a whole archive, and who knows the seed
/// can make the archive again.
pub struct Draw {
    seed: [u8; SEED_BYTES],
    count: u64,
    /// How the nonces of the archive begin.
    nonce_start: [u8; 4],
}

impl std::fmt::Debug for Draw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Draw")
    }
}

impl Draw {
    /// From a seed that nobody can guess and that is used for no other archive.
    #[must_use]
    pub fn new(seed: [u8; SEED_BYTES]) -> Draw {
        let mut draw = Draw {
            seed,
            count: 0,
            nonce_start: [0; 4],
        };
        draw.nonce_start = draw.bytes();
        draw
    }

    /// The next bytes, at most 64.
    #[must_use]
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        const { assert!(N <= 64) };
        let mut hash = Sha512::new();
        hash.update(self.seed);
        hash.update(self.count.to_le_bytes());
        self.count += 1;
        let mut bytes = [0; N];
        bytes
            .iter_mut()
            .zip(hash.finalize())
            .for_each(|(to, from)| *to = from);
        bytes
    }
}

impl Keys {
    /// Appends an item to `out` as it is stored. Of the first cipher, what is shorter than a block
    /// of the cipher is filled up with random bytes. `None` for an item that the second cipher
    /// cannot hold (more than 64 GiB).
    #[must_use]
    pub fn seal(&self, item: Item, plain: &[u8], draw: &mut Draw, out: &mut Vec<u8>) -> Option<()> {
        match self {
            Keys::Cbc {
                hash,
                salted_password,
            } => {
                let salt: [u8; SALT_BYTES] = match item {
                    // The digest has no salt of its own.
                    Item::Digest => *salted_password.first_chunk()?,
                    _ => {
                        let salt = draw.bytes();
                        out.extend_from_slice(&salt);
                        salt
                    }
                };
                let start = out.len();
                out.extend_from_slice(plain);
                if plain.len() < BLOCK_BYTES {
                    let filling: [u8; BLOCK_BYTES] = draw.bytes();
                    out.extend_from_slice(&filling[plain.len()..]);
                }
                let key = chain(hash, &salt, salted_password);
                let initial = chain(&key, &salt, salted_password);
                let cipher = Aes128::new_from_slice(key.get(..BLOCK_BYTES)?).ok()?;
                seal_cbc(&cipher, initial.first_chunk()?, out, start);
            }
            Keys::Gcm { data, head, .. } => {
                let key = match item {
                    Item::Head => head,
                    Item::Data | Item::Digest => data,
                };
                let nonce = draw.nonce();
                let payload = Payload {
                    msg: plain,
                    aad: &self.bound(item),
                };
                let coded = key.encrypt(Nonce::from_slice(&nonce), payload).ok()?;
                out.extend_from_slice(&nonce);
                out.extend_from_slice(&coded);
            }
        }
        Some(())
    }
}

impl Draw {
    /// Never the same twice: a random part of the archive and a counter.
    fn nonce(&mut self) -> [u8; NONCE_BYTES] {
        let mut nonce = [0; NONCE_BYTES];
        let (start, count) = nonce.split_at_mut(self.nonce_start.len());
        start.copy_from_slice(&self.nonce_start);
        count.copy_from_slice(&self.count.to_le_bytes());
        self.count += 1;
        nonce
    }
}

/// CBC of `out` from `start` on, at least a block; a last block that is not whole steals the end of
/// the one before, and the two change places.
fn seal_cbc(cipher: &Aes128, initial: &[u8; BLOCK_BYTES], out: &mut [u8], start: usize) {
    let Some(raw) = out.get_mut(start..) else {
        return;
    };
    let (blocks, tail) = raw.as_chunks_mut::<BLOCK_BYTES>();
    let mut before = *initial;
    for block in blocks.iter_mut() {
        xor(block, &before);
        cipher.encrypt_block(GenericArray::from_mut_slice(block));
        before = *block;
    }
    if let (false, Some(last)) = (tail.is_empty(), blocks.last_mut()) {
        let mut stealing = before;
        xor(&mut stealing, tail);
        cipher.encrypt_block(GenericArray::from_mut_slice(&mut stealing));
        *last = stealing;
        let stolen = before.len().min(tail.len());
        tail.copy_from_slice(&before[..stolen]);
    }
}

fn xor(bytes: &mut [u8], with: &[u8]) {
    bytes
        .iter_mut()
        .zip(with)
        .for_each(|(byte, with)| *byte ^= with);
}
