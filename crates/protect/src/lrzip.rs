//! The two ciphers of lrzip's archives: keys from a password, and items (heads of blocks, blocks,
//! the digest) that are encrypted one by one.
//!
//! Neither is a model. The first one does not notice that bytes were changed, and its key
//! derivation is a single hash over some hundred megabytes. The second one authenticates each item,
//! but not their order.

mod seal;

use aes::Aes128;
use aes::cipher::{BlockDecrypt, KeyInit, generic_array::GenericArray};
use aes_gcm::aead::AeadInPlace;
use aes_gcm::{Aes256Gcm, Nonce};
use hkdf::Hkdf;
use sha2::{Digest, Sha512};

pub use seal::{Draw, SEED_BYTES};

/// Bytes of a block of AES.
const BLOCK_BYTES: usize = 16;
/// Bytes of the salt in front of an item of the first cipher.
const SALT_BYTES: usize = 8;
/// Bytes of the nonce in front of an item of the second cipher, and of the tag behind it.
const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;

/// Bytes that the key derivation hashes at a time.
const BATCH_BYTES: usize = 16 << 10;

/// Longest password that lrzip takes, in bytes.
pub const PASSWORD_BYTES_MAX: usize = 503;

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// The head of a block.
    Head = 1,
    /// A block.
    Data = 2,
    /// The MD5 of the content.
    Digest = 3,
}

/// Opens the items of one archive.
pub enum Keys {
    /// AES-128-CBC with ciphertext stealing.
    Cbc {
        /// The hash that keys are made of.
        hash: [u8; 64],
        /// The archive's salt and the password.
        salted_password: Vec<u8>,
    },
    /// AES-256-GCM.
    Gcm {
        /// For heads.
        head: Box<Aes256Gcm>,
        /// For all else.
        data: Box<Aes256Gcm>,
        /// The archive's version, which every item is bound to.
        version: [u8; 2],
    },
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}

impl Keys {
    /// Keys of the first cipher: SHA-512 over as many numbered copies of salt and password as make
    /// `loops` times 64 bytes.
    #[must_use]
    pub fn cbc(salt: [u8; SALT_BYTES], loops: u64, password: &[u8]) -> Keys {
        let salted_password = [&salt[..], password].concat();
        let copies = loops.saturating_mul(64) / (salted_password.len() as u64 + 8);
        let mut hash = Sha512::new();
        // Many copies at once: a call of the hash for each of some ten bytes takes longer than
        // hashing them.
        let mut batch = Vec::with_capacity(BATCH_BYTES + 1024);
        for number in 0..copies {
            batch.extend_from_slice(&number.to_le_bytes());
            batch.extend_from_slice(&salted_password);
            if batch.len() >= BATCH_BYTES || number + 1 == copies {
                hash.update(&batch);
                batch.clear();
            }
        }
        Keys::Cbc {
            hash: hash.finalize().into(),
            salted_password,
        }
    }

    /// Keys of the second cipher: PBKDF2-HMAC-SHA512, and HKDF-Expand for each kind of item.
    /// `version` is the archive's.
    #[must_use]
    pub fn gcm(salt: [u8; 16], iterations: u32, version: [u8; 2], password: &[u8]) -> Option<Keys> {
        let master: [u8; 64] = pbkdf2::pbkdf2_hmac_array::<Sha512, 64>(password, &salt, iterations);
        let expand = Hkdf::<Sha512>::from_prk(&master).ok()?;
        let key = |label: &[u8]| {
            let mut key = [0; 32];
            expand.expand(label, &mut key).ok()?;
            Some(Box::new(Aes256Gcm::new(&key.into())))
        };
        Some(Keys::Gcm {
            head: key(b"lrzip-v3-hdr")?,
            data: key(b"lrzip-v3-data")?,
            version,
        })
    }

