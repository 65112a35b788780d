//! Tests of packing and unpacking.

use refrain_entries::{Entry, EntryKind, ExtendedAttribute, Owner, Timestamp};

use super::entry::{ENTRY_KINDS, entry_kind_from_id, entry_kind_id};
use super::*;
use crate::bytes::ByteReader;
use crate::coding::Coding;
use crate::error::{ErrorClass, FormatError, Result};
use crate::limits::{
    ENTRIES_PER_FRAME_MAX, ENTRY_BYTES_PER_FRAME_MAX, FIRST_PATH_BYTES_MAX, Limits, PATH_BYTES_MAX,
};
use crate::property::{
    entries_from_seed, entries_round_trip, unpack_any_entries, unpack_edited_entries,
};
use refrain_protect::checksum64;

fn unpack(entry_count: u64, first_path: &[u8], raw: &[u8]) -> Result<Vec<Entry>> {
    let header = EntriesHeader {
        member_id: 0,
        first_entry: 0,
        entry_count,
        packed_raw_bytes: raw.len() as u64,
        packed_checksum: checksum64(raw),
        coding: Coding::none(),
        first_path: first_path.to_vec(),
    };
    unpack_entries(&header, raw)
}

fn round_trip(entries: &[Entry]) -> PackedEntries {
    let packed = pack_entries(entries).unwrap();
    let again = unpack(packed.entry_count, &packed.first_path, &packed.raw);
    assert_eq!(again.unwrap(), entries);
    packed
}

fn entry(path: &[u8]) -> Entry {
    Entry {
        path: path.to_vec(),
        mode: 0o644,
        size_bytes: 10,
        content_offset: 512,
        ..Entry::default()
    }
}

#[test]
fn ids_and_kinds_match_one_to_one() {
    for kind in ENTRY_KINDS {
        let id = entry_kind_id(kind, false).into();
        assert_eq!(entry_kind_from_id(id), Ok((kind, false)));
    }
    assert!(entry_kind_from_id(0).is_err() && entry_kind_from_id(12).is_err());
    assert_eq!(entry_kind_from_id(11), Ok((EntryKind::File, true)));
}

#[test]
fn a_frame_parses_as_written() {
    let entries = entries_from_seed(5, 300);
    let packed = pack_entries(&entries).unwrap();
    let header = EntriesHeader::new(3, 7, &packed, Coding::none());
    let mut builder = EntriesHeader::builder(&packed, Vec::new());
    builder.payload().extend_from_slice(&packed.raw);
    let frame = header.finish(builder).unwrap();
    let payload = &frame[crate::constants::FRAME_HEADER_BYTES..];
    let (parsed, data) = EntriesHeader::parse(payload, &Limits::default()).unwrap();
    assert_eq!(parsed, header);
    assert_eq!(unpack_entries(&parsed, data), Ok(entries));
}

/// Each value differs from the default, alone and after a plain entry.
#[test]
fn every_field_survives() {
    type Change = fn(&mut Entry);
    let changes: [Change; 16] = [
        |entry| entry.path = b"\xff\n a".to_vec(),
        |entry| entry.mode = u32::MAX,
        |entry| {
            entry.owner = Owner {
                uid: u64::MAX,
                gid: 3,
                user: b"us\xe9r".to_vec(),
                group: b"g".to_vec(),
            }
            .into();
        },
        |entry| entry.modified.seconds = i64::MIN,
        |entry| entry.modified.seconds = i64::MAX,
        |entry| entry.modified.nanoseconds = 999_999_999,
        |entry| entry.size_bytes = 1 << 60,
        |entry| entry.size_bytes = 0,
        |entry| entry.content_offset = 1 << 60,
        |entry| entry.data_ranges = Some(Vec::new()),
        |entry| entry.data_ranges = Some(vec![0..1, 2..3, 9..10]),
        |entry| link(entry, EntryKind::Symlink, b""),
        |entry| link(entry, EntryKind::Hardlink, b"a/c"),
        |entry| {
            link(entry, EntryKind::BlockDevice, b"");
            entry.link_target = None;
            entry.device = (u32::MAX, 7);
        },
        |entry| {
            let attribute = |name: &[u8], value: &[u8]| ExtendedAttribute {
                name: name.to_vec(),
                value: value.to_vec(),
            };
            entry.attributes = vec![attribute(b"user.a", b""), attribute(b"user.b", &[0; 300])];
        },
        |entry| entry.header_recipe = vec![0; 70_000],
    ];
    for change in changes {
        let mut changed = entry(b"a/b");
        change(&mut changed);
        round_trip(std::slice::from_ref(&changed));
        round_trip(&[entry(b"a/b"), changed.clone(), entry(b"a/b"), changed]);
    }
    for kind in ENTRY_KINDS {
        let mut changed = entry(b"a/b");
        match kind {
            EntryKind::File | EntryKind::Other => changed.kind = kind,
            EntryKind::Raw => {
                changed.kind = kind;
                changed.path.clear();
            }
            kind => {
                link(&mut changed, kind, b"t");
                changed.link_target = changed.link_target.filter(|_| kind.is_link());
            }
        }
        round_trip(&[changed]);
    }
}

