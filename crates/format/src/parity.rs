//! Parity: eight bytes in the head of a frame that let a reader repair short damage in its payload.
//!
//! Parity byte `i` is the exclusive or of the payload's bytes at `i`, `i + 8`, `i + 16` … So if at
//! most eight consecutive bytes are damaged, it shows how they changed, but not where. There are as
//! many candidate places as bytes, and the payload's checksum tells which is right: a wrong one
//! passes with a probability of 2^-64. (This is the parity of disk arrays, which know the place and
//! have no checksum.)

use crate::bytes::put_varints;
use crate::constants::{FRAME_HEADER_BYTES, FrameKind};
use crate::error::Result;
use crate::frame::{
    FrameHeader, checksum_of_pieces, complete_frame, head_and_data, payload_checksum, piece_sums,
};
use crate::head::{SplitPayload, head_of};
use refrain_protect::{CHECKSUM_CHUNK_BYTES, checksum64};

/// The largest number of consecutive damaged bytes that can be repaired.
pub const PARITY_BYTES: usize = 8;

const EXTENSION_ID: u64 = 2;

/// The bytes before the parity: id and length of the extension.
const PREFIX: [u8; 2] = [EXTENSION_ID as u8, PARITY_BYTES as u8];

pub(crate) const EXTENSION_BYTES: usize = PREFIX.len() + PARITY_BYTES;

/// The most bytes to hash when repairing one frame: a second of work.
const HASHED_BYTES_MAX: u64 = 1 << 33;

/// Whether frames of this kind may have parity: small frames that much content depends on, and
/// whose fields are not repeated elsewhere in the archive.
#[must_use]
pub(crate) fn is_for(kind: FrameKind) -> bool {
    matches!(
        kind,
        FrameKind::Extents | FrameKind::Entries | FrameKind::Whole
    )
}

/// The exclusive or of the bytes at every eighth position.
fn sums(payload: &[u8]) -> [u8; PARITY_BYTES] {
    let (words, rest) = payload.as_chunks::<PARITY_BYTES>();
    let sum = words
        .iter()
        .fold(0, |sum, word| sum ^ u64::from_le_bytes(*word));
    let mut sums = sum.to_le_bytes();
    sums.iter_mut()
        .zip(rest)
        .for_each(|(sum, byte)| *sum ^= byte);
    sums
}

/// Returns the payload with parity as the only extension of its head.
///
/// # Errors
/// The payload has no head.
pub(crate) fn payload_with_parity(payload: &[u8]) -> Result<Vec<u8>> {
    let split = SplitPayload::new(payload)?;
    let mut fields = split.fields("head").rest().to_vec();
    put_varints(&mut fields, &[EXTENSION_ID, PARITY_BYTES as u64]);
    fields.extend([0; PARITY_BYTES]);
    let mut with_parity = head_of(&fields);
    let start = with_parity.len() - PARITY_BYTES;
    with_parity.extend_from_slice(split.data);
    let sums = sums(&with_parity);
    for (position, byte) in with_parity
        .iter_mut()
        .enumerate()
        .skip(start)
        .take(PARITY_BYTES)
    {
        *byte = byte_of(&sums, position);
    }
    Ok(with_parity)
}

pub(crate) fn payload_without_parity(payload: &[u8]) -> Option<Vec<u8>> {
    let split = SplitPayload::new(payload).ok()?;
    let fields = split.fields("head").rest();
    let (fields, extension) = fields.split_last_chunk::<EXTENSION_BYTES>()?;
    let has_parity = extension.starts_with(&PREFIX) && sums(payload) == [0; PARITY_BYTES];
    has_parity.then(|| [&head_of(fields)[..], split.data].concat())
}

/// Returns the header of a frame with a damaged header, if the payload has correct parity. Archive
/// id and sequence number remain unknown and are 0.
#[must_use]
pub fn header_by_parity(kind: FrameKind, payload: &[u8]) -> Option<FrameHeader> {
    let is_right = is_for(kind) && payload_without_parity(payload).is_some();
    is_right.then(|| FrameHeader {
        archive_id: 0,
        kind,
        generation: 0,
        skippable: false,
        keep: false,
        sequence: 0,
        payload_bytes: payload.len() as u64,
        payload_checksum: payload_checksum(payload),
    })
}

/// Returns the frame with parity. It lacks only [`finish_header`](crate::frame::finish_header).
///
/// # Errors
/// It is not a frame.
pub fn frame_with_parity(kind: FrameKind, frame: &[u8]) -> Result<Vec<u8>> {
    let payload = frame.get(FRAME_HEADER_BYTES..).unwrap_or_default();
    let payload = payload_with_parity(payload)?;
    Ok(complete_frame(kind, 0, &payload, 0, 0))
}

fn byte_of(sums: &[u8; PARITY_BYTES], position: usize) -> u8 {
    let [a, b, c, d, e, f, g, h] = *sums;
    match position % PARITY_BYTES {
        0 => a,
        1 => b,
        2 => c,
        3 => d,
        4 => e,
        5 => f,
        6 => g,
        _ => h,
    }
}