    /// Opens an item as it is stored, in its place. `None` if it is too short, or (the second
    /// cipher) not authentic. Of the first cipher short blocks come back with the random bytes that
    /// fill them up.
    #[must_use]
    pub fn open(&self, item: Item, mut stored: Vec<u8>) -> Option<Vec<u8>> {
        match self {
            Keys::Cbc {
                hash,
                salted_password,
            } => {
                let salt: [u8; SALT_BYTES] = match item {
                    // The digest has no salt of its own.
                    Item::Digest => *salted_password.first_chunk()?,
                    _ => {
                        let salt = *stored.first_chunk()?;
                        stored.drain(..SALT_BYTES);
                        salt
                    }
                };
                open_cbc(hash, &salt, salted_password, &mut stored)?;
                Some(stored)
            }
            Keys::Gcm { head, data, .. } => {
                let nonce: [u8; NONCE_BYTES] = *stored.first_chunk()?;
                stored.drain(..NONCE_BYTES);
                let key = match item {
                    Item::Head => head,
                    Item::Data | Item::Digest => data,
                };
                key.decrypt_in_place(Nonce::from_slice(&nonce), &self.bound(item), &mut stored)
                    .ok()?;
                Some(stored)
            }
        }
    }

    /// What an item of the second cipher is bound to.
    fn bound(&self, item: Item) -> [u8; 8] {
        let [major, minor] = match self {
            Keys::Gcm { version, .. } => *version,
            Keys::Cbc { .. } => [0; 2],
        };
        [b'L', b'R', b'Z', b'I', major, minor, 3, item as u8]
    }

    /// Bytes that the digest takes in the archive.
    #[must_use]
    pub fn digest_bytes(&self) -> usize {
        match self {
            Keys::Cbc { .. } => BLOCK_BYTES,
            Keys::Gcm { .. } => NONCE_BYTES + BLOCK_BYTES + TAG_BYTES,
        }
    }
}

/// One step from the archive's hash to the key of an item, and from there to what its first block
/// is combined with.
fn chain(first: &[u8], salt: &[u8], salted_password: &[u8]) -> [u8; 64] {
    let mut hash = Sha512::new();
    for part in [first, salt, salted_password] {
        hash.update(part);
    }
    hash.finalize().into()
}

