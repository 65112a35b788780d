//! The cost of forged archives for their reader: each case ends with success or with a limit error
//! that names the limit, within a stated number of decoded bytes and of memory. Nothing is timed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::io::{self, Cursor};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use common::heap::CountingHeap;
use common::{Below, MIB, source};
use refrain::storage::{MemorySink, Sink};
use refrain::{
    Archive, Error, ErrorKind, ExtractSummary, Member, MemberStart, Progress, ReadOptions, Result,
    Target, Targets, Unwatched, Watch,
};
use refrain_codec::{BlockPlan, CodecId, Workspace, encode_block};
use refrain_format::{Coding, Entry, EntryKind, Extent, MemberKind, Pattern, content_hash};
use refrain_pool::stages;
use refrain_testkit::{ForgedArchive, uncoded};

#[global_allocator]
static HEAP: CountingHeap = CountingHeap::new();

/// Heap and stages belong to the process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// The cost of a read.
struct Cost {
    decoded_bytes: u64,
    heap_bytes: u64,
}

/// Keeps other tests from running at the same time.
fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `read` and measures it.
fn measured<R>(read: impl FnOnce() -> R) -> (R, Cost) {
    stages::measure();
    let before = decoded_bytes();
    let (result, heap_bytes) = HEAP.peak_bytes_of(read);
    let cost = Cost {
        decoded_bytes: decoded_bytes() - before,
        heap_bytes: heap_bytes as u64,
    };
    (result, cost)
}

fn decoded_bytes() -> u64 {
    let report = stages::report();
    let decode = report.iter().find(|stage| stage.name == "decode");
    decode.map_or(0, |stage| stage.usage.bytes)
}

fn coded(codec: CodecId, level: i32, raw: &[u8]) -> (Coding, Vec<u8>) {
    let (mut data, plan) = (vec![], BlockPlan::plain(codec, level));
    let block = encode_block(&mut Workspace::new(), raw, &plan, &mut data).unwrap();
    let filters: Vec<_> = (block.filters.steps())
        .map(|step| (step.id(), step.param()))
        .collect();
    let coding = Coding::new(block.codec.0, &filters, block.params.as_bytes(), 0);
    (coding.unwrap(), data)
}

fn zstd(raw: &[u8]) -> (Coding, Vec<u8>) {
    coded(CodecId::ZSTD, 3, raw)
}

fn lzma(raw: &[u8]) -> (Coding, Vec<u8>) {
    coded(CodecId::LZMA, 1, raw)
}

fn bwt(raw: &[u8]) -> (Coding, Vec<u8>) {
    coded(CodecId::BWT, 1, raw)
}

fn fill(length: u64, pattern: &[u8]) -> Extent {
    Extent::Fill {
        length,
        pattern: Pattern::new(pattern).unwrap(),
    }
}

fn copy(length: u64, offset_in_store: u64) -> Extent {
    Extent::Copy {
        length,
        offset_in_store,
    }
}

fn fresh(length: u64) -> Extent {
    Extent::Fresh { length }
}

/// A file of one epoch, a fill.
fn filled(length: u64, pattern: &[u8]) -> Vec<u8> {
    let mut archive = ForgedArchive::new(MemberKind::File, uncoded);
    archive.extents([fill(length, pattern)]);
    archive.finish([0; 32], length, &[])
}

fn reading(content_bytes_max: Option<u64>) -> ReadOptions {
    ReadOptions {
        threads: 2,
        content_bytes_max,
        ..ReadOptions::default()
    }
}

/// A sink that counts its bytes, and refuses more than some.
#[derive(Clone)]
struct CountingSink {
    bytes: Arc<AtomicU64>,
    bytes_max: u64,
}

impl Sink for CountingSink {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_zeros(bytes.len() as u64)
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        let before = self.bytes.fetch_add(length_bytes, Ordering::Relaxed);
        if before + length_bytes <= self.bytes_max {
            Ok(())
        } else {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        }
    }

    fn publish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends every member to a [`CountingSink`].
