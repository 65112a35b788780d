//! The key of an archive, and what is derived from it.

use zeroize::Zeroizing;

use super::appendix::AppendixCipher;
use super::derive::{Secret, derive};
use super::record::RecordCipher;

/// The size of a [`FileKey`] in bytes.
pub const FILE_KEY_BYTES: usize = 32;

/// The size of an archive's salt in bytes.
pub const SALT_BYTES: usize = 32;

/// The size of a commitment or an authenticator of the header in bytes.
pub const MAC_BYTES: usize = 32;

/// The key of one archive: random, and never used for another one. Erased when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct FileKey(pub(super) Secret);

impl std::fmt::Debug for FileKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FileKey")
    }
}

impl FileKey {
    /// A key of unpredictable bytes.
    #[must_use]
    pub fn new(bytes: [u8; FILE_KEY_BYTES]) -> FileKey {
        FileKey(Zeroizing::new(bytes))
    }

    /// What the header states to commit to the key: no other key has the same value, so a
    /// ciphertext has one meaning.
    #[must_use]
    pub fn commitment(&self, salt: &[u8; SALT_BYTES]) -> [u8; MAC_BYTES] {
        *derive("refrain envelope 1 commitment", &[&*self.0, salt])
    }

    /// The authenticator of the header: its bytes can be changed only by somebody who has the key.
    #[must_use]
    pub fn authenticate(&self, salt: &[u8; SALT_BYTES], header: &[u8]) -> [u8; MAC_BYTES] {
        let key = derive("refrain envelope 1 header", &[&*self.0, salt]);
        *blake3::keyed_hash(&key, header).as_bytes()
    }

    /// Whether this is the authenticator of the header, compared in constant time.
    #[must_use]
    pub fn is_authentic(
        &self,
        salt: &[u8; SALT_BYTES],
        header: &[u8],
        found: &[u8; MAC_BYTES],
    ) -> bool {
        blake3::Hash::from_bytes(self.authenticate(salt, header)) == *found
    }

    /// The cipher of the archive's records.
    #[must_use]
    pub fn records(&self, salt: &[u8; SALT_BYTES]) -> RecordCipher {
        RecordCipher::new(derive("refrain envelope 1 records", &[&*self.0, salt]))
    }

    /// The cipher of what is appended to the archive.
    #[must_use]
    pub fn appendix(&self, salt: &[u8; SALT_BYTES]) -> AppendixCipher {
        AppendixCipher::new(
            derive("refrain envelope 1 appendix", &[&*self.0, salt]),
            derive("refrain envelope 1 appendix nonce", &[&*self.0, salt]),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_derived_depends_on_key_salt_and_purpose() {
        let (key, other) = (FileKey::new([1; 32]), FileKey::new([2; 32]));
        let (salt, other_salt) = ([3; 32], [4; 32]);
        let values = [
            key.commitment(&salt),
            other.commitment(&salt),
            key.commitment(&other_salt),
            key.authenticate(&salt, b""),
            key.authenticate(&salt, b"x"),
            key.authenticate(&other_salt, b"x"),
        ];
        for (number, value) in values.iter().enumerate() {
            assert!(!values[..number].contains(value), "{number}");
        }
        assert!(key.is_authentic(&salt, b"x", &values[4]));
        assert!(!key.is_authentic(&salt, b"y", &values[4]));
        assert_eq!(format!("{key:?}"), "FileKey");
    }
}
