//! Threads that share a file and look for partial writes.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use proptest::prelude::*;
use refrain_testkit::rng::Rng;

use super::*;

/// A file whose transfers are a few bytes each, so that others get in between: the worst that a
/// file system may do.
struct SlowFile {
    bytes: Vec<AtomicU8>,
    transfers: AtomicUsize,
    fails_at: Option<u64>,
    yields: bool,
}

impl SlowFile {
    fn new(length: usize) -> SlowFile {
        SlowFile {
            bytes: (0..length).map(|_| AtomicU8::new(0)).collect(),
            transfers: AtomicUsize::new(0),
            fails_at: None,
            yields: true,
        }
    }

    /// A short transfer, now and then interrupted.
    fn part(&self, offset: u64, length: usize) -> io::Result<&[AtomicU8]> {
        let transfer = self.transfers.fetch_add(1, Ordering::Relaxed);
        if transfer % 17 == 5 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if self.yields && transfer % 11 == 3 {
            std::thread::yield_now();
        }
        let start = (offset as usize).min(self.bytes.len());
        let end = (start + length.min(7)).min(self.bytes.len());
        Ok(&self.bytes[start..end])
    }
}

impl Positional for SlowFile {
    fn read_some(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let part = self.part(offset, buffer.len())?;
        for (to, from) in buffer.iter_mut().zip(part) {
            *to = from.load(Ordering::Relaxed);
        }
        Ok(part.len())
    }

    fn write_some(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        if self.fails_at.is_some_and(|fails_at| offset >= fails_at) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let part = self.part(offset, bytes.len())?;
        for (to, from) in part.iter().zip(bytes) {
            to.store(*from, Ordering::Relaxed);
        }
        Ok(part.len())
    }

    fn length_bytes(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }
}

/// Writers fill ranges with a number each; readers count reads that saw two numbers in a range that
/// is only ever written as a whole.
fn mixed_reads<F: Positional + Sync>(
    file: &RangedFile<F>,
    piece: usize,
    pieces: u64,
    rounds: usize,
    seed: u64,
) -> usize {
    let mixed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || {
                let mut rng = Rng::new(seed * 10 + thread);
                for round in 0..rounds {
                    let number = (round % 250) as u8 + 1;
                    let at = rng.below(pieces) * piece as u64;
                    file.write_at(at, &vec![number; piece]).expect("written");
                }
            });
        }
        for thread in 3..6 {
            let mixed = &mixed;
            scope.spawn(move || {
                let mut rng = Rng::new(seed * 10 + thread);
                let mut bytes = vec![0; piece];
                for _ in 0..rounds {
                    // Parts of a piece, too.
                    let skipped = rng.below(piece as u64 / 2);
                    let at = rng.below(pieces) * piece as u64 + skipped;
                    let part = &mut bytes[skipped as usize..];
                    let count = file.read_at(at, part).expect("read");
                    let part = &part[..count];
                    let is_mixed = part.iter().any(|byte| *byte != part[0]);
                    mixed.fetch_add(usize::from(is_mixed), Ordering::Relaxed);
                }
            });
        }
    });
    mixed.into_inner()
}

#[test]
fn a_reader_never_sees_a_part_of_a_write() {
    for (seed, sharing) in [(1, Sharing::Ranges), (2, Sharing::WholeFile)] {
        let file = RangedFile::new(SlowFile::new(300), sharing).unwrap();
        assert_eq!(mixed_reads(&file, 100, 3, 50, seed), 0, "{sharing:?}");
    }
}

/// Without the lock the same threads do see partial writes: the test above can fail.
#[test]
fn without_the_lock_reads_are_mixed() {
    let file = RangedFile::new(SlowFile::new(300), Sharing::Relaxed).unwrap();
    let mixed = (0..50).any(|seed| mixed_reads(&file, 100, 3, 100, seed) > 0);
    assert!(mixed);
}

#[test]
fn real_files_show_whole_writes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shared");
    let options = &mut File::options();
    let options = options.read(true).write(true).create(true);
    let file = options.truncate(true).open(path).unwrap();
    let file = RangedFile::new(file, Sharing::Ranges).unwrap();
    // Pieces that do not end with pages.
    let rounds = refrain_testkit::scale::scaled(200) as usize;
    assert_eq!(mixed_reads(&file, 37_111, 4, rounds, 7), 0);
}

#[test]
fn writes_to_the_same_range_do_not_interleave() {
    let file = RangedFile::new(SlowFile::new(64), Sharing::Ranges).unwrap();
    for round in 0..20u8 {
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (file, start) = (&file, u64::from(thread) * 5);
                let number = 1 + round * 4 + thread;
                scope.spawn(move || file.write_at(start, &[number; 40]).unwrap());
            }
        });
        let mut bytes = [0; 55];
        file.read_at(0, &mut bytes).unwrap();
        // The common part has one number; seen from there, numbers change at starts and ends only.
        assert!(
            bytes[15..40].iter().all(|byte| *byte == bytes[15]),
            "{bytes:?}"
        );
        for at in 1..55 {
            let is_edge = at % 5 == 0;
            assert!(is_edge || bytes[at] == bytes[at - 1], "{at}: {bytes:?}");
        }
    }
}

