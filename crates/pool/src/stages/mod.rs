//! The resources that the stages of a program use: time, processor time, bytes, page faults,
//! context switches, cycles, and for how long each part of the work occupies its thread.
//!
//! [`measure`] enables the measurement, once, for the whole process. Before, a [`stage`] costs one
//! relaxed load. The code that does some work marks it:
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
//! The resources of a stage inside another one are not counted for the outer stage. So the sum over
//! the stages of a thread is what the thread used in stages.
//!
//! A sampler instead asks for the moments at which threads change their stage: see [`changes`].

#[cfg(target_os = "linux")]
pub mod changes;
mod counters;
#[cfg(not(target_os = "linux"))]
mod no_changes;
#[cfg(not(target_os = "linux"))]
use no_changes as changes;

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use counters::Usage;
use refrain_sync::plain::{Mutex, MutexGuard};
use refrain_sync::ticks::thread_now_ns;
use refrain_trace::EventKind;

use crate::pool::histogram::TimeHistogram;
use crate::trace;

static IS_ON: AtomicBool = AtomicBool::new(false);
/// In the order of first use. There are about a dozen: searching them takes a small part of the
/// time of the measured work.
static STAGES: Mutex<Vec<StageProfile>> = Mutex::new(Vec::new());

thread_local! {
    /// The resources of stages that ended inside the current one.
    static INNER: Cell<Usage> = const { Cell::new(Usage::ZERO) };
    /// What the thread used while the running code was suspended.
    static AWAY: Cell<Usage> = const { Cell::new(Usage::ZERO) };
    /// When the running code was last resumed after a suspension.
    static RESUMED_NS: Cell<u64> = const { Cell::new(0) };
}

/// The resources that one stage has used so far, on all threads.
#[derive(Debug, Clone)]
pub struct StageProfile {
    /// Its name.
    pub name: &'static str,
    /// How often the stage ran.
    pub pieces: u64,
    /// The resources of all its runs, without the stages inside them.
    pub usage: Usage,
    /// How long each run occupied its thread, including the stages inside it. A crew's worker looks
    /// for more urgent work after each job. Where jobs pass no checkpoint, this is the gap between
    /// two of them.
    pub gaps: TimeHistogram,
}

/// Enables the measurement.
pub fn measure() {
    IS_ON.store(true, Ordering::Relaxed);
}

/// The stages measured so far.
pub fn report() -> Vec<StageProfile> {
    lock().clone()
}

/// The resources that the process has used so far. The elapsed time is unknown and zero.
pub fn whole_process() -> Usage {
    counters::of_process()
}

fn lock() -> MutexGuard<'static, Vec<StageProfile>> {
    // Sums, valid at every point.
    STAGES.lock()
}

/// Marks that the calling thread works on stage `name`, on `bytes` bytes, until the guard is
/// dropped.
#[inline]
pub fn stage(name: &'static str, bytes: u64) -> Stage {
    let start = IS_ON.load(Ordering::Relaxed).then(|| StageStart {
        at: present(),
        outer: INNER.replace(Usage::ZERO),
    });
    Stage {
        name,
        bytes,
        start,
        traced_from_ns: refrain_trace::is_on().then(thread_now_ns),
        outer_name: changes::enter(Some(name)),
        not_send: PhantomData,
    }
}

/// What the running code has used on this thread.
fn present() -> Usage {
    counters::of_thread().since(&AWAY.get())
}

/// Sets this thread's running stages aside until the guard is dropped: a coroutine is suspended,
/// and what the thread does in the meantime does not count for them.
pub(crate) fn set_aside() -> SetAside {
    SetAside {
        inner: INNER.get(),
        away: AWAY.get(),
        from: IS_ON.load(Ordering::Relaxed).then(counters::of_thread),
        name: changes::enter(None),
    }
}

pub(crate) struct SetAside {
    inner: Usage,
    away: Usage,
    /// `None` if nothing is measured.
    from: Option<Usage>,
    /// The innermost stage, if changes are recorded.
    name: Option<Option<&'static str>>,
}

impl Drop for SetAside {
    fn drop(&mut self) {
        if let Some(from) = self.from {
            INNER.set(self.inner);
            AWAY.set(self.away.plus(&counters::of_thread().since(&from)));
        }
        if let Some(name) = self.name {
            changes::leave_to(name);
        }
        if refrain_trace::is_on() {
            RESUMED_NS.set(thread_now_ns());
        }
    }
}

struct StageStart {
    at: Usage,
    /// The resources of stages that had ended inside the surrounding stage.
    outer: Usage,
}

/// A running stage. See [`stage`].
#[must_use = "the stage ends when this is dropped"]
pub struct Stage {
    name: &'static str,
    bytes: u64,
    start: Option<StageStart>,
    /// When it began, if events are recorded.
    traced_from_ns: Option<u64>,
    /// The surrounding stage, if changes are recorded.
    outer_name: Option<Option<&'static str>>,
    /// It ends on the thread on which it began.
    not_send: PhantomData<*const ()>,
}

impl Stage {
    /// Adds bytes that were not known at the beginning.
    pub fn add_bytes(&mut self, bytes: u64) {
        self.bytes += bytes;
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(start_ns) = self.traced_from_ns {
            // The code that entered has recorded the earlier turns.
            let start_ns = start_ns.max(RESUMED_NS.get());
            trace::span(EventKind::Stage, self.name, start_ns, self.bytes);
        }
        if let Some(outer_name) = self.outer_name {
            changes::leave_to(outer_name);
        }
        let Some(StageStart { at, outer }) = self.start.take() else {
            return;
        };
        let whole = present().since(&at);
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
            usage: Usage::ZERO,
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

    fn reported(name: &str) -> StageProfile {
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
    fn inner_stages_are_not_counted_for_the_outer_one() {
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
        let (outer, inner) = (reported("test outer"), reported("test inner"));
        assert_eq!((outer.pieces, outer.usage.bytes), (1, 15));
        assert_eq!((inner.pieces, inner.usage.bytes), (3, 21));
        assert!(inner.usage.cpu >= Duration::from_millis(12));
        // A clock that counts by ticks may attribute up to one tick to the wrong side.
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
        let stage = reported("test threads");
        assert_eq!((stage.pieces, stage.usage.bytes), (400, 800));
    }
}
