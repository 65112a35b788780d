//! What the stages of a program's work take: time, processor time, bytes, faults, switches, cycles, and how long a worker is not to be had.
//!
//! [`measure`] turns it on, once, for the whole process; until then a [`stage`] costs one relaxed load. Whoever does a piece of work says
//! so where it is done:
//!
//! ```
//! use refrain_pool::stages;
//!
//! stages::measure();
//! {
//!     let _stage = stages::stage("copy", 5);
//!     assert_eq!(b"hello".to_vec().len(), 5);
//! }
//! let copy = &stages::report()[0];
//! assert_eq!((copy.name, copy.pieces, copy.usage.bytes), ("copy", 1, 5));
//! ```
//!
//! A stage inside another counts for itself alone: what the inner one takes is not the outer one's, so the stages of a thread add up to what
//! the thread did in stages.

mod counters;

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use counters::Usage;

use crate::pool::histogram::TimeHistogram;

static IS_ON: AtomicBool = AtomicBool::new(false);
/// In the order of first use. A dozen of them, and a piece takes longer than a look through a dozen names.
static STAGES: Mutex<Vec<StageProfile>> = Mutex::new(Vec::new());

thread_local! {
    /// What stages took that ended inside of the one that runs.
    static INNER: Cell<Usage> = const { Cell::new(Usage::FULL) };
}

/// What one stage took so far, on all threads.
#[derive(Debug, Clone)]
pub struct StageProfile {
    /// Its name.
    pub name: &'static str,
    /// How many pieces of work were done.
    pub pieces: u64,
    /// What they took together, without the stages inside them.
    pub usage: Usage,
    /// How long each piece kept its thread, with what was inside it. A crew's worker looks for more urgent work after each of its jobs, so where
    /// jobs pass no checkpoint this is the gap between two of them.
    pub gaps: TimeHistogram,
}

/// Measures stages from now on.
pub fn measure() {
    IS_ON.store(true, Ordering::Relaxed);
}

/// The stages so far.
pub fn report() -> Vec<StageProfile> {
    lock().clone()
}

/// What the process took since it began; the time is not known here and zero.
pub fn whole_process() -> Usage {
    counters::of_process()
}

fn lock() -> MutexGuard<'static, Vec<StageProfile>> {
    // Sums, valid at every point.
    STAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calling thread works on stage `name` until the guard is dropped, on so many bytes.
#[inline]
pub fn stage(name: &'static str, bytes: u64) -> Stage {
    let began = IS_ON.load(Ordering::Relaxed).then(|| Began {
        at: counters::of_thread(),
        outer: INNER.replace(Usage::FULL),
    });
    Stage {
        name,
        bytes,
        began,
        stays: PhantomData,
    }
}

struct Began {
    at: Usage,
    /// What had ended inside of the stage around this one.
    outer: Usage,
}

/// A piece of work. See [`stage`].
#[must_use = "the piece of work ends when this is dropped"]
pub struct Stage {
    name: &'static str,
    bytes: u64,
    began: Option<Began>,
    /// It ends on the thread where it began.
    stays: PhantomData<*const ()>,
}

impl Stage {
    /// There were more bytes than was known at the beginning.
    pub fn add_bytes(&mut self, bytes: u64) {
        self.bytes += bytes;
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let Some(Began { at, outer }) = self.began.take() else {
            return;
        };
        let whole = counters::of_thread().since(&at);
        let inner = INNER.replace(outer.plus(&whole));
        let mut own = whole.since(&inner);
        own.bytes = self.bytes;
        add(self.name, &own, whole.time);
    }
}

fn add(name: &'static str, own: &Usage, gap: Duration) {
    let gap_ns = u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX);
    let mut stages = lock();
    let index = stages.iter().position(|stage| stage.name == name);
    let index = index.unwrap_or_else(|| {
        stages.push(StageProfile {
            name,
            pieces: 0,
            usage: Usage::FULL,
            gaps: TimeHistogram::default(),
        });
        stages.len() - 1
    });
    if let Some(stage) = stages.get_mut(index) {
        stage.pieces += 1;
        stage.usage = stage.usage.plus(own);
        stage.gaps.count_ns(gap_ns);
    }
}

#[cfg(all(test, not(loom)))]
#[allow(
    clippy::unwrap_used,
    reason = "clippy does not take `all(test, not(loom))` for a test"
)]
mod tests {
    use super::*;

    fn of(name: &str) -> StageProfile {
        let found = report().into_iter().find(|stage| stage.name == name);
        found.unwrap()
    }

    fn compute(time: Duration) {
        let start = counters::of_thread();
        while counters::of_thread().since(&start).cpu < time {
            std::hint::black_box(());
        }
    }

    #[test]
    fn what_is_inside_counts_for_itself() {
        measure();
        {
            let mut outer = stage("test outer", 10);
            compute(Duration::from_millis(2));
            for _ in 0..3 {
                let _inner = stage("test inner", 7);
                compute(Duration::from_millis(4));
            }
            outer.add_bytes(5);
        }
        let (outer, inner) = (of("test outer"), of("test inner"));
        assert_eq!((outer.pieces, outer.usage.bytes), (1, 15));
        assert_eq!((inner.pieces, inner.usage.bytes), (3, 21));
        assert!(inner.usage.cpu >= Duration::from_millis(12));
        // A clock that counts by ticks may give up to one to the wrong side.
        assert!(outer.usage.cpu >= Duration::from_millis(2));
        assert!(outer.usage.cpu < Duration::from_millis(12), "{outer:?}");
        let longest_ns = outer.gaps.quantile_ns(1.0).unwrap();
        assert!(longest_ns >= 14_000_000, "the gap is the whole piece");
        assert_eq!(inner.gaps.count(), 3);
    }

    #[test]
    fn threads_add_up() {
        measure();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| drop(stage("test threads", 2))));
            }
        });
        let stage = of("test threads");
        assert_eq!((stage.pieces, stage.usage.bytes), (400, 800));
    }
}
