//! Statements about this crate that hold for any input; shared by the tests here and the fuzz targets.
//! Each function panics (fails) when its statement does not hold.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::coding::Coding;
use crate::entries::{EntriesHeader, pack_entries, unpack_entries};
use crate::extents::{Extent, ExtentsHeader, Pattern, pack_extents, unpack_extents};
use crate::frame::{UntrustedFrameHeader, find_frame};
use crate::index::Index;
use crate::layout::{FRAME_HEADER_BYTES, FrameKind};
use crate::limits::Limits;
use crate::payload::Payload;
use crate::walk::walk_archive;
use refrain_tree::{Entry, EntryKind, Timestamp};

/// A small generator of test values (splitmix64, Steele, Lea, Flood 2014).
#[derive(Debug, Clone)]
pub struct Numbers(u64);

impl Numbers {
    /// The same numbers for the same seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, any 64 bits.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next number below `bound` (at least 1).
    pub fn below(&mut self, bound: u64) -> u64 {
        self.any() % bound.max(1)
    }
}

/// Valid extents as an edited repeat gives them: mostly fresh and copy in turn at a displacement that seldom changes.
/// Returns the store start and the extents.
#[must_use]
pub fn extents_from_seed(seed: u64, count: usize) -> (u64, Vec<Extent>) {
    let mut numbers = Numbers::new(seed);
    let store_start = 100_000 + numbers.below(1 << 40);
    let mut shown = store_start;
    let mut source = numbers.below(store_start);
    let mut extents = Vec::with_capacity(count);
    for index in 0..count {
        let size_class = 4 + numbers.below(8);
        let length = 1 + numbers.below(1 << size_class);
        let extent = match numbers.below(64) {
            0 => Extent::Fill {
                length,
                pattern: pattern_from(&mut numbers),
            },
            _ if index % 2 == 0 => Extent::Fresh { length },
            choice => {
                if choice < 8 {
                    source = numbers.below(store_start);
                }
                Extent::Copy {
                    length,
                    offset_in_store: source.min(shown - length.min(shown)),
                }
            }
        };
        source = match extent {
            Extent::Copy {
                offset_in_store, ..
            } => offset_in_store + length,
            _ => source + length,
        };
        if matches!(extent, Extent::Fresh { .. }) {
            shown += length;
        }
        extents.push(extent);
    }
    (store_start, extents)
}

fn pattern_from(numbers: &mut Numbers) -> Pattern {
    let period: Vec<u8> = (0..=numbers.below(64))
        .map(|_| numbers.any() as u8)
        .collect();
    Pattern::new(&period).unwrap()
}

/// What is packed unpacks to the same extents.
///
/// # Panics
/// When it does not.
pub fn extents_round_trip(seed: u64, count: usize) {
    let (store_start, extents) = extents_from_seed(seed, count);
    let packed = pack_extents(store_start, &extents).unwrap();
    let head = ExtentsHeader {
        epoch_id: 0,
        content_start: 0,
        content_bytes: packed.content_bytes,
        store_start,
        fresh_bytes: packed.fresh_bytes,
        extent_count: packed.extent_count,
        packed_raw_bytes: packed.raw.len() as u64,
        packed_checksum: packed.checksum,
        coding: Coding::none(),
    };
    let again = unpack_extents(&head, &packed.raw, &Limits::default()).unwrap();
    assert_eq!(again, extents);
}

/// Valid entries of a made-up tree.
#[must_use]
pub fn entries_from_seed(seed: u64, count: usize) -> Vec<Entry> {
    let mut numbers = Numbers::new(seed);
    (0..count)
        .map(|index| {
            let kind = match numbers.below(12) {
                0 => EntryKind::Directory,
                1 => EntryKind::Symlink,
                2 => EntryKind::Hardlink,
                3 => EntryKind::Fifo,
                _ => EntryKind::File,
            };
            let folder = numbers.below(5);
            Entry {
                path: format!("root/folder-{folder}/entry-{index}").into_bytes(),
                kind,
                mode: numbers.below(0o10000) as u32,
                modified: Timestamp {
                    seconds: numbers.any() as i64 >> 20,
                    nanoseconds: numbers.below(1_000_000_000) as u32,
                },
                size_bytes: numbers.below(100_000),
                content_offset: numbers.below(1 << 40),
                link_target: kind.is_link().then(|| format!("../{folder}").into_bytes()),
            }
        })
        .collect()
}

/// What is packed unpacks to the same entries.
///
/// # Panics
/// When it does not.
pub fn entries_round_trip(seed: u64, count: usize) {
    let entries = entries_from_seed(seed, count);
    let packed = pack_entries(&entries).unwrap();
    let head = EntriesHeader {
        member_id: 0,
        first_entry: 0,
        entry_count: packed.entry_count,
        packed_raw_bytes: packed.raw.len() as u64,
        packed_checksum: packed.checksum,
        coding: Coding::none(),
    };
    assert_eq!(unpack_entries(&head, &packed.raw).unwrap(), entries);
}

/// Any bytes, taken for anything that this crate reads, give an answer or an error: no panic, no endless loop, no memory
/// beyond a small multiple of the input. What is accepted and has a writer writes back to the same bytes.
///
/// # Panics
/// When that does not hold.
pub fn parse_anything(bytes: &[u8]) {
    let limits = Limits::default();
    if let Ok(header) = UntrustedFrameHeader::parse(bytes) {
        let _ = header.check(&limits, Some(bytes.len() as u64));
    }
    let mut from = 0;
    while let Some(at) = find_frame(bytes, from) {
        assert!(at >= from && at + FRAME_HEADER_BYTES <= bytes.len());
        from = at + 1;
    }
    for kind in FrameKind::NAMED {
        if let Ok(payload) = Payload::parse(kind, bytes, &limits) {
            section_is_harmless(&payload, &limits);
        }
    }
    if let Ok(index) = Index::parse(bytes, &limits) {
        assert_eq!(index.to_payload().unwrap(), bytes);
    }
    let _ = walk_archive(bytes, &limits, |_, _, _| Ok(()));
}

fn section_is_harmless(payload: &Payload<'_>, limits: &Limits) {
    match payload {
        Payload::Extents { head, data } => {
            let _ = unpack_extents(head, data, limits);
        }
        Payload::Entries { head, data } => {
            let _ = unpack_entries(head, data);
        }
        _ => {}
    }
}
