//! The digests that users compare: the algorithms, one hasher for all of them, and their values.
//!
//! MD5 is implemented in [`crate::md5`]; SHA-256 (FIPS 180-4) and BLAKE3 come from libraries.

use std::fmt;

use sha2::Digest as _;

use crate::hash::blake3::{ContentHash, HASH_BYTES};
use crate::md5::{self, MD5_BYTES, Md5};

const SHA256_BYTES: usize = 32;

const DIGEST_BYTES_MAX: usize = 32;
const _: () = assert!(MD5_BYTES <= DIGEST_BYTES_MAX && HASH_BYTES <= DIGEST_BYTES_MAX);

/// A digest algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DigestAlgorithm {
    /// MD5 (RFC 1321). It detects accidents, not forgery.
    Md5,
    /// SHA-256 (FIPS 180-4).
    Sha256,
    /// BLAKE3.
    Blake3,
}

impl DigestAlgorithm {
    /// All algorithms.
    pub const ALL: [Self; 3] = [Self::Md5, Self::Sha256, Self::Blake3];

    /// Returns the name in lower case, as in options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha256 => "sha256",
            Self::Blake3 => "blake3",
        }
    }

    /// Returns the length of a digest in bytes.
    #[must_use]
    pub fn digest_bytes(self) -> usize {
        match self {
            Self::Md5 => MD5_BYTES,
            Self::Sha256 => SHA256_BYTES,
            Self::Blake3 => HASH_BYTES,
        }
    }
}

/// The value of a digest. It displays as lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DigestValue {
    bytes: [u8; DIGEST_BYTES_MAX],
    length_bytes: usize,
}

impl DigestValue {
    /// Creates a value from the bytes of a digest. Returns `None` if there are more than any
    /// algorithm yields.
    #[must_use]
    pub fn new(digest: &[u8]) -> Option<Self> {
        let mut bytes = [0; DIGEST_BYTES_MAX];
        bytes.get_mut(..digest.len())?.copy_from_slice(digest);
        Some(Self {
            bytes,
            length_bytes: digest.len(),
        })
    }

    /// Returns the bytes of the digest.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length_bytes]
    }

    fn from_array<const N: usize>(digest: [u8; N]) -> Self {
        const { assert!(N <= DIGEST_BYTES_MAX) };
        let mut bytes = [0; DIGEST_BYTES_MAX];
        bytes[..N].copy_from_slice(&digest);
        Self {
            bytes,
            length_bytes: N,
        }
    }
}

impl fmt::Display for DigestValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |value: u8| char::from(DIGITS[usize::from(value & 15)]);
        let digits: String = self
            .as_bytes()
            .iter()
            .flat_map(|&byte| [digit(byte >> 4), digit(byte)])
            .collect();
        formatter.write_str(&digits)
    }
}

impl fmt::Debug for DigestValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DigestValue({self})")
    }
}

/// A hasher of one input, which is appended from front to back.
#[derive(Debug, Clone)]
pub struct DigestHasher(State);

#[derive(Debug, Clone)]
enum State {
    Md5(Md5),
    Sha256(sha2::Sha256),
    /// Boxed because it is large.
    Blake3(Box<ContentHash>),
}

impl DigestHasher {
    /// Creates a hasher of an empty input.
    #[must_use]
    pub fn new(algorithm: DigestAlgorithm) -> Self {
        Self(match algorithm {
            DigestAlgorithm::Md5 => State::Md5(Md5::new()),
            DigestAlgorithm::Sha256 => State::Sha256(sha2::Sha256::new()),
            DigestAlgorithm::Blake3 => State::Blake3(Box::default()),
        })
    }

    /// Returns the algorithm.
    #[must_use]
    pub fn algorithm(&self) -> DigestAlgorithm {
        match self.0 {
            State::Md5(_) => DigestAlgorithm::Md5,
            State::Sha256(_) => DigestAlgorithm::Sha256,
            State::Blake3(_) => DigestAlgorithm::Blake3,
        }
    }

    /// Appends `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Md5(hash) => hash.update(bytes),
            State::Sha256(hash) => hash.update(bytes),
            State::Blake3(hash) => hash.update(bytes),
        }
    }

    /// Returns the digest of everything appended.
    #[must_use]
    pub fn finish(self) -> DigestValue {
        match self.0 {
            State::Md5(hash) => DigestValue::from_array(hash.finish()),
            State::Sha256(hash) => DigestValue::from_array::<SHA256_BYTES>(hash.finalize().into()),
            State::Blake3(hash) => DigestValue::from_array(hash.value()),
        }
    }
}

/// Appends bytes to each of many hashers. MD5 is computed in parallel lanes.
pub fn update_many<'hash, 'bytes>(
    inputs: impl IntoIterator<Item = (&'hash mut DigestHasher, &'bytes [u8])>,
) {
    let mut md5_hashers = Vec::new();
    for (hasher, bytes) in inputs {
        match hasher {
            DigestHasher(State::Md5(hash)) => md5_hashers.push((hash, bytes)),
            other => other.update(bytes),
        }
    }
    md5::update_many(md5_hashers);
}

/// Returns the digest of each of many hashers. MD5 is computed in parallel lanes.
#[must_use]
pub fn finish_many(hashers: Vec<DigestHasher>) -> Vec<DigestValue> {
    let mut md5_hashers = Vec::new();
    let others: Vec<Option<DigestValue>> = hashers
        .into_iter()
        .map(|hasher| match hasher.0 {
            State::Md5(hash) => {
                md5_hashers.push(hash);
                None
            }
            other => Some(DigestHasher(other).finish()),
        })
        .collect();
    let mut md5s = md5::finish_many(md5_hashers)
        .into_iter()
        .map(DigestValue::from_array);
    let values = others
        .into_iter()
        .map(|other| other.or_else(|| md5s.next()));
    values.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digests of "abc": RFC 1321 (A.5), FIPS 180-2 (B.1), and the program of the BLAKE3
    /// project.
    const ABC: [(DigestAlgorithm, &str); 3] = [
        (DigestAlgorithm::Md5, "900150983cd24fb0d6963f7d28e17f72"),
        (
            DigestAlgorithm::Sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ),
        (
            DigestAlgorithm::Blake3,
            "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85",
        ),
    ];

    #[test]
    fn matches_published_digests_one_by_one_and_in_groups() {
        let mut hashers = Vec::new();
        for (algorithm, digest) in ABC {
            let mut hasher = DigestHasher::new(algorithm);
            assert_eq!(hasher.algorithm(), algorithm);
            hasher.update(b"abc");
            assert_eq!(hasher.finish().to_string(), digest);
            assert_eq!(algorithm.digest_bytes() * 2, digest.len());
            hashers.extend([DigestHasher::new(algorithm), DigestHasher::new(algorithm)]);
        }
        update_many(hashers.iter_mut().map(|hasher| (hasher, &b"a"[..])));
        update_many(hashers.iter_mut().map(|hasher| (hasher, &b"bc"[..])));
        let digests = finish_many(hashers);
        let expected = ABC.iter().flat_map(|(_, digest)| [digest, digest]);
        assert!(
            digests
                .iter()
                .map(ToString::to_string)
                .eq(expected.map(ToString::to_string))
        );
    }

    #[test]
    fn values_of_different_lengths_differ() {
        let short = DigestValue::new(&[0; 16]);
        assert_eq!(short.map(|value| value.as_bytes().len()), Some(16));
        assert_ne!(short, DigestValue::new(&[0; 32]));
        assert_eq!(DigestValue::new(&[0; 33]), None);
    }
}
