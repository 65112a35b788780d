//! Records decisions and replays them, to prove that two drivers use the same policy.
//!
//! [`Recorded`] wraps a policy and records for each call the arguments, the queries to the view
//! with their answers, and the decision. [`replay`] repeats the calls with another policy and
//! compares: the same queries in the same order, the same decision, the same changes of the flow. A
//! policy has no state between calls, so each record is independent of the others and of the thread
//! that made it.

mod view;

use std::sync::{Mutex, PoisonError};

pub use view::Query;
use view::{RecordingView, ReplayView};

use crate::accounting::{Charge, Grant};
use crate::class::Class;
use crate::decision::{Placement, Stop};
use crate::entity::Entity;
use crate::key::{Key, Rank};
use crate::ledger::Ledger;
use crate::policy::Policy;
use crate::topology::{CpuId, CpuMask, Sharing, StripeId, Topology};
use crate::view::View;

/// A call of a policy. The flow that it is about is [`Record::before`].
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

/// The result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the results of Policy's methods")]
pub enum Decision {
    Admitted { parent: Option<Entity> },
    Key(Key),
    Rank(Rank),
    Placement(Placement),
    Stripe(Option<StripeId>),
    May(bool),
    Grant(Grant),
    Charge(Charge),
}

/// One call with its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The call.
    pub call: Call,
    /// The flow before the call; a placeholder in calls without a flow.
    pub before: Entity,
    /// The policy's queries to the view with the answers.
    pub queries: Vec<Query>,
    /// The result.
    pub decision: Decision,
    /// The flow after the call.
    pub after: Entity,
}

/// Records the calls of another policy. It allocates and locks, so it is for tests.
#[derive(Debug)]
pub struct Recorded<P> {
    policy: P,
    records_max: usize,
    records: Mutex<Vec<Record>>,
}

impl<P: Policy> Recorded<P> {
    /// Records the first `records_max` calls of `policy`.
    pub fn new(policy: P, records_max: usize) -> Recorded<P> {
        Recorded {
            policy,
            records_max,
            records: Mutex::new(Vec::new()),
        }
    }

    /// The records so far.
    pub fn records(&self) -> Vec<Record> {
        self.records
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn record<V: View, R>(
        &self,
        call: Call,
        entity: &mut Entity,
        view: &V,
        decide: impl FnOnce(&P, &mut Entity, &RecordingView<'_, V>) -> R,
        decision: impl FnOnce(&R) -> Decision,
    ) -> R {
        let recording = RecordingView::new(view);
        let before = *entity;
        let result = decide(&self.policy, entity, &recording);
        let record = Record {
            call,
            before,
            queries: recording.queries(),
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

/// The flow in records of calls without a flow.
const NO_FLOW: Entity = Entity::new(Class::Normal);

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
        self.record(
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
        self.record(
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
        self.record(
            call,
            &mut { NO_FLOW },
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
    ) -> Placement {
        self.record(
            Call::Wake { waker, is_sync },
            entity,
            view,
            |policy, entity, view| policy.wake(entity, waker, is_sync, view),
            |placement| Decision::Placement(*placement),
        )
    }

    fn requeue(&self, entity: &mut Entity, cpu: CpuId, view: &impl View) -> Placement {
        let outcome = |placement: &Placement| Decision::Placement(*placement);
        let call = Call::Requeue { cpu };
        self.record(
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
        self.record(
            call,
            &mut { NO_FLOW },
            view,
            |policy, _, view| policy.pick(cpu, tried, view),
            outcome,
        )
    }

    fn balance_interval_ns(&self) -> Option<u64> {
        self.policy.balance_interval_ns()
    }

    // Not recorded: it decides on no flow.
    fn balance(&self, moved: &CpuMask, view: &impl View) -> Option<(CpuId, CpuId)> {
        self.policy.balance(moved, view)
    }

    fn may_take(&self, entity: &Entity, cpu: CpuId, view: &impl View) -> bool {
        let mut entity = *entity;
        let outcome = |may: &bool| Decision::May(*may);
        let call = Call::MayTake { cpu };
        self.record(
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
        self.record(
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
        self.record(
            Call::Stop { cpu, ran_ns, why },
            entity,
            view,
            |policy, entity, view| policy.stop(entity, cpu, ran_ns, why, view),
            |charge| Decision::Charge(*charge),
        )
    }
}

/// The first difference of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// The index of the record.
    pub index: usize,
    /// The result of the replayed call.
    pub decision: Decision,
    /// The flow after the replayed call.
    pub after: Entity,
    /// Whether the queries were the same.
    pub has_same_queries: bool,
}

/// Repeats every recorded call with `policy` on the machine of the recording.
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
        let view = ReplayView::new(topology, &record.queries);
        let mut after = record.before;
        let decision = decide(policy, record.call, &mut after, &view);
        let has_same_queries = view.is_exhausted();
        if decision != record.decision || after != record.after || !has_same_queries {
            return Err(Box::new(Divergence {
                index,
                decision,
                after,
                has_same_queries,
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
        Call::Wake { waker, is_sync } => {
            Decision::Placement(policy.wake(entity, waker, is_sync, view))
        }
        Call::Requeue { cpu } => Decision::Placement(policy.requeue(entity, cpu, view)),
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
    use crate::bfs::Bfs;
    use crate::test_support::FixedView;

    #[test]
    fn records_at_most_the_given_number_of_calls() {
        let policy = Recorded::new(Bfs::default(), 1);
        let view = FixedView::new(&policy, Topology::flat(1));
        let mut flow = NO_FLOW;
        policy.admit(&mut flow, None, &view);
        let _ = policy.key(&flow, &view);
        assert_eq!(policy.records().len(), 1);
    }
}
