//! Splitter and view together: generated streams, samples of other programs, mutations of both.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::entry::{Entry, EntryKind, ExtendedAttribute, Owner, Timestamp};
use crate::tar::pax::push_pax;
use crate::tar::property::{
    Cuts, Parts, canonical_views_are_taken_apart, join, tar_streams_come_back, with_valid_checksums,
};
use crate::tar::record::{
    GID, GROUP, LINK, MAGIC, MODE, MTIME, NAME, RECORD_BYTES, Record, SIZE, TYPE, UID, USER,
    field_mut, put_base_256, put_checksum, put_octal, put_text,
};
use crate::tar::view::TarView;
use crate::tar::{ViewError, looks_like_tar};

/// Samples made by `tests/data/make-tars`: their entries, the maximum number of non-empty recipes,
/// and the maximum total size of recipes in bytes. Many have one entry of each kind.
const SAMPLES: &[(&str, usize, usize, usize)] = &[
    ("bsdtar-attributes", 7, 5, 524),
    ("bsdtar-gnutar", 22, 6, 222),
    ("bsdtar-pax", 22, 21, 1695),
    ("bsdtar-sparse", 8, 6, 665),
    ("bsdtar-ustar", 18, 2, 249),
    ("bsdtar-v7", 11, 2, 48),
    ("concatenated", 36, 7, 416),
    ("dpkg-data", 12, 0, 0),
    ("git", 14, 2, 252),
    ("gnutar-attributes", 7, 5, 449),
    ("gnutar-blocks", 10, 0, 0),
    ("gnutar-gnu", 22, 1, 11),
    ("gnutar-gnu-sparse", 8, 0, 0),
    ("gnutar-incremental", 10, 4, 87),
    ("gnutar-label", 11, 2, 104),
    ("gnutar-numeric", 22, 3, 56),
    ("gnutar-oldgnu", 22, 3, 42),
    ("gnutar-oldgnu-sparse", 8, 1, 12),
    ("gnutar-posix", 22, 15, 359),
    ("gnutar-posix-deterministic", 22, 3, 119),
    ("gnutar-posix-sparse", 8, 3, 187),
    ("gnutar-sparse-0.0", 8, 8, 2954),
    ("gnutar-sparse-0.1", 8, 8, 1667),
    ("gnutar-ustar", 19, 1, 29),
    ("gnutar-v7", 11, 2, 43),
    ("go-default", 21, 5, 380),
    ("go-gnu", 21, 9, 171),
    ("go-pax", 21, 16, 694),
    ("python-gnu", 32, 2, 52),
    ("python-pax", 32, 7, 160),
    ("python-ustar", 10, 1, 12),
];

fn sample(name: &str) -> Vec<u8> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let path = (root.join("tests/data/tars")).join(format!("{name}.tar"));
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn split(stream: &[u8]) -> Parts {
    let cuts = Cuts {
        window_bytes: RECORD_BYTES,
        restart_every: usize::MAX,
    };
    tar_streams_come_back(stream, cuts)
}

fn entries(parts: &Parts) -> impl Iterator<Item = &Entry> {
    (parts.entries.iter()).filter(|entry| entry.kind != EntryKind::Raw)
}

#[test]
fn samples_come_back_with_few_recipes() {
    for (name, count, recipes_max, bytes_max) in SAMPLES {
        let stream = sample(name);
        assert!(looks_like_tar(&stream[..RECORD_BYTES]), "{name}");
        let parts = split(&stream);
        let lengths: Vec<usize> = (entries(&parts))
            .map(|entry| entry.header_recipe.len())
            .collect();
        let recipes = lengths.iter().filter(|length| **length > 0).count();
        let bytes: usize = lengths.iter().sum();
        let found = (lengths.len(), recipes, bytes);
        let is_expected = found.0 == *count && recipes <= *recipes_max && bytes <= *bytes_max;
        assert!(is_expected, "{name}: {found:?}");
    }
}

#[test]
fn the_list_of_samples_is_complete() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/tars");
    let mut names: Vec<_> = (fs::read_dir(directory).unwrap())
        .map(|file| file.unwrap().path())
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_string())
        .collect();
    names.sort();
    let listed: Vec<_> = SAMPLES.iter().map(|sample| sample.0).collect();
    assert_eq!(names, listed);
}

