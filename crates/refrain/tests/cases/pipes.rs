//! Several pipes in one run: a silent one does not keep others from being read, and the bytes of
//! the archive do not depend on who was faster.

use std::fs::File;
use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::common::*;
use refrain::storage::{DescriptorReader, MemorySink};
use refrain::{Content, Entry, ErrorKind, MemberInput, Watch};
use refrain_entries::tar::TarView;
use refrain_testkit::data;

/// Threads of the process are counted: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A member that is read from a pipe, and the pipe's other end.
fn real_pipe(name: &str) -> (MemberInput, PipeWriter) {
    let (reader, writer) = io::pipe().unwrap();
    let reader = DescriptorReader::new(File::from(OwnedFd::from(reader))).unwrap();
    (member(name, Content::Pipe(Box::new(reader))), writer)
}

/// A tar stream of `count` files, some of them equal.
fn tar(count: usize, seed: u64) -> Vec<u8> {
    let mut stream = Vec::new();
    for number in 0..count {
        let content = data::source_code(20_000, seed + number as u64 % 40);
        let entry = Entry {
            path: format!("{number}.rs").into_bytes(),
            size_bytes: content.len() as u64,
            mode: 0o644,
            ..Entry::default()
        };
        let item = TarView::canonical().entry(&entry).unwrap();
        stream.extend([item.header, content].concat());
        stream.resize(stream.len() + item.padding_bytes as usize, 0);
    }
    stream.resize(stream.len() + 1024, 0);
    stream
}

/// Waits until this process has `count` threads that read pipes. Those of other tests end at some
/// time, and a thread that was joined is listed a little longer; one that was left stays.
fn wait_for_input_threads(count: usize) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")));
        let inputs = names.filter(|name| name.as_ref().is_ok_and(|name| name.trim() == "input"));
        let found = inputs.count();
        if found == count {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{found} threads read pipes, not {count}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn contents() -> [Vec<u8>; 4] {
    [
        [data::source_code(2 * MIB, 1), data::text(MIB, 2)].concat(),
        tar(60, 7),
        [data::random(3 * MIB, 3), data::source_code(2 * MIB, 1)].concat(),
        Vec::new(),
    ]
}

const NAMES: [&str; 4] = ["one", "two", "three", "four"];

/// The archive of the contents, through pipes whose writers end in this order. All begin at once;
/// the last byte of each is written when the writers before it have ended.
fn archive_when_they_end_in(order: [usize; 4], contents: &[Vec<u8>; 4], threads: usize) -> Vec<u8> {
    let (members, mut writers): (Vec<_>, Vec<_>) = NAMES.map(real_pipe).into_iter().unzip();
    let ended = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (number, content) in contents.iter().enumerate().rev() {
            let mut writer = writers.pop().unwrap();
            let place = order.iter().position(|&of| of == number).unwrap();
            let ended = &ended;
            scope.spawn(move || {
                // Less than a pipe holds, so that all can begin whoever is read.
                let (first, rest) = content.split_at(content.len().min(1000));
                writer.write_all(first).unwrap();
                while ended.load(Ordering::SeqCst) < place {
                    std::thread::sleep(Duration::from_millis(1));
                }
                if place == 3 {
                    // One for all pipes: this run's does not end until the next write.
                    wait_for_input_threads(1);
                }
                writer.write_all(rest).unwrap();
                drop(writer);
                ended.fetch_add(1, Ordering::SeqCst);
            });
        }
        archive_of(members, &options(1, threads)).0
    })
}

#[test]
fn a_stalled_pipe_stops_no_other_and_changes_no_byte() {
    let _alone = alone();
    let contents = contents();
    let streams = NAMES.iter().zip(&contents);
    let streams: Vec<_> = streams.map(|(name, content)| pipe(name, content)).collect();
    let (expected, _) = archive_of(streams, &options(1, 2));
    let published: Vec<_> = (NAMES.iter().zip(&contents))
        .map(|(name, content)| as_published(name, content))
        .collect();
    let read = extracted(&expected, &read_options(2)).unwrap();
    assert!(read == published);
    for threads in [0, 1, 4] {
        for order in [[1, 2, 3, 0], [3, 2, 1, 0], [0, 1, 2, 3], [2, 0, 3, 1]] {
            let contents = contents.clone();
            let archive = within(120, "pipes that wait for each other", move || {
                archive_when_they_end_in(order, &contents, threads)
            });
            assert!(archive == expected, "{threads} threads, {order:?}");
        }
    }
}

/// A watch with a flag.
struct Flag(AtomicBool);