/// Turns an entry into one without data.
fn link(entry: &mut Entry, kind: EntryKind, target: &[u8]) {
    entry.kind = kind;
    entry.link_target = Some(target.to_vec());
    entry.size_bytes = 0;
}

fn ranges(bounds: &[(u64, u64)]) -> Vec<std::ops::Range<u64>> {
    bounds.iter().map(|&(start, end)| start..end).collect()
}

#[test]
fn rejects_invalid_entries() {
    type Change = fn(&mut Entry);
    let changes: [Change; 20] = [
        |entry| entry.path.clear(),
        |entry| entry.path = b"a\0b".to_vec(),
        |entry| entry.path = vec![b'a'; PATH_BYTES_MAX + 1],
        |entry| entry.kind = EntryKind::Raw,
        |entry| entry.kind = EntryKind::Directory,
        |entry| entry.kind = EntryKind::Symlink,
        |entry| entry.link_target = Some(b"y".to_vec()),
        |entry| entry.device = (0, 1),
        |entry| entry.content_offset = u64::MAX,
        |entry| entry.size_bytes = u64::MAX,
        |entry| entry.modified.nanoseconds = 1_000_000_000,
        |entry| entry.data_ranges = Some(ranges(&[(0, 11)])),
        |entry| entry.data_ranges = Some(ranges(&[(2, 2)])),
        |entry| entry.data_ranges = Some(ranges(&[(0, 2), (2, 3)])),
        |entry| entry.data_ranges = Some(ranges(&[(4, 5), (0, 2)])),
        |entry| entry.data_ranges = Some(ranges(&[(5, 3)])),
        |entry| {
            let attribute = ExtendedAttribute::default_for_test();
            entry.attributes = vec![attribute.clone(), attribute];
        },
        |entry| {
            let mut attribute = ExtendedAttribute::default_for_test();
            attribute.name.clear();
            entry.attributes = vec![attribute];
        },
        |entry| {
            entry.owner = Owner {
                user: b"a\0".to_vec(),
                ..Owner::default()
            }
            .into();
        },
        |entry| link(entry, EntryKind::Hardlink, &[b'x'; PATH_BYTES_MAX + 1]),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut changed = entry(b"a/b");
        change(&mut changed);
        assert!(pack_entries(&[changed]).is_err(), "change {number}");
    }
    assert!(pack_entries(&[]).is_err());
}

trait ForTest {
    fn default_for_test() -> Self;
}

impl ForTest for ExtendedAttribute {
    fn default_for_test() -> Self {
        Self {
            name: b"user.x".to_vec(),
            value: Vec::new(),
        }
    }
}

/// The entries of `versions` versions of a tree, in path order. Content is stored by path, the
/// versions of each side by side; every version changes every tenth file.
fn versions_of_a_tree(versions: u64, files: u64) -> Vec<Entry> {
    let mut entries = Vec::new();
    let size = |file: u64| 1000 + 37 * (file * file % 101);
    for version in 0..versions {
        let directory = |path: String| Entry {
            kind: EntryKind::Directory,
            size_bytes: 0,
            content_offset: 0,
            ..entry(path.as_bytes())
        };
        entries.push(directory(format!("v{version:02}")));
        for file in 0..files {
            if file % 50 == 0 {
                entries.push(directory(format!("v{version:02}/d{file:04}")));
            }
            let contents = |file: u64| if file.is_multiple_of(10) { versions } else { 1 };
            let before: u64 = (0..file).map(|file| size(file) * contents(file)).sum();
            let changed = version.min(contents(file) - 1);
            let path = format!("v{version:02}/d{:04}/f{file}.c", file / 50 * 50);
            entries.push(Entry {
                size_bytes: size(file),
                content_offset: before + changed * size(file),
                modified: Timestamp {
                    seconds: 1_700_000_000 + 86_400 * version as i64,
                    nanoseconds: 0,
                },
                ..entry(path.as_bytes())
            });
        }
    }
    entries
}

#[test]
fn versions_of_a_tree_cost_little_more_than_one() {
    let one = round_trip(&versions_of_a_tree(1, 200));
    let many = round_trip(&versions_of_a_tree(30, 200));
    let entries = 30 * (1 + 4 + 200);
    assert_eq!(many.entry_count, entries);
    // One byte of shape for each entry, and little else.
    let more = many.raw.len() as u64 - one.raw.len() as u64 - entries;
    assert!(more < 30 * 20, "{more} bytes for 29 versions");
}

