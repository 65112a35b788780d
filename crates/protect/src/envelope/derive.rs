//! Keys that follow from others.

use zeroize::Zeroizing;

/// A key of 32 bytes that is erased when it is dropped.
pub(super) type Secret = Zeroizing<[u8; 32]>;

/// BLAKE3's key derivation from several parts. Each context has parts of fixed sizes, so that their
/// concatenation has one meaning.
pub(super) fn derive(context: &str, parts: &[&[u8]]) -> Secret {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    for part in parts {
        hasher.update(part);
    }
    let mut key = Zeroizing::new([0; 32]);
    hasher.finalize_xof().fill(&mut *key);
    key
}
