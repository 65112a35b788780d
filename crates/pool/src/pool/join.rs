//! Fork and join inside a flow. See `fork.rs` for the idea.

use refrain_timer::sync::atomic::Ordering;

use super::flow::Flow;
use super::fork::Fork;
use super::local::here;
use super::worker::Local;

/// Runs both closures, in parallel if a worker is idle, and returns both results.
///
/// Everything that is run meanwhile belongs to the same flow: a join that waits takes no foreign work, so it takes no longer than its own
/// (but for more urgent flows, which go first at its checkpoints). Outside of a pool: one after the other.
///
/// # Panics
/// With the panic of `a`, or else of `b`, once both have ended or `b` has not begun.
#[inline]
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    here(|local| match local {
        Some(local) => join_here(local, a, b),
        None => (a(), b()),
    })
}

/// What has to happen to a fork also when the first half panics.
struct Pending<'a, F: Fn() -> bool> {
    local: &'a Local,
    position: usize,
    is_done: F,
}

impl<F: Fn() -> bool> Pending<'_, F> {
    /// Whether the fork is the joiner's again; if it was shared, it has been run when this returns.
    #[inline(always)]
    fn settle(&self) -> bool {
        if self.local.forks.take_back(self.position) {
            return true;
        }
        wait_for_shared(self.local, &self.is_done);
        false
    }
}

impl<F: Fn() -> bool> Drop for Pending<'_, F> {
    fn drop(&mut self) {
        self.settle();
    }
}

#[inline(always)]
fn join_here<A, B, RA, RB>(local: &Local, a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    let fork = Fork::new(b);
    let position = local.forks.push(fork.as_ref());
    let pending = Pending {
        local,
        position,
        is_done: || fork.is_done(),
    };
    if position == 0 {
        outermost(local);
    }
    if local.is_asked() {
        local.answer();
    }
    let a = a();
    let is_mine = pending.settle();
    std::mem::forget(pending);
    let b = if is_mine {
        fork.run_here()
    } else {
        fork.into_result()
    };
    (a, b)
}

/// The first join of a job: from now on beats are worth while.
#[inline(always)]
fn outermost(local: &Local) {
    if !local.worker.is_forking.load(Ordering::Relaxed) {
        local.begin_forking();
    }
}

#[cold]
fn wait_for_shared(local: &Local, is_done: &impl Fn() -> bool) {
    // The flow that joins is the one that runs here.
    let flow: Option<Flow> = local.flow();
    if let Some(flow) = flow {
        local.wait_for(&flow, is_done);
    }
}
