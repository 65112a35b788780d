//! Decisions written down, and taken again: the proof that two drivers use the same policy.
//!
//! [`Recorded`] is a policy that passes every call on to another one and keeps what it was told, what it asked, what it was
//! answered and what it decided. [`replay`] gives the same to a policy and compares: questions in the same order, the same
//! decision, the same changes to the flow. Since a policy keeps nothing between calls, each record stands on its own, and it
//! does not matter which thread wrote it when.

mod view;

use std::sync::{Mutex, PoisonError};

pub use view::Asked;
use view::{Listening, Repeating};

use super::{Charge, Class, Entity, Grant, Key, Ledger, Place, Policy, Rank, Stop, View};
use crate::topology::{CpuId, CpuMask, Sharing, StripeId, Topology};

/// What the policy was asked to decide. The flow it is about stands in [`Record::before`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the arguments of Policy's methods")]
pub enum Call {
    Admit { parent: Option<Entity> },
    Key,
    Rank { key: Key },
    Wake { waker: Option<CpuId>, is_sync: bool },
    Requeue { cpu: CpuId },
    Pick { cpu: CpuId, tried: CpuMask },
    MayTake { cpu: CpuId },
    Run { cpu: CpuId },
    Stop { cpu: CpuId, ran_ns: u64, why: Stop },
}

/// What it decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the results of Policy's methods")]
pub enum Decision {
    Admitted { parent: Option<Entity> },
    Key(Key),
    Rank(Rank),
    Place(Place),
    Stripe(Option<StripeId>),
    May(bool),
    Grant(Grant),
    Charge(Charge),
}

/// One call from beginning to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What was asked.
    pub call: Call,
    /// The flow before (a new one where the call is about none).
    pub before: Entity,
    /// What the policy asked, with the answers.
    pub asked: Vec<Asked>,
    /// What it decided.
    pub decision: Decision,
    /// The flow after.
    pub after: Entity,
}

/// A policy that keeps records of another one. It takes memory and a lock: for tests.
#[derive(Debug)]
pub struct Recorded<P> {
    policy: P,
    records_max: usize,
    records: Mutex<Vec<Record>>,
}

impl<P: Policy> Recorded<P> {
    /// Keeps the first `records_max` calls of `policy`.
    pub fn new(policy: P, records_max: usize) -> Recorded<P> {
        Recorded {
            policy,
            records_max,
            records: Mutex::new(Vec::new()),
        }
    }

