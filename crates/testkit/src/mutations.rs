//! Broken archives from valid ones: cut, bent, reordered, and forged with the checksums made right again.

use crate::rng::Rng;
use refrain_format::{
    FRAME_HEADER_BYTES, FrameKind, Limits, MAGIC, UntrustedFrameHeader, complete_frame,
    finish_header,
};
use refrain_format::{checksum64, chunked_checksum64, payload_checksum};
use std::ops::Range;

/// What a reader must do with a mutation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    /// Refuse it.
    Refused,
    /// Refuse it as unsupported, not as damaged.
    Unsupported,
    /// Refuse it, or give the same members: some fields are for information only.
    RefusedOrHarmless,
}

/// One broken archive.
#[derive(Debug, Clone)]
pub struct Mutation {
    /// What was done.
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

/// Where the frames of a valid archive are.
///
/// # Panics
/// If the archive is not valid.
#[must_use]
pub fn frames_of(archive: &[u8]) -> Vec<Range<usize>> {
    let mut frames = Vec::new();
    let mut at = MAGIC.len();
    while at < archive.len() {
        let header = UntrustedFrameHeader::parse(&archive[at..])
            .and_then(|header| header.check(&Limits::default(), None))
            .expect("a valid archive");
        let end = at + header.frame_bytes() as usize;
        frames.push(at..end);
        at = end;
    }
    frames
}

/// Every proper prefix of the archive.
pub fn every_truncation(archive: &[u8]) -> impl Iterator<Item = Mutation> {
    (0..archive.len()).map(|length| truncation(archive, length))
}

/// Every single bit of the archive flipped.
pub fn every_bit_flip(archive: &[u8]) -> impl Iterator<Item = Mutation> {
    (0..archive.len() * 8).map(|bit| bit_flip(archive, bit))
}

/// A sample of every way to break the archive, from cut short to forged with good checksums; the same for the same seed.
/// At most some 2,000 for any archive.
///
/// # Panics
/// If the archive is not valid.
pub fn mutations(archive: &[u8], seed: u64) -> impl Iterator<Item = Mutation> {
    let frames = frames_of(archive);
    let mut numbers = Rng::new(seed);
    let edges: Vec<usize> = frames
        .iter()
        .take(100)
        .flat_map(|frame| [frame.start, frame.start + 1, frame.end - 1])
        .collect();
    let lengths: Vec<usize> = (0..100)
        .map(|_| numbers.below(archive.len() as u64) as usize)
        .collect();
    let bits: Vec<usize> = (0..400)
        .map(|_| numbers.below(archive.len() as u64 * 8) as usize)
        .collect();
    let frame_count = frames.len() as u64;
    let chosen: Vec<usize> = (0..60)
        .map(|_| numbers.below(frame_count) as usize)
        .collect();
    let parts: Vec<&[u8]> = frames.iter().map(|frame| &archive[frame.clone()]).collect();
    let parts_again = parts.clone();
    edges
        .into_iter()
        .chain(lengths)
        .map(|length| truncation(archive, length))
        .chain(bits.into_iter().map(|bit| bit_flip(archive, bit)))
        .chain(chosen.into_iter().flat_map(move |at| reordered(&parts, at)))
        .chain((0..600).map(move |_| forged(&parts_again, &mut numbers)))
        .chain(futures(archive))
}

fn truncation(archive: &[u8], length: usize) -> Mutation {
    Mutation::new(
        Expectation::Refused,
        format!("cut to {length} of {} bytes", archive.len()),
        archive[..length].to_vec(),
    )
}

fn bit_flip(archive: &[u8], bit: usize) -> Mutation {
    let mut bytes = archive.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    Mutation::new(
        Expectation::Refused,
        format!("bit {} of byte {} flipped", bit % 8, bit / 8),
        bytes,
    )
}

/// Frame `at` dropped, doubled, swapped with the next one; each as it is, and with sequence numbers made right.
fn reordered(parts: &[&[u8]], at: usize) -> Vec<Mutation> {
    let mut dropped = parts.to_vec();
    dropped.remove(at);
    let mut doubled = parts.to_vec();
    doubled.insert(at, parts[at]);
    let mut swapped = parts.to_vec();
    let next = (at + 1) % parts.len();
    swapped.swap(at, next);
    // With one's own sequence number each of them shows; renumbered, the places in the index do.
    [
        ("dropped", dropped),
        ("doubled", doubled),
        ("swapped with the next", swapped),
    ]
    .into_iter()
    .flat_map(|(what, frames)| {
        [
            Mutation::new(
                Expectation::Refused,
                format!("frame {at} {what}"),
                joined(&frames),
            ),
            Mutation::new(
                // Two equal frames swapped are no change at all.
                Expectation::RefusedOrHarmless,
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
    bytes
}

fn renumbered(frames: &[&[u8]]) -> Vec<Vec<u8>> {
    frames
        .iter()
        .enumerate()
        .map(|(sequence, frame)| {
            let mut frame = frame.to_vec();
            finish_header(&mut frame, sequence as u64);
            frame
        })
        .collect()
}

/// Values that sit on the edges of checks.
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

/// One frame with a field overwritten and all checksums made right.
fn forged(parts: &[&[u8]], numbers: &mut Rng) -> Mutation {
    let which = numbers.below(parts.len() as u64) as usize;
    let mut frames: Vec<Vec<u8>> = parts.iter().map(|part| part.to_vec()).collect();
    let frame = &mut frames[which];
    let description = match numbers.below(8) {
        0 => forge_header(frame, numbers),
        1 => forge_packed_section(frame, numbers),
        _ => forge_payload(frame, numbers),
    };
    fix_checksums(frame, which as u64);
    Mutation::new(
        Expectation::RefusedOrHarmless,
        format!("frame {which}: {description}"),
        joined(&frames),
    )
}

/// Kind, flags, reserved bytes, or the payload's size.
fn forge_header(frame: &mut [u8], numbers: &mut Rng) -> String {
    let at = numbers.length(4, 15);
    let value = match at {
        4..8 => numbers.below(24) as u8,
        _ => numbers.any() as u8,
    };
    frame[at] = value;
    format!("header byte {at} forged to {value}")
}

fn forge_payload(frame: &mut [u8], numbers: &mut Rng) -> String {
    let payload = &mut frame[FRAME_HEADER_BYTES..];
    if payload.is_empty() {
        return "left as it was".to_owned();
    }
    let width = (*numbers.choose(&[1_usize, 1, 2, 4, 8])).min(payload.len());
    let mut at = numbers.length(0, payload.len() - width);
    if numbers.once_in(2) {
        at -= at % width;
    }
    let value = match numbers.once_in(4) {
        true => numbers.any(),
        false => *numbers.choose(&EDGE_VALUES),
    };
    payload[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
    format!("{width} payload bytes at {at} forged to {value:#x}")
}

/// A byte of the stored data behind a head, with the head's checksum of it made right too. Sample archives only.
fn forge_packed_section(frame: &mut [u8], numbers: &mut Rng) -> String {
    let frame_kind = frame[4];
    let (head_bytes, checksum_at) = match FrameKind::from_id(frame_kind) {
        FrameKind::Block => (refrain_format::BLOCK_HEADER_BYTES, 24),
        FrameKind::Extents => (refrain_format::EXTENTS_HEADER_BYTES, 56),
        FrameKind::Entries => (refrain_format::ENTRIES_HEADER_BYTES, 32),
        _ => return forge_payload(frame, numbers),
    };
    let (head, data) = frame[FRAME_HEADER_BYTES..].split_at_mut(head_bytes);
    let at = numbers.length(0, data.len() - 1);
    data[at] = *numbers.choose(&EDGE_VALUES) as u8;
    // A block's checksum is that of its pieces; it has but one here.
    let checksum = match FrameKind::from_id(frame_kind) {
        FrameKind::Block => chunked_checksum64(data),
        _ => checksum64(data),
    };
    head[checksum_at..checksum_at + 8].copy_from_slice(&checksum.to_le_bytes());
    format!("data byte {at} forged to {}", data[at])
}

/// Makes the checksums of a forged frame right; the payload's size stays as forged.
fn fix_checksums(frame: &mut [u8], sequence: u64) {
    let checksum = payload_checksum(&frame[FRAME_HEADER_BYTES..]);
    frame[24..32].copy_from_slice(&checksum.to_le_bytes());
    finish_header(frame, sequence);
}

/// Archives from the future, and things behind the end.
fn futures(archive: &[u8]) -> impl Iterator<Item = Mutation> {
    let frames = frames_of(archive);
    let frame_count = frames.len() as u64;
    let head = frames.first().expect("a first frame").clone();
    let bent_head = |at: usize, value: u8| {
        let mut bytes = archive.to_vec();
        bytes[head.start + FRAME_HEADER_BYTES + at] = value;
        fix_checksums(&mut bytes[head.clone()], 0);
        bytes
    };
    let appended = |more: &[u8]| [archive, more].concat();
    let needed_first = {
        let needed = complete_frame(FrameKind::Envelope, false, b"sealed", 1);
        [&archive[..head.end], &needed[..], &archive[head.end..]].concat()
    };
    let generation = complete_frame(FrameKind::Generation, false, b"", frame_count);
    [
        (Expectation::Unsupported, "major version 2", bent_head(0, 2)),
        (
            Expectation::Unsupported,
            "unknown required feature",
            bent_head(9, 1),
        ),
        (
            Expectation::Unsupported,
            "reserved byte in use",
            bent_head(13, 1),
        ),
        (Expectation::Unsupported, "an encrypted frame", needed_first),
        (
            Expectation::Unsupported,
            "an appended generation",
            appended(&generation),
        ),
        (
            Expectation::Refused,
            "a byte behind the end",
            appended(&[0]),
        ),
        (Expectation::Refused, "the archive twice", appended(archive)),
        (
            Expectation::Refused,
            "not an archive",
            b"PK\x03\x04 something else".to_vec(),
        ),
    ]
    .into_iter()
    .map(|(expectation, what, bytes)| Mutation::new(expectation, what.to_owned(), bytes))
}
