//! Verifies additional digests of members.

use std::sync::Arc;

use refrain_format::{Limits, MemberEnd, MemberKind, MemberStart};
use refrain_protect::{DigestAlgorithm, DigestHasher};
use refrain_storage::{Source, in_zero_pieces};

use crate::digests::{hashers, stated};
use crate::error::{Error, ErrorKind, Result};
use crate::read::content_visitor::{ContentVisitor, EntriesPayload};
use crate::read::native::index_reading::{FoundArchive, read_index};

/// Verifies additional digests and passes all content to another visitor.
pub(crate) struct DigestCheck<'a> {
    inner: &'a mut dyn ContentVisitor,
    algorithms: Vec<DigestAlgorithm>,
    /// The hashers of the current member.
    hashers: Vec<DigestHasher>,
}

impl<'a> DigestCheck<'a> {
    /// Reads the algorithms from the index, because a MemberEnd frame, which lists its member's,
    /// follows the content. Without an index, as for a pipe, no additional digest is verified.
    ///
    /// # Errors
    /// `Io`. A damaged end or index is reported by the walk, at its offset.
    pub(crate) fn new(
        inner: &'a mut dyn ContentVisitor,
        archive: Option<(&Arc<dyn Source>, &FoundArchive)>,
        limits: &Limits,
    ) -> Result<Self> {
        let algorithms = match archive.map(|archive| stated_algorithms(archive, limits)) {
            Some(Ok(algorithms)) => algorithms,
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

/// The algorithms in the members' ends in the index.
fn stated_algorithms(
    (source, archive): (&Arc<dyn Source>, &FoundArchive),
    limits: &Limits,
) -> Result<Vec<DigestAlgorithm>> {
    // Every node is read once, so none is kept.
    let index = read_index(source, archive, limits, 0)?;
    let mut algorithms = Vec::new();
    index.for_each_member(&mut |_, _, end| {
        for (algorithm, _) in stated(end) {
            if !algorithms.contains(&algorithm) {
                algorithms.push(algorithm);
            }
        }
        Ok(())
    })?;
    Ok(algorithms)
}

impl ContentVisitor for DigestCheck<'_> {
    fn takes_generations(&self) -> bool {
        self.inner.takes_generations()
    }

    fn start(&mut self, start: &MemberStart) -> Result<Option<Arc<dyn Source>>> {
        // The digests of a tar stream are of the stream, not of its content.
        self.hashers = match start.kind {
            MemberKind::File | MemberKind::Stream => hashers(&self.algorithms),
            MemberKind::Tree | MemberKind::Tar | MemberKind::LayeredTree => Vec::new(),
        };
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

    fn given_back(&mut self, length_bytes: u64) -> Result<()> {
        self.hashers.clear();
        self.inner.given_back(length_bytes)
    }

    fn end(
        &mut self,
        start: &MemberStart,
        end: &MemberEnd,
        entries: Vec<EntriesPayload>,
    ) -> Result<()> {
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
                    "the content does not match its {algorithm} digest"
                ))
                .in_file(name));
            }
        }
        self.inner.end(start, end, entries)
    }

    fn broken(&mut self, start: &MemberStart, entries: Vec<EntriesPayload>) -> Result<()> {
        self.inner.broken(start, entries)
    }
}

#[cfg(test)]
mod tests {
    use refrain_format::Digest;

    use super::*;
    use crate::digests::finish;

    /// Counts completed members.
    #[derive(Default)]
    struct EndCounter(usize);

    impl ContentVisitor for EndCounter {
        fn start(&mut self, _start: &MemberStart) -> Result<Option<Arc<dyn Source>>> {
            Ok(None)
        }
        fn content(&mut self, _bytes: &[u8]) -> Result<()> {
            Ok(())
        }
        fn zeros(&mut self, _length_bytes: u64) -> Result<()> {
            Ok(())
        }
        fn end(&mut self, _: &MemberStart, _: &MemberEnd, _: Vec<EntriesPayload>) -> Result<()> {
            self.0 += 1;
            Ok(())
        }
    }

    /// Two members, "abc" and 5000 zeros, whose ends have the digests of `algorithms`, modified by
    /// `modify`.
    fn check(
        algorithms: &[DigestAlgorithm],
        modify: impl Fn(usize, &mut Vec<Digest>),
    ) -> Result<usize> {
        let mut ends = EndCounter::default();
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
                is_sparse: false,
                layers: None,
                extensions: Vec::new(),
            };
            let mut stated = hashers(algorithms);
            stated.iter_mut().for_each(|hasher| hasher.update(&content));
            let mut end = MemberEnd {
                digests: finish(stated),
                ..MemberEnd::of_content(member as u64, content.len() as u64)
            };
            modify(member, &mut end.digests);
            check.start(&start)?;
            match member {
                0 => check.content(&content)?,
                _ => check.zeros(content.len() as u64)?,
            }
            check.end(&start, &end, Vec::new())?;
        }
        Ok(ends.0)
    }

    #[test]
    fn digests_are_compared_member_by_member() {
        let both = [DigestAlgorithm::Sha256, DigestAlgorithm::Md5];
        assert_eq!(check(&both, |_, _| {}).unwrap(), 2);
        assert_eq!(check(&[], |_, _| {}).unwrap(), 2);
        for wrong_member in 0..2 {
            for wrong_digest in 0..2 {
                let modified = check(&both, |member, digests| {
                    if member == wrong_member {
                        digests[wrong_digest].bytes[7] ^= 1;
                    }
                });
                assert_eq!(modified.unwrap_err().kind, ErrorKind::Damaged);
            }
        }
        // A member may have fewer than others.
        assert_eq!(check(&both, |_, digests| drop(digests.pop())).unwrap(), 2);
    }
}
