//! Calls that pass no checkpoint for a long time: on a spare thread, while the worker waits and
//! runs what is more urgent.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use refrain_policy::SpinLimits;
use refrain_sync::atomic::Ordering;
use refrain_sync::fence;

use crate::held_locks::holds_lock;
use crate::pool::borrowed::with_borrowed_jobs;
use crate::pool::state::context::WorkerContext;
use crate::pool::state::current::with_current;
use crate::pool::state::requests::PREEMPT;
use crate::stages::{self, LentStage};
use crate::thread::kernel;
use crate::wanted::WhileWanted;

/// Calls `work`, which takes a millisecond or more and passes no checkpoint: the code of a library.
///
/// In a job of a pool a spare thread makes the call, in the job's kernel scheduling class. The
/// worker waits for it, and meanwhile runs flows that are more urgent than the job's on top of the
/// job, as at a [`checkpoint`](super::checkpoint::checkpoint). `work` must not wait for other jobs.
/// The caller makes the call itself outside of a pool, while it holds a [`Lock`](crate::Lock),
/// where the system refuses a thread, and while all other groups of flows are insensitive to
/// latency: nobody needs the worker soon. Starting a thread takes 50 µs, a call with a thread that
/// waits 10 µs.
///
/// A panic of `work` continues in the caller.
pub fn aside<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    with_current(|worker| match worker {
        Some(worker) if !holds_lock() && worker.has_other_groups() => worker.call_aside(work),
        _ => work(),
    })
}

/// Calls both, and returns when both have returned: `work`, which waits for no other job, on a
/// spare thread if a worker of the pool is idle now, while the caller calls `own`. Else the caller
/// calls one after the other, as it does outside of a pool and while it holds a
/// [`Lock`](crate::Lock).
///
/// A panic of either continues in the caller.
pub fn beside<R: Send, T>(work: impl FnOnce() -> R + Send, own: impl FnOnce() -> T) -> (R, T) {
    with_current(|worker| match worker {
        Some(worker) if !holds_lock() && !worker.domain.idle.is_empty() => {
            worker.call_on_spare(work, own)
        }
        _ => {
            let own = own();
            (work(), own)
        }
    })
}

impl WorkerContext {
    fn has_other_groups(&self) -> bool {
        let flow = self.flow();
        flow.is_some_and(|flow| self.domain.has_others(&flow.shared.group))
    }

    fn call_aside<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.call_on_spare(work, || ()).0
    }

    /// Calls `work` on a spare thread if there is one, else here, and `own` here.
    fn call_on_spare<R: Send, T>(
        &self,
        work: impl FnOnce() -> R + Send,
        own: impl FnOnce() -> T,
    ) -> (R, T) {
        self.pass_checkpoint();
        let (stage, lent) = (LentStage::of_this_thread(), WhileWanted::of_this_thread());
        let mut work = Some(work);
        let (mut outcome, mut used, mut used_ns) = (None, None, 0);
        let call = Box::new(|| {
            let before_ns = kernel::thread_cpu_ns().unwrap_or_default();
            if let Some(work) = work.take() {
                let work = AssertUnwindSafe(|| lent.run(work));
                used = stage.run(|| outcome = Some(catch_unwind(work)));
            }
            let after_ns = kernel::thread_cpu_ns().unwrap_or_default();
            used_ns += after_ns.saturating_sub(before_ns);
        });
        let own = with_borrowed_jobs(|borrowed| {
            let body = borrowed.without_lifetime(call);
            let is_taken = self.domain.call_spare(body, &self.status);
            let own = own();
            if is_taken {
                self.wait_until(|| borrowed.outstanding() == 0);
            }
            own
        });
        if let Some(used) = used {
            stages::add_help(&used);
        }
        self.frame.borrow_mut().used_ns += used_ns;
        match (outcome, work) {
            (Some(Ok(result)), _) => (result, own),
            (Some(Err(panic)), _) => resume_unwind(panic),
            (None, Some(work)) => (work(), own),
            (None, None) => unreachable!("the spare thread took the work and left its outcome"),
        }
    }

    fn is_preempted(&self) -> bool {
        self.status.requests.bits() & PREEMPT != 0 && !holds_lock()
    }

    /// Waits until `is_done`, whose change is followed by a wake-up; runs more urgent flows.
    fn wait_until(&self, is_done: impl Fn() -> bool) {
        let sleeper = &self.status.sleeper;
        // It has to run before the threads that compute, its own spare thread among them, and soon.
        self.shorten_kernel_slice(true);
        while !is_done() {
            if self.is_preempted() {
                self.handle_requests();
                continue;
            }
            // As in `idle_set.rs`: both wakers write before they look at the sleeper.
            sleeper.prepare_to_sleep();
            fence(Ordering::SeqCst);
            if !is_done() && !self.is_preempted() {
                let until_ns = self.own_timer_ns();
                sleeper.sleep(SpinLimits::default(), until_ns, || self.domain.now_ns());
            }
            sleeper.cancel_sleep();
            self.fire_own_timers(self.read_clock());
        }
        self.shorten_kernel_slice(false);
    }
}
