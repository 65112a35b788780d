//! Replays the decisions that a policy made in the simulator.

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
            Group::cpu_bound("hogs", entity(1))
                .times(6)
                .with_checkpoints(50_000),
            Group::cpu_bound("clients", entity(2))
                .times(3)
                .with_work(client, Distribution::Exponential(MS / 2)),
            Group::cpu_bound("iso", Entity::new(Class::Iso))
                .with_work(client, Distribution::Fixed(MS / 5)),
        ],
        span_ns: 300 * MS,
        seed: 3,
    };
    let policy = Recorded::new(Bfs::default(), 100_000);
    simulation.run(&policy).unwrap();
    policy.records()
}

#[test]
fn a_replay_matches_and_another_policy_diverges() {
    let topology = Topology::from_spec("2l2c4t").unwrap();
    let records = recorded(&topology);
    assert!(records.len() > 10_000, "{}", records.len());
    assert_eq!(replay(&Bfs::default(), &topology, &records), Ok(()));
    let other = Bfs {
        interval_ns: 2 * MS,
        ..Bfs::default()
    };
    assert!(replay(&other, &topology, &records).is_err());
    // A single missing answer is detected.
    let mut changed = records;
    let is_wake = |record: &Record| matches!(record.call, Call::Wake { .. });
    let index = changed.iter().position(is_wake).unwrap();
    changed[index].queries.pop();
    assert_eq!(
        replay(&Bfs::default(), &topology, &changed)
            .unwrap_err()
            .index,
        index
    );
}