/// Without limits, repeated long paths would let a frame of one megabyte unpack to gigabytes.
#[test]
fn rejects_batches_that_unpack_to_more_than_the_limit() {
    let count = ENTRY_BYTES_PER_FRAME_MAX / PATH_BYTES_MAX + 2;
    let entries: Vec<Entry> = (0..count)
        .map(|index| {
            let mut path = vec![b'a'; PATH_BYTES_MAX - 8];
            path.extend(format!("{index:08}").bytes());
            entry(&path)
        })
        .collect();
    assert!(matches!(
        pack_entries(&entries),
        Err(FormatError::OverLimit { .. })
    ));
    let batches: Vec<_> = entry_batches(&entries).collect();
    assert_eq!(batches.len(), 2);
    assert_eq!(batches.concat(), entries);
    for batch in batches {
        assert!(pack_entries(batch).unwrap().raw.len() < 1 << 17);
    }
}

#[test]
fn shared_attributes_and_recipes_count_for_each_entry() {
    let mut large = entry(b"x");
    large.header_recipe = vec![1; ENTRY_BYTES_PER_FRAME_MAX / 4];
    assert!(pack_entries(&vec![large.clone(); 3]).is_ok());
    assert!(pack_entries(&vec![large.clone(); 4]).is_err());
    large.header_recipe.clear();
    large.attributes = vec![ExtendedAttribute {
        name: b"user.x".to_vec(),
        value: vec![1; ENTRY_BYTES_PER_FRAME_MAX / 4],
    }];
    assert_eq!(entry_batches(&vec![large.clone(); 4]).count(), 2);
    let packed = pack_entries(&vec![large; 3]).unwrap();
    // The section of three entries, with the last one 98 times.
    let mut table = ByteReader::new("test", &packed.raw);
    let columns = table.varint().unwrap();
    assert_eq!((table.varint(), table.varint()), (Ok(1), Ok(3)));
    for _ in 1..columns {
        table.varint().unwrap();
        table.varint().unwrap();
    }
    let shapes = packed.raw.len() - table.remaining();
    let mut forged = packed.raw.clone();
    forged[2] = 100;
    forged.splice(shapes + 3..shapes + 3, [packed.raw[shapes + 2]; 97]);
    assert_eq!(
        unpack(3, b"x", &packed.raw).map(|entries| entries.len()),
        Ok(3)
    );
    assert!(matches!(
        unpack(100, b"x", &forged),
        Err(FormatError::OverLimit { .. })
    ));
}

#[test]
fn batches_hold_at_most_the_limit() {
    let entries = vec![entry(b"x"); ENTRIES_PER_BATCH + 1];
    let lengths: Vec<_> = entry_batches(&entries).map(<[Entry]>::len).collect();
    assert_eq!(lengths, [ENTRIES_PER_BATCH, 1]);
    let most = vec![entry(b"x"); ENTRIES_PER_FRAME_MAX as usize + 1];
    assert!(pack_entries(&most).is_err());
    round_trip(&most[1..]);
    assert_eq!(entry_batches(&[]).count(), 0);
}

#[test]
fn the_header_states_the_beginning_of_the_first_path() {
    let mut raw = entry(b"");
    raw.kind = EntryKind::Raw;
    let long = [b'p'; FIRST_PATH_BYTES_MAX + 9];
    let packed = round_trip(&[raw.clone(), entry(&long), entry(b"a")]);
    assert_eq!(packed.first_path, long[..FIRST_PATH_BYTES_MAX]);
    assert!(unpack(3, b"p", &packed.raw).is_err());
    assert_eq!(round_trip(&[raw]).first_path, b"");
}

#[test]
fn sorted_entries_are_recognized() {
    let paths = |paths: &[&[u8]]| -> Vec<Entry> { paths.iter().map(|path| entry(path)).collect() };
    assert!(entries_are_sorted(&paths(&[b"a", b"a/b", b"a-b"])));
    assert!(!entries_are_sorted(&paths(&[b"a", b"a-b", b"a/b"])));
    assert!(!entries_are_sorted(&paths(&[b"a", b"a"])));
    let mut with_raw = paths(&[b"b", b"", b"c"]);
    with_raw[1].kind = EntryKind::Raw;
    assert!(entries_are_sorted(&with_raw));
}

#[test]
fn columns_of_later_versions_are_skipped_or_unsupported() {
    let packed = round_trip(&[entry(b"a/b")]);
    let columns = usize::from(packed.raw[0]);
    let with_column = |id: u8| {
        let mut raw = packed.raw.clone();
        raw[0] += 1;
        raw.splice(1 + 2 * columns..1 + 2 * columns, [id, 2]);
        raw.extend([1, 2]);
        unpack(1, b"a/b", &raw)
    };
    assert_eq!(with_column(65), Ok(vec![entry(b"a/b")]));
    let class = |result: Result<Vec<Entry>>| result.map_err(|error| error.class());
    assert_eq!(class(with_column(63)), Err(ErrorClass::Unsupported));
    assert_eq!(class(with_column(1)), Err(ErrorClass::Damaged));
}

