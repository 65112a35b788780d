//! The pages of an object that were fetched or are in flight.
//!
//! Pages fetched by one request are a [`FetchedRange`], or run. The first reader that needs a run
//! fetches it while others wait, so a page is fetched once, however many threads need it. The least
//! recently used runs are forgotten.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use refrain_sync::clock::{Clock, RealClock};
use refrain_sync::{Condvar, Mutex, lock, wait_for};

use super::attempts::FetchFailure;

/// The unit of requests. At 100 MB/s it takes 0.7 ms, little compared with the latency of a
/// request.
pub(super) const PAGE_BYTES: u64 = 64 << 10;

/// How long a reader waits for another that fetches what it needs; then it fetches it itself. A
/// reader may be a job of the pool, and the other wait for a timer of the pool.
const WAIT_MAX: Duration = Duration::from_secs(15);

/// Where the bytes of a run come from, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestOrigin {
    /// From the server, for a reader who asked for it.
    Asked,
    /// From the server, before a reader asks for it.
    Ahead,
    /// From the temporary file.
    Spilled,
}

/// Bytes that are fetched by one request.
#[derive(Debug)]
pub(super) struct FetchedRange {
    /// Whole pages, except at the end of the object.
    pub range: Range<u64>,
    pub origin: RequestOrigin,
    bytes: OnceLock<Result<Vec<u8>, FetchFailure>>,
    is_being_fetched: Mutex<bool>,
    /// Notified when somebody has fetched it.
    done: Condvar,
    last_use: AtomicU64,
}

impl FetchedRange {
    /// The bytes, fetched by the first caller; others wait, unless that takes too long.
    pub(super) fn bytes(
        &self,
        fetch: impl FnOnce(Range<u64>) -> Result<Vec<u8>, FetchFailure>,
    ) -> Result<&[u8], FetchFailure> {
        self.wait();
        let found = match self.bytes.get() {
            Some(found) => found,
            None => {
                let fetched = fetch(self.range.clone());
                let found = self.bytes.get_or_init(|| fetched);
                *lock(&self.is_being_fetched) = false;
                self.done.notify_all();
                found
            }
        };
        found.as_deref().map_err(Clone::clone)
    }

    /// Waits while another caller fetches the bytes. Without them, this one is the next to do so.
    fn wait(&self) {
        let clock = RealClock::new();
        let mut is_being_fetched = lock(&self.is_being_fetched);
        while *is_being_fetched && self.bytes.get().is_none() {
            let left = WAIT_MAX.saturating_sub(clock.now());
            if left.is_zero() {
                break;
            }
            is_being_fetched = wait_for(&self.done, is_being_fetched, left);
        }
        *is_being_fetched = self.bytes.get().is_none();
    }

    /// The bytes, if they were fetched.
    pub(super) fn fetched(&self) -> Option<&[u8]> {
        self.bytes.get()?.as_deref().ok()
    }

    fn length_bytes(&self) -> u64 {
        self.range.end - self.range.start
    }
}

#[derive(Debug)]
pub(super) struct Runs {
    by_page: BTreeMap<u64, Arc<FetchedRange>>,
    length_bytes: u64,
    capacity_bytes: u64,
    held_bytes: u64,
    uses: u64,
    /// Forgotten runs, until they are taken.
    forgotten: Vec<Arc<FetchedRange>>,
}

impl Runs {
    /// Keeps about `capacity_bytes` of an object of this length.
    pub(super) fn new(length_bytes: u64, capacity_bytes: u64) -> Runs {
        Runs {
            by_page: BTreeMap::new(),
            length_bytes,
            capacity_bytes,
            held_bytes: 0,
            uses: 0,
            forgotten: Vec::new(),
        }
    }

    pub(super) fn at(&mut self, offset: u64) -> Option<Arc<FetchedRange>> {
        let run = self.by_page.get(&(offset / PAGE_BYTES))?;
        self.uses += 1;
        run.last_use.store(self.uses, Relaxed);
        Some(run.clone())
    }

