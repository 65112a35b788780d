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

use crate::histogram::TimeHistogram;
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
    /// What other threads used for this one.
    static HELPED: Cell<Usage> = const { Cell::new(Usage::ZERO) };
    /// The innermost measured stage; empty outside of stages.
    static INNERMOST: Cell<&'static str> = const { Cell::new("") };
    /// When this thread was last ready for other work: at a checkpoint or a suspension.
    static READY_NS: Cell<u64> = const { Cell::new(0) };
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
    /// For how long its runs occupied their thread before something more urgent could run there: up
    /// to each checkpoint and to the end of the run, since the checkpoint before or the beginning.
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
    let start = IS_ON.load(Ordering::Relaxed).then(|| begin(name));
    Stage {
        name,
        bytes,
        start,
        traced_from_ns: refrain_trace::is_on().then(thread_now_ns),
        outer_name: changes::enter(Some(name)),
        not_send: PhantomData,
    }
}

fn begin(name: &'static str) -> StageStart {
    let outer_name = INNERMOST.replace(name);
    let from_ns = thread_now_ns();
    if outer_name.is_empty() {
        READY_NS.set(from_ns);
    }
    StageStart {
        at: present(),
        outer: INNER.replace(Usage::ZERO),
        outer_name,
        from_ns,
    }
}

/// The thread is ready for other work: counts for how long it was not.
#[inline]
pub(crate) fn pass_checkpoint() {
    if IS_ON.load(Ordering::Relaxed) {
        pass_measured_checkpoint();
    }
}

#[cold]
fn pass_measured_checkpoint() {
    let now_ns = thread_now_ns();
    let gap_ns = now_ns.saturating_sub(READY_NS.replace(now_ns));
    let name = INNERMOST.get();
    if !name.is_empty() {
        with_profile(name, |stage| stage.gaps.count_ns(gap_ns));
    }
}

/// What this thread has used, and other threads for it.
fn used() -> Usage {
    counters::of_thread().plus(&HELPED.get())
}

/// What the running code has used.
fn present() -> Usage {
    used().since(&AWAY.get())
}

/// The calling thread's stage, for another thread that does a part of its work.
#[derive(Clone, Copy)]
pub(crate) struct LentStage {
    is_measured: bool,
    name: Option<&'static str>,
}

impl LentStage {
    /// The stage of the calling thread.
    pub(crate) fn of_this_thread() -> LentStage {
        LentStage {
            is_measured: IS_ON.load(Ordering::Relaxed),
            name: changes::current(),
        }
    }

    /// Calls `work`, which belongs to the stage, on the calling thread. Returns what it used.
    pub(crate) fn run(self, work: impl FnOnce()) -> Option<Usage> {
        let outer_name = changes::enter(self.name);
        let from = self.is_measured.then(counters::of_thread);
        work();
        if let Some(outer_name) = outer_name {
            changes::leave_to(outer_name);
        }
        from.map(|from| counters::of_thread().since(&from))
    }
}

/// Another thread has worked for the calling one, and used this.
pub(crate) fn add_help(usage: &Usage) {
    let resources = Usage {
        time: Duration::ZERO,
        ..*usage
    };
    HELPED.set(HELPED.get().plus(&resources));
    READY_NS.set(thread_now_ns());
}

/// Sets this thread's running stages aside until the guard is dropped: a coroutine is suspended,
/// and what the thread does in the meantime does not count for them.
pub(crate) fn set_aside() -> SetAside {
    SetAside {
        inner: INNER.get(),
        away: AWAY.get(),
        from: IS_ON.load(Ordering::Relaxed).then(used),
        innermost: INNERMOST.replace(""),
        name: changes::enter(None),
    }
}

pub(crate) struct SetAside {
    inner: Usage,
    away: Usage,
    /// `None` if nothing is measured.
    from: Option<Usage>,
    innermost: &'static str,
    /// The innermost stage, if changes are recorded.
    name: Option<Option<&'static str>>,
}

impl Drop for SetAside {
    fn drop(&mut self) {
        if let Some(from) = self.from {
            INNER.set(self.inner);
            AWAY.set(self.away.plus(&used().since(&from)));
            READY_NS.set(thread_now_ns());
        }
        INNERMOST.set(self.innermost);
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
    /// The surrounding stage.
    outer_name: &'static str,
    from_ns: u64,
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
        let Some(start) = self.start.take() else {
            return;
        };
        let whole = present().since(&start.at);
        let inner = INNER.replace(start.outer.plus(&whole));
        INNERMOST.set(start.outer_name);
        let mut own = whole.since(&inner);
        own.bytes = self.bytes;
        let since_ns = start.from_ns.max(READY_NS.get());
        let gap_ns = thread_now_ns().saturating_sub(since_ns);
        with_profile(self.name, |stage| {
            stage.pieces += 1;
            stage.usage = stage.usage.plus(&own);
            stage.gaps.count_ns(gap_ns);
        });
    }
}

/// Calls `change` with the sums of a stage.
fn with_profile(name: &'static str, change: impl FnOnce(&mut StageProfile)) {
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
        change(stage);
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
    fn work_of_another_thread_counts_for_the_stage_that_lent_it() {
        measure();
        {
            let _stage = stage("test lent", 0);
            let lent = LentStage::of_this_thread();
            let work = || lent.run(|| compute(Duration::from_millis(8)));
            let used = std::thread::scope(|scope| scope.spawn(work).join().unwrap());
            add_help(&used.unwrap());
        }
        let stage = reported("test lent");
        assert!(stage.usage.cpu >= Duration::from_millis(8), "{stage:?}");
        assert!(
            stage.gaps.quantile_ns(1.0).unwrap() < 8_000_000,
            "{stage:?}"
        );
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
