//! A policy chosen while the program runs.

use std::sync::Arc;

use super::{
    Bfs, Charge, Entity, Fifo, Grant, Key, Ledger, Place, Policy, Rank, Recorded, Stop, Ule, View,
};
use crate::topology::{CpuId, CpuMask, Sharing, StripeId};

/// One of the policies there are.
#[derive(Debug, Clone)]
pub enum Scheme {
    /// Earliest virtual deadline first.
    Bfs(Bfs),
    /// Interactivity by observation.
    Ule(Ule),
    /// First come, first served.
    Fifo(Fifo),
    /// Earliest virtual deadline first, with every decision written down.
    Recorded(Arc<Recorded<Bfs>>),
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

macro_rules! ask {
    ($self:ident, $policy:ident => $call:expr) => {
        match $self {
            Scheme::Bfs($policy) => $call,
            Scheme::Ule($policy) => $call,
            Scheme::Fifo($policy) => $call,
            Scheme::Recorded($policy) => $call,
        }
    };
}

impl Policy for Scheme {
    fn ledger(&self, cpus: usize) -> Ledger {
        ask!(self, policy => policy.ledger(cpus))
    }

    fn sharing(&self) -> Sharing {
        ask!(self, policy => policy.sharing())
    }

    fn admit(&self, entity: &mut Entity, parent: Option<&mut Entity>, view: &impl View) {
        ask!(self, policy => policy.admit(entity, parent, view));
    }

    fn key(&self, entity: &Entity, view: &impl View) -> Key {
        ask!(self, policy => policy.key(entity, view))
    }

    fn rank(&self, key: Key, view: &impl View) -> Rank {
        ask!(self, policy => policy.rank(key, view))
    }

    fn wake(
        &self,
        entity: &mut Entity,
        waker: Option<CpuId>,
        is_sync: bool,
        view: &impl View,
    ) -> Place {
        ask!(self, policy => policy.wake(entity, waker, is_sync, view))
    }

    fn requeue(&self, entity: &mut Entity, cpu: CpuId, view: &impl View) -> Place {
        ask!(self, policy => policy.requeue(entity, cpu, view))
    }

    fn pick(&self, cpu: CpuId, tried: &CpuMask, view: &impl View) -> Option<StripeId> {
        ask!(self, policy => policy.pick(cpu, tried, view))
    }

    fn may_take(&self, entity: &Entity, cpu: CpuId, view: &impl View) -> bool {
        ask!(self, policy => policy.may_take(entity, cpu, view))
    }

    fn run(&self, entity: &mut Entity, cpu: CpuId, view: &impl View) -> Grant {
        ask!(self, policy => policy.run(entity, cpu, view))
    }

    fn stop(
        &self,
        entity: &mut Entity,
        cpu: CpuId,
        ran_ns: u64,
        why: Stop,
        view: &impl View,
    ) -> Charge {
        ask!(self, policy => policy.stop(entity, cpu, ran_ns, why, view))
    }
}