struct Counted(CountingSink);

impl Counted {
    fn new(bytes_max: u64) -> Counted {
        Counted(CountingSink {
            bytes: Arc::default(),
            bytes_max,
        })
    }

    fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }
}

impl Targets for Counted {
    fn open(&mut self, _member: &MemberStart) -> Result<Target> {
        Ok(Target::Sink(Box::new(self.0.clone())))
    }

    fn close(&mut self, _member: &Member, _target: Target) -> Result<()> {
        Ok(())
    }

    fn spill(&mut self) -> Result<Box<dyn Sink>> {
        Ok(Box::new(MemorySink::new()))
    }
}

fn extract_both(
    archive: &[u8],
    options: &ReadOptions,
    each: impl Fn(Result<ExtractSummary>, &Counted, &Cost),
) {
    let mut targets = Counted::new(u64::MAX);
    let (from_file, cost) =
        measured(|| refrain::extract(source(archive), &mut targets, options, &Unwatched));
    each(from_file, &targets, &cost);
    let mut targets = Counted::new(u64::MAX);
    let stream = Box::new(Cursor::new(archive.to_vec()));
    let (from_pipe, cost) =
        measured(|| refrain::extract(stream, &mut targets, options, &Unwatched));
    each(from_pipe, &targets, &cost);
}

#[track_caller]
fn assert_limit(error: &Error, names: &str) {
    assert_eq!(error.kind, ErrorKind::Limit, "{error}");
    assert!(error.to_string().contains(names), "{error}");
}

#[test]
fn a_fill_of_2_to_the_50_bytes_is_refused_before_any_of_it_is_produced() {
    let _alone = alone();
    for pattern in [&b"\0"[..], b"abc"] {
        let archive = filled(1 << 50, pattern);
        assert!(archive.len() < 1000);
        extract_both(&archive, &reading(None), |result, targets, cost| {
            assert_limit(&result.unwrap_err(), "the content limit is 17592186044416");
            assert_eq!(targets.bytes(), 0);
            assert!(cost.heap_bytes < 64 * MIB as u64, "{}", cost.heap_bytes);
        });
        let (verified, _) =
            measured(|| refrain::verify(source(&archive), &reading(None), &Unwatched));
        assert_limit(&verified.unwrap_err(), "content limit");
    }
}

#[test]
fn several_archives_share_the_limit_of_content() {
    let _alone = alone();
    let mut archive = ForgedArchive::new(MemberKind::File, uncoded);
    archive.extents([fill(700, b"x")]);
    let hash = content_hash(&[b'x'; 700]);
    let both = archive.finish(hash, 700, &[]).repeat(2);
    extract_both(&both, &reading(Some(1399)), |result, targets, _| {
        assert_limit(&result.unwrap_err(), "the content limit is 1399");
        assert!(targets.bytes() <= 700);
    });
    extract_both(&both, &reading(Some(1400)), |result, targets, _| {
        assert_eq!(result.unwrap().content_bytes, 1400);
        assert_eq!(targets.bytes(), 1400);
    });
}

/// Cancels after some content.
#[derive(Default)]
struct CancelAfter {
    content_bytes: u64,
    reported: AtomicU64,
    flag: AtomicBool,
}

impl Watch for CancelAfter {
    fn progress(&self, progress: &Progress) {
        self.reported
            .fetch_max(progress.content_bytes_done, Ordering::Relaxed);
        if progress.content_bytes_done >= self.content_bytes {
            self.flag.store(true, Ordering::Relaxed);
        }
    }

    fn cancel_flag(&self) -> Option<&AtomicBool> {
        Some(&self.flag)
    }
}