#[test]
fn each_append_and_each_read_in_order_has_a_range_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let options = &mut File::options();
    let file = options.read(true).write(true).create_new(true).open(path);
    let file = RangedFile::new(file.unwrap(), Sharing::Ranges).unwrap();
    let length = |thread: u64, round: u64| 1 + (thread * 37 + round * 11) % 300;
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let file = &file;
            scope.spawn(move || {
                for round in 0..200 {
                    let record = vec![thread as u8 + 1; length(thread, round) as usize];
                    let range = file.append(&record).unwrap();
                    let mut back = vec![0; record.len()];
                    assert_eq!(file.read_at(range.start, &mut back).unwrap(), back.len());
                    assert!(back == record, "{thread} {range:?}");
                }
            });
        }
    });
    let total: u64 = (0..4)
        .flat_map(|t| (0..200).map(move |r| length(t, r)))
        .sum();
    assert_eq!(file.size_bytes().unwrap(), total);
    let counts: Vec<AtomicUsize> = (0..5).map(|_| AtomicUsize::new(0)).collect();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut buffer = [0; 777];
                loop {
                    let range = file.read_next(&mut buffer).unwrap();
                    if range.is_empty() {
                        break;
                    }
                    for byte in &buffer[..(range.end - range.start) as usize] {
                        counts[usize::from(*byte)].fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(counts[0].load(Ordering::Relaxed), 0);
    for thread in 0..4 {
        let expected: u64 = (0..200).map(|round| length(thread, round)).sum();
        let found = counts[thread as usize + 1].load(Ordering::Relaxed);
        assert_eq!(found as u64, expected, "{thread}");
    }
}

/// Reading in order while others append yields all that they append.
#[test]
fn reads_in_order_do_not_pass_appends_in_progress() {
    let directory = tempfile::tempdir().unwrap();
    let options = &mut File::options();
    let options = options.read(true).write(true).create_new(true);
    let file = options.open(directory.path().join("log")).unwrap();
    let file = RangedFile::new(file, Sharing::Ranges).unwrap();
    let left = AtomicUsize::new(3);
    std::thread::scope(|scope| {
        for thread in 0..3u8 {
            let (file, left) = (&file, &left);
            scope.spawn(move || {
                for round in 0..150 {
                    file.append(&vec![thread + 1; 50 + round * 20]).unwrap();
                }
                left.fetch_sub(1, Ordering::Relaxed);
            });
        }
        let mut buffer = [9; 700];
        loop {
            let is_last = left.load(Ordering::Relaxed) == 0;
            let range = file.read_next(&mut buffer).unwrap();
            let read = &buffer[..(range.end - range.start) as usize];
            assert!(read.iter().all(|byte| (1..4).contains(byte)), "{range:?}");
            if is_last && range.is_empty() {
                break;
            }
        }
    });
    assert_eq!(file.next_read.position(), file.size_bytes().unwrap());
}

#[test]
fn a_write_that_fails_says_how_far_it_came_and_releases_its_range() {
    let slow = SlowFile {
        fails_at: Some(20),
        ..SlowFile::new(100)
    };
    let file = RangedFile::new(slow, Sharing::Ranges).unwrap();
    let error = file.write_at(0, &[1; 50]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert!(error.to_string().contains("21 of 50 bytes"), "{error}");
    file.write_at(5, &[2; 10]).unwrap();
    let error = file.write_at(OFFSET_MAX - 1, &[0; 2]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert!(file.write_at(u64::MAX, &[0; 2]).is_err());
    assert_eq!(file.alone(|slow| slow.bytes.len()), 100);
}

/// One stalled write does not delay others whose ranges do not overlap it.
#[test]
fn a_stalled_write_holds_up_only_what_overlaps() {
    let file = RangedFile::new(SlowFile::new(100), Sharing::Ranges).unwrap();
    let stalled = file.lock.write(0..50);
    file.write_at(50, &[3; 50]).unwrap();
    std::thread::scope(|scope| {
        let overlapping = scope.spawn(|| file.write_at(49, &[3; 2]));
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(!overlapping.is_finished());
        drop(stalled);
        overlapping.join().unwrap().unwrap();
    });
}

proptest! {
    /// Without other threads it is a file like any other.
    #[test]
    fn behaves_like_a_vector(
        steps in prop::collection::vec((0u64..80, 0usize..40, any::<bool>()), 1..40),
    ) {
        let alone = SlowFile { yields: false, ..SlowFile::new(120) };
        let file = RangedFile::new(alone, Sharing::Ranges).unwrap();
        let mut model = [0u8; 120];
        for (number, (start, length, is_write)) in steps.into_iter().enumerate() {
            let range = start as usize..start as usize + length;
            if is_write {
                let bytes = vec![number as u8 + 1; length];
                file.write_at(start, &bytes).unwrap();
                model[range].copy_from_slice(&bytes);
            } else {
                let mut bytes = vec![0; length];
                prop_assert_eq!(file.read_at(start, &mut bytes).unwrap(), length);
                prop_assert_eq!(&bytes, &model[range]);
            }
        }
    }
}
