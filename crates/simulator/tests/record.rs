//! Decisions that the simulator recorded are made again from the recorded answers.

#![allow(clippy::unwrap_used, reason = "tests may fail loudly")]

use refrain_policy::topology::Topology;
use refrain_policy::{Bfs, Call, Class, Entity, Record, Recorded, TenantId, replay};
use refrain_simulator::{Arrivals, Costs, Distribution, Group, Simulation};

const MS: u64 = 1_000_000;

fn recorded(topology: &Topology) -> Vec<Record> {
    let entity = |tenant: usize| Entity::new(Class::Normal).with_tenant(TenantId::new(tenant));
    let client = Arrivals::Every(Distribution::Exponential(MS));
    let simulation = Simulation {
        topology: topology.clone(),
        costs: Costs::default(),
        groups: vec![
            Group::hog("hogs", entity(1)).times(6).checking_each(50_000),
            Group::hog("clients", entity(2))
                .times(3)
                .doing(client, Distribution::Exponential(MS / 2)),
            Group::hog("iso", Entity::new(Class::Iso)).doing(client, Distribution::Fixed(MS / 5)),
        ],
        span_ns: 300 * MS,
        seed: 3,
    };
    let policy = Recorded::new(Bfs::default(), 100_000);
    simulation.run(&policy).unwrap();
    policy.records()
}

#[test]
fn a_replay_decides_the_same_and_another_policy_does_not() {
    let topology = Topology::from_spec("2l2c4t").unwrap();
    let records = recorded(&topology);
    assert!(records.len() > 10_000, "{}", records.len());
    assert_eq!(replay(&Bfs::default(), &topology, &records), Ok(()));
    let other = Bfs {
        interval_ns: 2 * MS,
        ..Bfs::default()
    };
    assert!(replay(&other, &topology, &records).is_err());
    // A single answer that is not what it was shows.
    let mut changed = records;
    let place = |record: &Record| matches!(record.call, Call::Wake { .. });
    let index = changed.iter().position(place).unwrap();
    changed[index].queries.pop();
    assert_eq!(
        replay(&Bfs::default(), &topology, &changed)
            .unwrap_err()
            .index,
        index
    );
}
