//! BLAKE3 of content, computed from front to back or in parallel by segment.
//!
//! BLAKE3 is a binary tree over 1 KiB chunks (O'Connor, Aumasson, Neves, Wilcox-O'Hearn, "BLAKE3:
//! one function, fast everywhere", section 2.1). A segment is an aligned power-of-two run of chunks
//! and therefore a complete subtree: any thread can compute its chaining value independently, and
//! [`ContentHasher`] joins the values in order into the standard hash.

use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

/// The length of a BLAKE3 hash in bytes.
pub const HASH_BYTES: usize = 32;

/// The length of a segment in bytes. Only the last segment of a member may be shorter.
pub const SEGMENT_BYTES: usize = 1 << 20;

// A segment is a complete subtree only if it holds a power-of-two number of chunks.
const _: () = assert!(SEGMENT_BYTES.is_power_of_two());
const _: () = assert!(SEGMENT_BYTES >= blake3::CHUNK_LEN);

/// Why [`segment_hash`] or [`ContentHasher::push`] refuses a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SegmentError {
    /// The offset is not a multiple of [`SEGMENT_BYTES`].
    Unaligned {
        /// The offset.
        offset_in_member: u64,
    },
    /// The input is longer than a segment.
    TooLong {
        /// The length of the input.
        length_bytes: usize,
    },
    /// The segment does not follow the previous one.
    OutOfOrder {
        /// The offset of the segment.
        found_offset: u64,
        /// The end of the content pushed so far.
        expected_offset: u64,
    },
}

impl std::fmt::Display for SegmentError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unaligned { offset_in_member } => write!(
                formatter,
                "segment offset {offset_in_member} is not a multiple of {SEGMENT_BYTES}"
            ),
            Self::TooLong { length_bytes } => write!(
                formatter,
                "segment has {length_bytes} bytes, at most {SEGMENT_BYTES} are allowed"
            ),
            Self::OutOfOrder {
                found_offset,
                expected_offset,
            } => write!(
                formatter,
                "segment begins at {found_offset}, expected {expected_offset}"
            ),
        }
    }
}

impl std::error::Error for SegmentError {}

/// Returns the BLAKE3 hash of `content`.
#[must_use]
pub fn content_hash(content: &[u8]) -> [u8; HASH_BYTES] {
    *blake3::hash(content).as_bytes()
}

/// A BLAKE3 hasher of content that is appended from front to back.
#[derive(Debug, Clone, Default)]
pub struct ContentHash {
    hasher: blake3::Hasher,
}

impl ContentHash {
    /// Creates a hasher of empty content.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a hasher in BLAKE3's mode for deriving keys, so that values of different `context`s
    /// never agree: one thing's hash cannot pass as another's.
    #[must_use]
    pub fn with_context(context: &str) -> Self {
        Self {
            hasher: blake3::Hasher::new_derive_key(context),
        }
    }

    /// Appends `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    /// Returns the number of bytes appended.
    #[must_use]
    pub fn content_bytes(&self) -> u64 {
        self.hasher.count()
    }

    /// Returns the hash of everything appended so far. More bytes may be appended.
    #[must_use]
    pub fn value(&self) -> [u8; HASH_BYTES] {
        *self.hasher.finalize().as_bytes()
    }
}

/// The hash of one segment, which [`ContentHasher`] joins to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHash {
    offset_in_member: u64,
    length_bytes: usize,
    /// The value of the subtree if the member has other segments.
    chaining_value: [u8; HASH_BYTES],
    /// The hash of the member if this is its only segment. BLAKE3 marks the root, so it differs
    /// from the chaining value. Both come from the same state, so this costs one compression, not a
    /// second pass.
    single_segment_hash: [u8; HASH_BYTES],
}

impl SegmentHash {
    /// Returns the hash of the bytes appended to `hasher`: `length_bytes` from `offset_in_member`,
    /// which is its input offset.
    fn from_hasher(
        hasher: &blake3::Hasher,
        offset_in_member: u64,
        length_bytes: usize,
    ) -> SegmentHash {
        let mut hash = SegmentHash {
            offset_in_member,
            length_bytes,
            chaining_value: [0; HASH_BYTES],
            single_segment_hash: [0; HASH_BYTES],
        };
        // An empty subtree has no value.
        if length_bytes > 0 {
            hash.chaining_value = hasher.finalize_non_root();
        }
        // blake3 panics when asked for the root hash of a hasher whose input offset is not 0.
        if length_bytes > 0 && offset_in_member == 0 {
            hash.single_segment_hash = *hasher.finalize().as_bytes();
        }
        hash
    }

    /// Returns the length of the segment in bytes.
    #[must_use]
    pub fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    /// Returns the offset of the segment in its member.
    #[must_use]
    pub fn offset_in_member(&self) -> u64 {
        self.offset_in_member
    }
}