    /// What was kept so far.
    pub fn records(&self) -> Vec<Record> {
        self.records
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn listen<V: View, R>(
        &self,
        call: Call,
        entity: &mut Entity,
        view: &V,
        decide: impl FnOnce(&P, &mut Entity, &Listening<'_, V>) -> R,
        decision: impl FnOnce(&R) -> Decision,
    ) -> R {
        let listening = Listening::new(view);
        let before = *entity;
        let result = decide(&self.policy, entity, &listening);
        let record = Record {
            call,
            before,
            asked: listening.heard(),
            decision: decision(&result),
            after: *entity,
        };
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if records.len() < self.records_max {
            records.push(record);
        }
        result
    }
}

/// Stands for the flow in calls that are about none.
const NOBODY: Entity = Entity::new(Class::Normal);

impl<P: Policy> Policy for Recorded<P> {
    fn ledger(&self, cpus: usize) -> Ledger {
        self.policy.ledger(cpus)
    }

    fn sharing(&self) -> Sharing {
        self.policy.sharing()
    }

    fn admit(&self, entity: &mut Entity, parent: Option<&mut Entity>, view: &impl View) {
        let call = Call::Admit {
            parent: parent.as_deref().copied(),
        };
        self.listen(
            call,
            entity,
            view,
            |policy, entity, view| match parent {
                Some(parent) => {
                    policy.admit(entity, Some(parent), view);
                    Some(*parent)
                }
                None => {
                    policy.admit(entity, None, view);
                    None
                }
            },
            |parent| Decision::Admitted { parent: *parent },
        );
    }

    fn key(&self, entity: &Entity, view: &impl View) -> Key {
        let mut entity = *entity;
        let outcome = |key: &Key| Decision::Key(*key);
        self.listen(
            Call::Key,
            &mut entity,
            view,
            |policy, entity, view| policy.key(entity, view),
            outcome,
        )
    }

    fn rank(&self, key: Key, view: &impl View) -> Rank {
        let outcome = |rank: &Rank| Decision::Rank(*rank);
        let call = Call::Rank { key };
        self.listen(
            call,
            &mut { NOBODY },
            view,
            |policy, _, view| policy.rank(key, view),
            outcome,
        )
    }

    fn wake(
        &self,
        entity: &mut Entity,
        waker: Option<CpuId>,
        is_sync: bool,
        view: &impl View,
    ) -> Place {
        self.listen(
            Call::Wake { waker, is_sync },
            entity,
            view,
            |policy, entity, view| policy.wake(entity, waker, is_sync, view),
            |place| Decision::Place(*place),
        )
    }

    fn requeue(&self, entity: &mut Entity, cpu: CpuId, view: &impl View) -> Place {
        let outcome = |place: &Place| Decision::Place(*place);
        let call = Call::Requeue { cpu };
        self.listen(
            call,
            entity,
            view,
            |policy, entity, view| policy.requeue(entity, cpu, view),
            outcome,
        )
    }

    fn pick(&self, cpu: CpuId, tried: &CpuMask, view: &impl View) -> Option<StripeId> {
        let outcome = |stripe: &Option<StripeId>| Decision::Stripe(*stripe);
        let call = Call::Pick { cpu, tried: *tried };
        self.listen(
            call,
            &mut { NOBODY },
            view,
            |policy, _, view| policy.pick(cpu, tried, view),
            outcome,
        )
    }

    fn may_take(&self, entity: &Entity, cpu: CpuId, view: &impl View) -> bool {
        let mut entity = *entity;
        let outcome = |may: &bool| Decision::May(*may);
        let call = Call::MayTake { cpu };
        self.listen(
            call,
            &mut entity,
            view,
            |policy, entity, view| policy.may_take(entity, cpu, view),
            outcome,
        )
    }

    fn run(&self, entity: &mut Entity, cpu: CpuId, view: &impl View) -> Grant {
        let outcome = |grant: &Grant| Decision::Grant(*grant);
        let call = Call::Run { cpu };
        self.listen(
            call,
            entity,
            view,
            |policy, entity, view| policy.run(entity, cpu, view),
            outcome,
        )
    }

    fn stop(
        &self,
        entity: &mut Entity,
        cpu: CpuId,
        ran_ns: u64,
        why: Stop,
        view: &impl View,
    ) -> Charge {
        self.listen(
            Call::Stop { cpu, ran_ns, why },
            entity,
            view,
            |policy, entity, view| policy.stop(entity, cpu, ran_ns, why, view),
            |charge| Decision::Charge(*charge),
        )
    }
}

/// Where a replay came out differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// Index of the record.
    pub index: usize,
    /// What the policy decided now.
    pub decision: Decision,
    /// The flow after, now.
    pub after: Entity,
    /// Whether it asked what it had asked then.
    pub has_asked_the_same: bool,
}

/// Lets `policy` decide every record again, on the machine it was recorded on.
///
/// # Errors
///
/// The first [`Divergence`], if there is one.
pub fn replay(
    policy: &impl Policy,
    topology: &Topology,
    records: &[Record],
) -> Result<(), Box<Divergence>> {
    for (index, record) in records.iter().enumerate() {
        let view = Repeating::new(topology, &record.asked);
        let mut after = record.before;
        let decision = decide(policy, record.call, &mut after, &view);
        let has_asked_the_same = view.is_exhausted();
        if decision != record.decision || after != record.after || !has_asked_the_same {
            return Err(Box::new(Divergence {
                index,
                decision,
                after,
                has_asked_the_same,
            }));
        }
    }
    Ok(())
}

fn decide(policy: &impl Policy, call: Call, entity: &mut Entity, view: &impl View) -> Decision {
    match call {
        Call::Admit { mut parent } => {
            policy.admit(entity, parent.as_mut(), view);
            Decision::Admitted { parent }
        }
        Call::Key => Decision::Key(policy.key(entity, view)),
        Call::Rank { key } => Decision::Rank(policy.rank(key, view)),
        Call::Wake { waker, is_sync } => Decision::Place(policy.wake(entity, waker, is_sync, view)),
        Call::Requeue { cpu } => Decision::Place(policy.requeue(entity, cpu, view)),
        Call::Pick { cpu, tried } => Decision::Stripe(policy.pick(cpu, &tried, view)),
        Call::MayTake { cpu } => Decision::May(policy.may_take(entity, cpu, view)),
        Call::Run { cpu } => Decision::Grant(policy.run(entity, cpu, view)),
        Call::Stop { cpu, ran_ns, why } => {
            Decision::Charge(policy.stop(entity, cpu, ran_ns, why, view))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bfs;

    #[test]
    fn no_more_is_kept_than_asked_for() {
        let policy = Recorded::new(Bfs::default(), 1);
        let view = crate::tests::StillView::new(&policy, Topology::flat(1));
        let mut flow = NOBODY;
        policy.admit(&mut flow, None, &view);
        let _ = policy.key(&flow, &view);
        assert_eq!(policy.records().len(), 1);
    }
}