fn found<'a>(parts: &'a Parts, path: &[u8]) -> &'a Entry {
    let entry = entries(parts).find(|entry| entry.path == path);
    entry.unwrap_or_else(|| panic!("{} is missing", path.escape_ascii()))
}

#[test]
fn fields_are_read_from_every_dialect() {
    for name in ["gnutar-gnu", "gnutar-posix", "bsdtar-pax", "bsdtar-gnutar"] {
        let parts = split(&sample(name));
        let file = found(&parts, b"./a");
        assert_eq!(file.mode, 0o4755, "{name}");
        assert_eq!(file.modified.seconds, 981_173_106, "{name}");
        let is_exact = name.ends_with('x');
        let nanoseconds = if is_exact { 123_456_789 } else { 0 };
        assert_eq!(file.modified.nanoseconds, nanoseconds, "{name}");
        assert_eq!(file.owner.user, b"root", "{name}");
        let owner = &found(&parts, b"./empty").owner;
        assert_eq!((owner.uid, owner.gid), (4_000_000, 5_000_000), "{name}");
        assert_eq!(found(&parts, b"./block").device, (8, 17), "{name}");
        assert_eq!(found(&parts, b".").kind, EntryKind::Directory, "{name}");
        let target = found(&parts, b"./long-target").link_target.as_deref();
        assert_eq!(target, Some(&[b't'; 150][..]), "{name}");
        let numbers = found(&parts, b"./deep/numbers");
        assert_eq!(
            (numbers.kind, numbers.size_bytes),
            (EntryKind::File, 692),
            "{name}"
        );
        let longest = entries(&parts).map(|entry| entry.path.len()).max();
        assert_eq!(longest, Some(2 + 4 + 1 + 90 + 1 + 90 + 1 + 120), "{name}");
    }
    for name in ["gnutar-gnu", "gnutar-posix", "python-gnu", "go-pax"] {
        let parts = split(&sample(name));
        let numbers = entries(&parts).find(|entry| entry.path.ends_with(b"deep/numbers"));
        assert_eq!(numbers.unwrap().modified.seconds, 10_413_792_000, "{name}");
    }
}

#[test]
fn sparse_files_are_read_from_every_form() {
    for name in [
        "gnutar-gnu-sparse",
        "gnutar-oldgnu-sparse",
        "gnutar-posix-sparse",
        "gnutar-sparse-0.0",
        "gnutar-sparse-0.1",
        "bsdtar-sparse",
    ] {
        let parts = split(&sample(name));
        let file = |path: &[u8]| {
            let file = found(&parts, path);
            (file.size_bytes, file.data_ranges.clone())
        };
        let (size, ranges) = file(b"sparse/all-hole");
        assert_eq!((size, ranges), (1 << 20, Some(Vec::new())), "{name}");
        let (size, ranges) = file(b"sparse/few");
        let pieces = vec![65536..69632, 262_144..266_240];
        assert_eq!((size, ranges), (1 << 20, Some(pieces)), "{name}");
        let (size, ranges) = file(b"sparse/huge");
        let piece = (9 << 30)..(9 << 30) + 4096;
        assert_eq!(
            (size, ranges.unwrap().first()),
            (10 << 30, Some(&piece)),
            "{name}"
        );
        let (_, ranges) = file(b"sparse/many");
        assert_eq!(ranges.unwrap().len(), 28, "{name}");
        let few = found(&parts, b"sparse/few");
        let start = usize::try_from(few.content_offset).unwrap();
        assert_eq!(&parts.content[start..start + 6], b"65536\0", "{name}");
        assert_eq!(
            &parts.content[start + 4096..start + 4102],
            b"262144",
            "{name}"
        );
    }
}

