//! Properties that hold for any input, shared by the tests here and the fuzz targets. Each function
//! panics if its property does not hold.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::bytes::ByteReader;
use crate::coding::Coding;
use crate::constants::{FRAME_HEADER_BYTES, FrameKind, TAIL_BYTES};
use crate::entries::{
    EntriesHeader, EntryListChecker, entries_are_sorted, pack_entries, pack_with_references,
    unpack_entries, unpack_section,
};
use crate::extents::{Extent, Pattern, pack_extents, unpack_extents};
use crate::frame::{UntrustedFrameHeader, find_frame};
use crate::index::property::parse_any_node;
use crate::limits::{ENTRY_BYTES_PER_FRAME_MAX, Limits};
use crate::member::{MemberEnd, MemberKind};
use crate::payload::Payload;
use crate::walk::walk_archive;
use crate::whole::{WHOLE_START_BYTES, collapse, expand, expand_payload};
use refrain_entries::{Entry, EntryKind, ExtendedAttribute, Owner, Timestamp};
use std::ops::Range;
use std::sync::Arc;

/// A small generator of test values (splitmix64, Steele, Lea, Flood 2014).
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Creates a generator.
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

/// Returns valid extents as an edited copy produces them: mostly fresh and copy alternately, at a
/// distance that seldom changes, some as references to earlier content. Also returns where the
/// epoch begins in the content and in the store.
#[must_use]
pub fn extents_from_seed(seed: u64, count: usize) -> (u64, u64, Vec<Extent>) {
    let mut rng = Rng::new(seed);
    let store_start = 100_000 + rng.below(1 << 40);
    let content_start = store_start + rng.below(1 << 40);
    let mut introduced = store_start;
    let mut source = rng.below(store_start);
    let mut extents = Vec::with_capacity(count);
    for index in 0..count {
        let size_class = 4 + rng.below(8);
        let length = 1 + rng.below(1 << size_class);
        let extent = match rng.below(64) {
            1..4 => Extent::Reference {
                length,
                offset_in_content: rng.below(content_start - length + 1),
            },
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
    (content_start, store_start, extents)
}

fn pattern_from(rng: &mut Rng) -> Pattern {
    let period: Vec<u8> = (0..=rng.below(64)).map(|_| rng.any() as u8).collect();
    Pattern::new(&period).unwrap()
}

/// As [`entries_from_seed`], with rebased files and what only layered trees have: stamps, and
/// removed paths.
fn layered_entries_from_seed(seed: u64, count: usize) -> Vec<Entry> {
    let mut rng = Rng::new(!seed);
    let mut entries = entries_from_seed(seed, count);
    let has_stamps = rng.below(2) > 0;
    for entry in &mut entries {
        match entry.kind {
            EntryKind::File if has_stamps => entry.change_stamp = rng.any() as u32,
            EntryKind::Fifo if rng.below(2) > 0 => entry.kind = EntryKind::Removed,
            _ => {}
        }
        let may_be_rebased = entry.kind == EntryKind::File && entry.data_ranges.is_none();
        entry.is_rebased = may_be_rebased && rng.below(4) == 0;
    }
    entries
}

/// Packed extents unpack to the same extents.
///
/// # Panics
/// If they do not.
pub fn extents_round_trip(seed: u64, count: usize) {
    let (content_start, store_start, extents) = extents_from_seed(seed, count);
    let packed = pack_extents(content_start, store_start, &extents).unwrap();
    let header = packed.header(0, (content_start, store_start), Coding::none());
    let again = unpack_extents(&header, &packed.raw, &Limits::default()).unwrap();
    assert_eq!(again, extents);
}

/// Returns valid entries of a random member with every kind of entry and every field: a few
/// versions of one tree with changes, so that all ways of coding a field occur.
#[must_use]
pub fn entries_from_seed(seed: u64, count: usize) -> Vec<Entry> {
    let mut rng = Rng::new(seed);
    let mut entries: Vec<Entry> = Vec::with_capacity(count);
    let version_entries = 1 + rng.below(20) as usize;
    let mut content_end = 0;
    for at in 0..count {
        let version = at / version_entries;
        let earlier = at.checked_sub(version_entries);
        let earlier = earlier.and_then(|earlier| entries.get(earlier)).cloned();
        let mut entry = match earlier {
            Some(earlier) if rng.below(8) > 0 => version_of(&mut rng, earlier, version),
            _ => new_entry(&mut rng, version, at),
        };
        if rng.below(3) > 0 {
            entry.content_offset = content_end;
        }
        content_end = content_end.max(entry.content_range().end);
        entries.push(entry);
    }
    entries
}

/// The same entry in another version, with few changes.
fn version_of(rng: &mut Rng, mut entry: Entry, version: usize) -> Entry {
    let rename = |text: &[u8]| {
        let rest = text.iter().position(|&byte| byte == b'/');
        let rest = rest.and_then(|at| text.get(at..)).unwrap_or_default();
        [format!("v{version}").as_bytes(), rest].concat()
    };
    if entry.kind != EntryKind::Raw {
        entry.path = rename(&entry.path);
    }
    if entry.kind == EntryKind::Hardlink {
        entry.link_target = entry.link_target.as_deref().map(rename);
    }
    let other = new_entry(rng, version, rng.clone().below(99) as usize);
    match rng.below(16) {
        0 => entry.modified = other.modified,
        1 => entry.modified.seconds = entry.modified.seconds.wrapping_add(1),
        2 => entry.mode = other.mode,
        3 => entry.owner = other.owner,
        4 => entry.attributes = other.attributes,
        5 => entry.header_recipe = other.header_recipe,
        6 if entry.kind.has_data() => {
            entry.size_bytes += 7;
            entry.content_offset = other.content_offset;
        }
        7 if entry.kind.has_data() => entry.data_ranges = None,
        8 => return other,
        _ => {}
    }
    entry
}

fn new_entry(rng: &mut Rng, version: usize, at: usize) -> Entry {
    let kind = match rng.below(24) {
        0..=2 => EntryKind::Directory,
        3 | 4 => EntryKind::Symlink,
        5 | 6 => EntryKind::Hardlink,
        7 => EntryKind::Fifo,
        8 => EntryKind::CharacterDevice,
        9 => EntryKind::BlockDevice,
        10 => EntryKind::Other,
        11 => EntryKind::Raw,
        _ => EntryKind::File,
    };
    let path = format!("v{version}/folder-{}/entry-{at}", rng.below(5)).into_bytes();
    let size_bytes = rng.below(100_000);
    Entry {
        kind,
        mode: match rng.below(4) {
            0 => rng.any() as u32,
            _ => 0o644,
        },
        owner: owner_from(rng),
        modified: time_from(rng),
        size_bytes: if kind.has_data() { size_bytes } else { 0 },
        content_offset: if kind.has_data() || rng.below(9) == 0 { rng.below(1 << 40) } else { 0 },
        data_ranges: if kind.has_data() && rng.below(8) == 0 {
            Some(ranges_from(rng, size_bytes))
        } else {
            None
        },
        link_target: match kind {
            EntryKind::Symlink => Some(format!("../{}", rng.below(3)).into_bytes()),
            EntryKind::Hardlink => Some([&path[..path.len() - 1], b"x"].concat()),
            _ => None,
        },
        device: if kind.is_device() {
            (rng.below(300) as u32, rng.any() as u32)
        } else {
            (0, 0)
        },
        attributes: attributes_from(rng),
        header_recipe: match rng.below(6) {
            0 => (0..rng.below(9)).map(|_| rng.any() as u8).collect(),
            _ => Vec::new(),
        },
        is_rebased: false,
        change_stamp: 0,
        path: if kind == EntryKind::Raw { Vec::new() } else { path },
    }
}

fn owner_from(rng: &mut Rng) -> Arc<Owner> {
    let id = match rng.below(6) {
        0 => rng.any(),
        _ => rng.below(2),
    };
    Arc::new(Owner {
        uid: id,
        gid: rng.below(2),
        user: format!("user-{}", id % 100).into_bytes(),
        group: Vec::new(),
    })
}

/// A time near a common one, at a whole second, or anywhere.
fn time_from(rng: &mut Rng) -> Timestamp {
    let (seconds, nanoseconds) = match rng.below(8) {
        0 => (rng.any() as i64, rng.below(1_000_000_000)),
        1..=3 => (1_700_000_000 + rng.below(100) as i64, 0),
        _ => (1_700_000_000, 500_000_000 + rng.below(1_000_000)),
    };
    Timestamp {
        seconds,
        nanoseconds: nanoseconds as u32,
    }
}

fn ranges_from(rng: &mut Rng, size_bytes: u64) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    let mut start = rng.below(2) * 4096;
    while start < size_bytes && rng.below(4) > 0 {
        let end = (start + 1 + rng.below(20_000)).min(size_bytes);
        ranges.push(start..end);
        start = end + 1 + rng.below(9_000);
    }
    ranges
}

fn attributes_from(rng: &mut Rng) -> Vec<ExtendedAttribute> {
    let count = match rng.below(4) {
        0 => rng.below(3),
        _ => 0,
    };
    (0..count)
        .map(|at| ExtendedAttribute {
            name: format!("user.{at}").into_bytes(),
            value: vec![rng.any() as u8; rng.below(3) as usize],
        })
        .collect()
}

/// Packed entries unpack to the same entries, and these pack to the same section.
///
/// # Panics
/// If they do not.
pub fn entries_round_trip(seed: u64, count: usize) {
    let entries = layered_entries_from_seed(seed, count);
    let packed = pack_entries(&entries).unwrap();
    let header = EntriesHeader::new(0, 0, &packed, Coding::none());
    let again = unpack_entries(&header, &packed.raw).unwrap();
    assert_eq!(again, entries);
    assert_eq!(pack_entries(&again).unwrap(), packed);
}

/// Any bytes as a section of entries give an error, or entries whose only section with the same
/// references is this one. The packer may choose other references.
///
/// # Panics
/// If that does not hold.
pub fn unpack_any_entries(raw: &[u8], entry_count: u64) {
    let mut references = Vec::new();
    let bytes_max = ENTRY_BYTES_PER_FRAME_MAX as u64;
    let Ok(entries) = unpack_section(entry_count, raw, bytes_max, |at| references.push(at)) else {
        return;
    };
    assert_eq!(entries.len() as u64, entry_count);
    check_any_list(&entries);
    if !has_unknown_columns(raw) {
        assert_eq!(pack_with_references(&entries, &references).unwrap(), raw);
    }
    if !entries.is_empty() {
        let packed = pack_entries(&entries).unwrap();
        let header = EntriesHeader::new(0, 0, &packed, Coding::none());
        assert_eq!(unpack_entries(&header, &packed.raw).unwrap(), entries);
    }
}

/// Any entries as a member's list, in two frames, break a rule or agree with an end computed from
/// them.
fn check_any_list(entries: &[Entry]) {
    for kind in [MemberKind::Tree, MemberKind::Tar] {
        let mut checker = EntryListChecker::new(kind, entries.len());
        let (first, second) = entries.split_at(entries.len() / 2);
        if checker.feed(first).is_err() || checker.feed(second).is_err() {
            continue;
        }
        let end = MemberEnd {
            view_bytes: checker.view_bytes(),
            entries_are_sorted: entries_are_sorted(entries),
            entry_count: entries.len() as u64,
            entries_hash: Some([0; 32]),
            ..MemberEnd::of_content(0, u64::MAX)
        };
        let mut targets = checker.finish(&end).unwrap();
        targets.look_up(first);
        let _ = targets.finish();
    }
}

/// Whether a valid section has columns of a later version, which repacking loses.
fn has_unknown_columns(raw: &[u8]) -> bool {
    let mut reader = ByteReader::new("entries", raw);
    let count = reader.varint().unwrap();
    (0..count).any(|_| {
        let (id, _) = (reader.varint().unwrap(), reader.varint().unwrap());
        id >= 64
    })
}

/// A valid section of entries with any edits: (position, change) of bytes.
///
/// # Panics
/// As [`unpack_any_entries`].
pub fn unpack_edited_entries(seed: u64, count: usize, edits: &[(u16, u8)]) {
    let packed = pack_entries(&layered_entries_from_seed(seed, count)).unwrap();
    let mut raw = packed.raw;
    for &(at, change) in edits {
        let at = usize::from(at) % raw.len();
        if let Some(byte) = raw.get_mut(at) {
            *byte ^= change;
        }
    }
    unpack_any_entries(&raw, packed.entry_count);
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
    parse_any_node(bytes);
    let _ = walk_archive(bytes, &limits, |_, _, _| Ok(()));
    let _ = expand(bytes);
    expand_any_payload(bytes);
}

/// Any bytes as the payload of a Whole frame give an error, or an ordinary archive that reads
/// without errors and, if it collapses, collapses to a payload that is not longer and expands to
/// it.
///
/// # Panics
/// If that does not hold.
pub fn expand_any_payload(payload: &[u8]) {
    let Ok(archive) = expand_payload(7, payload) else {
        return;
    };
    walk_archive(&archive, &Limits::default(), |_, _, _| Ok(())).unwrap();
    if let Some(whole) = collapse(&archive) {
        assert_eq!(expand(&whole).unwrap(), archive);
        let again = whole.get(WHOLE_START_BYTES..whole.len() - TAIL_BYTES);
        // The head of the given payload may have extensions, which are ignored.
        assert!(again.unwrap().len() <= payload.len());
    }
}

fn unpack_any_section(payload: &Payload<'_>, limits: &Limits) {
    match payload {
        Payload::Extents { header, data } => {
            let _ = unpack_extents(header, data, limits);
        }
        Payload::Entries { header, data } => {
            let _ = unpack_entries(header, data);
            unpack_any_entries(data, header.entry_count);
        }
        _ => {}
    }
}
