//! Crews whose input jobs wait for pipes.

use std::collections::HashSet;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{ThreadId, current};
use std::time::Duration;

use crate::lane::Lane;
use crate::lock::Lock;
use crate::{Crew, crew, suspend_until_readable};

struct Waits(PipeReader);

impl Read for Waits {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        suspend_until_readable(&self.0);
        self.0.read(buffer)
    }
}

/// Code that reads as if it blocked: records of a length and that many bytes, up to one of none.
fn sum_of_records(read: &mut dyn Read) -> u64 {
    let mut sum = 0;
    loop {
        let mut length = [0];
        read.read_exact(&mut length).unwrap();
        if length[0] == 0 {
            return sum;
        }
        let mut record = vec![0; usize::from(length[0])];
        read.read_exact(&mut record).unwrap();
        sum += record.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    }
}

struct CountsDrops(Arc<AtomicUsize>);

impl Drop for CountsDrops {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

type Event = (usize, u64, ThreadId);

fn submit(crew: &Crew<'_, '_, Event>, number: usize, drops: &Arc<AtomicUsize>) -> PipeWriter {
    let (reader, writer) = pipe().unwrap();
    let held = CountsDrops(drops.clone());
    crew.submit(Lane::Input, move || {
        let _held = held;
        let sum = sum_of_records(&mut Waits(reader));
        (number, sum, current().id())
    });
    writer
}

fn next<E>(crew: &Crew<'_, '_, E>) -> E {
    crew.next_within(Duration::from_secs(20)).unwrap().unwrap()
}

#[test]
fn one_thread_reads_two_hundred_pipes_of_which_most_stall() {
    const PIPES: usize = 200;
    let drops = Arc::new(AtomicUsize::new(0));
    let writers = crew(1, |crew| {
        let mut writers: Vec<_> = (0..PIPES).map(|at| submit(crew, at, &drops)).collect();
        // All begin a record of three bytes and stall.
        let send = |writer: &mut PipeWriter, bytes: &[u8]| writer.write_all(bytes).unwrap();
        writers.iter_mut().for_each(|writer| send(writer, &[3, 10]));
        assert!(crew.next_within(Duration::from_millis(50)).is_none());
        assert!(crew.suspends_input());
        // Every tenth continues, the last first. One that is submitted now overtakes all of them.
        let ends: Vec<_> = (0..PIPES).step_by(10).rev().collect();
        let mut late = submit(crew, PIPES, &drops);
        send(&mut late, &[1, 7, 0]);
        let (number, sum, thread) = next(crew);
        assert_eq!((number, sum), (PIPES, 7));
        let mut threads = HashSet::from([thread]);
        for &at in &ends {
            send(&mut writers[at], &[20, 30]);
            send(&mut writers[at], &[2, 1, 1, 0]);
            let (number, sum, thread) = next(crew);
            assert_eq!((number, sum), (at, 62));
            threads.insert(thread);
        }
        assert_eq!(threads.len(), 1, "all on one thread");
        assert_eq!(drops.load(Ordering::SeqCst), ends.len() + 1);
        assert_eq!(crew.in_flight(), PIPES - ends.len());
        writers
    });
    // The crew has ended although their pipes stall, and what their jobs held was dropped.
    assert_eq!(drops.load(Ordering::SeqCst), PIPES + 1);
    for mut writer in writers {
        let error = writer.write(&[1]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    }
}

#[test]
fn a_panic_after_a_wait_is_an_event_and_the_others_go_on() {
    crew(1, |crew| {
        let (reader, mut failing) = pipe().unwrap();
        crew.submit(Lane::Input, move || -> Event {
            let sum = sum_of_records(&mut Waits(reader));
            panic!("the sum is {sum}");
        });
        let drops = Arc::default();
        let mut other = submit(crew, 1, &drops);
        other.write_all(&[1]).unwrap();
        failing.write_all(&[1, 5, 0]).unwrap();
        let panicked = crew.next().unwrap().unwrap_err();
        assert_eq!(panicked.lane, Lane::Input);
        assert_eq!(panicked.message, "the sum is 5");
        other.write_all(&[9, 0]).unwrap();
        assert_eq!(next(crew).1, 9);
        // The end of a pipe in the middle of a record: the reader's error, which is a panic here.
        let mut cut = submit(crew, 2, &drops);
        cut.write_all(&[2, 1]).unwrap();
        drop(cut);
        assert!(crew.next().unwrap().is_err());
    });
}

#[test]
fn nothing_is_suspended_elsewhere_or_under_a_lock() {
    let (reader, _writer) = pipe().unwrap();
    assert!(!suspend_until_readable(&reader));
    let reader = &reader;
    for threads in [0, 1] {
        crew(threads, |crew| {
            crew.submit(Lane::Normal, move || suspend_until_readable(reader));
            assert!(!next(crew));
            crew.submit(Lane::Input, move || {
                let lock = Lock::new(());
                let _held = lock.lock();
                suspend_until_readable(reader)
            });
            assert!(!next(crew));
            assert_eq!(crew.suspends_input(), threads == 1);
            if threads == 0 {
                crew.submit(Lane::Input, move || suspend_until_readable(reader));
                assert!(!next(crew));
            }
        });
    }
}

#[test]
fn a_panic_of_the_coordinator_drops_what_waits() {
    let drops = Arc::new(AtomicUsize::new(0));
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        crew(1, |crew| {
            let _writers = [0, 1, 2].map(|at| submit(crew, at, &drops));
            assert!(crew.next_within(Duration::from_millis(20)).is_none());
            panic!("on purpose");
        });
    }));
    assert!(caught.is_err());
    assert_eq!(drops.load(Ordering::SeqCst), 3);
}

