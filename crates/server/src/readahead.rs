//! Decodes ahead of a reader, following the pattern of its reads: forward, backward, or in steps of
//! equal length.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use refrain::{ReadControl, Result, Run};
use refrain_pool::Lock;

use crate::block_source::BlockSource;
use crate::share::Share;
use crate::threads::run_on_thread;

/// The limits of what is decoded ahead of a pass, in bytes.
const WINDOW_BYTES_MIN: u64 = 128 << 10;
const WINDOW_BYTES_MAX: u64 = 4 << 20;

/// How many steps are decoded ahead.
const STEPS_AHEAD: u64 = 4;

/// How many passes of one reader are tracked at once.
const PASSES_MAX: usize = 4;

/// How many reads make a pattern.
const READS_TO_BELIEVE: u32 = 2;

/// How many ranges may wait to be decoded; more are dropped.
const WAITING_MAX: usize = 16;

/// A pattern of successive reads.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pass {
    last: Range<u64>,
    /// The distance between the starts of two reads, in bytes.
    step: i64,
    reads: u32,
    /// How far it is decoded: up to here, or down to here.
    ahead: u64,
    window_bytes: u64,
    used: u64,
}

/// The passes of one reader.
#[derive(Debug, Default)]
struct Passes {
    passes: Vec<Pass>,
    clock: u64,
    /// Where the latest read began.
    latest_start: u64,
}

impl Passes {
    /// Records a read and returns what to decode ahead.
    fn note(&mut self, read: Range<u64>, size_bytes: u64) -> Vec<Range<u64>> {
        let start = read.start;
        let ahead = self.ahead_of(read, size_bytes);
        self.latest_start = start;
        ahead
    }

    fn ahead_of(&mut self, read: Range<u64>, size_bytes: u64) -> Vec<Range<u64>> {
        self.clock += 1;
        let length_bytes = read.end - read.start;
        let follows = |pass: &&mut Pass| {
            let step = read.start.wrapping_sub(pass.last.start) as i64;
            step == pass.step || read.start == pass.last.end || read.end == pass.last.start
        };
        let Some(pass) = self.passes.iter_mut().find(follows) else {
            self.begin(read);
            return vec![];
        };
        pass.used = self.clock;
        let step = read.start.wrapping_sub(pass.last.start) as i64;
        if step == pass.step {
            pass.reads += 1
        } else {
            pass.step = step;
            pass.reads = 1;
            pass.window_bytes = WINDOW_BYTES_MIN;
            pass.ahead = if step < 0 { read.start } else { read.end };
        }
        let is_contiguous = read.start == pass.last.end || read.end == pass.last.start;
        pass.last = read;
        if pass.reads < READS_TO_BELIEVE || step == 0 {
            return vec![];
        }
        match (is_contiguous, step < 0) {
            (true, false) => pass.forward(size_bytes),
            (true, true) => pass.backward(),
            (false, _) => pass.steps(length_bytes, size_bytes),
        }
    }

    /// Begins a new pass, perhaps with the step between the previous read and this one.
    fn begin(&mut self, read: Range<u64>) {
        let step = read.start.wrapping_sub(self.latest_start) as i64;
        if self.passes.len() >= PASSES_MAX {
            let passes = self.passes.iter().enumerate();
            let oldest = passes.min_by_key(|(_, pass)| pass.used);
            if let Some((oldest, _)) = oldest {
                self.passes.swap_remove(oldest);
            }
        }
        self.passes.push(Pass::new(read, step, self.clock));
    }
}

impl Pass {
    fn new(read: Range<u64>, step: i64, clock: u64) -> Pass {
        Pass {
            ahead: read.end,
            last: read,
            step,
            reads: 0,
            window_bytes: WINDOW_BYTES_MIN,
            used: clock,
        }
    }

    /// The next window, once half of the last one has been read.
    fn forward(&mut self, size_bytes: u64) -> Vec<Range<u64>> {
        let ahead = self.ahead.max(self.last.end);
        if ahead - self.last.end > self.window_bytes / 2 || ahead >= size_bytes {
            return vec![];
        }
        let range = ahead..(ahead + self.window_bytes).min(size_bytes);
        self.ahead = range.end;
        self.window_bytes = (self.window_bytes * 2).min(WINDOW_BYTES_MAX);
        vec![range]
    }

    fn backward(&mut self) -> Vec<Range<u64>> {
        let ahead = self.ahead.min(self.last.start);
        if self.last.start - ahead > self.window_bytes / 2 || ahead == 0 {
            return vec![];
        }
        let range = ahead.saturating_sub(self.window_bytes)..ahead;
        self.ahead = range.start;
        self.window_bytes = (self.window_bytes * 2).min(WINDOW_BYTES_MAX);
        vec![range]
    }

    /// The next reads with the same step; after the first time, only the last of them is new.
    fn steps(&mut self, length_bytes: u64, size_bytes: u64) -> Vec<Range<u64>> {
        let first = if self.reads == READS_TO_BELIEVE { 1 } else { STEPS_AHEAD };
        let next = |number: u64| {
            let start =
                (self.last.start as i64).checked_add(self.step.checked_mul(number as i64)?)?;
            let start = u64::try_from(start).ok()?;
            let range = start..start.checked_add(length_bytes)?;
            (range.end <= size_bytes).then_some(range)
        };
        (first..=STEPS_AHEAD).filter_map(next).collect()
    }
}

