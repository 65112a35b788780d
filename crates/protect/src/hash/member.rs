//! The hash of a member's content, plain or sparse.

use super::blake3::{ContentHasher, HASH_BYTES, SegmentError, SegmentHash, segment_hash};
use super::sparse::{SparseHasher, SparseSegment, ZEROS};

/// How the content of a member is hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HashKind {
    /// BLAKE3 of all bytes.
    #[default]
    Plain,
    /// The hash by [`SparseHasher`], which leaves zeros out.
    Sparse,
}

/// The hash of one segment, which [`MemberHasher`] joins to the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberSegment {
    /// A segment of a member with a plain hash.
    Plain(SegmentHash),
    /// A segment of a sparse member.
    Sparse(SparseSegment),
}

impl HashKind {
    /// Hashes the segment of a member at `offset_in_member`.
    ///
    /// # Errors
    /// As [`segment_hash`] and [`SparseSegment::new`].
    pub fn segment(
        self,
        offset_in_member: u64,
        bytes: &[u8],
    ) -> Result<MemberSegment, SegmentError> {
        Ok(match self {
            HashKind::Plain => MemberSegment::Plain(segment_hash(offset_in_member, bytes)?),
            HashKind::Sparse => MemberSegment::Sparse(SparseSegment::new(offset_in_member, bytes)?),
        })
    }
}

/// Computes the hash of a member's content, which is appended in order.
#[derive(Debug, Clone)]
pub enum MemberHasher {
    /// BLAKE3 of all bytes.
    Plain(ContentHasher),
    /// BLAKE3 without zeros.
    Sparse(Box<SparseHasher>),
}

impl MemberHasher {
    /// Creates a hasher of empty content.
    #[must_use]
    pub fn new(kind: HashKind) -> MemberHasher {
        match kind {
            HashKind::Plain => MemberHasher::Plain(ContentHasher::new()),
            HashKind::Sparse => MemberHasher::Sparse(Box::default()),
        }
    }

    /// Returns the number of bytes appended.
    #[must_use]
    pub fn content_bytes(&self) -> u64 {
        match self {
            MemberHasher::Plain(hasher) => hasher.content_bytes(),
            MemberHasher::Sparse(hasher) => hasher.content_bytes(),
        }
    }

    /// Appends the next segment.
    ///
    /// # Errors
    /// [`SegmentError::OutOfOrder`] if it does not follow the content so far, or is of the other
    /// kind.
    pub fn push(&mut self, segment: &MemberSegment) -> Result<(), SegmentError> {
        match (self, segment) {
            (MemberHasher::Plain(hasher), MemberSegment::Plain(segment)) => hasher.push(segment),
            (MemberHasher::Sparse(hasher), MemberSegment::Sparse(segment)) => hasher.push(segment),
            (hasher, _) => Err(SegmentError::OutOfOrder {
                found_offset: 0,
                expected_offset: hasher.content_bytes(),
            }),
        }
    }

    /// Appends bytes, which are hashed immediately.
    ///
    /// # Errors
    /// [`SegmentError::OutOfOrder`] if a short segment was appended before.
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Result<(), SegmentError> {
        match self {
            MemberHasher::Plain(hasher) => hasher.push_bytes(bytes),
            MemberHasher::Sparse(hasher) => hasher.push_bytes(bytes),
        }
    }

    /// Appends zeros, which take no time in a sparse member.
    ///
    /// # Errors
    /// As [`MemberHasher::push_bytes`].
    pub fn push_zeros(&mut self, length_bytes: u64) -> Result<(), SegmentError> {
        let hasher = match self {
            MemberHasher::Plain(hasher) => hasher,
            MemberHasher::Sparse(hasher) => return hasher.push_zeros(length_bytes),
        };
        let mut left = length_bytes;
        while left > 0 {
            let count = left.min(ZEROS.len() as u64);
            hasher.push_bytes(ZEROS.get(..count as usize).unwrap_or_default())?;
            left -= count;
        }
        Ok(())
    }

    /// Returns the hash of everything appended so far.
    #[must_use]
    pub fn value(&self) -> [u8; HASH_BYTES] {
        match self {
            MemberHasher::Plain(hasher) => hasher.value(),
            MemberHasher::Sparse(hasher) => hasher.value(),
        }
    }
}
