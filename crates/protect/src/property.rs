//! Statements about this crate that hold for any input; shared by the tests here and the fuzz
//! targets. Each function panics (fails) when its statement does not hold.
#![allow(clippy::expect_used, clippy::panic)]

use crate::md5::plain::md5_plain;
use crate::md5::{Md5, finish_many, md5, update_many};
use crate::{Checksum64, ContentHasher, SEGMENT_BYTES, checksum64, content_hash, segment_hash};

/// A checksum over two parts equals the checksum of the whole.
///
/// # Panics
/// When they differ.
pub fn checksum_of_parts(bytes: &[u8], cut: usize) {
    let (left, right) = bytes.split_at(cut.min(bytes.len()));
    let mut parts = Checksum64::new();
    parts.update(left);
    parts.update(right);
    assert_eq!(parts.value(), checksum64(bytes));
}

/// Hashing by segment gives the standard BLAKE3 hash.
///
/// # Panics
/// When it does not.
pub fn segmented_hash_is_blake3(content: &[u8]) {
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

/// Hashing by segment gives the standard BLAKE3 hash also where segments come in pieces: `cuts`
/// says how long each piece is, and what starts at a segment and holds a whole one is hashed as
/// such.
///
/// # Panics
/// When it does not.
pub fn pieces_are_hashed_as_the_whole(content: &[u8], cuts: impl Iterator<Item = usize>) {
    let mut hasher = ContentHasher::new();
    let mut rest = content;
    for cut in cuts.chain([content.len()]) {
        let (piece, later) = rest.split_at(cut.min(rest.len()));
        let offset = hasher.content_bytes();
        if piece.len() == SEGMENT_BYTES && offset.is_multiple_of(SEGMENT_BYTES as u64) {
            let hash = segment_hash(offset, piece).expect("an aligned segment");
            hasher.push(&hash).expect("segments in order");
        } else {
            hasher.push_bytes(piece).expect("no short segment");
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

/// MD5 of an input that comes in pieces is that of the RFC's plain form.
///
/// # Panics
/// When it is not.
pub fn md5_in_pieces(bytes: &[u8], cuts: &[u16]) {
    let mut hash = Md5::new();
    let mut rest = bytes;
    for &cut in cuts {
        let (piece, after) = rest.split_at(usize::from(cut) % (rest.len() + 1));
        hash.update(piece);
        rest = after;
    }
    hash.update(rest);
    assert_eq!(
        hash.finish(),
        md5_plain(bytes),
        "{} bytes cut at {cuts:?}",
        bytes.len()
    );
}

/// MD5 of many inputs, each in two pieces, side by side, is that of each alone; and that of the
/// RFC's plain form for the first few (it is slow).
///
/// # Panics
/// When it is not.
pub fn md5_side_by_side(inputs: &[&[u8]], cut: usize) {
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
                md5_plain(input),
                "input {index} of {}",
                inputs.len()
            );
        }
    }
}

/// Bytes without long repeats, the same for the same seed (a plain multiplicative generator).
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
