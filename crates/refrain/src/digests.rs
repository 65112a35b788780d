//! Further digests of members (MD5, SHA-256), made on request and kept beside the BLAKE3 hash that every member has.
//!
//! What a member's end states is known in advance only from the index, so an archive that comes through a pipe is checked by
//! its BLAKE3 hashes alone.

use std::sync::Arc;

use refrain_format::member::{DIGEST_MD5, DIGEST_SHA256};
use refrain_format::{Digest, MemberEnd, MemberStart};
use refrain_protect::{DigestAlgorithm, DigestHasher, DigestValue};
use refrain_storage::{Source, in_zero_pieces};

use crate::archive::Archive;
use crate::error::{Error, ErrorKind, Result};
use crate::options::ReadOptions;
use crate::reading::visitor::Visitor;

/// The format's number of a function; `None` for BLAKE3, which has a place of its own.
fn id(algorithm: DigestAlgorithm) -> Option<u8> {
    match algorithm {
        DigestAlgorithm::Md5 => Some(DIGEST_MD5),
        DigestAlgorithm::Sha256 => Some(DIGEST_SHA256),
        DigestAlgorithm::Blake3 => None,
    }
}

/// Hashers for those of `algorithms` that are stored as further digests: each once, in the format's order.
pub(crate) fn hashers(algorithms: &[DigestAlgorithm]) -> Vec<DigestHasher> {
    let mut stored: Vec<DigestAlgorithm> = algorithms.to_vec();
    stored.retain(|&algorithm| id(algorithm).is_some());
    stored.sort_by_key(|&algorithm| id(algorithm));
    stored.dedup();
    stored.into_iter().map(DigestHasher::new).collect()
}

/// What [`hashers`] made, for a member's end.
pub(crate) fn finish(hashers: Vec<DigestHasher>) -> Vec<Digest> {
    let digest = |hasher: DigestHasher| {
        Some(Digest {
            id: id(hasher.algorithm())?,
            bytes: hasher.finish().as_bytes().to_vec(),
        })
    };
    hashers.into_iter().filter_map(digest).collect()
}

/// The digests of a member whose functions are known here.
pub(crate) fn stated(end: &MemberEnd) -> Vec<(DigestAlgorithm, DigestValue)> {
    let known = |digest: &Digest| {
        let algorithm = DigestAlgorithm::ALL
            .into_iter()
            .find(|&algorithm| id(algorithm) == Some(digest.id))?;
        Some((algorithm, DigestValue::new(&digest.bytes)?))
    };
    end.digests.iter().filter_map(known).collect()
}

/// Compares further digests on the way to another visitor.
pub(crate) struct DigestCheck<'a> {
    inner: &'a mut dyn Visitor,
    /// All functions that any member has a digest of, by the index.
    algorithms: Vec<DigestAlgorithm>,
    /// Of the member that is given away.
    hashers: Vec<DigestHasher>,
}

impl<'a> DigestCheck<'a> {
    /// Looks up which functions to expect.
    ///
    /// # Errors
    /// `Io`. What is wrong with the archive itself is for the walk to tell, which finds it in its place.
    pub(crate) fn new(
        inner: &'a mut dyn Visitor,
        source: Option<&Arc<dyn Source>>,
        options: &ReadOptions,
    ) -> Result<Self> {
        let algorithms = match source.map(|source| Archive::open(source.clone(), options)) {
            Some(Ok(archive)) => {
                let digests = archive.members().iter().flat_map(|member| &member.digests);
                digests.map(|(algorithm, _)| *algorithm).collect()
            }
            Some(Err(error)) if error.kind == ErrorKind::Io => return Err(error),
            _ => Vec::new(),
        };
        let hashers = hashers(&algorithms);
        Ok(DigestCheck {
            inner,
            algorithms: hashers.iter().map(DigestHasher::algorithm).collect(),
            hashers,
        })
    }
}

