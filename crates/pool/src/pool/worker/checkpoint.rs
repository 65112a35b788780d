//! Checkpoints: where a job lets its worker handle requests.

use crate::held_locks::{holds_lock, on_top};
use crate::pool::state::context::WorkerContext;
use crate::pool::state::current::with_current;
use crate::pool::state::requests::{INHERITED, PREEMPT};
use crate::stages;
use crate::wanted;

/// How many jobs can be on top of one another on a stack. Each is more urgent than the one below,
/// so a depth of `n` takes `n` degrees of urgency; the bound limits the size of the stack.
const NESTING_MAX: u32 = 8;

/// Runs flows that are more urgent than the calling job's, on top of it. Costs a few loads and a
/// reading of the processor's counter (10 ns) when there are none and no timer is due.
///
/// Nothing runs on top of a job that holds a [`Lock`](crate::Lock). Outside a pool a checkpoint
/// runs nothing. It unwinds where the result of the job is no longer wanted (see
/// [`crew`](crate::crew())).
#[inline]
pub fn checkpoint() {
    with_current(|worker| worker.into_iter().for_each(WorkerContext::pass_checkpoint));
    wanted::pass_checkpoint();
}

impl WorkerContext {
    #[inline(always)]
    pub(super) fn pass_checkpoint(&self) {
        if !holds_lock() {
            stages::pass_checkpoint();
        }
        if self.has_request() || self.is_alarm_due() {
            self.handle_requests();
        }
    }

    /// The slow path of a checkpoint: fires timers, and runs more urgent flows on top of this one.
    #[cold]
    pub(super) fn handle_requests(&self) {
        let now_ns = self.read_clock();
        if self.status.requests.bits() & INHERITED != 0 && !holds_lock() {
            self.end_inheritance();
        }
        self.fire_late_timers(now_ns);
        // A job that holds a lock continues: a job on top of it could need the same lock, and would
        // wait forever.
        if holds_lock() {
            return;
        }
        self.fire_own_timers(now_ns);
        let is_slice_over = now_ns >= self.slice_end_ns.get();
        if self.status.requests.bits() & PREEMPT == 0 && !is_slice_over {
            return;
        }
        self.status.requests.clear(PREEMPT);
        if is_slice_over {
            self.renew_slice(now_ns);
        }
        self.run_more_urgent(now_ns);
    }

    fn run_more_urgent(&self, mut now_ns: u64) {
        if self.is_between_flows() {
            return;
        }
        while self.depth.get() < NESTING_MAX {
            let Some(flow) = self.take_next() else {
                return;
            };
            self.depth.set(self.depth.get() + 1);
            let below = (stages::set_aside(), wanted::set_aside());
            on_top(|| self.run(flow));
            drop(below);
            self.depth.set(self.depth.get() - 1);
            let end_ns = self.read_clock();
            let nested_ns = end_ns.saturating_sub(now_ns);
            let mut frame = self.frame.borrow_mut();
            frame.nested_ns = frame.nested_ns.saturating_add(nested_ns);
            // Nested flows do not use up this flow's slice.
            frame.slice_end_ns = frame.slice_end_ns.saturating_add(nested_ns);
            self.slice_end_ns.set(frame.slice_end_ns);
            drop(frame);
            now_ns = end_ns;
        }
    }
}