#[test]
fn attributes_are_read_from_both_forms() {
    for name in ["gnutar-attributes", "bsdtar-attributes"] {
        let parts = split(&sample(name));
        let attributes = &found(&parts, b"attributes/binary").attributes;
        let pairs: Vec<(&[u8], &[u8])> = (attributes.iter())
            .map(|attribute| (attribute.name.as_slice(), attribute.value.as_slice()))
            .collect();
        let expected: [(&[u8], &[u8]); 2] =
            [(b"user.binary", b"\0\n=\0%\xff"), (b"user.odd=50%", b"odd")];
        assert_eq!(pairs, expected, "{name}");
        assert_eq!(
            found(&parts, b"attributes/two").attributes.len(),
            2,
            "{name}"
        );
        assert!(
            found(&parts, b"attributes/last").attributes.is_empty(),
            "{name}"
        );
    }
}

#[test]
fn restarts_make_entries_independent() {
    let stream = sample("gnutar-gnu");
    let cuts = Cuts {
        window_bytes: RECORD_BYTES,
        restart_every: 5,
    };
    let mut parts = tar_streams_come_back(&stream, cuts);
    let whole = join(TarView::recorded(), &parts, 5);
    parts.entries.drain(..5);
    let tail = join(TarView::recorded(), &parts, 5);
    assert!(whole.ends_with(&tail) && !tail.is_empty());
}

#[test]
fn what_is_no_tar_does_not_look_like_one() {
    assert!(!looks_like_tar(&[]));
    for byte in 0..=255 {
        assert!(!looks_like_tar(&[byte; RECORD_BYTES]));
    }
    let source = include_bytes!("tests.rs");
    assert!(!source.windows(RECORD_BYTES).any(looks_like_tar));
    let tar = sample("gnutar-gnu");
    assert!(!looks_like_tar(&tar[..RECORD_BYTES - 1]));
    assert!(!looks_like_tar(&tar[1..]));
}

#[test]
fn headers_that_claim_too_much_are_raw() {
    for (flag, size) in [
        (b'x', 1 << 21),
        (b'L', 1 << 40),
        (b'0', u64::MAX),
        (b'g', 1 << 40),
    ] {
        let mut stream = Member::default().record(flag, b"name", size).to_vec();
        stream.extend_from_slice(&[b'-'; 3000]);
        let parts = split(&stream);
        assert_eq!(entries(&parts).count(), 0, "{}", char::from(flag));
    }
}

#[test]
fn long_stretches_that_are_no_tar_become_few_pieces() {
    let mut stream = sample("gnutar-gnu");
    stream.resize(stream.len() + (9 << 20), 1);
    stream.extend_from_slice(&sample("gnutar-blocks"));
    let parts = split(&stream);
    let raw = (parts.entries.iter()).filter(|entry| entry.kind == EntryKind::Raw);
    assert!((3..12).contains(&raw.count()));
    // The tar after it is found.
    found(&parts, b"plain/sub/file-513");
}

#[test]
fn sparse_files_without_room_for_a_map_are_raw() {
    let record = |key: &str, value: &[u8]| (key.as_bytes().to_vec(), value.to_vec());
    for data_bytes in [0, 1, 511, 512, 513] {
        let member = Member {
            dialect: 4,
            flag: b'0',
            path: b"name".to_vec(),
            data_bytes,
            records: vec![
                record("GNU.sparse.major", b"1"),
                record("GNU.sparse.size", b"1"),
            ],
            ..Member::default()
        };
        let mut stream = Vec::new();
        member.append_to(&mut stream);
        for end in [stream.len(), stream.len() - data_bytes / 2] {
            assert_eq!(entries(&split(&stream[..end])).count(), 0, "{data_bytes}");
        }
    }
}

#[test]
fn texts_that_no_entry_can_hold_are_raw() {
    let long = [b'p'; 70_000];
    for (key, value) in [
        (&b"path"[..], &b"a\0b"[..]),
        (b"path", &long),
        (b"linkpath", b"\0"),
        (b"uname", b"a\0"),
        (b"gname", &long),
    ] {
        let member = Member {
            dialect: 4,
            flag: b'2',
            path: b"name".to_vec(),
            link: b"link".to_vec(),
            records: vec![(key.to_vec(), value.to_vec())],
            ..Member::default()
        };
        let mut stream = Vec::new();
        member.append_to(&mut stream);
        let parts = split(&stream);
        let kinds: Vec<_> = parts.entries.iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, [EntryKind::Raw], "{}", key.escape_ascii());
    }
}