/// Hashes the segment of a member at `offset_in_member`, a multiple of [`SEGMENT_BYTES`].
///
/// # Errors
/// [`SegmentError`] if the offset is not aligned or `bytes` is longer than [`SEGMENT_BYTES`].
pub fn segment_hash(offset_in_member: u64, bytes: &[u8]) -> Result<SegmentHash, SegmentError> {
    if !offset_in_member.is_multiple_of(SEGMENT_BYTES as u64) {
        return Err(SegmentError::Unaligned { offset_in_member });
    }
    if bytes.len() > SEGMENT_BYTES {
        return Err(SegmentError::TooLong {
            length_bytes: bytes.len(),
        });
    }
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(offset_in_member).update(bytes);
    Ok(SegmentHash::from_hasher(
        &hasher,
        offset_in_member,
        bytes.len(),
    ))
}

/// Joins segment hashes, pushed in order, into the BLAKE3 hash of the whole member.
///
/// Retains one chaining value per level of the tree above the segments, at most 44.
#[derive(Debug, Clone, Default)]
pub struct ContentHasher {
    /// The values of complete subtrees, from large (left) to small (right). They are merged lazily,
    /// because the last merge makes the root.
    stack: Vec<[u8; HASH_BYTES]>,
    segment_count: u64,
    content_bytes: u64,
    single_segment_hash: [u8; HASH_BYTES],
    /// The hasher of an incomplete last segment that is appended in parts.
    incomplete: Option<Box<blake3::Hasher>>,
}

impl ContentHasher {
    /// Creates a hasher of empty content.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of bytes pushed.
    #[must_use]
    pub fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// Appends the next segment. An empty segment has no effect.
    ///
    /// # Errors
    /// [`SegmentError::OutOfOrder`] if it does not begin at the end of the content so far, or
    /// follows a short segment.
    pub fn push(&mut self, segment: &SegmentHash) -> Result<(), SegmentError> {
        if segment.length_bytes == 0 {
            return Ok(());
        }
        // After a short segment `content_bytes` is not aligned, so no valid segment can follow it.
        if segment.offset_in_member != self.content_bytes {
            return Err(SegmentError::OutOfOrder {
                found_offset: segment.offset_in_member,
                expected_offset: self.content_bytes,
            });
        }
        self.append(segment);
        Ok(())
    }

    /// Appends bytes, which are hashed immediately. This serves segments that arrive in parts.
    ///
    /// # Errors
    /// [`SegmentError::OutOfOrder`] if a short segment was pushed before.
    pub fn push_bytes(&mut self, mut bytes: &[u8]) -> Result<(), SegmentError> {
        while !bytes.is_empty() {
            let inside = (self.content_bytes % SEGMENT_BYTES as u64) as usize;
            let start = self.content_bytes - inside as u64;
            if inside > 0 && self.incomplete.is_none() {
                return Err(SegmentError::OutOfOrder {
                    found_offset: self.content_bytes,
                    expected_offset: start + SEGMENT_BYTES as u64,
                });
            }
            let (part, rest) = bytes.split_at(bytes.len().min(SEGMENT_BYTES - inside));
            let hasher = self.incomplete.get_or_insert_with(|| {
                let mut hasher = Box::new(blake3::Hasher::new());
                hasher.set_input_offset(start);
                hasher
            });
            hasher.update(part);
            self.content_bytes += part.len() as u64;
            if inside + part.len() == SEGMENT_BYTES {
                self.end_segment();
            }
            bytes = rest;
        }
        Ok(())
    }

    fn end_segment(&mut self) {
        if let Some(hasher) = self.incomplete.take() {
            let length_bytes = (self.content_bytes - 1) % SEGMENT_BYTES as u64 + 1;
            self.content_bytes -= length_bytes;
            let hash = SegmentHash::from_hasher(&hasher, self.content_bytes, length_bytes as usize);
            self.append(&hash);
        }
    }

    fn append(&mut self, segment: &SegmentHash) {
        self.merge_complete_subtrees();
        self.stack.push(segment.chaining_value);
        if self.segment_count == 0 {
            self.single_segment_hash = segment.single_segment_hash;
        }
        self.segment_count += 1;
        self.content_bytes = self
            .content_bytes
            .saturating_add(segment.length_bytes as u64);
    }

    /// Returns the hash of everything pushed so far. More may be pushed if the last segment was
    /// full or was appended as bytes.
    #[must_use]
    pub fn value(&self) -> [u8; HASH_BYTES] {
        if self.incomplete.is_some() {
            let mut complete = self.clone();
            complete.end_segment();
            return complete.value();
        }
        match self.segment_count {
            0 => content_hash(b""),
            1 => self.single_segment_hash,
            _ => self.merge_to_root(),
        }
    }

