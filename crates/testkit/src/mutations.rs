//! Damaged archives made from valid ones: truncated, changed, reordered, and forged with valid
//! checksums.

use crate::rng::Rng;
use refrain_format::{
    FRAME_HEADER_BYTES, FrameKind, Limits, MAGIC, SplitPayload, TAIL_BYTES, Tail,
    UntrustedFrameHeader, complete_frame, finish_header,
};
use refrain_format::{checksum64, payload_checksum};
use std::ops::Range;

/// What a reader must do with a damaged archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    /// Reject it.
    Rejected,
    /// Reject it as unsupported, not as damaged.
    Unsupported,
    /// Reject it, or return the same members: some fields are only for information.
    RejectedOrHarmless,
}

/// A damaged archive.
#[derive(Debug, Clone)]
pub struct Mutation {
    /// The change.
    pub description: String,
    /// The whole file.
    pub bytes: Vec<u8>,
    /// What a reader must do with it.
    pub expectation: Expectation,
}

impl Mutation {
    fn new(expectation: Expectation, description: String, bytes: Vec<u8>) -> Self {
        Self {
            description,
            bytes,
            expectation,
        }
    }
}

/// Returns the ranges of the frames of a valid archive.
///
/// # Panics
/// If the archive is not valid.
#[must_use]
pub fn frames_of(archive: &[u8]) -> Vec<Range<usize>> {
    let mut frames = Vec::new();
    let mut at = MAGIC.len();
    while at < archive.len() - TAIL_BYTES {
        let header = UntrustedFrameHeader::parse(&archive[at..])
            .and_then(|header| header.check(&Limits::default(), None))
            .expect("a valid archive");
        let end = at + header.frame_bytes() as usize;
        frames.push(at..end);
        at = end;
    }
    frames
}

/// Returns every proper prefix of the archive.
pub fn every_truncation(archive: &[u8]) -> impl Iterator<Item = Mutation> {
    (0..archive.len()).map(|length| truncation(archive, length))
}

/// Returns the archive with each single bit flipped.
pub fn every_bit_flip(archive: &[u8]) -> impl Iterator<Item = Mutation> {
    (0..archive.len() * 8).map(|bit| bit_flip(archive, bit))
}

/// Returns a sample of every kind of damage, from truncation to forgery with valid checksums; the
/// same for the same seed. At most about 2,000 for any archive.
///
/// # Panics
/// If the archive is not valid.
pub fn mutations(archive: &[u8], seed: u64) -> impl Iterator<Item = Mutation> {
    let frames = frames_of(archive);
    let mut rng = Rng::new(seed);
    let edges: Vec<usize> = frames
        .iter()
        .take(100)
        .flat_map(|frame| [frame.start, frame.start + 1, frame.end - 1])
        .collect();
    let lengths: Vec<usize> = (0..100)
        .map(|_| rng.below(archive.len() as u64) as usize)
        .collect();
    let bits: Vec<usize> = (0..400)
        .map(|_| rng.below(archive.len() as u64 * 8) as usize)
        .collect();
    let frame_count = frames.len() as u64;
    let chosen: Vec<usize> = (0..60).map(|_| rng.below(frame_count) as usize).collect();
    let parts: Vec<&[u8]> = frames.iter().map(|frame| &archive[frame.clone()]).collect();
    let parts_again = parts.clone();
    edges
        .into_iter()
        .chain(lengths)
        .map(|length| truncation(archive, length))
        .chain(bits.into_iter().map(|bit| bit_flip(archive, bit)))
        .chain(chosen.into_iter().flat_map(move |at| reordered(&parts, at)))
        .chain((0..600).map(move |_| forged(&parts_again, &mut rng)))
        .chain(later_versions(archive))
}

fn truncation(archive: &[u8], length: usize) -> Mutation {
    Mutation::new(
        Expectation::Rejected,
        format!("cut to {length} of {} bytes", archive.len()),
        archive[..length].to_vec(),
    )
}

