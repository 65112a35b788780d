//! Memory stays within the budget for any size of input. The heap is measured; the index, a
//! separate mapping, is added.
//!
//! The content is generated while it is read and compared while it is written, so that the test
//! itself holds none of it.

// Helpers of tests may panic.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]

mod common;

use std::io;
use std::sync::Arc;

use common::heap::CountingHeap;
use common::*;
use refrain::storage::{AtomicFile, FileSource, OutputOptions, Sink, Source, StreamSink};
use refrain::{
    CompressOptions, Content, Member, MemberInput, MemberStart, ReadOptions, Result, Target,
    Targets, Unwatched,
};
use refrain_testkit::{Rng, data, scaled};

#[global_allocator]
static HEAP: CountingHeap = CountingHeap::new();

const PIECE_BYTES: usize = MIB;

/// Content that is a function of the offset: random pieces, text, and repeats of near and far
/// pieces.
#[derive(Clone, Copy)]
struct Generator {
    pieces: u64,
}

impl Generator {
    fn size_bytes(&self) -> u64 {
        self.pieces * PIECE_BYTES as u64
    }

    fn piece(&self, number: u64) -> Vec<u8> {
        let mut numbers = Rng::new(number);
        match number % 8 {
            3 if number > 8 => {
                self.piece(number - 3 - numbers.below(number / 2 + 1).min(number - 3))
            }
            5 => data::periodic(PIECE_BYTES, 3_000, number),
            6 => data::zeros(PIECE_BYTES),
            _ => data::random(PIECE_BYTES, number),
        }
    }
}

impl Source for Generator {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(Generator::size_bytes(self))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.size_bytes().saturating_sub(offset);
        let count = buffer.len().min(left as usize);
        let mut done = 0;
        while done < count {
            let at = offset + done as u64;
            let inside = (at % PIECE_BYTES as u64) as usize;
            let piece = self.piece(at / PIECE_BYTES as u64);
            let length = (PIECE_BYTES - inside).min(count - done);
            buffer[done..done + length].copy_from_slice(&piece[inside..inside + length]);
            done += length;
        }
        Ok(count)
    }
}

/// Compares the written bytes with the generated ones.
struct Compare {
    generator: Generator,
    at: u64,
    piece: Vec<u8>,
}

impl Sink for Compare {
    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let inside = (self.at % PIECE_BYTES as u64) as usize;
            if inside == 0 {
                self.piece = self.generator.piece(self.at / PIECE_BYTES as u64);
            }
            let length = bytes.len().min(PIECE_BYTES - inside);
            assert!(
                bytes[..length] == self.piece[inside..inside + length],
                "at {}",
                self.at
            );
            self.at += length as u64;
            bytes = &bytes[length..];
        }
        Ok(())
    }

    fn write_zeros(&mut self, length_bytes: u64) -> io::Result<()> {
        self.write_all(&vec![0; length_bytes as usize])
    }

    fn publish(&mut self) -> io::Result<()> {
        assert_eq!(self.at, self.generator.size_bytes());
        Ok(())
    }
}

struct CompareTargets(Generator);

impl Targets for CompareTargets {
    fn open(&mut self, _member: &MemberStart) -> Result<Target> {
        Ok(Target::Sink(Box::new(Compare {
            generator: self.0,
            at: 0,
            piece: vec![],
        })))
    }

    fn close(&mut self, _member: &Member, sink: Target) -> Result<()> {
        Ok(sink.into_sink().unwrap().publish()?)
    }
}

impl Generator {
    fn as_file(self) -> MemberInput {
        member("m", Content::Source(Arc::new(self)))
    }

    fn as_pipe(self) -> MemberInput {
        let pieces = self.pieces;
        let stream = Generated::new(move |number| (number < pieces).then(|| self.piece(number)));
        member("m", Content::Stream(Box::new(stream)))
    }
}

/// Pipes, the first of which is slow, so that the others are read as far as memory allows.
fn slow_and_fast_pipes() -> Vec<MemberInput> {
    let slow = Generator { pieces: 60 };
    let slow = Generated::new(move |number| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        (number < slow.pieces).then(|| slow.piece(number))
    });
    let mut members = vec![member("slow", Content::Pipe(Box::new(slow)))];
    for number in 0..3 {
        let fast = Generator { pieces: 150 };
        let fast = Generated::new(move |piece| {
            (piece < fast.pieces).then(|| fast.piece(piece + 1000 * number))
        });
        members.push(member("fast", Content::Pipe(Box::new(fast))));
    }
    members
}