#[test]
fn a_long_fill_shows_progress_can_be_cancelled_and_takes_little_memory() {
    let _alone = alone();
    for length in [8 * TIB, 1 << 50] {
        let archive = filled(length, b"\0");
        let watch = CancelAfter {
            content_bytes: 100 * MIB as u64,
            ..CancelAfter::default()
        };
        let options = reading(Some(1 << 50));
        let (verified, cost) = measured(|| refrain::verify(source(&archive), &options, &watch));
        assert_eq!(verified.unwrap_err().kind, ErrorKind::Cancelled);
        let reported = watch.reported.into_inner();
        assert!(reported < GIB, "{reported} bytes until it was cancelled");
        assert!(cost.heap_bytes < 200 * MIB as u64, "{}", cost.heap_bytes);
        // The output is full.
        let mut targets = Counted::new(100 * MIB as u64);
        let (extracted, _) =
            measured(|| refrain::extract(source(&archive), &mut targets, &options, &Unwatched));
        assert_eq!(extracted.unwrap_err().kind, ErrorKind::Io);
    }
}

#[test]
fn any_range_of_a_fill_of_2_to_the_50_bytes_is_read_at_once() {
    let _alone = alone();
    let archive = filled(1 << 50, b"abc");
    let archive = Archive::open(source(&archive), &reading(None)).unwrap();
    for at in [0, 1 << 32, (1 << 49) + 1, (1 << 50) - 4096] {
        let mut buffer = vec![0; 4096];
        let (read, cost) = measured(|| archive.read_at(0, at, &mut buffer));
        assert_eq!(read.unwrap(), 4096);
        let expected = (at..at + 4096).map(|at| b"abc"[(at % 3) as usize]);
        assert!(buffer.iter().copied().eq(expected), "at {at}");
        assert!(cost.heap_bytes < MIB as u64);
    }
    assert_limit(
        &archive.check_content_limit(1 << 50).unwrap_err(),
        "content limit",
    );
    archive.check_content_limit(16 * TIB).unwrap();
}

/// More blocks than a cache of 128 MiB can hold.
const BLOCKS: u64 = 8;
const BLOCK_BYTES: u64 = 24 << 20;
const COPIES: u64 = 90_000;
/// In total more than a read that decodes only the beginnings of blocks.
const COPIED_BYTES: u64 = 3 * COPIES;

/// Copies of three bytes from each block in turn follow the blocks.
fn alternating() -> Vec<u8> {
    let mut archive = ForgedArchive::new(MemberKind::File, zstd);
    archive.extents((0..BLOCKS).map(|_| fresh(BLOCK_BYTES)));
    for letter in (b'a'..).take(BLOCKS as usize) {
        archive.block(&vec![letter; BLOCK_BYTES as usize]);
    }
    archive.extents((0..COPIES).map(|at| copy(3, at % BLOCKS * BLOCK_BYTES + at)));
    let view_bytes = archive.content_bytes();
    archive.finish([0; 32], view_bytes, &[])
}

#[test]
fn alternating_copies_from_blocks_larger_than_the_cache_end_at_the_work_limit() {
    let _alone = alone();
    let archive = alternating();
    assert!(archive.len() < 500_000, "{}", archive.len());
    let options = ReadOptions {
        memory_bytes: 128 * MIB as u64,
        work_max: 1,
        ..reading(None)
    };
    let after_blocks = BLOCKS * BLOCK_BYTES;
    let opened = Archive::open(source(&archive), &options).unwrap();
    let mut buffer = vec![0; COPIED_BYTES as usize];
    let (read, cost) = measured(|| opened.read_at(0, after_blocks, &mut buffer));
    let error = read.unwrap_err();
    assert_limit(&error, "work limit");
    assert_limit(&error, "raise the memory limit");
    let decoded = cost.decoded_bytes;
    let read_bound = GIB + COPIED_BYTES + archive.len() as u64;
    assert!(decoded > GIB / 2 && decoded <= read_bound, "{decoded}");
    // Each read counts separately.
    for at in 0..100 {
        let mut two = [0; 2];
        let (read, _) = measured(|| opened.read_at(0, after_blocks + at, &mut two));
        assert_eq!(read.unwrap(), 2);
    }
    // A pass has delivered the blocks before.
    let (verified, cost) = measured(|| refrain::verify(source(&archive), &options, &Unwatched));
    assert_limit(&verified.unwrap_err(), "work limit");
    let pass_bound = GIB + after_blocks + COPIED_BYTES + archive.len() as u64;
    let decoded = cost.decoded_bytes;
    assert!(decoded > GIB / 2 && decoded <= pass_bound, "{decoded}");
    // With memory for all blocks, the same archive costs little.
    let roomy = ReadOptions {
        memory_bytes: 2 * GIB,
        ..options
    };
    let opened = Archive::open(source(&archive), &roomy).unwrap();
    let (read, cost) = measured(|| opened.read_at(0, after_blocks, &mut buffer));
    assert_eq!(read.unwrap() as u64, COPIED_BYTES);
    let letters = (b'a'..).take(BLOCKS as usize).cycle();
    let letters = letters.flat_map(|letter| [letter; 3]);
    assert!(buffer.iter().copied().eq(letters.take(buffer.len())));
    assert_eq!(cost.decoded_bytes, after_blocks);
}