#[test]
fn stamps_are_a_column_of_four_bytes_for_each_file() {
    let mut stamped = entry(b"a/b");
    stamped.change_stamp = 0x0102_0304;
    let mut directory = entry(b"c");
    (directory.kind, directory.size_bytes) = (EntryKind::Directory, 0);
    directory.content_offset = 0;
    let entries = [stamped, directory, entry(b"d")];
    let packed = round_trip(&entries);
    assert!(packed.raw.ends_with(&[4, 3, 2, 1, 0, 0, 0, 0]));
    // Without any stamp the column is absent.
    let mut raw = packed.raw.clone();
    let end = raw.len();
    raw[end - 8..].fill(0);
    let read = unpack(3, &packed.first_path, &raw);
    assert_eq!(
        read.map_err(|error| error.class()),
        Err(ErrorClass::Damaged)
    );
}

fn class_after_change(entry: &Entry, bytes: &[u8], changed: &[u8]) -> ErrorClass {
    let packed = round_trip(std::slice::from_ref(entry));
    let mut raw = packed.raw.clone();
    let at = raw.windows(bytes.len()).position(|here| here == bytes);
    let at = at.expect("the section has these bytes");
    raw[at..at + bytes.len()].copy_from_slice(changed);
    let read = unpack(1, &packed.first_path, &raw);
    read.unwrap_err().class()
}

#[test]
fn unknown_kinds_are_unsupported_and_too_large_numbers_damaged() {
    let mut large = entry(b"a/b");
    large.mode = u32::MAX;
    large.modified = Timestamp {
        seconds: 1 << 40,
        nanoseconds: 999_999_999,
    };
    // Kind and mode; the mode becomes 2^33 - 1.
    let class_fields = [1, 0xff, 0xff, 0xff, 0xff, 0x0f];
    let kind = class_after_change(&large, &class_fields, &[12, 0xff, 0xff, 0xff, 0xff, 0x0f]);
    assert_eq!(kind, ErrorClass::Unsupported);
    let kind = class_after_change(&large, &class_fields, &[0xff, 0xff, 0xff, 0xff, 0x7f, 0x0f]);
    assert_eq!(kind, ErrorClass::Unsupported);
    let mode = class_after_change(&large, &class_fields, &[1, 0xff, 0xff, 0xff, 0xff, 0x1f]);
    assert_eq!(mode, ErrorClass::Damaged);
    let nanoseconds = [0xff, 0x93, 0xeb, 0xdc, 0x03];
    let time = class_after_change(&large, &nanoseconds, &[0xff, 0x93, 0xeb, 0xdc, 0x13]);
    assert_eq!(time, ErrorClass::Damaged);
}

#[test]
fn forged_counts_are_rejected_before_memory_is_allocated() {
    let packed = round_trip(&[entry(b"a/b")]);
    assert!(unpack(u64::MAX, b"a/b", &packed.raw).is_err());
    let class = |result: Result<Vec<Entry>>| result.map_err(|error| error.class());
    let one_more = class(unpack(2, b"a/b", &packed.raw));
    assert_eq!(one_more, Err(ErrorClass::Damaged));
    let too_many = class(unpack(ENTRIES_PER_FRAME_MAX + 1, b"a/b", &packed.raw));
    assert_eq!(too_many, Err(ErrorClass::Limit));
    assert!(unpack(0, b"", &packed.raw).is_err());
    assert!(unpack(1, b"", &[]).is_err());
    assert!(unpack(1, b"", &[0xff; 9]).is_err());
}

/// Sections that differ in one byte are rejected, or have other entries or references.
#[test]
fn damaged_sections_give_errors_or_valid_entries() {
    for seed in 0..4 {
        let packed = pack_entries(&entries_from_seed(seed, 12)).unwrap();
        for at in 0..packed.raw.len() {
            for value in [0, 1, 5, 0x7f, 0x80, 0xff] {
                let mut raw = packed.raw.clone();
                raw[at] = value;
                unpack_any_entries(&raw, packed.entry_count);
            }
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(refrain_testkit::scaled(256)))]
    #[test]
    fn any_entries_round_trip(seed in 0_u64..u64::MAX, count in 1_usize..100) {
        entries_round_trip(seed, count);
    }

    #[test]
    fn edited_sections_give_errors_or_entries_with_one_encoding(
        seed in 0_u64..u64::MAX,
        count in 1_usize..60,
        edits in proptest::collection::vec(proptest::prelude::any::<(u16, u8)>(), 1..3),
    ) {
        unpack_edited_entries(seed, count, &edits);
    }
}