    /// The ranges of whole pages in and around `range` that belong to no run.
    pub(super) fn missing(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut missing: Vec<Range<u64>> = Vec::new();
        let end = range.end.min(self.length_bytes);
        let mut page = range.start / PAGE_BYTES;
        while page * PAGE_BYTES < end {
            let page_end = ((page + 1) * PAGE_BYTES).min(self.length_bytes);
            match self.by_page.get(&page) {
                Some(run) => page = run.range.end.div_ceil(PAGE_BYTES),
                None => {
                    match missing.last_mut() {
                        Some(last) if last.end == page * PAGE_BYTES => last.end = page_end,
                        _ => missing.push(page * PAGE_BYTES..page_end),
                    }
                    page += 1;
                }
            }
        }
        missing
    }

    /// Adds a run for pages that belong to none.
    pub(super) fn add(&mut self, range: Range<u64>, origin: RequestOrigin) -> Arc<FetchedRange> {
        self.uses += 1;
        let run = Arc::new(FetchedRange {
            range: range.clone(),
            origin,
            bytes: OnceLock::new(),
            is_being_fetched: Mutex::new(false),
            done: Condvar::new(),
            last_use: AtomicU64::new(self.uses),
        });
        self.held_bytes += run.length_bytes();
        for page in pages(&range) {
            self.by_page.insert(page, run.clone());
        }
        self.forget_oldest();
        run
    }

    pub(super) fn add_fetched(&mut self, start: u64, bytes: Vec<u8>) {
        let run = self.add(start..start + bytes.len() as u64, RequestOrigin::Asked);
        // It is new, so the value is computed here.
        let _ = run.bytes(|_| Ok(bytes));
    }

    pub(super) fn remove(&mut self, run: &Arc<FetchedRange>) {
        let first_page = run.range.start / PAGE_BYTES;
        let found = self.by_page.get(&first_page);
        if found.is_none_or(|found| !Arc::ptr_eq(found, run)) {
            return;
        }
        for page in pages(&run.range) {
            self.by_page.remove(&page);
        }
        self.held_bytes -= run.length_bytes();
    }

    /// Called when a sequential reader has passed the run: it is hardly needed again.
    pub(super) fn release(run: &FetchedRange) {
        run.last_use.store(0, Relaxed);
    }

    /// Forgets the least recently used runs. Those in flight remain.
    fn forget_oldest(&mut self) {
        while self.held_bytes > self.capacity_bytes {
            let fetched = self
                .by_page
                .values()
                .filter(|run| run.bytes.get().is_some());
            let oldest = fetched.min_by_key(|run| run.last_use.load(Relaxed));
            let Some(oldest) = oldest.cloned() else {
                return;
            };
            self.remove(&oldest);
            self.forgotten.push(oldest);
        }
    }

    /// Shrinks to the capacity, which runs in flight may exceed. Returns the runs forgotten since
    /// the last call.
    pub(super) fn take_forgotten(&mut self) -> Vec<Arc<FetchedRange>> {
        self.forget_oldest();
        std::mem::take(&mut self.forgotten)
    }
}

