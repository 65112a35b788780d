//! The hash of a sparse member: BLAKE3 of everything but zeros.
//!
//! BLAKE3 has no shortcut for zeros: each of its chunks depends on its position. 100 GiB with four
//! bytes of data would take a minute to hash, on either side. So the content is divided into
//! pieces, zero pieces are left out, and the hash covers the numbers and hashes of the others, and
//! the length. It depends on the content alone, not on where a file system has holes, and any
//! thread can hash pieces.

use super::blake3::{ContentHash, HASH_BYTES, SEGMENT_BYTES, SegmentError, content_hash};

/// The length of a piece in bytes. Only the last piece of a member may be shorter.
pub const SPARSE_PIECE_BYTES: usize = 1 << 16;

// Whole segments are whole pieces.
const _: () = assert!(SEGMENT_BYTES.is_multiple_of(SPARSE_PIECE_BYTES));

const PIECE: u64 = SPARSE_PIECE_BYTES as u64;

pub(super) const ZEROS: [u8; 16 << 10] = [0; 16 << 10];

const CONTEXT: &str = "refrain 1.0 sparse content";

/// The pieces of a range of a sparse member, which [`SparseHasher`] joins to the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SparseSegment {
    offset_in_member: u64,
    length_bytes: u64,
    /// The numbers and hashes of its non-zero pieces.
    pieces: Vec<(u64, [u8; HASH_BYTES])>,
}

impl SparseSegment {
    /// The numbers and hashes of its non-zero pieces, by ascending number. A hash is the
    /// [`content_hash`] of the piece, wherever it is.
    #[must_use]
    pub fn pieces(&self) -> &[(u64, [u8; HASH_BYTES])] {
        &self.pieces
    }

    /// Hashes the pieces of `bytes`, which begin at `offset_in_member`. They end with a piece, or
    /// with the member.
    ///
    /// # Errors
    /// [`SegmentError::Unaligned`] if the offset is not a multiple of [`SPARSE_PIECE_BYTES`].
    pub fn new(offset_in_member: u64, bytes: &[u8]) -> Result<SparseSegment, SegmentError> {
        if !offset_in_member.is_multiple_of(PIECE) {
            return Err(SegmentError::Unaligned { offset_in_member });
        }
        let numbered = (offset_in_member / PIECE..).zip(bytes.chunks(SPARSE_PIECE_BYTES));
        let others = numbered.filter(|(_, piece)| !is_zero(piece));
        Ok(SparseSegment {
            offset_in_member,
            length_bytes: bytes.len() as u64,
            pieces: others
                .map(|(number, piece)| (number, content_hash(piece)))
                .collect(),
        })
    }
}

/// Computes the hash of a sparse member, whose content is appended in order.
#[derive(Debug, Clone)]
pub struct SparseHasher {
    /// The numbers and hashes of the complete non-zero pieces.
    records: ContentHash,
    content_bytes: u64,
    /// The incomplete piece, if the last one was appended in parts.
    open: Option<Box<OpenPiece>>,
}

#[derive(Debug, Clone)]
struct OpenPiece {
    hash: ContentHash,
    is_zero: bool,
}

impl Default for SparseHasher {
    fn default() -> Self {
        Self {
            records: ContentHash::with_context(CONTEXT),
            content_bytes: 0,
            open: None,
        }
    }
}

impl SparseHasher {
    /// Returns the number of bytes appended.
    #[must_use]
    pub fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// Appends a segment. An empty one has no effect.
    ///
    /// # Errors
    /// [`SegmentError::OutOfOrder`] if it does not begin at the end of the content so far, or
    /// follows a short piece.
    pub fn push(&mut self, segment: &SparseSegment) -> Result<(), SegmentError> {
        if segment.length_bytes == 0 {
            return Ok(());
        }
        if segment.offset_in_member != self.content_bytes || self.open.is_some() {
            return Err(SegmentError::OutOfOrder {
                found_offset: segment.offset_in_member,
                expected_offset: self.content_bytes,
            });
        }
        for (number, hash) in &segment.pieces {
            self.record(*number, hash);
        }
        self.advance(segment.length_bytes);
        Ok(())
    }

    /// Appends bytes, which are hashed immediately.
    ///
    /// # Errors
    /// [`SegmentError::OutOfOrder`] if a segment with a short piece was appended before.
    pub fn push_bytes(&mut self, mut bytes: &[u8]) -> Result<(), SegmentError> {
        while !bytes.is_empty() {
            let inside = (self.content_bytes % PIECE) as usize;
            if inside > 0 && self.open.is_none() {
                return Err(SegmentError::OutOfOrder {
                    found_offset: self.content_bytes,
                    expected_offset: self.content_bytes.next_multiple_of(PIECE),
                });
            }
            let (part, rest) = bytes.split_at(bytes.len().min(SPARSE_PIECE_BYTES - inside));
            bytes = rest;
            if part.len() == SPARSE_PIECE_BYTES && is_zero(part) {
                self.advance(PIECE);
                continue;
            }
            let open = self.open.get_or_insert_with(|| {
                Box::new(OpenPiece {
                    hash: ContentHash::new(),
                    is_zero: true,
                })
            });
            open.hash.update(part);
            open.is_zero &= is_zero(part);
            self.advance(part.len() as u64);
            if self.content_bytes.is_multiple_of(PIECE) {
                self.end_piece();
            }
        }
        Ok(())
    }