#[test]
fn malformed_entries_have_no_view() {
    let view = |entry: &Entry| TarView::recorded().entry(entry).unwrap_err();
    let entry = |recipe: &[u8]| Entry {
        path: b"a".to_vec(),
        header_recipe: recipe.to_vec(),
        ..Entry::default()
    };
    for recipe in [
        &b"\x08"[..],
        b"\x00\x00",
        b"\x04",
        b"\x04\x01\x01",
        b"\x04\x0b",
        b"\x04\x03x\x01\x01\x00\x00",
        b"\x04\x03g\x00",
        b"\x04\x80\x00",
        b"\x04\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01a",
        b"\x04\x00\x80\x04\x01a",
        b"\x04\x00\x00\x05a",
    ] {
        assert_eq!(view(&entry(recipe)), ViewError::Recipe, "{recipe:?}");
    }
    let sparse = |ranges: &[std::ops::Range<u64>]| Entry {
        size_bytes: 10,
        data_ranges: Some(ranges.to_vec()),
        ..entry(b"")
    };
    for ranges in [
        [0..5, 4..6],
        [4..5, 0..1],
        [0..1, 2..11],
        [std::ops::Range { start: 3, end: 1 }, 4..5],
    ] {
        assert_eq!(view(&sparse(&ranges)), ViewError::DataRanges, "{ranges:?}");
    }
}

// ------------------------------------------------------------------------- generated streams

/// A member of a generated tar stream, in the dialect of some program.
#[derive(Debug, Clone, Default)]
struct Member {
    dialect: usize,
    flag: u8,
    path: Vec<u8>,
    link: Vec<u8>,
    uid: u64,
    seconds: i64,
    data_bytes: usize,
    odd_padding: bool,
    records: Vec<(Vec<u8>, Vec<u8>)>,
}

const MAGICS: [&[u8]; 3] = [b"ustar  ", b"ustar\x0000", b""];

impl Member {
    fn record(&self, flag: u8, name: &[u8], size: u64) -> Record {
        let mut record = [0; RECORD_BYTES];
        put_text(&mut record, NAME, name);
        put_text(&mut record, TYPE, &[flag]);
        put_text(&mut record, LINK, &self.link);
        put_text(&mut record, MAGIC, MAGICS[self.dialect % 3]);
        put_text(&mut record, USER, b"user");
        put_text(&mut record, GROUP, b"group");
        put_octal(&mut record, MODE, 0o644);
        for (at, value) in [
            (UID, i128::from(self.uid)),
            (GID, 100),
            (SIZE, i128::from(size)),
            (MTIME, i128::from(self.seconds)),
        ] {
            match u64::try_from(value) {
                Ok(value) if value < 1 << 21 => put_octal(&mut record, at, value),
                _ => put_base_256(field_mut(&mut record, at), value),
            }
        }
        put_checksum(&mut record);
        record
    }

    fn push_extension(&self, stream: &mut Vec<u8>, flag: u8, data: &[u8]) {
        let record = self.record(flag, b"././@LongLink", data.len() as u64);
        stream.extend_from_slice(&record);
        stream.extend_from_slice(data);
        stream.resize(stream.len().next_multiple_of(RECORD_BYTES), 0);
    }

    fn append_to(&self, stream: &mut Vec<u8>) {
        if self.dialect < 3 && self.path.len() > 100 {
            self.push_extension(stream, b'L', &[self.path.as_slice(), b"\0"].concat());
        }
        let mut records = Vec::new();
        if self.dialect >= 3 && self.path.len() > 100 {
            push_pax(&mut records, b"path", &self.path);
        }
        for (key, value) in &self.records {
            push_pax(&mut records, key, value);
        }
        if !records.is_empty() {
            self.push_extension(stream, b'x', &records);
        }
        let record = self.record(self.flag, &self.path, self.data_bytes as u64);
        stream.extend_from_slice(&record);
        stream.resize(stream.len() + self.data_bytes, b'd');
        let padding = u8::from(self.odd_padding);
        stream.resize(stream.len().next_multiple_of(RECORD_BYTES), padding);
    }
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![8 => select(b"ab/.".to_vec()), 1 => 1_u8..=255];
    proptest::collection::vec(byte, 1..220)
}