impl Visitor for DigestCheck<'_> {
    fn start(&mut self, start: &MemberStart) -> Result<()> {
        self.hashers = hashers(&self.algorithms);
        self.inner.start(start)
    }

    fn content(&mut self, bytes: &[u8]) -> Result<()> {
        self.hashers
            .iter_mut()
            .for_each(|hasher| hasher.update(bytes));
        self.inner.content(bytes)
    }

    fn zeros(&mut self, length_bytes: u64) -> Result<()> {
        for hasher in &mut self.hashers {
            in_zero_pieces(length_bytes, |zeros| {
                hasher.update(zeros);
                Ok::<_, Error>(())
            })?;
        }
        self.inner.zeros(length_bytes)
    }

    fn end(&mut self, start: &MemberStart, end: &MemberEnd) -> Result<()> {
        let made = std::mem::take(&mut self.hashers).into_iter();
        let made: Vec<_> = made
            .map(|hasher| (hasher.algorithm(), hasher.finish()))
            .collect();
        for (algorithm, value) in stated(end) {
            let differs = made
                .iter()
                .any(|&(other, made)| other == algorithm && made != value);
            if differs {
                let name = String::from_utf8_lossy(&start.name).into_owned();
                let algorithm = algorithm.name();
                return Err(Error::damaged(format!(
                    "the content has not the {algorithm} digest that the archive states"
                ))
                .in_file(name));
            }
        }
        self.inner.end(start, end)
    }
}

#[cfg(test)]
mod tests {
    use refrain_format::MemberKind;

    use super::*;

    /// Counts members that came to their end.
    #[derive(Default)]
    struct Ends(usize);

    impl Visitor for Ends {
        fn start(&mut self, _start: &MemberStart) -> Result<()> {
            Ok(())
        }
        fn content(&mut self, _bytes: &[u8]) -> Result<()> {
            Ok(())
        }
        fn zeros(&mut self, _length_bytes: u64) -> Result<()> {
            Ok(())
        }
        fn end(&mut self, _start: &MemberStart, _end: &MemberEnd) -> Result<()> {
            self.0 += 1;
            Ok(())
        }
    }

    /// Two members, "abc" and 5000 zeros, whose ends state the digests of `algorithms`, changed by `bend`.
    fn walk(
        algorithms: &[DigestAlgorithm],
        bend: impl Fn(usize, &mut Vec<Digest>),
    ) -> Result<usize> {
        let mut ends = Ends::default();
        let mut check = DigestCheck {
            inner: &mut ends,
            algorithms: algorithms.to_vec(),
            hashers: Vec::new(),
        };
        for (member, content) in [b"abc".to_vec(), vec![0; 5000]].into_iter().enumerate() {
            let start = MemberStart {
                member_id: member as u64,
                content_start: 0,
                kind: MemberKind::File,
                name: b"x".to_vec(),
                mode: None,
                modified: None,
                content_bytes_hint: None,
            };
            let mut stated = hashers(algorithms);
            stated.iter_mut().for_each(|hasher| hasher.update(&content));
            let mut end = MemberEnd {
                member_id: member as u64,
                content_bytes: content.len() as u64,
                entry_count: 0,
                blake3: [0; 32],
                digests: finish(stated),
            };
            bend(member, &mut end.digests);
            check.start(&start)?;
            match member {
                0 => check.content(&content)?,
                _ => check.zeros(content.len() as u64)?,
            }
            check.end(&start, &end)?;
        }
        Ok(ends.0)
    }

    #[test]
    fn digests_are_compared_member_by_member() {
        let both = [DigestAlgorithm::Sha256, DigestAlgorithm::Md5];
        assert_eq!(walk(&both, |_, _| {}).unwrap(), 2);
        assert_eq!(walk(&[], |_, _| {}).unwrap(), 2);
        for wrong_member in 0..2 {
            for wrong_digest in 0..2 {
                let bent = walk(&both, |member, digests| {
                    if member == wrong_member {
                        digests[wrong_digest].bytes[7] ^= 1;
                    }
                });
                assert_eq!(bent.unwrap_err().kind, ErrorKind::Damaged);
            }
        }
        // A member may have fewer than others.
        assert_eq!(walk(&both, |_, digests| drop(digests.pop())).unwrap(), 2);
    }

    #[test]
    fn each_function_is_stored_once_in_the_order_of_ids() {
        use DigestAlgorithm::{Blake3, Md5, Sha256};
        let stored = finish(hashers(&[Sha256, Blake3, Md5, Sha256]));
        let ids: Vec<u8> = stored.iter().map(|digest| digest.id).collect();
        assert_eq!(ids, [DIGEST_MD5, DIGEST_SHA256]);
    }
}
