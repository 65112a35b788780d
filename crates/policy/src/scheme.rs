//! A policy selected at run time.

use crate::accounting::{Charge, Grant};
use crate::bfs::Bfs;
use crate::decision::{Placement, Stop};
use crate::entity::Entity;
use crate::key::{Key, Rank};
use crate::ledger::Ledger;
use crate::policy::Policy;
use crate::topology::{CpuId, CpuMask, Sharing, StripeId};
use crate::ule::Ule;
use crate::view::View;

/// Any of the policies.
#[derive(Debug, Clone)]
pub enum Scheme {
    /// Earliest virtual deadline first.
    Bfs(Bfs),
    /// Interactivity estimated from run and sleep times.
    Ule(Ule),
}

impl Default for Scheme {
    fn default() -> Scheme {
        Scheme::Bfs(Bfs::default())
    }
}

impl From<Bfs> for Scheme {
    fn from(policy: Bfs) -> Scheme {
        Scheme::Bfs(policy)
    }
}

macro_rules! delegate {
    ($self:ident, $policy:ident => $call:expr) => {
        match $self {
            Scheme::Bfs($policy) => $call,
            Scheme::Ule($policy) => $call,
        }
    };
}

impl Policy for Scheme {
    fn ledger(&self, cpus: usize) -> Ledger {
        delegate!(self, policy => policy.ledger(cpus))
    }

    fn sharing(&self) -> Sharing {
        delegate!(self, policy => policy.sharing())
    }

    fn admit(&self, entity: &mut Entity, parent: Option<&mut Entity>, view: &impl View) {
        delegate!(self, policy => policy.admit(entity, parent, view));
    }

    fn key(&self, entity: &Entity, view: &impl View) -> Key {
        delegate!(self, policy => policy.key(entity, view))
    }

    fn rank(&self, key: Key, view: &impl View) -> Rank {
        delegate!(self, policy => policy.rank(key, view))
    }

    fn wake(
        &self,
        entity: &mut Entity,
        waker: Option<CpuId>,
        is_sync: bool,
        view: &impl View,
    ) -> Placement {
        delegate!(self, policy => policy.wake(entity, waker, is_sync, view))
    }

    fn requeue(&self, entity: &mut Entity, cpu: CpuId, view: &impl View) -> Placement {
        delegate!(self, policy => policy.requeue(entity, cpu, view))
    }

    fn pick(&self, cpu: CpuId, tried: &CpuMask, view: &impl View) -> Option<StripeId> {
        delegate!(self, policy => policy.pick(cpu, tried, view))
    }

    fn balance_interval_ns(&self) -> Option<u64> {
        delegate!(self, policy => policy.balance_interval_ns())
    }

    fn balance(&self, moved: &CpuMask, view: &impl View) -> Option<(CpuId, CpuId)> {
        delegate!(self, policy => policy.balance(moved, view))
    }

    fn may_take(&self, entity: &Entity, cpu: CpuId, view: &impl View) -> bool {
        delegate!(self, policy => policy.may_take(entity, cpu, view))
    }

    fn run(&self, entity: &mut Entity, cpu: CpuId, view: &impl View) -> Grant {
        delegate!(self, policy => policy.run(entity, cpu, view))
    }

    fn stop(
        &self,
        entity: &mut Entity,
        cpu: CpuId,
        ran_ns: u64,
        why: Stop,
        view: &impl View,
    ) -> Charge {
        delegate!(self, policy => policy.stop(entity, cpu, ran_ns, why, view))
    }
}