fn pax_record() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let keys = [
        &b"atime"[..],
        b"ctime",
        b"mtime",
        b"path",
        b"linkpath",
        b"uid",
        b"size",
        b"uname",
        b"SCHILY.xattr.user.a",
        b"SCHILY.xattr.user.b",
        b"LIBARCHIVE.xattr.user.a",
        b"GNU.sparse.major",
        b"GNU.sparse.map",
        b"GNU.sparse.size",
        b"odd",
    ];
    let values = [
        &b"1"[..],
        b"1700000000.5",
        b"99.123456789",
        b"",
        b"0,1,5,2",
        b"\xff\n",
    ];
    let value = select(values.to_vec()).prop_map(<[u8]>::to_vec);
    (select(keys.to_vec()).prop_map(<[u8]>::to_vec), value)
}

fn member() -> impl Strategy<Value = Member> {
    let flags = b"000000000555112345679LKxgSVD\0".to_vec();
    let records = proptest::collection::vec(pax_record(), 0..4);
    let seconds = prop_oneof![Just(1_700_000_000), -5_i64..5, any::<i64>()];
    let uid = prop_oneof![Just(1000), any::<u64>()];
    let strategy = (
        0_usize..6,
        select(flags),
        name(),
        name(),
        uid,
        seconds,
        0_usize..1100,
    );
    (strategy, proptest::bool::weighted(0.1), records).prop_map(
        |((dialect, flag, path, link, uid, seconds, data_bytes), odd_padding, records)| Member {
            dialect,
            flag,
            link: if matches!(flag, b'1' | b'2') { link } else { Vec::new() },
            path,
            uid,
            seconds,
            data_bytes,
            odd_padding,
            records: if dialect >= 3 { records } else { Vec::new() },
        },
    )
}

fn cuts() -> impl Strategy<Value = Cuts> {
    (1_usize..3000, 1_usize..10).prop_map(|(window_bytes, restart_every)| Cuts {
        window_bytes,
        restart_every,
    })
}

/// Changes to a stream: bytes, the end, and whether checksums are made valid again.
fn mutate(stream: &mut Vec<u8>, changes: &[(Index, u8)], end: Option<Index>, is_valid: bool) {
    for (at, byte) in changes {
        let at = at.index(stream.len());
        stream[at] = *byte;
    }
    if is_valid {
        with_valid_checksums(stream);
    }
    if let Some(end) = end {
        stream.truncate(end.index(stream.len()));
    }
}

fn changes() -> impl Strategy<Value = (Vec<(Index, u8)>, Option<Index>, bool)> {
    let byte = prop_oneof![any::<u8>(), select(b"0123 \0=\nxLS".to_vec())];
    let changes = proptest::collection::vec((any::<Index>(), byte), 0..12);
    (changes, proptest::option::of(any::<Index>()), any::<bool>())
}

proptest! {
    #[test]
    fn random_bytes(stream in proptest::collection::vec(any::<u8>(), 0..5000), cuts in cuts()) {
        tar_streams_come_back(&stream, cuts);
    }

    #[test]
    fn random_bytes_after_a_header(member in member(), cuts in cuts(),
                                   bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let mut stream = Vec::new();
        member.append_to(&mut stream);
        stream.extend_from_slice(&bytes);
        tar_streams_come_back(&stream, cuts);
    }

    #[test]
    fn generated_tars(members in proptest::collection::vec(member(), 0..12), cuts in cuts(),
                      (changes, end, is_valid) in changes()) {
        let mut stream = Vec::new();
        members.iter().for_each(|member| member.append_to(&mut stream));
        stream.resize(stream.len() + 1024, 0);
        mutate(&mut stream, &changes, end, is_valid);
        tar_streams_come_back(&stream, cuts);
    }

    #[test]
    fn mutated_samples(first in select(SAMPLES), second in select(SAMPLES), cuts in cuts(),
                       (changes, end, is_valid) in changes()) {
        let mut stream = sample(first.0);
        // The headers are near the start, and the sparse samples are long.
        stream.truncate(40_000);
        mutate(&mut stream, &changes, end, is_valid);
        stream.extend_from_slice(&sample(second.0)[..8192]);
        tar_streams_come_back(&stream, cuts);
    }
}