fn bit_flip(archive: &[u8], bit: usize) -> Mutation {
    let mut bytes = archive.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    Mutation::new(
        Expectation::Rejected,
        format!("bit {} of byte {} flipped", bit % 8, bit / 8),
        bytes,
    )
}

/// Frame `at` dropped, repeated, and swapped with the next one; each unchanged and with corrected
/// sequence numbers.
fn reordered(parts: &[&[u8]], at: usize) -> Vec<Mutation> {
    let mut dropped = parts.to_vec();
    dropped.remove(at);
    let mut repeated = parts.to_vec();
    repeated.insert(at, parts[at]);
    let mut swapped = parts.to_vec();
    let next = (at + 1) % parts.len();
    swapped.swap(at, next);
    // Sequence numbers reveal each of these; after renumbering, the locations in the index do.
    [
        ("dropped", dropped),
        ("repeated", repeated),
        ("swapped with the next", swapped),
    ]
    .into_iter()
    .flat_map(|(what, frames)| {
        [
            Mutation::new(
                Expectation::Rejected,
                format!("frame {at} {what}"),
                joined(&frames),
            ),
            Mutation::new(
                // Swapping two equal frames changes nothing.
                Expectation::RejectedOrHarmless,
                format!("frame {at} {what}, renumbered"),
                joined(&renumbered(&frames)),
            ),
        ]
    })
    .collect()
}

fn joined<T: AsRef<[u8]>>(frames: &[T]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for frame in frames {
        bytes.extend_from_slice(frame.as_ref());
    }
    let back_bytes = frames.last().map_or(0, |frame| frame.as_ref().len() as u64);
    bytes.extend(Tail { back_bytes }.to_bytes());
    bytes
}

fn archive_id(frame: &[u8]) -> u32 {
    u32::from_le_bytes(frame[4..8].try_into().expect("four bytes"))
}

fn renumbered(frames: &[&[u8]]) -> Vec<Vec<u8>> {
    frames
        .iter()
        .enumerate()
        .map(|(sequence, frame)| {
            let mut frame = frame.to_vec();
            let id = archive_id(&frame);
            finish_header(&mut frame, id, sequence as u64);
            frame
        })
        .collect()
}

/// Values at the edges of checks.
const EDGE_VALUES: [u64; 14] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0xffff,
    1 << 20,
    1 << 30,
    (1 << 30) + 1,
    1 << 40,
    1 << 61,
    1 << 63,
    u64::MAX,
];

/// One frame with an overwritten field and valid checksums.
fn forged(parts: &[&[u8]], rng: &mut Rng) -> Mutation {
    let which = rng.below(parts.len() as u64) as usize;
    let mut frames: Vec<Vec<u8>> = parts.iter().map(|part| part.to_vec()).collect();
    let frame = &mut frames[which];
    let description = match rng.below(8) {
        0 => forge_header(frame, rng),
        1 => forge_packed_section(frame, rng),
        _ => forge_payload(frame, rng),
    };
    fix_checksums(frame, which as u64);
    Mutation::new(
        Expectation::RejectedOrHarmless,
        format!("frame {which}: {description}"),
        joined(&frames),
    )
}

/// Overwrites the archive's id, the kind, the flags, the generation or the payload's size.
fn forge_header(frame: &mut [u8], rng: &mut Rng) -> String {
    let at = rng.length(4, 19);
    let value = match at {
        8..10 => rng.below(24) as u8,
        _ => rng.any() as u8,
    };
    frame[at] = value;
    format!("header byte {at} forged to {value}")
}

