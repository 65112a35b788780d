//! A cache in front of an archive: what it has is checked, and read anew if it is wrong.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use refrain::storage::{CachedRanges, NamedRange, Source};
use refrain::{Archive, CompressOptions, MemberInput, ReadOptions, archive_identity};

use crate::common::{archive_of, file, read_options, source};
use crate::encrypted_generations::{encryption, secrets};
use crate::generations::{add_to, label};

/// Keeps every range in memory.
struct Cached {
    origin: Arc<dyn Source>,
    ranges: Mutex<HashMap<(u64, usize), Vec<u8>>>,
    /// Reads from the cache, of these from the origin, and those that were repeated.
    counts: [AtomicU64; 3],
}

impl Cached {
    fn new(archive: &[u8]) -> Arc<Cached> {
        Arc::new(Cached {
            origin: source(archive),
            ranges: Mutex::default(),
            counts: Default::default(),
        })
    }

    fn take_counts(&self) -> [u64; 3] {
        [0, 1, 2].map(|at| self.counts[at].swap(0, Ordering::Relaxed))
    }
}

impl Source for Cached {
    fn size_bytes(&self) -> io::Result<u64> {
        self.origin.size_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.origin.read_at(offset, buffer)
    }

    fn cache(&self) -> Option<&dyn CachedRanges> {
        Some(self)
    }
}

impl CachedRanges for Cached {
    fn read_cached(
        &self,
        offset: u64,
        buffer: &mut [u8],
        _named: Option<&dyn NamedRange>,
    ) -> io::Result<usize> {
        self.counts[0].fetch_add(1, Ordering::Relaxed);
        let mut ranges = self.ranges.lock().unwrap();
        if let Some(found) = ranges.get(&(offset, buffer.len())) {
            buffer.copy_from_slice(found);
            return Ok(buffer.len());
        }
        self.counts[1].fetch_add(1, Ordering::Relaxed);
        let count = self.origin.read_at(offset, buffer)?;
        ranges.insert((offset, buffer.len()), buffer.to_vec());
        Ok(count)
    }

    fn read_anew(
        &self,
        offset: u64,
        buffer: &mut [u8],
        _named: Option<&dyn NamedRange>,
    ) -> io::Result<bool> {
        self.counts[2].fetch_add(1, Ordering::Relaxed);
        let before = buffer.to_vec();
        self.origin.read_at(offset, buffer)?;
        let mut ranges = self.ranges.lock().unwrap();
        ranges.insert((offset, buffer.len()), buffer.to_vec());
        Ok(before != buffer)
    }
}

fn content() -> Vec<u8> {
    (0..2_000_000_u32)
        .flat_map(|number| (number.wrapping_mul(2_654_435_761) >> 7).to_le_bytes())
        .collect()
}

/// Archives with many blocks: plain, and encrypted.
fn archives() -> [(Vec<u8>, ReadOptions); 2] {
    let options = CompressOptions {
        block_bytes: Some(64 << 10),
        ..crate::common::options(1, 2)
    };
    let content = content();
    let (plain, _) = archive_of(vec![file("a", &content)], &options);
    let options = CompressOptions {
        encryption: Some(encryption()),
        ..options
    };
    let (encrypted, _) = archive_of(vec![file("a", &content)], &options);
    let reading = ReadOptions {
        identities: secrets(1, "latest").identities,
        ..read_options(2)
    };
    [(plain, read_options(2)), (encrypted, reading)]
}

fn read_all(cached: &Arc<Cached>, options: &ReadOptions) -> Vec<u8> {
    let archive = Archive::open(Arc::clone(cached) as Arc<dyn Source>, options).unwrap();
    let mut read = vec![0; content().len()];
    assert_eq!(archive.read_at(0, 0, &mut read).unwrap(), read.len());
    read
}

#[test]
fn frames_come_from_the_cache_and_wrong_ones_are_read_anew() {
    for (archive, options) in archives() {
        let cached = Cached::new(&archive);
        assert!(read_all(&cached, &options) == content());
        let [reads, from_origin, anew] = cached.take_counts();
        let ranges = cached.ranges.lock().unwrap().len() as u64;
        assert!(
            ranges >= 50 && from_origin == ranges && anew == 0,
            "{ranges} {reads}"
        );
        assert!(read_all(&cached, &options) == content());
        assert_eq!(cached.take_counts(), [reads, 0, 0]);
        // What the cache has of an encrypted archive are bytes of its file.
        for ((offset, length), bytes) in &*cached.ranges.lock().unwrap() {
            let at = *offset as usize;
            assert!(bytes[..] == archive[at..at + length]);
        }
        // A bit of every range is flipped.
        for (number, bytes) in cached.ranges.lock().unwrap().values_mut().enumerate() {
            let at = number * 7919 % bytes.len();
            bytes[at] ^= 1 << (number % 8);
        }
        assert!(read_all(&cached, &options) == content());
        let [_, from_origin, anew] = cached.take_counts();
        assert_eq!((from_origin, anew), (0, ranges));
        assert!(read_all(&cached, &options) == content());
        assert_eq!(cached.take_counts(), [reads, 0, 0]);
    }
}

#[test]
fn damage_of_the_archive_itself_is_reported_behind_a_cache_too() {
    for (archive, options) in archives() {
        let mut damaged = archive.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        let cached = Cached::new(&damaged);
        let source = Arc::clone(&cached) as Arc<dyn Source>;
        let archive = Archive::open(source, &options).unwrap();
        let mut read = vec![0; content().len()];
        for _ in 0..2 {
            let error = archive.read_at(0, 0, &mut read).unwrap_err();
            assert_eq!(error.kind, refrain::ErrorKind::Damaged);
        }
    }
}

