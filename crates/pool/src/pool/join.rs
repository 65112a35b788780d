//! Fork and join inside a flow. `fork.rs` describes the method.

use refrain_sync::atomic::Ordering;

use super::fork::Fork;
use super::state::context::WorkerContext;
use super::state::current::with_current;
use super::state::domain::Flow;

/// Runs both closures, in parallel if a worker is idle, and returns both results.
///
/// A join that waits runs only work of its own flow, so it takes no longer than that work, except
/// for more urgent flows, which run first at its checkpoints. Outside a pool the closures run one
/// after the other.
///
/// # Panics
/// With the panic of `a`, or else of `b`, once both have ended or `b` has not started.
#[inline]
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    with_current(|worker| match worker {
        Some(worker) => join_on(worker, a, b),
        None => (a(), b()),
    })
}

/// A fork to be taken back or waited for, also when the first half panics.
struct Pending<'a, F: Fn() -> bool> {
    worker: &'a WorkerContext,
    position: usize,
    is_done: F,
}

impl<F: Fn() -> bool> Pending<'_, F> {
    /// Returns true if the joiner has the fork back. If it was shared, waits until it has run and
    /// returns false.
    #[inline(always)]
    fn take_back_or_wait(&self) -> bool {
        if self.worker.forks.take_back(self.position) {
            return true;
        }
        wait_for_shared(self.worker, &self.is_done);
        false
    }
}

impl<F: Fn() -> bool> Drop for Pending<'_, F> {
    fn drop(&mut self) {
        self.take_back_or_wait();
    }
}

#[inline(always)]
fn join_on<A, B, RA, RB>(worker: &WorkerContext, a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    let fork = Fork::new(b);
    let position = worker.forks.push(fork.as_ref());
    let pending = Pending {
        worker,
        position,
        is_done: || fork.is_done(),
    };
    if position == 0 {
        begin_outermost(worker);
    }
    if worker.has_request() || worker.is_join_alarm_due() {
        worker.handle_requests();
    }
    let a = a();
    let is_mine = pending.take_back_or_wait();
    std::mem::forget(pending);
    let b = if is_mine { fork.run_here() } else { fork.into_result() };
    (a, b)
}

/// The first join of a job: now there are forks that heartbeats can share.
#[inline(always)]
fn begin_outermost(worker: &WorkerContext) {
    if !worker.status.is_forking.load(Ordering::Relaxed) {
        worker.begin_forking();
    }
}

#[cold]
fn wait_for_shared(worker: &WorkerContext, is_done: &impl Fn() -> bool) {
    // The joining flow is the one that runs here.
    let flow: Option<Flow> = worker.flow();
    if let Some(flow) = flow {
        worker.wait_for(&flow, is_done);
    }
}