// ------------------------------------------------------------------------ the canonical view

fn tree() -> Parts {
    let file = |path: &[u8], size_bytes: u64| Entry {
        path: path.to_vec(),
        mode: 0o640,
        size_bytes,
        owner: Arc::new(Owner {
            uid: 1000,
            gid: 100,
            user: b"someone".to_vec(),
            group: b"users".to_vec(),
        }),
        modified: Timestamp {
            seconds: 1_700_000_000,
            nanoseconds: 0,
        },
        ..Entry::default()
    };
    let special = |path: &[u8], kind, device| Entry {
        kind,
        device,
        ..file(path, 0)
    };
    let link = |path: &[u8], kind, target: &[u8]| Entry {
        kind,
        link_target: Some(target.to_vec()),
        ..file(path, 0)
    };
    let attribute = |name: &[u8], value: &[u8]| ExtendedAttribute {
        name: name.to_vec(),
        value: value.to_vec(),
    };
    let before_epoch = Timestamp {
        seconds: -2,
        nanoseconds: 250_000_000,
    };
    let mut entries = vec![
        special(b".", EntryKind::Directory, (0, 0)),
        file(b"a", 5),
        file(b"empty", 0),
        special(b"block", EntryKind::BlockDevice, (8, 17)),
        special(b"char", EntryKind::CharacterDevice, (1, 3)),
        special(b"large-minor", EntryKind::CharacterDevice, (1, 1 << 22)),
        special(b"fifo", EntryKind::Fifo, (0, 0)),
        special(&[b'd'; 100], EntryKind::Directory, (0, 0)),
        link(b"hard", EntryKind::Hardlink, b"a"),
        link(b"soft", EntryKind::Symlink, &[b't'; 300]),
        file("größe".as_bytes(), 512),
        file(&[b'n'; 255], 513),
        file(b"latin-\xe9", 1),
    ];
    entries.push(Entry {
        modified: before_epoch,
        owner: Arc::new(Owner {
            uid: 1 << 40,
            gid: u64::MAX,
            user: vec![b'u'; 40],
            group: vec![b'g'; 33],
        }),
        ..file(b"times-and-owners", 3)
    });
    entries.push(Entry {
        attributes: vec![
            attribute(
                b"system.posix_acl_access",
                &[2, 0, 0, 0, 1, 0, 7, 0, 0, 0, 0, 0],
            ),
            attribute(b"system.posix_acl_default", &[2, 0, 0, 0, 1, 0]),
            attribute(b"user.odd=50%", b"a\n=\0\xff"),
            attribute(b"user.text", b"text"),
        ],
        ..file(b"attributes", 7)
    });
    for (path, size, ranges) in [
        (&b"all-hole"[..], 1 << 40, Vec::new()),
        (b"start", 5000, vec![0..100, 4999..5000]),
        (b"end", 1 << 34, vec![4096..8192, 1 << 33..(1 << 33) + 1]),
    ] {
        entries.push(Entry {
            data_ranges: Some(ranges),
            ..file(path, size)
        });
    }
    let mut content = Vec::new();
    for entry in &mut entries {
        let stored_bytes = usize::try_from(entry.stored_bytes()).unwrap();
        entry.content_offset = content.len() as u64;
        content.resize(content.len() + stored_bytes, entry.path[0]);
    }
    Parts { entries, content }
}

#[test]
fn canonical_views_give_the_same_entries() {
    canonical_views_are_taken_apart(&tree());
    canonical_views_are_taken_apart(&Parts::default());
}

