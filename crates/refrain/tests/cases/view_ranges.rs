//! Ranges of the tar streams of directories and tar members.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{read_options, source};
use refrain::storage::{MemorySink, Sink, Source};
use refrain::{Archive, Entry, Unwatched};
use refrain_format::MemberKind;
use refrain_testkit::{EntryListMember, Rng, data, entry_lists, scaled};

/// A member with frames of many sizes. A tree's are in path order, or have to be read in slices.
fn list(seed: u64, is_tar: bool, is_sorted: bool) -> EntryListMember {
    let content = data::text(50_000, seed);
    let mut rng = Rng::new(seed);
    let make = if is_tar { entry_lists::tar_entries } else { entry_lists::tree_entries };
    let mut entries = make(seed, 2000, content.len() as u64);
    let mut frames: Vec<Vec<Entry>> = vec![];
    while !entries.is_empty() {
        let count = 1 + rng.below(600) as usize;
        let rest = entries.split_off(count.min(entries.len()));
        frames.push(std::mem::replace(&mut entries, rest));
    }
    if !is_sorted {
        let (first, second): (Vec<_>, Vec<_>) =
            (frames.concat().into_iter().enumerate()).partition(|(number, _)| number % 7 < 3);
        let without_numbers = |part: Vec<(usize, Entry)>| part.into_iter().map(|(_, entry)| entry);
        frames = vec![
            without_numbers(first).collect(),
            without_numbers(second).collect(),
        ];
    }
    EntryListMember {
        kind: if is_tar { MemberKind::Tar } else { MemberKind::Tree },
        frames,
        content,
    }
}

fn whole_view(archive: &Archive) -> Vec<u8> {
    let mut sink = MemorySink::new();
    let output = sink.output();
    archive.write_member(0, &mut sink, &Unwatched).unwrap();
    sink.publish().unwrap();
    output.published().unwrap()
}

#[test]
fn ranges_in_any_order_are_parts_of_the_whole() {
    for seed in 0..u64::from(scaled(4)) {
        for (is_tar, is_sorted) in [(true, true), (false, true), (false, false)] {
            let bytes = list(seed, is_tar, is_sorted).archive(|_| {});
            let archive = Archive::open(source(&bytes), &read_options(2)).unwrap();
            let view = whole_view(&archive);
            let mut rng = Rng::new(seed);
            for _ in 0..40 {
                let start = rng.below(view.len() as u64 + 2000) as usize;
                let mut buffer = vec![1; rng.below(100_000) as usize];
                let count = archive.read_at(0, start as u64, &mut buffer).unwrap();
                let rest = view.get(start..).unwrap_or_default();
                let expected = &rest[..rest.len().min(buffer.len())];
                assert!(
                    &buffer[..count] == expected,
                    "{seed} at {start}: {count} bytes"
                );
            }
        }
    }
}

#[test]
fn threads_that_read_one_view_get_its_bytes() {
    let bytes = list(9, true, true).archive(|_| {});
    let archive = Archive::open(source(&bytes), &read_options(2)).unwrap();
    let view = whole_view(&archive);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut read = vec![];
                let mut piece = vec![0; 70_000];
                while read.len() < view.len() {
                    let count = archive.read_at(0, read.len() as u64, &mut piece).unwrap();
                    assert!(count > 0);
                    read.extend_from_slice(&piece[..count]);
                }
                assert!(read == view);
            });
        }
    });
}

/// Counts the bytes read from an archive.
struct Counted {
    inner: Arc<dyn Source>,
    bytes: AtomicU64,
}

impl Source for Counted {
    fn size_bytes(&self) -> io::Result<u64> {
        self.inner.size_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read_at(offset, buffer)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[test]
fn a_range_after_another_reads_no_entries_again() {
    let bytes = list(3, true, true).archive(|_| {});
    let counted = Arc::new(Counted {
        inner: source(&bytes),
        bytes: AtomicU64::new(0),
    });
    let archive = Archive::open(counted.clone(), &read_options(2)).unwrap();
    let length = archive.member(0).unwrap().content_bytes;
    let mut buffer = vec![0; 1000];
    let mut whole = vec![0; length as usize];
    archive.read_at(0, 0, &mut whole).unwrap();
    let before = counted.bytes.load(Ordering::Relaxed);
    for part in 0..100 {
        archive
            .read_at(0, length / 100 * part, &mut buffer)
            .unwrap();
    }
    // Content, maps and entries are in memory.
    assert_eq!(counted.bytes.load(Ordering::Relaxed), before);
}