fn pages(range: &Range<u64>) -> Range<u64> {
    range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use refrain_pool::{Event, Lane, crew};

    use super::*;

    const PAGE: u64 = PAGE_BYTES;

    #[test]
    fn missing_ranges_are_whole_pages_and_end_with_the_object() {
        let mut runs = Runs::new(10 * PAGE + 5, 100 * PAGE);
        let first: Vec<_> = runs.missing(PAGE + 3..PAGE + 4);
        assert_eq!(first.first(), Some(&(PAGE..2 * PAGE)));
        assert_eq!(first.len(), 1);
        runs.add(2 * PAGE..4 * PAGE, RequestOrigin::Asked);
        assert_eq!(
            runs.missing(PAGE..5 * PAGE),
            [PAGE..2 * PAGE, 4 * PAGE..5 * PAGE]
        );
        assert_eq!(runs.missing(2 * PAGE..4 * PAGE), []);
        let last: Vec<_> = runs.missing(10 * PAGE..u64::MAX);
        assert_eq!(last.first(), Some(&(10 * PAGE..10 * PAGE + 5)));
        assert_eq!(last.len(), 1);
        assert_eq!(runs.missing(11 * PAGE..12 * PAGE), []);
    }

    #[test]
    fn the_oldest_fetched_runs_are_forgotten_first() {
        let mut runs = Runs::new(100 * PAGE, 3 * PAGE);
        let bytes = || vec![0; PAGE as usize];
        runs.add_fetched(0, bytes());
        runs.add_fetched(PAGE, bytes());
        runs.add_fetched(2 * PAGE, bytes());
        assert!(runs.at(0).is_some());
        let on_its_way = runs.add(3 * PAGE..4 * PAGE, RequestOrigin::Ahead);
        assert!(runs.at(PAGE).is_none() && runs.at(0).is_some());
        let forgotten = runs.take_forgotten();
        assert_eq!(forgotten.len(), 1);
        assert_eq!(forgotten[0].range, PAGE..2 * PAGE);
        assert_eq!(forgotten[0].fetched(), Some(&bytes()[..]));
        Runs::release(&runs.at(0).unwrap());
        runs.add_fetched(4 * PAGE, bytes());
        assert!(runs.at(0).is_none() && runs.at(2 * PAGE).is_some());
        runs.remove(&on_its_way);
        assert!(runs.at(3 * PAGE).is_none());
        assert_eq!(runs.held_bytes, 2 * PAGE);
        runs.remove(&on_its_way);
        assert_eq!(runs.held_bytes, 2 * PAGE);
    }

    #[test]
    fn a_failed_run_fails_for_all_who_wait() {
        let mut runs = Runs::new(PAGE, PAGE);
        let run = runs.add(0..PAGE, RequestOrigin::Ahead);
        let failure = FetchFailure {
            kind: std::io::ErrorKind::TimedOut,
            text: "late".into(),
        };
        assert_eq!(run.bytes(|_| Err(failure.clone())), Err(failure.clone()));
        assert_eq!(run.bytes(|_| Ok(vec![1])), Err(failure));
    }

    #[test]
    fn a_job_of_the_pool_waits_for_a_thread_that_fetches() {
        let run = Runs::new(PAGE, PAGE).add(0..PAGE, RequestOrigin::Ahead);
        let (fetches, waits) = (AtomicU64::new(0), Event::new());
        let (began, job_began) = (Event::new(), Event::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let fetch = |_| {
                    fetches.fetch_add(1, Relaxed);
                    began.happen();
                    waits.wait();
                    Ok(vec![1])
                };
                assert_eq!(run.bytes(fetch), Ok(&[1][..]));
            });
            began.wait();
            crew(1, |crew| {
                crew.submit(Lane::Normal, || {
                    job_began.happen();
                    let fetch = |_| {
                        fetches.fetch_add(1, Relaxed);
                        Ok(vec![2])
                    };
                    run.bytes(fetch).map(<[u8]>::to_vec)
                });
                job_began.wait();
                (0..1000).for_each(|_| std::thread::yield_now());
                waits.happen();
                assert_eq!(crew.next(), Some(Ok(Ok(vec![1]))));
            });
        });
        assert_eq!(fetches.into_inner(), 1);
    }

    proptest! {
        #[test]
        fn pages_belong_to_one_run_at_most(reads in prop::collection::vec((0..40u64, 1..9u64), 1..40)) {
            let length = 40 * PAGE - 7;
            let mut runs = Runs::new(length, 12 * PAGE);
            for (page, count) in reads {
                let range = page * PAGE..(page + count) * PAGE;
                for missing in runs.missing(range.clone()) {
                    let bytes = vec![0; (missing.end - missing.start) as usize];
                    runs.add_fetched(missing.start, bytes);
                }
                let held: u64 = runs
                    .by_page
                    .iter()
                    .filter(|(page, run)| run.range.start / PAGE == **page)
                    .map(|(_, run)| run.length_bytes())
                    .sum();
                prop_assert_eq!(held, runs.held_bytes);
                prop_assert!(held <= 12 * PAGE);
                for (page, run) in &runs.by_page {
                    prop_assert!(pages(&run.range).contains(page));
                }
            }
        }
    }
}