/// CBC; a last block that is not whole has stolen the end of the one before, and the two have
/// changed places.
fn open_cbc(hash: &[u8; 64], salt: &[u8], salted_password: &[u8], coded: &mut [u8]) -> Option<()> {
    let key = chain(hash, salt, salted_password);
    let initial = chain(&key, salt, salted_password);
    let cipher = Aes128::new_from_slice(key.get(..BLOCK_BYTES)?).ok()?;
    let (blocks, tail) = coded.as_chunks_mut::<BLOCK_BYTES>();
    if !tail.is_empty() {
        let last = blocks.last_mut()?;
        cipher.decrypt_block(GenericArray::from_mut_slice(last));
        for (byte, stolen) in tail.iter_mut().zip(last.iter_mut()) {
            let coded = *byte;
            *byte ^= *stolen;
            *stolen = coded;
        }
    }
    let mut before = *initial.first_chunk::<BLOCK_BYTES>()?;
    for block in blocks {
        let coded = *block;
        cipher.decrypt_block(GenericArray::from_mut_slice(block));
        block
            .iter_mut()
            .zip(before)
            .for_each(|(byte, before)| *byte ^= before);
        before = coded;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use aes::cipher::BlockEncrypt;
    use aes_gcm::aead::{Aead, Payload};

    /// The cipher the other way, as `docs/lrzip.md` describes it.
    fn sealed_cbc(hash: &[u8; 64], salt: &[u8], salted_password: &[u8], raw: &[u8]) -> Vec<u8> {
        let key = Sha512::digest([&hash[..], salt, salted_password].concat());
        let initial = Sha512::digest([&key[..], salt, salted_password].concat());
        let cipher = Aes128::new_from_slice(&key[..16]).unwrap();
        let mut before: [u8; 16] = initial[..16].try_into().unwrap();
        let mut sealed = Vec::new();
        let mut padded = raw.to_vec();
        padded.resize(raw.len().next_multiple_of(16), 0);
        for block in padded.chunks(16) {
            let mut coded: Vec<u8> = block.iter().zip(before).map(|(a, b)| a ^ b).collect();
            cipher.encrypt_block(GenericArray::from_mut_slice(&mut coded));
            before = coded[..].try_into().unwrap();
            sealed.extend(coded);
        }
        let tail = raw.len() % 16;
        if tail > 0 {
            // The last two change places, and the shorter one is cut.
            let at = sealed.len() - 32;
            let stolen: Vec<u8> = sealed.splice(at..at + 16, []).collect();
            sealed.extend(&stolen[..tail]);
        }
        [salt, &sealed].concat()
    }

    #[test]
    fn stolen_ciphertext_comes_back() {
        let keys = Keys::cbc(*b"12345678", 100, b"secret");
        let Keys::Cbc {
            hash,
            salted_password,
        } = &keys
        else {
            panic!("another cipher");
        };
        for length in 16..80_u8 {
            let raw: Vec<u8> = (0..length).collect();
            let sealed = sealed_cbc(hash, b"saltsalt", salted_password, &raw);
            assert_eq!(sealed.len(), raw.len() + 8);
            assert_eq!(keys.open(Item::Data, sealed), Some(raw));
        }
        assert_eq!(keys.open(Item::Data, b"saltsalt short".to_vec()), None);
    }

    #[test]
    fn sealed_items_open_and_are_as_the_twin_seals_them() {
        let mut draw = Draw::new([7; SEED_BYTES]);
        let cbc = Keys::cbc(*b"12345678", 100, b"secret");
        let gcm = Keys::gcm([7; 16], 10, [0, 7], b"secret").unwrap();
        for length in 0..80_u8 {
            let raw: Vec<u8> = (0..length).collect();
            for (keys, item) in [(&cbc, Item::Head), (&cbc, Item::Data), (&gcm, Item::Data)] {
                let mut sealed = Vec::new();
                keys.seal(item, &raw, &mut draw, &mut sealed).unwrap();
                let opened = keys.open(item, sealed.clone()).unwrap();
                assert_eq!(opened[..raw.len()], raw, "{length}");
                if let (
                    Keys::Cbc {
                        hash,
                        salted_password,
                    },
                    16..,
                ) = (keys, length)
                {
                    let twin = sealed_cbc(hash, &sealed[..8], salted_password, &raw);
                    assert_eq!(sealed, twin, "{length}");
                }
            }
        }
        for keys in [cbc, gcm] {
            let (mut sealed, mut again) = (Vec::new(), Vec::new());
            keys.seal(Item::Digest, &[9; 16], &mut draw, &mut sealed)
                .unwrap();
            assert_eq!(sealed.len(), keys.digest_bytes());
            assert_eq!(keys.open(Item::Digest, sealed.clone()).unwrap(), [9; 16]);
            keys.seal(Item::Data, &[9; 16], &mut draw, &mut sealed)
                .unwrap();
            keys.seal(Item::Data, &[9; 16], &mut draw, &mut again)
                .unwrap();
            assert!(!sealed.ends_with(&again), "two items are sealed alike");
        }
    }

    #[test]
    fn changed_items_of_the_second_cipher_are_refused() {
        let keys = Keys::gcm([7; 16], 10, [0, 7], b"secret").unwrap();
        let Keys::Gcm { data, .. } = &keys else {
            panic!("another cipher");
        };
        let bound = b"LRZI\x00\x07\x03\x02";
        let payload = Payload {
            msg: b"content",
            aad: bound,
        };
        let coded = data.encrypt(Nonce::from_slice(&[1; 12]), payload).unwrap();
        let mut stored = [&[1; 12][..], &coded].concat();
        assert_eq!(
            keys.open(Item::Data, stored.clone()).as_deref(),
            Some(&b"content"[..])
        );
        assert_eq!(keys.open(Item::Digest, stored.clone()), None);
        assert_eq!(keys.open(Item::Head, stored.clone()), None);
        stored[14] ^= 1;
        assert_eq!(keys.open(Item::Data, stored.clone()), None);
        assert_eq!(keys.open(Item::Data, stored[..5].to_vec()), None);
    }
}