/// As many jobs wait as may.
#[test]
fn without_a_stack_input_jobs_block_and_that_is_known() {
    let (silent, _silent_writer) = pipe().unwrap();
    let silent = &silent;
    crew(1, |crew| {
        let wait = || move || (0, u64::from(suspend_until_readable(silent)), current().id());
        (0..super::WAITING_MAX).for_each(|_| crew.submit(Lane::Input, wait()));
        while crew.queued() > 0 {
            assert!(crew.next_within(Duration::from_millis(1)).is_none());
        }
        assert!(crew.suspends_input());
        let drops = Arc::default();
        let mut writer = submit(crew, 1, &drops);
        writer.write_all(&[1]).unwrap();
        assert!(crew.next_within(Duration::from_millis(20)).is_none());
        assert!(!crew.suspends_input());
        writer.write_all(&[5, 0]).unwrap();
        assert_eq!(next(crew).1, 5);
        // It blocks in front of the next one.
        let mut first = submit(crew, 1, &drops);
        let mut second = submit(crew, 2, &drops);
        second.write_all(&[0]).unwrap();
        assert!(crew.next_within(Duration::from_millis(20)).is_none());
        first.write_all(&[0]).unwrap();
        assert_eq!((next(crew).0, next(crew).0), (1, 2));
    });
}

#[test]
fn the_time_of_others_is_not_counted_for_a_stage_that_waits() {
    crate::stages::measure();
    let busy = Duration::from_millis(30);
    crew(1, |crew| {
        let (reader, mut writer) = pipe().unwrap();
        crew.submit(Lane::Input, move || {
            let _outer = crate::stages::stage("test waits outside", 0);
            let _stage = crate::stages::stage("test waits", 0);
            suspend_until_readable(&reader)
        });
        crew.submit(Lane::Input, move || {
            let _stage = crate::stages::stage("test works meanwhile", 0);
            std::thread::sleep(busy);
            true
        });
        assert!(next(crew));
        writer.write_all(&[1]).unwrap();
        assert!(next(crew));
    });
    let report = crate::stages::report();
    let of = |name| report.iter().find(|stage| stage.name == name).unwrap();
    assert!(of("test works meanwhile").usage.time >= busy);
    for name in ["test waits", "test waits outside"] {
        let stage = of(name);
        assert!(stage.usage.time < busy, "{name}: {:?}", stage.usage);
        assert!(stage.gaps.quantile_ns(1.0).unwrap() < 30_000_000, "{name}");
    }
}
