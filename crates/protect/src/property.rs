//! Properties that hold for any input; shared by the tests and the fuzz targets. Each function
//! panics if its property does not hold.
#![allow(clippy::expect_used, clippy::panic)]

use crate::hash::blake3::{ContentHash, ContentHasher, SEGMENT_BYTES, content_hash, segment_hash};
use crate::hash::sparse::{SPARSE_PIECE_BYTES, SparseHasher, SparseSegment};
use crate::hash::xxh3::{Checksum64, checksum64};
use crate::md5::reference::md5_reference;
use crate::md5::{Md5, finish_many, md5, update_many};

/// The checksum of two parts equals the checksum of the whole.
///
/// # Panics
/// If they differ.
pub fn checksum_of_parts(bytes: &[u8], cut: usize) {
    let (left, right) = bytes.split_at(cut.min(bytes.len()));
    let mut parts = Checksum64::new();
    parts.update(left);
    parts.update(right);
    assert_eq!(parts.value(), checksum64(bytes));
}

/// Hashing by segment yields the standard BLAKE3 hash.
///
/// # Panics
/// If they differ.
pub fn segmented_hash_matches_blake3(content: &[u8]) {
    let mut hasher = ContentHasher::new();
    for (index, segment) in content.chunks(SEGMENT_BYTES).enumerate() {
        let offset = (index * SEGMENT_BYTES) as u64;
        let hash = segment_hash(offset, segment).expect("an aligned segment");
        hasher.push(&hash).expect("segments in order");
    }
    assert_eq!(
        hasher.value(),
        content_hash(content),
        "content of {} bytes",
        content.len()
    );
}

/// Hashing by segment yields the standard BLAKE3 hash also if segments arrive in parts. `cuts` are
/// the lengths of the parts. A part that is a whole segment is hashed as one.
///
/// # Panics
/// If they differ.
pub fn parts_hash_like_the_whole(content: &[u8], cuts: impl Iterator<Item = usize>) {
    let mut hasher = ContentHasher::new();
    let mut rest = content;
    for cut in cuts.chain([content.len()]) {
        let (part, later) = rest.split_at(cut.min(rest.len()));
        let offset = hasher.content_bytes();
        if part.len() == SEGMENT_BYTES && offset.is_multiple_of(SEGMENT_BYTES as u64) {
            let hash = segment_hash(offset, part).expect("an aligned segment");
            hasher.push(&hash).expect("segments in order");
        } else {
            hasher.push_bytes(part).expect("no short segment");
        }
        rest = later;
        let so_far = &content[..content.len() - rest.len()];
        assert_eq!(
            hasher.value(),
            content_hash(so_far),
            "{} bytes",
            so_far.len()
        );
    }
}

/// The hash of sparse content is the one defined by the format's document, however it is appended:
/// as segments, bytes or zeros. `cuts` are the lengths of the parts.
///
/// # Panics
/// If they differ.
pub fn sparse_hash_matches_the_definition(content: &[u8], cuts: impl Iterator<Item = usize>) {
    let mut records = ContentHash::with_context("refrain 1.0 sparse content");
    for (number, piece) in (0_u64..).zip(content.chunks(SPARSE_PIECE_BYTES)) {
        if piece.iter().any(|byte| *byte != 0) {
            records.update(&number.to_le_bytes());
            records.update(&content_hash(piece));
        }
    }
    records.update(&(content.len() as u64).to_le_bytes());
    let mut hasher = SparseHasher::default();
    let mut rest = content;
    for cut in cuts.chain([content.len()]) {
        let (part, later) = rest.split_at(cut.min(rest.len()));
        let is_aligned = |at: u64| at.is_multiple_of(SPARSE_PIECE_BYTES as u64);
        let (start, end) = (
            hasher.content_bytes(),
            hasher.content_bytes() + part.len() as u64,
        );
        if part.iter().all(|byte| *byte == 0) {
            hasher.push_zeros(part.len() as u64).expect("in order");
        } else if is_aligned(start) && (is_aligned(end) || later.is_empty()) {
            let segment = SparseSegment::new(start, part).expect("an aligned segment");
            hasher.push(&segment).expect("segments in order");
        } else {
            hasher.push_bytes(part).expect("no short segment");
        }
        rest = later;
    }
    assert_eq!(hasher.content_bytes(), content.len() as u64);
    assert_eq!(
        hasher.value(),
        records.value(),
        "{} bytes of content",
        content.len()
    );
}

/// The MD5 of an input that arrives in parts matches the reference implementation.
///
/// # Panics
/// If they differ.
pub fn md5_in_parts(bytes: &[u8], cuts: &[u16]) {
    let mut hash = Md5::new();
    let mut rest = bytes;
    for &cut in cuts {
        let (part, after) = rest.split_at(usize::from(cut) % (rest.len() + 1));
        hash.update(part);
        rest = after;
    }
    hash.update(rest);
    assert_eq!(
        hash.finish(),
        md5_reference(bytes),
        "{} bytes cut at {cuts:?}",
        bytes.len()
    );
}

/// The MD5 of many inputs in lanes, each in two parts, matches each input's own MD5, and for the
/// first few the reference implementation, which is slow.
///
/// # Panics
/// If they differ.
pub fn md5_in_lanes(inputs: &[&[u8]], cut: usize) {
    let mut hashes = vec![Md5::new(); inputs.len()];
    let first = |input: &'_ &[u8]| cut.min(input.len());
    let cut_inputs: Vec<_> = inputs
        .iter()
        .map(|input| input.split_at(first(input)))
        .collect();
    update_many(hashes.iter_mut().zip(cut_inputs.iter().map(|cut| cut.0)));
    update_many(hashes.iter_mut().zip(cut_inputs.iter().map(|cut| cut.1)));
    let digests = finish_many(hashes);
    assert_eq!(digests.len(), inputs.len());
    for (index, (digest, input)) in digests.iter().zip(inputs).enumerate() {
        assert_eq!(*digest, md5(input), "input {index} of {}", inputs.len());
        if index < 20 {
            assert_eq!(
                *digest,
                md5_reference(input),
                "input {index} of {}",
                inputs.len()
            );
        }
    }
}

/// Returns bytes without long repeats that depend only on the seed (a linear congruential
/// generator).
#[must_use]
pub fn patterned_bytes(length_bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length_bytes);
    while bytes.len() < length_bytes {
        state = state.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        bytes.push((state >> 56) as u8);
    }
    bytes
}
