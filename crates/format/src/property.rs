//! Properties that hold for any input, shared by the tests here and the fuzz targets. Each function
//! panics if its property does not hold.
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
pub struct Rng(u64);

impl Rng {
    /// Creates a generator; the same seed gives the same rng.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number, any 64 bits.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns the next number below `bound` (at least 1).
    pub fn below(&mut self, bound: u64) -> u64 {
        self.any() % bound.max(1)
    }
}

/// Returns valid extents as an edited repeat produces them: mostly fresh and copy alternately, at a
/// distance that seldom changes. Also returns the store start.
#[must_use]
pub fn extents_from_seed(seed: u64, count: usize) -> (u64, Vec<Extent>) {
    let mut rng = Rng::new(seed);
    let store_start = 100_000 + rng.below(1 << 40);
    let mut introduced = store_start;
    let mut source = rng.below(store_start);
    let mut extents = Vec::with_capacity(count);
    for index in 0..count {
        let size_class = 4 + rng.below(8);
        let length = 1 + rng.below(1 << size_class);
        let extent = match rng.below(64) {
            0 => Extent::Fill {
                length,
                pattern: pattern_from(&mut rng),
            },
            _ if index % 2 == 0 => Extent::Fresh { length },
            choice => {
                if choice < 8 {
                    source = rng.below(store_start);
                }
                Extent::Copy {
                    length,
                    offset_in_store: source.min(introduced - length.min(introduced)),
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
            introduced += length;
        }
        extents.push(extent);
    }
    (store_start, extents)
}

fn pattern_from(rng: &mut Rng) -> Pattern {
    let period: Vec<u8> = (0..=rng.below(64)).map(|_| rng.any() as u8).collect();
    Pattern::new(&period).unwrap()
}

/// Packed extents unpack to the same extents.
///
/// # Panics
/// If they do not.
pub fn extents_round_trip(seed: u64, count: usize) {
    let (store_start, extents) = extents_from_seed(seed, count);
    let packed = pack_extents(store_start, &extents).unwrap();
    let header = ExtentsHeader {
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
    let again = unpack_extents(&header, &packed.raw, &Limits::default()).unwrap();
    assert_eq!(again, extents);
}

/// Returns valid entries of a random tree.
#[must_use]
pub fn entries_from_seed(seed: u64, count: usize) -> Vec<Entry> {
    let mut rng = Rng::new(seed);
    (0..count)
        .map(|index| {
            let kind = match rng.below(12) {
                0 => EntryKind::Directory,
                1 => EntryKind::Symlink,
                2 => EntryKind::Hardlink,
                3 => EntryKind::Fifo,
                _ => EntryKind::File,
            };
            let directory = rng.below(5);
            Entry {
                path: format!("root/folder-{directory}/entry-{index}").into_bytes(),
                kind,
                mode: rng.below(0o10000) as u32,
                modified: Timestamp {
                    seconds: rng.any() as i64 >> 20,
                    nanoseconds: rng.below(1_000_000_000) as u32,
                },
                size_bytes: rng.below(100_000),
                content_offset: rng.below(1 << 40),
                link_target: kind
                    .is_link()
                    .then(|| format!("../{directory}").into_bytes()),
                ..Entry::default()
            }
        })
        .collect()
}

/// Packed entries unpack to the same entries.
///
/// # Panics
/// If they do not.
pub fn entries_round_trip(seed: u64, count: usize) {
    let entries = entries_from_seed(seed, count);
    let packed = pack_entries(&entries).unwrap();
    let header = EntriesHeader::new(0, 0, &packed, Coding::none());
    assert_eq!(unpack_entries(&header, &packed.raw).unwrap(), entries);
}

/// Parsing any bytes as anything that this crate reads returns a value or an error: no panic, no
/// endless loop, no memory beyond a small multiple of the input. Accepted bytes of a kind that has
/// a writer encode to the same bytes.
///
/// # Panics
/// If that does not hold.
pub fn parse_any_bytes(bytes: &[u8]) {
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
            unpack_any_section(&payload, &limits);
        }
    }
    if let Ok(index) = Index::parse(bytes, &limits) {
        assert_eq!(index.to_payload().unwrap(), bytes);
    }
    let _ = walk_archive(bytes, &limits, |_, _, _| Ok(()));
}

fn unpack_any_section(payload: &Payload<'_>, limits: &Limits) {
    match payload {
        Payload::Extents { header, data } => {
            let _ = unpack_extents(header, data, limits);
        }
        Payload::Entries { header, data } => {
            let _ = unpack_entries(header, data);
        }
        _ => {}
    }
}