#[test]
fn a_chain_of_repeats_is_read_in_parts_and_refused_as_a_whole() {
    let _alone = alone();
    let mut archive = ForgedArchive::new(MemberKind::File, zstd);
    let text = refrain_testkit::data::text(1000, 3);
    archive.extents([fresh(1000)]);
    archive.block(&text);
    // Each epoch repeats the previous one a hundred times: 16 levels would be 10^35 bytes.
    let mut start = 0;
    let mut repeat = |archive: &mut ForgedArchive, times: usize| {
        let end = archive.content_bytes();
        let again = Extent::Reference {
            length: end - start,
            offset_in_content: start,
        };
        start = end;
        archive.extents(std::iter::repeat_n(again, times));
    };
    (0..4).for_each(|_| repeat(&mut archive, 100));
    (4..16).for_each(|_| repeat(&mut archive, 1));
    let content_bytes = archive.content_bytes();
    let archive = archive.finish([0; 32], content_bytes, &[]);
    let options = reading(None);
    let opened = Archive::open(source(&archive), &options).unwrap();
    let mut buffer = vec![0; 5000];
    let from = content_bytes - 5000;
    let (read, cost) = measured(|| opened.read_at(0, from, &mut buffer));
    assert_eq!(read.unwrap(), 5000);
    assert!(buffer.chunks(1000).all(|chunk| chunk == text));
    assert!(cost.decoded_bytes <= 1000);
    assert!(cost.heap_bytes < 16 * MIB as u64);
    let (verified, cost) = measured(|| refrain::verify(source(&archive), &options, &Unwatched));
    assert_limit(&verified.unwrap_err(), "raise the memory limit");
    assert!(
        cost.heap_bytes < options.memory_bytes,
        "{}",
        cost.heap_bytes
    );
}

#[test]
fn millions_of_one_byte_extents_need_memory_in_the_budget_or_are_refused() {
    let _alone = alone();
    let of_copies = |count: u64| {
        let mut archive = ForgedArchive::new(MemberKind::File, zstd);
        archive.extents([fresh(2000)]);
        archive.block(&[b'a'; 1000]);
        archive.block(&[b'b'; 1000]);
        archive.extents((0..count).map(|at| copy(1, at % 2 * 1000)));
        let content: Vec<u8> = [[b'a'; 1000], [b'b'; 1000]].concat();
        let copies = (0..count).map(|at| b"ab"[(at % 2) as usize]);
        let hash = content_hash(&content.into_iter().chain(copies).collect::<Vec<_>>());
        archive.finish(hash, 2000 + count, &[])
    };
    let options = reading(None);
    let archive = of_copies(1 << 24);
    assert!(archive.len() < 100_000, "{}", archive.len());
    extract_both(&archive, &options, |result, _, cost| {
        let error = result.unwrap_err();
        assert_limit(&error, "extents is 16777216");
        assert_limit(&error, "raise the memory limit");
        assert!(cost.heap_bytes < 64 * MIB as u64, "{}", cost.heap_bytes);
    });
    let opened = Archive::open(source(&archive), &options).unwrap();
    let (read, _) = measured(|| opened.read_at(0, 5000, &mut [0; 10]));
    assert_limit(&read.unwrap_err(), "extents");
    let archive = of_copies(1 << 19);
    extract_both(&archive, &options, |result, targets, cost| {
        assert_eq!(result.unwrap().content_bytes, targets.bytes());
        assert_eq!(targets.bytes(), 2000 + (1 << 19));
        assert_eq!(cost.decoded_bytes, 2000);
        assert!(
            cost.heap_bytes < options.memory_bytes,
            "{}",
            cost.heap_bytes
        );
    });
}