impl Watch for Flag {
    fn cancel_flag(&self) -> Option<&AtomicBool> {
        Some(&self.0)
    }
}

#[test]
fn a_run_is_cancelled_while_all_pipes_are_silent() {
    let _alone = alone();
    for threads in [1, 4] {
        let (members, mut writers): (Vec<_>, Vec<_>) = NAMES.map(real_pipe).into_iter().unzip();
        for writer in &mut writers {
            writer.write_all(&data::text(5_000, 1)).unwrap();
        }
        let error = within(60, "cancelled", move || {
            let watch = Flag(AtomicBool::new(false));
            let mut sink = MemorySink::new();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(200));
                    watch.0.store(true, Ordering::SeqCst);
                });
                refrain::compress(members, &mut sink, &options(1, threads), &watch).unwrap_err()
            })
        });
        assert_eq!(error.kind, ErrorKind::Cancelled);
        wait_for_input_threads(0);
        // Their readers were dropped.
        for writer in &mut writers {
            let error = writer.write(&[0]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        }
    }
}

/// A stream that fails after some bytes.
struct Fails(usize);

impl Read for Fails {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::Error::other("the cable is out"));
        }
        let count = buffer.len().min(self.0);
        self.0 -= count;
        buffer[..count].fill(7);
        Ok(count)
    }
}

/// What can be read is stored: the other pipes, and the failing one up to its failure.
#[test]
fn the_failure_of_a_later_pipe_is_counted_and_ends_no_other() {
    let _alone = alone();
    for length in [0, 100, 2 * MIB] {
        let (first, mut writer) = real_pipe("first");
        let failing = member("failing", Content::Pipe(Box::new(Fails(length))));
        let (summary, content) = within(60, "done", move || {
            writer.write_all(b"late").unwrap();
            drop(writer);
            let mut sink = MemorySink::new();
            let output = sink.output();
            let summary = refrain::compress(
                vec![first, failing],
                &mut sink,
                &options(1, 2),
                &refrain::Unwatched,
            );
            let archive = output.published().unwrap();
            (
                summary.unwrap(),
                extracted(&archive, &read_options(1)).unwrap(),
            )
        });
        assert_eq!(summary.problems, 1);
        assert_eq!(content[0].content, b"late");
        assert!(
            content[1].content == vec![7; length],
            "{length} bytes before the failure"
        );
    }
}

/// More than fits into memory: the writers of later pipes wait, and continue in their turn.
#[test]
fn what_has_no_room_waits_for_its_turn() {
    let _alone = alone();
    let content = data::random(24 * MIB, 9);
    let mut small = small_options("none");
    for threads in [1, 3] {
        small.threads = threads;
        let streams = NAMES.map(|name| pipe(name, &content)).into();
        let (expected, _) = archive_of(streams, &small);
        let (members, writers): (Vec<_>, Vec<_>) = NAMES.map(real_pipe).into_iter().unzip();
        let begin = Barrier::new(NAMES.len());
        let archive = std::thread::scope(|scope| {
            for (number, mut writer) in writers.into_iter().enumerate() {
                let (begin, content) = (&begin, &content);
                scope.spawn(move || {
                    begin.wait();
                    // The first begins last.
                    let pause = Duration::from_millis(300 * u64::from(number == 0));
                    std::thread::sleep(pause);
                    writer.write_all(content).unwrap();
                });
            }
            archive_of(members, &small).0
        });
        assert!(archive == expected, "{threads} threads");
    }
}

/// Streams not declared independent are read only in their turn.
#[test]
fn a_stream_is_not_read_before_its_turn() {
    let _alone = alone();
    struct Ordered<'a>(&'a AtomicUsize, usize, usize);
    impl Read for Ordered<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            assert_eq!(self.0.load(Ordering::SeqCst), self.1, "before its turn");
            if self.2 == 0 {
                self.0.store(self.1 + 1, Ordering::SeqCst);
                return Ok(0);
            }
            let count = buffer.len().min(self.2);
            self.2 -= count;
            buffer[..count].fill(self.1 as u8);
            Ok(count)
        }
    }
    static COMPLETE: AtomicUsize = AtomicUsize::new(0);
    let members = (0..4).map(|number| {
        let stream = Ordered(&COMPLETE, number, 3 * MIB + 5);
        member(NAMES[number], Content::Stream(Box::new(stream)))
    });
    archive_of(members.collect(), &options(1, 2));
    assert_eq!(COMPLETE.load(Ordering::SeqCst), 4);
}
