//! The keys of an archive, derived from a password.

use aes::Aes256;
use aes::cipher::KeyInit;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha512};

pub(super) const BLOCK_BYTES: usize = 16;
/// The length in bytes of the salt before an item of AES-128-CBC.
pub(super) const SALT_BYTES: usize = 8;
/// The lengths in bytes of the nonce before an item of AES-256-GCM and of the tag after it.
pub(super) const NONCE_BYTES: usize = 12;
pub(super) const TAG_BYTES: usize = 16;

/// The number of bytes that the key derivation hashes at a time.
const BATCH_BYTES: usize = 16 << 10;

/// The longest password that lrzip accepts, in bytes.
pub const PASSWORD_BYTES_MAX: usize = 503;

/// The kind of an item. AES-256-GCM binds an item to its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    /// The header of a block.
    BlockHeader = 1,
    /// A block.
    Data = 2,
    /// The MD5 of the content.
    Digest = 3,
}

/// The keys that decrypt and encrypt the items of one archive.
pub enum ArchiveKeys {
    /// AES-128-CBC with ciphertext stealing.
    Cbc {
        /// The hash from which the keys of the items are derived.
        hash: [u8; 64],
        /// The salt of the archive and the password.
        salted_password: Vec<u8>,
    },
    /// AES-256-GCM.
    Gcm {
        /// The key of block headers.
        header: Box<Aes256>,
        /// The key of all other items.
        data: Box<Aes256>,
        /// The version of the archive, to which every item is bound.
        version: [u8; 2],
    },
}

impl std::fmt::Debug for ArchiveKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ArchiveKeys")
    }
}

impl ArchiveKeys {
    /// Derives the keys of AES-128-CBC: SHA-512 over `loops` times 64 bytes of numbered copies of
    /// salt and password.
    #[must_use]
    pub fn cbc(salt: [u8; SALT_BYTES], loops: u64, password: &[u8]) -> ArchiveKeys {
        let salted_password = [&salt[..], password].concat();
        let copies = loops.saturating_mul(64) / (salted_password.len() as u64 + 8);
        let mut hash = Sha512::new();
        // Hashes many copies at a time: a call for each copy of about ten bytes takes longer than
        // hashing it.
        let mut batch = Vec::with_capacity(BATCH_BYTES + 1024);
        for number in 0..copies {
            batch.extend_from_slice(&number.to_le_bytes());
            batch.extend_from_slice(&salted_password);
            if batch.len() >= BATCH_BYTES || number + 1 == copies {
                hash.update(&batch);
                batch.clear();
            }
        }
        ArchiveKeys::Cbc {
            hash: hash.finalize().into(),
            salted_password,
        }
    }

    /// Derives the keys of AES-256-GCM: PBKDF2-HMAC-SHA512, then HKDF-Expand for each key.
    /// `version` is the archive's.
    #[must_use]
    pub fn gcm(
        salt: [u8; 16],
        iterations: u32,
        version: [u8; 2],
        password: &[u8],
    ) -> Option<ArchiveKeys> {
        let master: [u8; 64] = pbkdf2::pbkdf2_hmac_array::<Sha512, 64>(password, &salt, iterations);
        // HKDF-Expand (RFC 5869): the keys are shorter than the hash, so one round suffices.
        let cipher = |label: &[u8]| {
            let mut round = Hmac::<Sha512>::new_from_slice(&master).ok()?;
            round.update(label);
            round.update(&[1]);
            let key = round.finalize().into_bytes();
            Some(Box::new(Aes256::new_from_slice(key.get(..32)?).ok()?))
        };
        Some(ArchiveKeys::Gcm {
            header: cipher(b"lrzip-v3-hdr")?,
            data: cipher(b"lrzip-v3-data")?,
            version,
        })
    }

    /// Returns the associated data of an item of AES-256-GCM.
    pub(super) fn associated_data(&self, item: ItemKind) -> [u8; 8] {
        let [major, minor] = match self {
            ArchiveKeys::Gcm { version, .. } => *version,
            ArchiveKeys::Cbc { .. } => [0; 2],
        };
        [b'L', b'R', b'Z', b'I', major, minor, 3, item as u8]
    }

    /// Returns the length of the encrypted digest in bytes.
    #[must_use]
    pub fn digest_bytes(&self) -> usize {
        match self {
            ArchiveKeys::Cbc { .. } => BLOCK_BYTES,
            ArchiveKeys::Gcm { .. } => NONCE_BYTES + BLOCK_BYTES + TAG_BYTES,
        }
    }
}

/// Derives the key of an item from the hash of the archive, and the item's initial vector from its
/// key.
pub(super) fn chain(first: &[u8], salt: &[u8], salted_password: &[u8]) -> [u8; 64] {
    let mut hash = Sha512::new();
    for part in [first, salt, salted_password] {
        hash.update(part);
    }
    hash.finalize().into()
}
