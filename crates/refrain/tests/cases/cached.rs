//! A cache in front of an archive: what it has is checked, and read anew if it is wrong.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use refrain::storage::{CachedRanges, Source};
use refrain::{Archive, CompressOptions, ReadOptions, archive_identity};

use crate::common::{archive_of, file, read_options, source};
use crate::encrypted_generations::{encryption, secrets};

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
    fn read_cached(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
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

    fn read_anew(&self, offset: u64, buffer: &mut [u8]) -> io::Result<bool> {
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