/// Returns the original payload of a frame with parity, if at most [`PARITY_BYTES`] consecutive
/// bytes are damaged. The checksum in the frame's header proves that it is right.
#[must_use]
pub fn mended_payload(header: &FrameHeader, payload: &[u8]) -> Option<Vec<u8>> {
    if !is_for(header.kind) || payload.len() as u64 != header.payload_bytes {
        return None;
    }
    let errors = sums(payload);
    if errors == [0; PARITY_BYTES] {
        return None;
    }
    let mut candidate = Candidate::new(payload);
    let each_bytes = payload.len().min(2 * CHECKSUM_CHUNK_BYTES) as u64;
    let starts_max = usize::try_from(HASHED_BYTES_MAX / each_bytes.max(1)).unwrap_or(usize::MAX);
    // Damage begins with a byte that is wrong.
    (0..payload.len())
        .filter(|&start| byte_of(&errors, start) != 0)
        .take(starts_max)
        .find(|&start| {
            candidate.exchange(start, &errors);
            let is_right = candidate.checksum(start) == header.payload_checksum;
            if !is_right {
                candidate.exchange(start, &errors);
            }
            is_right
        })?;
    Some(candidate.payload)
}

struct Candidate {
    payload: Vec<u8>,
    /// The length of the damaged payload's head, and the checksums of the pieces of its data.
    head_bytes: usize,
    sums: Vec<u64>,
}

impl Candidate {
    fn new(payload: &[u8]) -> Self {
        let (head, data) = head_and_data(payload);
        Self {
            payload: payload.to_vec(),
            head_bytes: head.len(),
            sums: piece_sums(data),
        }
    }

    /// Changes eight bytes at `start`; a second call changes them back.
    fn exchange(&mut self, start: usize, errors: &[u8; PARITY_BYTES]) {
        let bytes = self.payload.iter_mut().enumerate();
        for (position, byte) in bytes.skip(start).take(PARITY_BYTES) {
            *byte ^= byte_of(errors, position);
        }
    }

    /// The checksum of the payload, whose eight bytes at `start` were changed. Only changed pieces
    /// of the data are hashed.
    fn checksum(&self, start: usize) -> u64 {
        let (head, data) = head_and_data(&self.payload);
        if head.len() != self.head_bytes || start < head.len() {
            return checksum_of_pieces(head, &piece_sums(data));
        }
        let changed_from = start - head.len();
        let first = changed_from / CHECKSUM_CHUNK_BYTES;
        let last = (changed_from + PARITY_BYTES - 1) / CHECKSUM_CHUNK_BYTES;
        let mut sums = self.sums.clone();
        let pieces = data.chunks(CHECKSUM_CHUNK_BYTES).zip(&mut sums);
        for (piece, sum) in pieces.skip(first).take(last + 1 - first) {
            *sum = checksum64(piece);
        }
        checksum_of_pieces(head, &sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::UntrustedFrameHeader;
    use crate::limits::Limits;

    fn payload(data_bytes: usize) -> Vec<u8> {
        let data: Vec<u8> = (0..data_bytes)
            .map(|at| (at * at / 3 + at / 251) as u8)
            .collect();
        let plain = [&head_of(b"fields")[..], &data].concat();
        let payload = payload_with_parity(&plain).unwrap();
        assert_eq!(payload.len(), plain.len() + EXTENSION_BYTES);
        assert_eq!(sums(&payload), [0; PARITY_BYTES]);
        assert_eq!(payload_without_parity(&payload), Some(plain.clone()));
        assert_eq!(payload_without_parity(&plain), None);
        payload
    }

    fn header_of(kind: FrameKind, payload: &[u8]) -> FrameHeader {
        let frame = complete_frame(kind, 0, payload, 7, 1);
        let header = UntrustedFrameHeader::parse(&frame).unwrap();
        header.check(&Limits::default(), None).unwrap()
    }

    /// Damage of `length` bytes at every `step`th place.
    fn check(payload: &[u8], length: usize, step: usize) {
        let header = header_of(FrameKind::Extents, payload);
        for start in (0..payload.len()).step_by(step) {
            let mut damaged = payload.to_vec();
            let end = (start + length).min(payload.len());
            damaged[start..end]
                .iter_mut()
                .zip(1..)
                .for_each(|(byte, change)| *byte ^= 0x5a + change);
            let mended = mended_payload(&header, &damaged);
            assert!(mended.as_deref() == Some(payload), "{start}..{end}");
        }
    }

    #[test]
    fn short_damage_is_mended_wherever_it_is() {
        for length in 1..=PARITY_BYTES {
            check(&payload(0), length, 1);
            check(&payload(300), length, 1);
        }
        check(&payload(150_000), 1, 29_989);
        check(&payload(70_000), 5, 33_331);
    }

    #[test]
    fn longer_damage_and_frames_without_parity_are_not_mended() {
        let right = payload(200);
        let mut damaged = right.clone();
        damaged[40] ^= 1;
        damaged[49] ^= 1;
        let header = header_of(FrameKind::Whole, &right);
        assert_eq!(mended_payload(&header, &damaged), None);
        damaged[49] ^= 1;
        assert_eq!(mended_payload(&header, &damaged), Some(right.clone()));
        assert_eq!(mended_payload(&header, &damaged[1..]), None);
        assert_eq!(mended_payload(&header, &right), None);
        let found = header_by_parity(FrameKind::Whole, &right).unwrap();
        found.check_payload(&right).unwrap();
        assert_eq!(found.payload_checksum, header.payload_checksum);
        assert_eq!(header_by_parity(FrameKind::Whole, &damaged), None);
        let other = header_of(FrameKind::Block, &right);
        assert_eq!(mended_payload(&other, &damaged), None);
        let plain = payload_without_parity(&right).unwrap();
        let header = header_of(FrameKind::Whole, &plain);
        damaged = plain;
        damaged[20] ^= 4;
        assert_eq!(mended_payload(&header, &damaged), None);
    }
}