/// GNU tar's listing of a stream.
fn listed(stream: &[u8]) -> String {
    let mut tar = (Command::new("tar").env("LC_ALL", "C").env("TZ", "UTC0"))
        .args(["--numeric-owner", "--full-time", "-tvf", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    tar.stdin.take().unwrap().write_all(stream).unwrap();
    let output = tar.wait_with_output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && messages.is_empty(), "{messages}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn gnu_tar_reads_the_canonical_view() {
    let mut parts = tree();
    // GNU tar has no id_t that holds it.
    parts
        .entries
        .retain(|entry| entry.path != b"times-and-owners");
    let list = listed(&join(TarView::canonical(), &parts, 1));
    assert_eq!(list.lines().count(), parts.entries.len());
    let words = |line: &str| -> Vec<String> {
        line.split(' ')
            .filter(|word| !word.is_empty())
            .map(String::from)
            .collect()
    };
    let is_listed = |line: &str| list.lines().any(|found| words(found) == words(line));
    for line in [
        "drw-r----- 1000/100 0 2023-11-14 22:13:20 ./",
        "-rw-r----- 1000/100 5 2023-11-14 22:13:20 a",
        "brw-r----- 1000/100 8,17 2023-11-14 22:13:20 block",
        "prw-r----- 1000/100 0 2023-11-14 22:13:20 fifo",
        "hrw-r----- 1000/100 0 2023-11-14 22:13:20 hard link to a",
        "-rw-r----- 1000/100 1099511627776 2023-11-14 22:13:20 all-hole",
        "-rw-r----- 1000/100 5000 2023-11-14 22:13:20 start",
        "-rw-r----- 1000/100 17179869184 2023-11-14 22:13:20 end",
    ] {
        assert!(is_listed(line), "{line} in\n{list}");
    }
}

fn entry_of_a_tree() -> impl Strategy<Value = (Entry, usize)> {
    let path = proptest::collection::vec(1_u8..=255, 1..250).prop_map(|mut path| {
        path.push(b'n');
        path
    });
    let kinds = [
        EntryKind::File,
        EntryKind::Directory,
        EntryKind::Symlink,
        EntryKind::Hardlink,
    ];
    let text = || proptest::collection::vec(1_u8..=255, 0..120);
    let owner = (any::<u64>(), any::<u64>(), text(), text());
    let attributes = proptest::collection::btree_map(
        proptest::collection::vec(1_u8..=255, 1..20),
        proptest::collection::vec(any::<u8>(), 0..50),
        0..3,
    );
    let time = (any::<i64>(), 0_u32..Timestamp::NANOSECONDS_END);
    let holes = proptest::option::of(proptest::collection::vec((1_u64..1 << 36, 1_u64..9), 0..30));
    let numbers = (0_u32..0o10000, 0_usize..2000);
    (
        path,
        select(kinds.to_vec()),
        owner,
        attributes,
        time,
        holes,
        numbers,
        text(),
    )
        .prop_map(
            |(path, kind, (uid, gid, user, group), attributes, time, holes, numbers, link)| {
                let mut size_bytes = numbers.1 as u64;
                let is_file = kind == EntryKind::File;
                let data_ranges = holes.filter(|_| is_file).map(|holes| {
                    let mut end = 0;
                    let ranges = holes.into_iter().map(|(hole, data)| {
                        let start = end + hole;
                        end = start + data;
                        start..end
                    });
                    let ranges: Vec<_> = ranges.collect();
                    size_bytes += end;
                    ranges
                });
                let entry = Entry {
                    path,
                    kind,
                    mode: numbers.0,
                    owner: Arc::new(Owner {
                        uid,
                        gid,
                        user,
                        group,
                    }),
                    modified: Timestamp {
                        seconds: time.0,
                        nanoseconds: time.1,
                    },
                    size_bytes: if is_file { size_bytes } else { 0 },
                    data_ranges,
                    link_target: kind.is_link().then_some(link),
                    attributes: (attributes.into_iter())
                        .map(|(name, value)| ExtendedAttribute { name, value })
                        .collect(),
                    ..Entry::default()
                };
                (entry, numbers.1)
            },
        )
}

proptest! {
    #[test]
    fn trees_round_trip_through_the_canonical_view(
        entries in proptest::collection::vec(entry_of_a_tree(), 0..5),
    ) {
        let mut parts = Parts::default();
        for (mut entry, _) in entries {
            entry.content_offset = parts.content.len() as u64;
            let length = parts.content.len() + usize::try_from(entry.stored_bytes()).unwrap();
            parts.content.resize(length, b'c');
            parts.entries.push(entry);
        }
        canonical_views_are_taken_apart(&parts);
    }
}