/// A directory of this many files with the same content, a fill.
fn shared(content_bytes: u64, files: usize, view_bytes: u64) -> Vec<u8> {
    shared_with_hash(content_bytes, files, view_bytes, [0; 32])
}

fn shared_with_hash(
    content_bytes: u64,
    files: usize,
    view_bytes: u64,
    blake3: [u8; 32],
) -> Vec<u8> {
    let mut archive = ForgedArchive::new(MemberKind::Tree, zstd);
    archive.extents([fill(content_bytes, b"\0")]);
    let entries: Vec<Entry> = (0..files)
        .map(|number| Entry {
            path: format!("{number:07}").into_bytes(),
            kind: EntryKind::File,
            mode: 0o644,
            size_bytes: content_bytes,
            ..Entry::default()
        })
        .collect();
    archive.finish(blake3, view_bytes, &entries)
}

#[test]
fn files_that_share_their_content_count_each() {
    let _alone = alone();
    // 2^50 bytes in total.
    let archive = shared(GIB, 1 << 20, 1 << 50);
    assert!(archive.len() < 4_000_000, "{}", archive.len());
    let mut targets = Counted::new(u64::MAX);
    let options = reading(None);
    let (view, _) =
        measured(|| refrain::extract(source(&archive), &mut targets, &options, &Unwatched));
    assert_limit(&view.unwrap_err(), "content limit");
    assert_eq!(targets.bytes(), 0);
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("tree");
    let (restored, _) =
        measured(|| refrain::extract(source(&archive), &mut Below(&target), &options, &Unwatched));
    assert_limit(&restored.unwrap_err(), "content limit");
    let written = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(written, 0, "nothing is written");
}

#[test]
fn a_view_that_is_longer_than_stated_is_refused() {
    let _alone = alone();
    let hash = content_hash(&vec![0; MIB]);
    let archive = shared_with_hash(MIB as u64, 100, 1000, hash);
    let limit = 10 * MIB as u64;
    extract_both(&archive, &reading(Some(limit)), |result, targets, _| {
        // A forward pass finds that the end of the member contradicts its entries.
        let kind = result.unwrap_err().kind;
        assert!(
            matches!(kind, ErrorKind::Damaged | ErrorKind::Limit),
            "{kind:?}"
        );
        assert!(targets.bytes() <= limit, "{}", targets.bytes());
    });
}

/// Cancels when a sink has received some bytes.
struct CancelWhen {
    received: Arc<AtomicU64>,
    flag: AtomicBool,
}

impl Watch for CancelWhen {
    fn cancel_flag(&self) -> Option<&AtomicBool> {
        let is_enough = self.received.load(Ordering::Relaxed) > 10 * MIB as u64;
        self.flag.store(is_enough, Ordering::Relaxed);
        Some(&self.flag)
    }
}

#[test]
fn the_view_of_a_directory_from_a_pipe_can_be_cancelled() {
    let _alone = alone();
    let hash = content_hash(&vec![0; MIB]);
    // A tar header for each file, and the end of the stream.
    let view_bytes = 100_000 * (MIB as u64 + 512) + 1024;
    let archive = shared_with_hash(MIB as u64, 100_000, view_bytes, hash);
    let mut targets = Counted::new(u64::MAX);
    let watch = CancelWhen {
        received: targets.0.bytes.clone(),
        flag: AtomicBool::new(false),
    };
    let stream = Box::new(Cursor::new(archive));
    let result = refrain::extract(stream, &mut targets, &reading(None), &watch);
    assert_eq!(result.unwrap_err().kind, ErrorKind::Cancelled);
    assert!(targets.bytes() < GIB, "{}", targets.bytes());
}

