//! Earliest virtual deadline first: BFS, and MuQSS when there is more than one stripe.

mod placement;
mod ratios;
mod refill;
#[cfg(test)]
mod tests;

use crate::accounting::{Charge, Grant};
use crate::class::Class;
use crate::decision::{Placement, Stop};
use crate::entity::Entity;
use crate::key::{Key, Rank};
use crate::ledger::{ISO_LIMIT_PERMILLE, ISO_WINDOW_NS, Ledger, LedgerRules};
use crate::policy::Policy;
use crate::topology::{CpuId, CpuMask, Sharing, StripeId};
use crate::view::View;

/// The base from which a flow's next deadline is counted when its slice is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Base {
    /// The current time: BFS as published. Shares by nice are right for about one busy flow per CPU
    /// and converge towards equality beyond it: n flows of nice a have the ratio `(offset_b −
    /// offset_a + n·slice) / (n·slice)` to one of nice b.
    Now,
    /// The flow's last deadline, in virtual time: shares are exactly `slice / offset` for any
    /// number of flows.
    Carry {
        /// How far a flow's deadline may lag behind the others when the next one is counted from
        /// it, nanoseconds of virtual time. It limits what a sleeper may catch up.
        lag_max_ns: u64,
    },
}

/// Whether [latency classes](crate::Latency) above the usual one also get more processor time.
///
/// At `interactive` i a sensitive flow gets 1 + i/2 times the share of a usual one, and an
/// exquisitely sensitive flow 1 + i times: 1.5 and 2 at 1, 2 and 3 at 2. Its slices are that much
/// longer; deadlines stay as they are. The ratios are exact with [`Base::Carry`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Interactive {
    /// 0: low latency at equal shares.
    #[default]
    EqualShares,
    /// 1: low latency and more processor time.
    MoreTime,
    /// 2: low latency and still more processor time.
    MostTime,
}

impl Interactive {
    /// The setting with this number from 0 to 2; larger values give the last.
    pub fn from_number(number: u8) -> Interactive {
        match number {
            0 => Interactive::EqualShares,
            1 => Interactive::MoreTime,
            _ => Interactive::MostTime,
        }
    }
}

/// Which stripe a CPU prefers if several have work. MuQSS has this rule under the name
/// `interactive`, with the values 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PreferredStripe {
    /// Its own, because of the cache: another one must have more waiting flows and an earlier
    /// deadline.
    Own,
    /// The one with the earliest deadline.
    #[default]
    Earliest,
}

/// Whether flows of different tenants (users, clients) share the machine by tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tenants {
    /// All flows are alike.
    Ignored,
    /// Tenants get exact shares by weight, whatever the number of their flows: the tenant with the
    /// least processor time comes first, then the earliest deadline among its flows.
    Exact,
    /// BFS's `group_by_uid`: the deadlines of a tenant's flows are as many times further away as
    /// the tenant has [running flows](Ledger::running_flows), once it has `flows_min` of them.
    /// Shares are equal with [`Base::Carry`] while all flows run; with [`Base::Now`] they are not.
    ByOffset {
        /// The least number of running flows that counts as a group.
        flows_min: u32,
    },
}

/// The policy of BFS (Kolivas 2009–2016) with stripes as in MuQSS (2016), tenants, and a selectable
/// [`Base`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bfs {
    /// The slice of a flow of the usual latency class, nanoseconds, and the unit of deadlines:
    /// BFS's `rr_interval`.
    pub interval_ns: u64,
    /// The base that deadlines are counted from.
    pub base: Base,
    /// Whether latency classes get more processor time.
    pub interactive: Interactive,
    /// Whether deadlines or caches decide between stripes.
    pub preferred_stripe: PreferredStripe,
    /// Which CPUs share a stripe. [`Sharing::All`] is BFS, [`Sharing::Cache`] is MuQSS's default.
    pub sharing: Sharing,
    /// How tenants share the machine.
    pub tenants: Tenants,
    /// The share of the machine for isochronous flows, thousandths.
    pub iso_limit_permille: u32,
    /// The window of that share, nanoseconds.
    pub iso_window_ns: u64,
}

impl Default for Bfs {
    /// The settings for a pool: 1 ms, carried base, one stripe per cache, tenants.
    fn default() -> Bfs {
        Bfs {
            interval_ns: 1_000_000,
            base: Base::Carry {
                lag_max_ns: ratios::offset_of_ratio(ratios::RATIO_NICE_0, 1_000_000),
            },
            interactive: Interactive::EqualShares,
            preferred_stripe: PreferredStripe::Earliest,
            sharing: Sharing::Cache,
            tenants: Tenants::Exact,
            iso_limit_permille: ISO_LIMIT_PERMILLE,
            iso_window_ns: ISO_WINDOW_NS,
        }
    }
}