#[test]
fn copies_have_one_identity_and_other_archives_another() {
    let identity = |archive: &[u8]| archive_identity(&*source(archive)).unwrap();
    let mut seen = Vec::new();
    for (archive, _) in archives() {
        let found = identity(&archive).unwrap();
        assert_eq!(identity(&archive), Some(found));
        assert!(!seen.contains(&found));
        seen.push(found);
        let cut = &archive[..archive.len() - 1];
        assert_eq!(identity(cut), None);
    }
    // One byte of content, in an archive of the same length.
    let small = |byte: u8| {
        let options = crate::common::options(1, 1);
        archive_of(vec![file("a", &[byte; 10])], &options).0
    };
    assert_eq!(small(1).len(), small(2).len());
    assert_ne!(identity(&small(1)), identity(&small(2)));
    assert_eq!(identity(b"no archive"), None);
    assert_eq!(identity(b""), None);
}

/// The archive with a generation more.
fn grown(archive: &[u8], members: Vec<MemberInput>, options: &CompressOptions) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.rfn");
    std::fs::write(&path, archive).unwrap();
    add_to(&path, members, options, label(1, &[])).unwrap();
    std::fs::read(&path).unwrap()
}

/// What several archives share: values by their names. Ranges without a name are not kept.
#[derive(Default)]
struct Names {
    values: Mutex<HashMap<[u8; 16], Vec<u8>>>,
    /// Ranges that had a name, and of these those from the source.
    counts: [AtomicU64; 2],
}

struct Sharing {
    origin: Arc<dyn Source>,
    names: Arc<Names>,
}

impl Source for Sharing {
    fn size_bytes(&self) -> io::Result<u64> {
        self.origin.size_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.origin.read_at(offset, buffer)
    }

    fn cache(&self) -> Option<&dyn CachedRanges> {
        Some(self)
    }
}

impl CachedRanges for Sharing {
    fn read_cached(
        &self,
        offset: u64,
        buffer: &mut [u8],
        named: Option<&dyn NamedRange>,
    ) -> io::Result<usize> {
        let Some(named) = named else { return self.read_at(offset, buffer) };
        self.names.counts[0].fetch_add(1, Ordering::Relaxed);
        let mut values = self.names.values.lock().unwrap();
        let found = values.get(&named.name());
        if let Some(range) = found.and_then(|value| named.range_of(value)) {
            assert_eq!(range.len(), buffer.len());
            buffer.copy_from_slice(&range);
            return Ok(buffer.len());
        }
        self.names.counts[1].fetch_add(1, Ordering::Relaxed);
        let count = self.read_at(offset, buffer)?;
        values.insert(named.name(), named.value_of(buffer).unwrap());
        Ok(count)
    }

    fn read_anew(&self, _: u64, _: &mut [u8], _: Option<&dyn NamedRange>) -> io::Result<bool> {
        panic!("what has the right name is right")
    }
}

impl Names {
    /// Reads a member of a generation. Returns how many blocks had a name, and how many were not
    /// there.
    fn read(self: &Arc<Names>, archive: &[u8], of: (&str, usize), expected: &[u8]) -> [u64; 2] {
        let (generation, member) = of;
        let sharing = Sharing {
            origin: source(archive),
            names: Arc::clone(self),
        };
        let options = ReadOptions {
            generation: generation.parse().unwrap(),
            ..read_options(2)
        };
        let archive = Archive::open(Arc::new(sharing), &options).unwrap();
        let mut read = vec![0; expected.len()];
        assert_eq!(archive.read_at(member, 0, &mut read).unwrap(), read.len());
        assert!(read == expected);
        [0, 1].map(|at| self.counts[at].swap(0, Ordering::Relaxed))
    }
}

fn random(seed: u64, bytes: usize) -> Vec<u8> {
    let mut content = vec![0; bytes];
    refrain_testkit::Rng::new(seed).fill(&mut content);
    content
}

#[test]
fn blocks_that_archives_and_generations_share_have_one_name() {
    let options = |block_hashes| CompressOptions {
        block_bytes: Some(64 << 10),
        block_hashes,
        ..crate::common::options(1, 2)
    };
    // One is stored as it is, the other one compressed.
    for common in [random(1, 20 << 16), content()[..20 << 16].to_vec()] {
        let other = random(2, 5 << 16);
        let names = Arc::new(Names::default());
        let (one, _) = archive_of(vec![file("a", &common)], &options(true));
        let [named, missing] = names.read(&one, ("latest", 0), &common);
        assert!(named >= 20 && missing == named, "{named} {missing}");
        // Another archive that has it too, elsewhere.
        let members = vec![file("b", &other), file("c", &common)];
        let (two, _) = archive_of(members, &options(true));
        let [named, missing] = names.read(&two, ("latest", 1), &common);
        assert!(named >= 20 && missing == 0, "{named} {missing}");
        // What was added, without being told so, has names, and what was there keeps them.
        let grown = grown(&one, vec![file("d", &other)], &options(false));
        assert_eq!(names.read(&grown, ("0", 0), &common)[1], 0);
        assert!(names.read(&grown, ("latest", 0), &other)[0] >= 5);
        // Values that somebody replaced are not taken.
        for value in names.values.lock().unwrap().values_mut() {
            *value.last_mut().unwrap() ^= 1;
        }
        let [named, missing] = names.read(&one, ("latest", 0), &common);
        assert!(named >= 20 && missing == named, "{named} {missing}");
        let (without, _) = archive_of(vec![file("a", &common)], &options(false));
        assert_eq!(names.read(&without, ("latest", 0), &common), [0, 0]);
        // 18 bytes for each block, and some for more nodes.
        let more_bytes = one.len() - without.len();
        assert!((18 * 20..19 * 24).contains(&more_bytes), "{more_bytes}");
    }
}