fn forge_payload(frame: &mut [u8], rng: &mut Rng) -> String {
    let payload = &mut frame[FRAME_HEADER_BYTES..];
    if payload.is_empty() {
        return "unchanged".to_owned();
    }
    let width = (*rng.choose(&[1_usize, 1, 2, 4, 8])).min(payload.len());
    let mut at = rng.length(0, payload.len() - width);
    if rng.once_in(2) {
        at -= at % width;
    }
    let value = if rng.once_in(4) { rng.any() } else { *rng.choose(&EDGE_VALUES) };
    payload[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
    format!("{width} payload bytes at {at} forged to {value:#x}")
}

/// Overwrites a byte of the data after a payload's header and corrects the checksum in the header.
/// Sample archives only.
fn forge_packed_section(frame: &mut [u8], rng: &mut Rng) -> String {
    let frame_kind = FrameKind::from_id(frame[8]);
    let payload = &mut frame[FRAME_HEADER_BYTES..];
    let head_bytes = SplitPayload::new(payload).map_or(0, |split| split.head.len());
    let (head, data) = payload.split_at_mut(head_bytes);
    if !frame_kind.has_data() || head.is_empty() || data.is_empty() {
        return forge_payload(frame, rng);
    }
    let at = rng.length(0, data.len() - 1);
    data[at] = *rng.choose(&EDGE_VALUES) as u8;
    let value = data[at];
    // Uncoded blocks and extents have no separate checksum.
    if frame_kind == FrameKind::Entries {
        let checksum = checksum64(data);
        let numbers = head.iter().enumerate().filter(|(_, byte)| **byte < 0x80);
        // The size of the head and four numbers are before the checksum.
        let checksum_at = numbers.map(|(at, _)| at + 1).nth(4).expect("five numbers");
        head[checksum_at..checksum_at + 8].copy_from_slice(&checksum.to_le_bytes());
    }
    format!("data byte {at} forged to {value}")
}

/// Corrects the checksums of a forged frame; the payload's size remains as forged.
fn fix_checksums(frame: &mut [u8], sequence: u64) {
    let checksum = payload_checksum(&frame[FRAME_HEADER_BYTES..]);
    frame[20..28].copy_from_slice(&checksum.to_le_bytes());
    finish_header(frame, archive_id(frame), sequence);
}

fn later_versions(archive: &[u8]) -> impl Iterator<Item = Mutation> {
    let frames = frames_of(archive);
    let frame_count = frames.len() as u64;
    let header_frame = frames.first().expect("a first frame").clone();
    let id = archive_id(&archive[header_frame.clone()]);
    let later_generation = {
        let mut bytes = archive.to_vec();
        bytes[header_frame.start + 10] = 1;
        fix_checksums(&mut bytes[header_frame.clone()], 0);
        bytes
    };
    let changed_header = |at: usize, value: u8| {
        let mut bytes = archive.to_vec();
        bytes[header_frame.start + FRAME_HEADER_BYTES + at] = value;
        fix_checksums(&mut bytes[header_frame.clone()], 0);
        bytes
    };
    let appended = |more: &[u8]| [archive, more].concat();
    let needed_first = {
        let needed = complete_frame(FrameKind::Envelope, 0, b"\x02\0\0sealed", id, 1);
        [
            &archive[..header_frame.end],
            &needed[..],
            &archive[header_frame.end..],
        ]
        .concat()
    };
    let generation = complete_frame(FrameKind::Generation, 0, b"\x02\0\0", id, frame_count);
    [
        (
            Expectation::Unsupported,
            "major version 2",
            changed_header(1, 2),
        ),
        (
            Expectation::Unsupported,
            "unknown required feature",
            changed_header(3, 1),
        ),
        (
            Expectation::Rejected,
            "a frame of a later generation",
            later_generation,
        ),
        (Expectation::Unsupported, "an encrypted frame", needed_first),
        (
            Expectation::Rejected,
            "a generation of nothing",
            appended(&generation),
        ),
        (
            Expectation::Rejected,
            "a byte after the end",
            appended(&[0]),
        ),
        (
            Expectation::Rejected,
            "the archive and half of it again",
            appended(archive.get(..archive.len() / 2).unwrap_or_default()),
        ),
        (
            Expectation::Rejected,
            "not an archive",
            b"PK\x03\x04 something else".to_vec(),
        ),
    ]
    .into_iter()
    .map(|(expectation, what, bytes)| Mutation::new(expectation, what.to_owned(), bytes))
}