#[test]
fn a_large_block_of_a_few_bytes_needs_its_memory_or_is_refused() {
    let _alone = alone();
    let block_bytes = 1 << 27;
    let raw = vec![7; block_bytes];
    for (name, encode) in [
        ("zstd", zstd as fn(&[u8]) -> (Coding, Vec<u8>)),
        ("lzma", lzma),
        ("bwt", bwt),
    ] {
        let mut archive = ForgedArchive::new(MemberKind::File, encode);
        archive.extents([fresh(block_bytes as u64)]);
        archive.block(&raw);
        let archive = archive.finish(content_hash(&raw), block_bytes as u64, &[]);
        assert!(archive.len() < 100_000, "{name}: {}", archive.len());
        let small = ReadOptions {
            memory_bytes: 128 * MIB as u64,
            ..reading(None)
        };
        extract_both(&archive, &small, |result, targets, cost| {
            assert_limit(&result.unwrap_err(), "raise the memory limit");
            assert_eq!((targets.bytes(), cost.decoded_bytes), (0, 0), "{name}");
            let heap_bytes = cost.heap_bytes;
            assert!(heap_bytes < 32 * MIB as u64, "{name}: {heap_bytes}");
        });
        let options = ReadOptions {
            memory_bytes: 2 * GIB,
            ..reading(None)
        };
        extract_both(&archive, &options, |result, targets, cost| {
            assert_eq!(result.unwrap().content_bytes, block_bytes as u64);
            assert_eq!(targets.bytes(), block_bytes as u64);
            assert_eq!(cost.decoded_bytes, block_bytes as u64, "{name}");
            let heap_bytes = cost.heap_bytes;
            assert!(heap_bytes < options.memory_bytes, "{name}: {heap_bytes}");
        });
    }
}

#[test]
fn paths_that_share_their_bytes_need_memory_in_the_budget_or_are_refused() {
    let _alone = alone();
    let below = ["d".repeat(220), "e".repeat(220), "f".repeat(220)].join("/");
    let entries: Vec<Entry> = (0..40_000)
        .map(|number| Entry {
            path: format!("{below}/{number:06}").into_bytes(),
            kind: EntryKind::Fifo,
            ..Entry::default()
        })
        .collect();
    let view = refrain_testkit::entry_lists::view_bytes(MemberKind::Tree, [entries.as_slice()]);
    let archive = ForgedArchive::new(MemberKind::Tree, zstd);
    let archive = archive.finish(content_hash(&[]), view, &entries);
    assert!(archive.len() < 120_000, "{}", archive.len());
    for (memory_bytes, is_refused) in [(32 * MIB, true), (128 * MIB, false)] {
        let options = ReadOptions {
            memory_bytes: memory_bytes as u64,
            ..reading(None)
        };
        let read = || refrain::verify(source(&archive), &options, &Unwatched);
        let (verified, cost) = measured(read);
        assert!(cost.heap_bytes < memory_bytes as u64, "{}", cost.heap_bytes);
        if is_refused {
            assert_limit(&verified.unwrap_err(), "memory limit")
        } else {
            assert_eq!(verified.unwrap().entries, 40_000)
        }
        // The tar stream has three times the bytes of the paths.
        extract_both(&archive, &options, |result, targets, cost| {
            assert!(cost.heap_bytes < memory_bytes as u64, "{}", cost.heap_bytes);
            if is_refused {
                assert_limit(&result.unwrap_err(), "memory limit")
            } else {
                assert_eq!((targets.bytes(), result.is_ok()), (view, true))
            }
        });
    }
}
