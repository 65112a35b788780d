//! Further digests of members (MD5, SHA-256), computed on request and stored in addition to the
//! BLAKE3 hash of every member.
//!
//! Which digests a member has is known before its content only from the index, so an archive from a
//! non-seekable stream is checked only by its BLAKE3 hashes.

use refrain_format::member::{DIGEST_MD5, DIGEST_SHA256};
use refrain_format::{Digest, MemberEnd};
use refrain_protect::{DigestAlgorithm, DigestHasher, DigestValue};

/// The format's id of a function; `None` for BLAKE3, which has its own field.
fn id(algorithm: DigestAlgorithm) -> Option<u8> {
    match algorithm {
        DigestAlgorithm::Md5 => Some(DIGEST_MD5),
        DigestAlgorithm::Sha256 => Some(DIGEST_SHA256),
        DigestAlgorithm::Blake3 => None,
    }
}

/// Hashers for the `algorithms` stored as further digests, each once, in order of their ids.
pub(crate) fn hashers(algorithms: &[DigestAlgorithm]) -> Vec<DigestHasher> {
    let mut stored: Vec<DigestAlgorithm> = algorithms.to_vec();
    stored.retain(|&algorithm| id(algorithm).is_some());
    stored.sort_by_key(|&algorithm| id(algorithm));
    stored.dedup();
    stored.into_iter().map(DigestHasher::new).collect()
}

/// The digests of `hashers`, for a member's end.
pub(crate) fn finish(hashers: Vec<DigestHasher>) -> Vec<Digest> {
    let digest = |hasher: DigestHasher| {
        Some(Digest {
            id: id(hasher.algorithm())?,
            bytes: hasher.finish().as_bytes().to_vec(),
        })
    };
    hashers.into_iter().filter_map(digest).collect()
}

/// The digests stated by a member's end, except those with unknown functions.
pub(crate) fn stated(end: &MemberEnd) -> Vec<(DigestAlgorithm, DigestValue)> {
    let known = |digest: &Digest| {
        let algorithm = DigestAlgorithm::ALL
            .into_iter()
            .find(|&algorithm| id(algorithm) == Some(digest.id))?;
        Some((algorithm, DigestValue::new(&digest.bytes)?))
    };
    end.digests.iter().filter_map(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_each_function_once_in_the_order_of_ids() {
        use DigestAlgorithm::{Blake3, Md5, Sha256};
        let stored = finish(hashers(&[Sha256, Blake3, Md5, Sha256]));
        let ids: Vec<u8> = stored.iter().map(|digest| digest.id).collect();
        assert_eq!(ids, [DIGEST_MD5, DIGEST_SHA256]);
    }
}
