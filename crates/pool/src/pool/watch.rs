//! What an idle worker does for others, as a busy one does at checkpoints and between two jobs: it
//! fires timers that are late.
//!
//! One does it for all, the *watcher*: the idle worker with the highest number, which is the last
//! to be woken for work. When it falls asleep it decides when to look and publishes that time. Who
//! gives it something earlier to watch wakes it; when it leaves with work, it wakes the next one.
//! Two that fall asleep at once may both take themselves for it, so each looks again after it has
//! published its time.

use std::sync::Arc;

use refrain_policy::topology::{CpuId, CpuMask};
use refrain_sync::atomic::Ordering;
use refrain_timer::NEVER_NS;

use super::state::domain::Domain;

/// A timer is late if its worker has not fired it for so long: then it computes without
/// checkpoints, or the kernel runs something else in its place.
pub(crate) const LATE_NS: u64 = 100_000;

impl Domain {
    fn watcher(&self) -> Option<CpuId> {
        let idle = self.idle.mask();
        let with_thread = |cpu: &CpuId| self.workers[cpu.index()].thread() != 0;
        idle.iter().filter(with_thread).last()
    }

    /// Whether the idle worker `cpu` watches the others.
    pub(crate) fn is_watcher(&self, cpu: CpuId) -> bool {
        self.watcher() == Some(cpu)
    }

    /// Wakes the watcher. If no worker with a thread is idle, starts one.
    pub(crate) fn wake_watcher(self: &Arc<Self>) {
        if let Some(cpu) = self.watcher() {
            self.nudge(cpu);
        } else if let Some(cpu) = self.idle.claim_any(&CpuMask::ALL) {
            self.wake(cpu, 0);
        }
    }

    /// Makes sure that the watcher looks when a timer for this time is late. The caller has
    /// published the timer, and then fenced.
    pub(crate) fn have_watched(self: &Arc<Self>, deadline_ns: u64) {
        if deadline_ns.saturating_add(LATE_NS) < self.watch_ns.load(Ordering::Relaxed) {
            self.wake_watcher();
        }
    }

    /// When a timer of another worker than `cpu` will be late; [`NEVER_NS`] if there are none.
    pub(crate) fn late_ns(&self, cpu: CpuId) -> u64 {
        let next_ns = self.other_timers(cpu).map(|(_, next_ns)| next_ns).min();
        next_ns.unwrap_or(NEVER_NS).saturating_add(LATE_NS)
    }

    /// Returns whether there were any.
    pub(crate) fn fire_late_timers(&self, cpu: CpuId, now_ns: u64) -> bool {
        let is_late = |next_ns: u64| next_ns.saturating_add(LATE_NS) <= now_ns;
        let late = self
            .other_timers(cpu)
            .filter(|&(_, next_ns)| is_late(next_ns));
        let fired = late.map(|(other, _)| self.fire_timers(other, now_ns));
        fired.sum::<usize>() > 0
    }

    /// The other workers with their next deadlines.
    fn other_timers(&self, cpu: CpuId) -> impl Iterator<Item = (CpuId, u64)> {
        let others = (0..self.workers.len()).filter(move |&index| index != cpu.index());
        others.map(|index| (CpuId::new(index), self.timers.next_ns(index)))
    }
}