impl Bfs {
    /// BFS as published: 6 ms, deadlines from the current time, one stripe, no tenants.
    pub fn published() -> Bfs {
        Bfs {
            interval_ns: 6_000_000,
            base: Base::Now,
            sharing: Sharing::All,
            tenants: Tenants::Ignored,
            ..Bfs::default()
        }
    }

    /// The effective class: isochronous flows count as normal while they have exceeded their share.
    fn class_now(class: Class, view: &impl View) -> Class {
        match class {
            Class::Iso if view.is_iso_refractory() => Class::Normal,
            other => other,
        }
    }

    /// The lateness of a key, comparable between tenants and classes: its deadline relative to its
    /// own virtual time, shifted to the middle of the range.
    fn order(&self, key: Key, view: &impl View) -> u64 {
        let reference_ns = match (self.base, key.class()) {
            (Base::Carry { .. }, Some(class)) => view.frontier_ns(key.tenant(), class),
            _ => 0,
        };
        const MIDDLE: u64 = 1 << 63;
        MIDDLE
            .saturating_add(key.deadline_ns())
            .saturating_sub(reference_ns)
    }
}

impl Policy for Bfs {
    fn ledger(&self, cpus: usize) -> Ledger {
        Ledger::new(LedgerRules {
            cpus,
            tenant_lag_ns: self.interval_ns.saturating_mul(4),
            iso_limit_permille: self.iso_limit_permille,
            iso_window_ns: self.iso_window_ns,
        })
    }

    fn sharing(&self) -> Sharing {
        self.sharing
    }

    fn admit(&self, entity: &mut Entity, parent: Option<&mut Entity>, view: &impl View) {
        self.refill_new(entity, parent, view);
    }

    #[inline(always)]
    fn key(&self, entity: &Entity, _view: &impl View) -> Key {
        let own = Key::new(entity.class, self.tenant_of(entity), entity.deadline_ns);
        own.min(entity.inherited)
    }

    fn rank(&self, key: Key, view: &impl View) -> Rank {
        let Some(class) = key.class() else {
            return Rank::LAST;
        };
        let class = Self::class_now(class, view);
        Rank {
            class: class as u8,
            tenant_time_ns: match self.tenants {
                Tenants::Exact => view.tenant_time_ns(key.tenant(), class),
                Tenants::Ignored | Tenants::ByOffset { .. } => 0,
            },
            order: self.order(key, view),
        }
    }

    #[inline(always)]
    fn wake(
        &self,
        entity: &mut Entity,
        waker: Option<CpuId>,
        is_sync: bool,
        view: &impl View,
    ) -> Placement {
        self.place_woken(entity, waker, is_sync, view)
    }

    fn requeue(&self, entity: &mut Entity, cpu: CpuId, view: &impl View) -> Placement {
        self.place_stopped(entity, cpu, view)
    }

    fn pick(&self, cpu: CpuId, tried: &CpuMask, view: &impl View) -> Option<StripeId> {
        self.pick_stripe(cpu, tried, view)
    }

    #[inline(always)]
    fn may_take(&self, entity: &Entity, cpu: CpuId, view: &impl View) -> bool {
        self.is_eligible(entity, cpu, view)
    }

    #[inline(always)]
    fn run(&self, entity: &mut Entity, cpu: CpuId, view: &impl View) -> Grant {
        entity.last_cpu = cpu;
        entity.is_sticky = false;
        let tenant = self.tenant_of(entity);
        // A flow without a remaining slice was not stopped by these rules; it gets the minimum.
        let slice_ns = match u64::try_from(entity.slice_left_ns) {
            Ok(left_ns) if !self.is_slice_used(entity) => left_ns,
            _ => self.slice_least_ns(entity),
        };
        Grant {
            slice_ns,
            start_ns: entity
                .deadline_ns
                .saturating_sub(self.group_offset_ns(entity, view)),
            class: entity.class,
            tenant,
            tenant_time_ns: view.tenant_time_ns(tenant, entity.class),
        }
    }

    #[inline(always)]
    fn stop(
        &self,
        entity: &mut Entity,
        _cpu: CpuId,
        ran_ns: u64,
        why: Stop,
        view: &impl View,
    ) -> Charge {
        let class = Self::class_now(entity.class, view);
        let ran_signed = i64::try_from(ran_ns).unwrap_or(i64::MAX);
        entity.slice_left_ns = entity.slice_left_ns.saturating_sub(ran_signed);
        self.refill_used(entity, view);
        entity.is_sticky = why == Stop::Preempted && entity.class != Class::Iso;
        let running_change = self.count(entity, why);
        let tenant = self.account_of(entity);
        Charge {
            class,
            tenant,
            ran_ns,
            tenant_time_ns: view.tenant_time_ns(tenant, class),
            now_ns: view.now_ns(),
            running_change,
        }
    }
}