    /// After n segments the tree has one complete subtree per set bit of n (the paper's "merge by
    /// trailing zeros").
    fn merge_complete_subtrees(&mut self) {
        let target = self.segment_count.count_ones() as usize;
        while self.stack.len() > target {
            let (Some(right), Some(left)) = (self.stack.pop(), self.stack.pop()) else {
                return;
            };
            self.stack
                .push(merge_subtrees_non_root(&left, &right, Mode::Hash));
        }
    }

    fn merge_to_root(&self) -> [u8; HASH_BYTES] {
        let mut values = self.stack.iter().rev();
        let mut right = values.next().copied().unwrap_or_default();
        let mut lefts = values.peekable();
        while let Some(left) = lefts.next() {
            right = match lefts.peek() {
                Some(_) => merge_subtrees_non_root(left, &right, Mode::Hash),
                None => *merge_subtrees_root(left, &right, Mode::Hash).as_bytes(),
            };
        }
        right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::property::{
        parts_hash_like_the_whole, patterned_bytes, segmented_hash_matches_blake3,
    };

    #[test]
    fn matches_blake3_around_segment_and_chunk_boundaries() {
        let base = patterned_bytes(5 * SEGMENT_BYTES + 2000, 1);
        let mut lengths = vec![0, 1, 1023, 1024, 1025, 4096];
        for segments in 1..=5 {
            let edge = segments * SEGMENT_BYTES;
            lengths.extend([edge - 1, edge, edge + 1, edge + 1024, edge + 1500]);
        }
        for length in lengths {
            segmented_hash_matches_blake3(&base[..length]);
        }
    }

    #[test]
    fn matches_blake3_at_every_depth_of_the_stack() {
        let base = patterned_bytes(17 * SEGMENT_BYTES + 77, 2);
        for segments in [6, 7, 8, 9, 12, 15, 16, 17] {
            segmented_hash_matches_blake3(&base[..segments * SEGMENT_BYTES]);
        }
        segmented_hash_matches_blake3(&base);
    }

    #[test]
    fn returns_the_value_after_every_segment() {
        let base = patterned_bytes(4 * SEGMENT_BYTES, 3);
        let mut hasher = ContentHasher::new();
        for (index, segment) in base.chunks(SEGMENT_BYTES).enumerate() {
            hasher
                .push(&segment_hash((index * SEGMENT_BYTES) as u64, segment).unwrap())
                .unwrap();
            assert_eq!(
                hasher.value(),
                content_hash(&base[..(index + 1) * SEGMENT_BYTES])
            );
        }
    }

    #[test]
    fn rejects_unaligned_long_and_unordered_segments() {
        assert_eq!(
            segment_hash(5, b"x"),
            Err(SegmentError::Unaligned {
                offset_in_member: 5
            })
        );
        let long = vec![0; SEGMENT_BYTES + 1];
        assert!(matches!(
            segment_hash(0, &long),
            Err(SegmentError::TooLong { .. })
        ));
        let mut hasher = ContentHasher::new();
        let second = segment_hash(SEGMENT_BYTES as u64, b"second").unwrap();
        assert!(hasher.push(&second).is_err());
        hasher.push(&segment_hash(0, b"short").unwrap()).unwrap();
        assert!(hasher.push(&second).is_err(), "a segment after a short one");
        assert!(hasher.push_bytes(b"x").is_err());
        assert_eq!(hasher.value(), content_hash(b"short"));
    }

    #[test]
    fn whole_segments_may_follow_parts_of_one() {
        let base = patterned_bytes(3 * SEGMENT_BYTES + 5, 6);
        let cuts = [7, SEGMENT_BYTES - 7, SEGMENT_BYTES, SEGMENT_BYTES + 1];
        parts_hash_like_the_whole(&base, cuts.into_iter());
    }

    #[test]
    fn appending_parts_matches_the_whole() {
        let bytes = patterned_bytes(10_000, 4);
        let mut hash = ContentHash::new();
        for part in bytes.chunks(777) {
            hash.update(part);
        }
        assert_eq!(hash.value(), content_hash(&bytes));
        assert_eq!(hash.content_bytes(), 10_000);
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(24))]
        #[test]
        fn any_length_matches_blake3(length in 0_usize..3 * SEGMENT_BYTES, seed in 0_u64..1000) {
            segmented_hash_matches_blake3(&patterned_bytes(length, seed));
        }

        #[test]
        fn any_parts_match_blake3(
            length in 0_usize..4 * SEGMENT_BYTES,
            cuts in proptest::collection::vec(proptest::prop_oneof![1_usize..3000, 1..2 * SEGMENT_BYTES, proptest::strategy::Just(SEGMENT_BYTES)], 0..8),
        ) {
            parts_hash_like_the_whole(&patterned_bytes(length, 9), cuts.into_iter());
        }
    }
}