/// The maximum memory in percent of the budget, by the peak of a counting allocator.
const PERCENT_MAX: u64 = 110;

/// The index is mapped, not on the heap: a quarter of the budget.
fn index_bytes(memory_bytes: u64) -> u64 {
    memory_bytes / 4
}

fn options(memory_bytes: u64) -> CompressOptions {
    CompressOptions {
        memory_bytes: Some(memory_bytes),
        codec: None,
        ..common::options(1, 2)
    }
}

/// Prints and returns the number; the caller asserts.
fn percent(what: &str, used: u64, memory_bytes: u64) -> u64 {
    let percent = used * 100 / memory_bytes;
    println!(
        "{what}: {} MiB of {} MiB: {percent} %",
        used >> 20,
        memory_bytes >> 20
    );
    percent
}

/// Compresses. Returns the share of the budget that was used, in percent.
fn compressing(what: &str, member: MemberInput, sink: &mut dyn Sink, memory_bytes: u64) -> u64 {
    compressing_all(what, vec![member], sink, memory_bytes)
}

fn compressing_all(
    what: &str,
    members: Vec<MemberInput>,
    sink: &mut dyn Sink,
    memory_bytes: u64,
) -> u64 {
    let (result, peak) =
        HEAP.peak_bytes_of(|| refrain::compress(members, sink, &options(memory_bytes), &Unwatched));
    result.unwrap();
    percent(what, peak as u64 + index_bytes(memory_bytes), memory_bytes)
}

fn reading(what: &str, memory_bytes: u64, read: impl FnOnce(&ReadOptions)) -> u64 {
    let options = ReadOptions {
        threads: 2,
        memory_bytes,
        ..ReadOptions::default()
    };
    let ((), peak) = HEAP.peak_bytes_of(|| read(&options));
    percent(what, peak as u64, memory_bytes)
}

// One test, because all cases measure the same heap.
#[test]
fn the_peak_of_the_memory_is_within_the_budget() {
    let folder = tempfile::tempdir().unwrap();
    let generator = Generator { pieces: 300 };
    let mut shares = vec![];
    // The larger budget takes as long again; larger scales include it too.
    let budgets = [128 << 20, 256 << 20];
    let budgets = budgets.iter().copied().take(scaled(1) as usize);
    for memory_bytes in budgets.clone() {
        let create = |name: &str| {
            let path = folder.path().join(name);
            let options = OutputOptions::default();
            (AtomicFile::create(&path, &options).unwrap(), path)
        };
        let (mut sink, by_file) = create(&format!("file-{memory_bytes}"));
        shares.push(compressing(
            "file to file",
            generator.as_file(),
            &mut sink,
            memory_bytes,
        ));
        drop(sink);
        let (mut sink, by_pipe) = create(&format!("pipe-{memory_bytes}"));
        shares.push(compressing(
            "pipe to file",
            generator.as_pipe(),
            &mut sink,
            memory_bytes,
        ));
        drop(sink);
        let (mut sink, _) = create(&format!("pipes-{memory_bytes}"));
        let pipes = slow_and_fast_pipes();
        shares.push(compressing_all(
            "pipes to file",
            pipes,
            &mut sink,
            memory_bytes,
        ));
        drop(sink);
        let path = folder.path().join(format!("piped-{memory_bytes}"));
        let mut sink = StreamSink::new(std::fs::File::create(&path).unwrap(), "pipe");
        shares.push(compressing(
            "pipe to pipe",
            generator.as_pipe(),
            &mut sink,
            memory_bytes,
        ));
        drop(sink);

        for archive in [&by_file, &by_pipe] {
            let archive = Arc::new(FileSource::open(archive).unwrap());
            shares.push(reading("extract a file", memory_bytes, |options| {
                let mut targets = CompareTargets(generator);
                refrain::extract(archive, &mut targets, options, &Unwatched).unwrap();
            }));
        }
        let stream = Box::new(std::fs::File::open(&path).unwrap());
        shares.push(reading("extract a pipe", memory_bytes, |options| {
            let mut targets = CompareTargets(generator);
            refrain::extract(stream, &mut targets, options, &Unwatched).unwrap();
        }));
    }
    assert_eq!(shares.len(), 7 * budgets.len());
    for (number, share) in shares.into_iter().enumerate() {
        assert!(
            share <= PERCENT_MAX,
            "{share} % of the budget were used in run {number}"
        );
    }
}
