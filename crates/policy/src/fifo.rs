//! First come, first served: the baseline for comparisons.

use crate::accounting::{Charge, Grant};
use crate::affinity::{allowed_here, is_allowed_here};
use crate::class::{Class, TenantId};
use crate::decision::{Placement, Stop};
use crate::entity::Entity;
use crate::key::{Key, Rank};
use crate::ledger::{ISO_LIMIT_PERMILLE, ISO_WINDOW_NS, Ledger, LedgerRules};
use crate::policy::Policy;
use crate::topology::{CpuId, CpuMask, Sharing, StripeId};
use crate::view::View;

/// One queue in the order of arrival. A flow runs until it stops voluntarily. There are no classes,
/// no tenants and no preemption.
///
/// This is the behavior of a job queue behind a mutex, and also of earliest deadline first with a
/// fresh deadline for each submission under overload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fifo;

pub(super) fn plain_ledger(cpus: usize) -> Ledger {
    Ledger::new(LedgerRules {
        cpus,
        tenant_lag_ns: 0,
        iso_limit_permille: ISO_LIMIT_PERMILLE,
        iso_window_ns: ISO_WINDOW_NS,
    })
}

pub(super) fn plain_charge(entity: &Entity, ran_ns: u64, view: &impl View) -> Charge {
    Charge {
        class: entity.class,
        tenant: TenantId::default(),
        ran_ns,
        tenant_time_ns: 0,
        now_ns: view.now_ns(),
        running_change: 0,
    }
}

pub(super) fn plain_grant(entity: &Entity, slice_ns: u64) -> Grant {
    Grant {
        slice_ns,
        start_ns: 0,
        class: entity.class,
        tenant: TenantId::default(),
        tenant_time_ns: 0,
    }
}

impl Policy for Fifo {
    fn ledger(&self, cpus: usize) -> Ledger {
        plain_ledger(cpus)
    }

    fn sharing(&self) -> Sharing {
        Sharing::All
    }

    fn admit(&self, entity: &mut Entity, _parent: Option<&mut Entity>, view: &impl View) {
        entity.deadline_ns = view.now_ns();
        entity.is_admitted = true;
    }

    fn key(&self, entity: &Entity, _view: &impl View) -> Key {
        Key::new(Class::Normal, TenantId::default(), entity.deadline_ns)
    }

    fn rank(&self, key: Key, _view: &impl View) -> Rank {
        Rank::from_key(key)
    }

    fn wake(
        &self,
        entity: &mut Entity,
        _waker: Option<CpuId>,
        _is_sync: bool,
        view: &impl View,
    ) -> Placement {
        entity.deadline_ns = view.now_ns();
        let idle = view.idle().and(&allowed_here(entity, view));
        match idle.iter().next() {
            Some(cpu) => Placement::Idle(cpu),
            None => Placement::Queue(StripeId::default()),
        }
    }

    fn requeue(&self, entity: &mut Entity, _cpu: CpuId, view: &impl View) -> Placement {
        entity.deadline_ns = view.now_ns();
        Placement::Queue(StripeId::default())
    }

    fn pick(&self, _cpu: CpuId, tried: &CpuMask, view: &impl View) -> Option<StripeId> {
        let stripe = StripeId::default();
        (!tried.contains(CpuId::FIRST) && view.best_key(stripe).is_some()).then_some(stripe)
    }

    fn may_take(&self, entity: &Entity, cpu: CpuId, view: &impl View) -> bool {
        is_allowed_here(entity, cpu, view)
    }

    fn run(&self, entity: &mut Entity, cpu: CpuId, _view: &impl View) -> Grant {
        entity.last_cpu = cpu;
        plain_grant(entity, u64::MAX)
    }

    fn stop(
        &self,
        entity: &mut Entity,
        _cpu: CpuId,
        ran_ns: u64,
        _why: Stop,
        view: &impl View,
    ) -> Charge {
        plain_charge(entity, ran_ns, view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{FixedView, MS};
    use crate::topology::Topology;

    #[test]
    fn flows_run_in_the_order_of_arrival() {
        let mut view = FixedView::new(&Fifo, Topology::flat(2));
        let (mut first, mut second) = (Entity::new(Class::Idle), Entity::new(Class::Iso));
        Fifo.admit(&mut first, None, &view);
        assert_eq!(
            Fifo.wake(&mut first, None, false, &view),
            Placement::Idle(CpuId::FIRST)
        );
        view.now_ns = MS;
        view.idle = CpuMask::EMPTY;
        assert_eq!(
            Fifo.wake(&mut second, None, false, &view),
            Placement::Queue(StripeId::default())
        );
        assert!(Fifo.key(&first, &view) < Fifo.key(&second, &view));
        assert_eq!(
            Fifo.run(&mut first, CpuId::new(1), &view).slice_ns,
            u64::MAX
        );
        assert_eq!(first.last_cpu, CpuId::new(1));
    }
}
