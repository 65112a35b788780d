//! What a worker looks at when time has passed: its timers, the end of a slice, and while it has
//! nothing to do the other workers.

use refrain_sync::atomic::Ordering;
use refrain_sync::fence;
use refrain_timer::NEVER_NS;

use crate::held_locks::holds_lock;
use crate::pool::state::context::WorkerContext;
use crate::pool::state::requests::PREEMPT;
use crate::pool::watch::LATE_NS;
use crate::thread::kernel;

/// The slice that a worker with timers, or with a call on a spare thread, requests from the kernel:
/// short enough to run before computing threads when it wakes.
const SLICE_NS: u64 = 100_000;
/// Requests the kernel's own slice.
const SLICE_DEFAULT: u64 = 0;

impl WorkerContext {
    /// Whether time has come to look: one reading of the clock, and a comparison.
    #[inline]
    pub(super) fn is_alarm_due(&self) -> bool {
        let others_ns = self.slice_end_ns.get().min(self.others_ns.get());
        self.read_clock() >= self.own_timer_ns().min(others_ns)
    }

    /// Fires the timers of this worker that are due. While the caller holds a lock it may hold
    /// that of the timers, so they wait.
    #[inline]
    pub(super) fn fire_own_timers(&self, now_ns: u64) {
        if self.own_timer_ns() <= now_ns
            && !holds_lock()
            && self.domain.fire_timers(self.cpu, now_ns) > 0
        {
            // The policy may have chosen another worker, but this one is here, and may be sooner.
            self.status.requests.set(PREEMPT);
        }
    }

    /// Fires timers of others that are late: at checkpoints, between two jobs and while idle, not
    /// more often than one can become late.
    #[inline]
    pub(super) fn fire_late_timers(&self, now_ns: u64) {
        if now_ns < self.others_ns.get() {
            return;
        }
        self.others_ns.set(now_ns.saturating_add(LATE_NS));
        if !holds_lock() && self.domain.fire_late_timers(self.cpu, now_ns) {
            self.status.requests.set(PREEMPT);
        }
    }

    /// Before the worker enters the idle ones: from then on it may be taken for the watcher.
    pub(super) fn begin_idling(&self) {
        self.was_idle.set(true);
        self.watches.set(true);
        // Whoever gives the watcher something to watch sees this, or the watcher sees what it is.
        self.domain.watch_ns.store(NEVER_NS, Ordering::Relaxed);
    }

    /// Until when an idle worker sleeps: until its next timer; the watcher also until it has to do
    /// something for others.
    pub(super) fn sleep_until(&self) -> u64 {
        let own_ns = self.own_timer_ns();
        self.shorten_kernel_slice(own_ns != NEVER_NS);
        if !self.domain.is_watcher(self.cpu) {
            self.watches.set(false);
            return own_ns;
        }
        loop {
            let until_ns = self.look_at_ns();
            self.domain.watch_ns.store(until_ns, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            // A worker that comes after this test writes its own time over this one.
            if !self.domain.is_watcher(self.cpu) {
                self.pass_watch();
                return own_ns;
            }
            // While another worker's time was in its place, nobody woke this one.
            if self.look_at_ns() >= until_ns {
                return until_ns;
            }
        }
    }

    /// When the watcher has to look.
    fn look_at_ns(&self) -> u64 {
        self.own_timer_ns().min(self.domain.late_ns(self.cpu))
    }

    /// Looks at what may be due after a sleep.
    pub(super) fn look_around(&self, now_ns: u64) {
        self.fire_own_timers(now_ns);
        if self.watches.get() {
            self.others_ns.set(0);
        }
        self.fire_late_timers(now_ns);
    }

    /// Called before the worker runs a flow. If it was idle, it can no longer sleep until its own
    /// timers nor watch others.
    pub(super) fn hand_on_watch(&self) {
        if self.was_idle.take() {
            self.pass_watch();
        }
    }

    fn pass_watch(&self) {
        if self.watches.take() {
            self.domain.watch_ns.store(NEVER_NS, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        let next_ns = self.look_at_ns();
        if next_ns != NEVER_NS {
            self.domain.have_watched(next_ns);
        }
    }

    #[inline]
    pub(super) fn own_timer_ns(&self) -> u64 {
        self.domain.timers.next_ns(self.cpu.index())
    }

    /// Two system calls for a change, so only when the worker is about to sleep.
    pub(super) fn shorten_kernel_slice(&self, is_short: bool) {
        if self.has_short_slice.replace(is_short) != is_short {
            kernel::shorten_slice(if is_short { SLICE_NS } else { SLICE_DEFAULT });
        }
    }
}
