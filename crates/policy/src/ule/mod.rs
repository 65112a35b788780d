//! FreeBSD's ULE: interactivity estimated from run and sleep times, a queue per CPU, CPUs searched
//! by load and cache.
//!
//! Sources: Roberson, "ULE: A Modern Scheduler for FreeBSD" (BSDCon 2003), and the constants of
//! `sched_ule(4)` in FreeBSD 9. Not implemented: random tie-breaks (the lowest number wins, so that
//! runs are reproducible).

mod placement;
mod score;
#[cfg(test)]
mod tests;

pub use score::{INTERACTIVE_BELOW, interactivity};

use crate::accounting::{Charge, Grant};
use crate::affinity::is_allowed_here;
use crate::class::{Class, TenantId};
use crate::decision::{Placement, Stop};
use crate::entity::{Entity, History};
use crate::key::{DEADLINE_STEP_NS, Key, Rank};
use crate::ledger::{ISO_LIMIT_PERMILLE, ISO_WINDOW_NS, Ledger, LedgerRules};
use crate::policy::Policy;
use crate::topology::{CpuId, CpuMask, Sharing, StripeId};
use crate::view::View;

/// The policy of ULE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ule {
    /// The full slice of a flow that is alone on its CPU, nanoseconds. FreeBSD: about 94 ms.
    pub slice_ns: u64,
    /// One bucket of the calendar queue, nanoseconds: how far one step of priority delays a flow.
    /// FreeBSD: a tick.
    pub tick_ns: u64,
    /// The mean time between two rounds of the balancer, nanoseconds; 0: never. FreeBSD: about 1 s.
    pub balance_ns: u64,
    /// How long a cache is assumed to be warm, nanoseconds per level. FreeBSD: 1 ms.
    pub affinity_ns: u64,
}

impl Default for Ule {
    /// FreeBSD's values at 127 statistics ticks per second.
    fn default() -> Ule {
        Ule {
            slice_ns: 94_000_000,
            tick_ns: 7_800_000,
            balance_ns: 1_000_000_000,
            affinity_ns: 1_000_000,
        }
    }
}

/// Deadlines at or above this belong to the calendar queue; smaller ones are interactive flows
/// ordered by score.
const CALENDAR_FROM_NS: u64 = 1 << 60;
/// The distance between two interactive priorities; larger than the rounding of a key.
const PRIORITY_STEP_NS: u64 = 1 << 20;
const _: () = assert!(PRIORITY_STEP_NS > DEADLINE_STEP_NS);
const _: () = assert!(INTERACTIVE_BELOW as u64 * PRIORITY_STEP_NS < CALENDAR_FROM_NS);

/// The longest history that a child inherits from its parent.
const INHERITED_MAX_NS: u64 = 500_000_000;
/// The score of a load of one, and that above which slices do not shrink further.
const LOAD_UNIT: u64 = History::SCORE_MAX as u64;
const LOAD_MAX: u64 = 6 * LOAD_UNIT;

impl Ule {
    /// Sets the position in the queue: by score for interactive flows, by calendar bucket for
    /// others.
    fn set_priority(&self, entity: &mut Entity, view: &impl View) {
        let score = score::score(entity);
        entity.deadline_ns = if score < INTERACTIVE_BELOW {
            u64::from(score) * PRIORITY_STEP_NS
        } else {
            // 64 buckets, one per tick. The calendar never goes back, so buckets can be numbered
            // without wrapping.
            let steps = score::timeshare_steps(entity);
            let offset_ns = self.tick_ns.saturating_mul(steps);
            CALENDAR_FROM_NS
                .saturating_add(view.now_ns())
                .saturating_add(offset_ns)
        };
    }

    fn is_interactive(key: Key) -> bool {
        key.class() == Some(Class::Normal) && key.deadline_ns() < CALENDAR_FROM_NS
    }

    /// The slice shrinks with the load of the CPU, to limit the time until each flow's next turn.
    /// Others count by their interactivity scores: those that hardly run take hardly any time.
    fn slice_now_ns(&self, cpu: CpuId, view: &impl View) -> u64 {
        let load = view.queued_score(view.stripe_of(cpu));
        let slice_ns = self.slice_ns.saturating_mul(LOAD_UNIT) / load.clamp(LOAD_UNIT, LOAD_MAX);
        slice_ns.max(1)
    }
}

impl Policy for Ule {
    fn ledger(&self, cpus: usize) -> Ledger {
        Ledger::new(LedgerRules {
            cpus,
            tenant_lag_ns: 0,
            iso_limit_permille: ISO_LIMIT_PERMILLE,
            iso_window_ns: ISO_WINDOW_NS,
        })
    }

    fn sharing(&self) -> Sharing {
        Sharing::Cpu
    }

    fn admit(&self, entity: &mut Entity, parent: Option<&mut Entity>, view: &impl View) {
        entity.is_admitted = true;
        if let Some(parent) = parent {
            entity.last_cpu = parent.last_cpu;
            entity.history = score::limited(parent.history, INHERITED_MAX_NS);
        } else {
            entity.history = History::default();
        }
        self.set_priority(entity, view);
    }

    fn key(&self, entity: &Entity, _view: &impl View) -> Key {
        Key::new(entity.class, TenantId::default(), entity.deadline_ns).min(entity.inherited)
    }

    fn rank(&self, key: Key, _view: &impl View) -> Rank {
        Rank::from_key(key)
    }

    fn wake(
        &self,
        entity: &mut Entity,
        waker: Option<CpuId>,
        _is_sync: bool,
        view: &impl View,
    ) -> Placement {
        let last_ran_ns = entity.history.asleep_since_ns;
        score::woke(&mut entity.history, view.now_ns());
        self.set_priority(entity, view);
        self.place_by_load(entity, waker, last_ran_ns, view)
    }

    fn requeue(&self, entity: &mut Entity, cpu: CpuId, view: &impl View) -> Placement {
        self.set_priority(entity, view);
        if is_allowed_here(entity, cpu, view) {
            return Placement::Queue(view.stripe_of(cpu));
        }
        self.place_by_load(entity, None, view.now_ns(), view)
    }

    fn pick(&self, cpu: CpuId, tried: &CpuMask, view: &impl View) -> Option<StripeId> {
        self.own_or_stolen(cpu, tried, view)
    }

    fn balance_interval_ns(&self) -> Option<u64> {
        (self.balance_ns > 0).then_some(self.balance_ns)
    }

    fn balance(&self, moved: &CpuMask, view: &impl View) -> Option<(CpuId, CpuId)> {
        self.unbalanced(moved, view)
    }

    fn may_take(&self, entity: &Entity, cpu: CpuId, view: &impl View) -> bool {
        is_allowed_here(entity, cpu, view)
    }

    fn run(&self, entity: &mut Entity, cpu: CpuId, view: &impl View) -> Grant {
        entity.last_cpu = cpu;
        Grant::plain(entity, self.slice_now_ns(cpu, view))
    }

    fn stop(
        &self,
        entity: &mut Entity,
        _cpu: CpuId,
        ran_ns: u64,
        why: Stop,
        view: &impl View,
    ) -> Charge {
        score::ran(&mut entity.history, ran_ns);
        // Only voluntary sleep counts; 0 means that the flow does not sleep.
        entity.history.asleep_since_ns =
            if why == Stop::Blocked { view.now_ns().max(1) } else { 0 };
        Charge::plain(entity, ran_ns, view.now_ns())
    }
}
