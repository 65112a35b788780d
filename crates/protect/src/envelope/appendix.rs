//! Encryption of what is appended to an encrypted archive later, such as signatures.

use std::fmt;
use std::sync::Arc;

use aegis::aegis256::Aegis256;

use super::derive::Secret;
use super::record::NotAuthentic;

/// The size of the nonce of an appended item in bytes.
pub const APPENDIX_NONCE_BYTES: usize = 32;

/// The size of the tag of an appended item in bytes.
pub const APPENDIX_TAG_BYTES: usize = 32;

/// Encrypts and decrypts what is appended to one archive.
///
/// The nonce is a keyed hash of the content (Rogaway, Shrimpton, "Deterministic authenticated
/// encryption", 2006): no two contents share one, without random numbers and without knowing what
/// was appended before. Equal contents are seen to be equal.
#[derive(Clone)]
pub struct AppendixCipher {
    key: Arc<Secret>,
    nonce_key: Arc<Secret>,
}

impl fmt::Debug for AppendixCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AppendixCipher")
    }
}

impl AppendixCipher {
    pub(super) fn new(key: Secret, nonce_key: Secret) -> AppendixCipher {
        AppendixCipher {
            key: Arc::new(key),
            nonce_key: Arc::new(nonce_key),
        }
    }

    /// The nonce, and the ciphertext with the tag behind it.
    #[must_use]
    pub fn seal(&self, content: &[u8]) -> ([u8; APPENDIX_NONCE_BYTES], Vec<u8>) {
        let nonce = *blake3::keyed_hash(&self.nonce_key, content).as_bytes();
        let mut sealed = content.to_vec();
        let tag = self.state(&nonce).encrypt_in_place(&mut sealed, &[]);
        sealed.extend_from_slice(&tag);
        (nonce, sealed)
    }

    /// The content.
    ///
    /// # Errors
    /// [`NotAuthentic`].
    pub fn open(
        &self,
        nonce: &[u8; APPENDIX_NONCE_BYTES],
        sealed: &[u8],
    ) -> Result<Vec<u8>, NotAuthentic> {
        let (content, tag) = sealed.split_last_chunk().ok_or(NotAuthentic)?;
        let mut content = content.to_vec();
        let opened = self.state(nonce).decrypt_in_place(&mut content, tag, &[]);
        opened.map_err(|_| NotAuthentic)?;
        Ok(content)
    }

    fn state(&self, nonce: &[u8; APPENDIX_NONCE_BYTES]) -> Aegis256<APPENDIX_TAG_BYTES> {
        Aegis256::new(&self.key, nonce)
    }
}

#[cfg(test)]
mod tests {
    use super::super::FileKey;
    use super::*;

    #[test]
    fn what_is_appended_opens_with_the_key_of_its_archive_only() {
        let cipher = FileKey::new([1; 32]).appendix(&[2; 32]);
        let (nonce, sealed) = cipher.seal(b"content");
        assert_eq!(sealed.len(), 7 + APPENDIX_TAG_BYTES);
        assert_eq!(cipher.open(&nonce, &sealed), Ok(b"content".to_vec()));
        assert_ne!(cipher.seal(b"Content").0, nonce);
        for other in [
            FileKey::new([3; 32]).appendix(&[2; 32]),
            FileKey::new([1; 32]).appendix(&[3; 32]),
        ] {
            assert_eq!(other.open(&nonce, &sealed), Err(NotAuthentic));
        }
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(cipher.open(&nonce, &changed), Err(NotAuthentic), "{at}");
        }
        assert_eq!(cipher.open(&nonce, &sealed[..20]), Err(NotAuthentic));
    }

    /// The test vector of docs/format-signature.md.
    #[test]
    fn the_vector_of_the_document_holds() {
        let mut bytes = [0; 64];
        (0..64).for_each(|at| bytes[usize::from(at)] = at);
        let (key, salt) = bytes.split_at(32);
        let key = FileKey::new(key.try_into().unwrap());
        let (nonce, sealed) = key.appendix(salt.try_into().unwrap()).seal(b"abc");
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        assert_eq!(
            hex(&nonce),
            "14e37ec281f5a645182e050c9b2728091c8e8e532be85e4b3c3a78096a9bb563"
        );
        assert_eq!(
            hex(&sealed),
            "c6966e2e96ac9c55ca7dad9b9c9bbd39718288c77636b71be08d60ff26f263b5efdfc1"
        );
    }
}