    /// Appends zeros; whole pieces take no time.
    ///
    /// # Errors
    /// As [`SparseHasher::push_bytes`].
    pub fn push_zeros(&mut self, length_bytes: u64) -> Result<(), SegmentError> {
        let mut left = length_bytes;
        while left > 0 {
            let inside = self.content_bytes % PIECE;
            let count = match (inside, left / PIECE) {
                (0, whole) if whole > 0 => {
                    self.advance(whole * PIECE);
                    whole * PIECE
                }
                _ => {
                    let count = left.min(PIECE - inside).min(ZEROS.len() as u64);
                    self.push_bytes(ZEROS.get(..count as usize).unwrap_or_default())?;
                    count
                }
            };
            left -= count;
        }
        Ok(())
    }

    /// Returns the hash of everything appended so far. More may be appended unless the last segment
    /// ended with a short piece.
    #[must_use]
    pub fn value(&self) -> [u8; HASH_BYTES] {
        let mut all = self.clone();
        all.end_piece();
        all.records.update(&self.content_bytes.to_le_bytes());
        all.records.value()
    }

    fn advance(&mut self, length_bytes: u64) {
        self.content_bytes = self.content_bytes.saturating_add(length_bytes);
    }

    fn end_piece(&mut self) {
        if let Some(open) = self.open.take().filter(|open| !open.is_zero) {
            let number = self.content_bytes.saturating_sub(1) / PIECE;
            self.record(number, &open.hash.value());
        }
    }

    fn record(&mut self, number: u64, hash: &[u8; HASH_BYTES]) {
        self.records.update(&number.to_le_bytes());
        self.records.update(hash);
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    // Without a branch for each byte, so that many are compared at once.
    let mut parts = bytes.chunks(1024);
    parts.all(|part| part.iter().fold(0, |any, byte| any | byte) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::property::{patterned_bytes, sparse_hash_matches_the_definition};

    /// Content with data only in these `ranges` of pieces.
    fn with_data(length: usize, ranges: &[std::ops::Range<usize>]) -> Vec<u8> {
        let data = patterned_bytes(length, 5);
        let mut content = vec![0; length];
        for range in ranges {
            let range = range.start.min(length)..range.end.min(length);
            content[range.clone()].copy_from_slice(&data[range]);
        }
        content
    }

    #[test]
    fn borders_of_pieces_do_not_matter() {
        const P: usize = SPARSE_PIECE_BYTES;
        for length in [0, 1, P - 1, P, P + 1, 5 * P, 5 * P + 77] {
            for data in [0..0, 0..1, P - 1..P + 1, 2 * P..3 * P, 4 * P + 5..9 * P] {
                let content = with_data(length, &[data]);
                sparse_hash_matches_the_definition(&content, [P, 1, P - 1, 2 * P].into_iter());
            }
        }
    }

    #[test]
    fn place_and_length_count() {
        let hash = |content: &[u8]| {
            let mut hasher = SparseHasher::default();
            hasher.push_bytes(content).unwrap();
            hasher.value()
        };
        let mut moved = vec![0; 3 * SPARSE_PIECE_BYTES];
        let mut values = vec![hash(&moved), hash(&moved[1..])];
        for piece in 0..3 {
            moved[piece * SPARSE_PIECE_BYTES] = 1;
            values.push(hash(&moved));
            moved[piece * SPARSE_PIECE_BYTES] = 0;
        }
        let count = values.len();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), count);
    }

    #[test]
    fn zeros_take_no_time() {
        let mut hasher = SparseHasher::default();
        hasher.push_zeros(1 << 60).unwrap();
        hasher.push_bytes(b"x").unwrap();
        assert_eq!(hasher.content_bytes(), (1 << 60) + 1);
        let end = SparseSegment::new(1 << 60, b"x").unwrap();
        let mut other = SparseHasher::default();
        other.push_zeros(1 << 59).unwrap();
        other.push_zeros(1 << 59).unwrap();
        other.push(&end).unwrap();
        assert_eq!(other.value(), hasher.value());
    }

    #[test]
    fn unaligned_and_unordered_segments_are_refused() {
        assert!(SparseSegment::new(5, b"x").is_err());
        let (first, second) = (
            SparseSegment::new(0, b"short").unwrap(),
            SparseSegment::new(PIECE, b"second").unwrap(),
        );
        let mut hasher = SparseHasher::default();
        assert!(hasher.push(&second).is_err());
        hasher.push(&first).unwrap();
        assert!(hasher.push(&second).is_err(), "a segment after a short one");
        assert!(hasher.push_bytes(b"x").is_err());
        assert!(hasher.push_zeros(PIECE).is_err());
        let mut hasher = SparseHasher::default();
        hasher.push_bytes(b"part").unwrap();
        assert!(hasher.push(&SparseSegment::new(0, b"x").unwrap()).is_err());
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(48))]
        #[test]
        fn any_parts_match_the_definition(
            length in 0_usize..6 * SPARSE_PIECE_BYTES,
            starts in proptest::collection::vec((0_usize..6 * SPARSE_PIECE_BYTES, 1_usize..90_000), 0..4),
            cuts in proptest::collection::vec(proptest::prop_oneof![1_usize..3000, 1..2 * SPARSE_PIECE_BYTES, proptest::strategy::Just(SPARSE_PIECE_BYTES)], 0..8),
        ) {
            let ranges: Vec<_> = starts.iter().map(|&(start, length)| start..start + length).collect();
            sparse_hash_matches_the_definition(&with_data(length, &ranges), cuts.into_iter());
        }
    }
}