/// Decodes ranges in the background: all readers together get as much of the processors for it as
/// one client. Threads wait for the source, and end when nothing is left to do.
pub struct Prefetcher {
    waiting: Lock<Waiting>,
    threads_max: usize,
    share: Share,
}

#[derive(Default)]
struct Waiting {
    ranges: VecDeque<(Arc<dyn BlockSource>, Range<u64>)>,
    threads: usize,
}

impl Prefetcher {
    /// With up to `threads_max` threads.
    pub fn new(threads_max: usize) -> Arc<Prefetcher> {
        Arc::new(Prefetcher {
            waiting: Lock::default(),
            threads_max: threads_max.max(1),
            share: Share::of_readahead(),
        })
    }

    fn add(self: &Arc<Self>, source: &Arc<dyn BlockSource>, ranges: Vec<Range<u64>>) {
        let mut waiting = self.waiting.lock();
        for range in ranges {
            if waiting.ranges.len() < WAITING_MAX {
                waiting.ranges.push_back((Arc::clone(source), range));
            }
        }
        if waiting.ranges.is_empty() || waiting.threads >= self.threads_max {
            return;
        }
        let this = Arc::clone(self);
        // Without a thread nothing is decoded ahead.
        if run_on_thread(move || this.share.install(|| this.run())) {
            waiting.threads += 1;
        }
    }

    fn run(&self) {
        let control = ReadControl::default();
        loop {
            let mut waiting = self.waiting.lock();
            let Some((source, range)) = waiting.ranges.pop_front() else {
                waiting.threads -= 1;
                return;
            };
            drop(waiting);
            // The reader hits the error again, and reports it.
            let _ = source.prefetch(range, &control);
        }
    }
}

/// A source whose single reader is observed.
pub struct ReadaheadSource {
    source: Arc<dyn BlockSource>,
    passes: Lock<Passes>,
    prefetcher: Arc<Prefetcher>,
}

impl ReadaheadSource {
    /// Observes the reader of `source`.
    pub fn new(source: Arc<dyn BlockSource>, prefetcher: Arc<Prefetcher>) -> ReadaheadSource {
        ReadaheadSource {
            source,
            passes: Lock::default(),
            prefetcher,
        }
    }

    fn note(&self, offset: u64, length_bytes: usize) {
        let read = offset..offset + length_bytes as u64;
        let ahead = self.passes.lock().note(read, self.source.size_bytes());
        if !ahead.is_empty() {
            self.prefetcher.add(&self.source, ahead);
        }
    }
}

impl BlockSource for ReadaheadSource {
    fn size_bytes(&self) -> u64 {
        self.source.size_bytes()
    }

    fn read(&self, offset: u64, buffer: &mut [u8], control: &ReadControl) -> Result<()> {
        self.note(offset, buffer.len());
        self.source.read(offset, buffer, control)
    }

    fn runs(&self, range: Range<u64>, each: &mut dyn FnMut(Run) -> bool) -> Result<()> {
        self.source.runs(range, each)
    }

    fn prefetch(&self, range: Range<u64>, control: &ReadControl) -> Result<()> {
        self.source.prefetch(range, control)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 1 << 30;

    fn ahead_of(reads: impl Iterator<Item = Range<u64>>) -> Vec<Vec<Range<u64>>> {
        let mut passes = Passes::default();
        reads.map(|read| passes.note(read, SIZE)).collect()
    }

    #[test]
    fn a_pass_forward_is_decoded_ahead_in_growing_windows_without_gaps() {
        let step = 4096;
        let all = ahead_of((0..1000).map(|number| number * step..(number + 1) * step));
        assert!(
            all[..2].iter().all(Vec::is_empty),
            "two reads may be chance"
        );
        let windows: Vec<_> = all.concat();
        assert!(windows.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!(windows[0].end - windows[0].start, WINDOW_BYTES_MIN);
        let last = windows.last().unwrap();
        assert!(last.end >= 1000 * step && last.end <= 1000 * step + WINDOW_BYTES_MAX * 2);
    }

    #[test]
    fn a_pass_backward_is_decoded_ahead_to_the_beginning() {
        let step = 65_536;
        let all = ahead_of(
            (0..100)
                .rev()
                .map(|number| number * step..(number + 1) * step),
        );
        let windows = all.concat();
        assert!(windows.windows(2).all(|pair| pair[0].start == pair[1].end));
        assert_eq!(windows.last().unwrap().start, 0);
    }

    #[test]
    fn steps_are_seen_among_other_reads() {
        let mut passes = Passes::default();
        let mut ahead = vec![];
        // Other reads start as many passes as are tracked.
        for number in 0..4 {
            passes.note(number * 7919..number * 7919 + 1, SIZE);
        }
        for number in 0..10 {
            let start = 1_000_000 + number * 100_000;
            ahead.extend(passes.note(start..start + 4096, SIZE));
        }
        assert!(ahead.contains(&(1_900_000..1_904_096)), "{ahead:?}");
        let mut starts: Vec<_> = ahead.iter().map(|range| range.start).collect();
        starts.dedup();
        assert_eq!(starts.len(), ahead.len(), "each once");
    }

    #[test]
    fn random_reads_cause_nothing() {
        let mut state = 1_u64;
        let random = (0..1000).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let start = (state >> 34) & !4095;
            start..start + 4096
        });
        assert!(ahead_of(random).concat().is_empty());
    }
}
