//! The pool and the simulator drive the same policy. The decisions that the policy made in the
//! pool, with real threads and real time, are repeated from the recorded views and must be equal.
//! The pool must make the same kinds of calls as the simulator.

#![allow(clippy::unwrap_used, reason = "tests may fail loudly")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use refrain_policy::topology::Topology;
use refrain_policy::{Bfs, Class, Entity, Nice, Record, Recorded, Scheme, TenantId, replay};
use refrain_pool::pool::{Options, Pool, Step, checkpoint};
use refrain_simulator::{Experiment, Simulation};

const RECORDS_MAX: usize = 300_000;

fn recorder() -> Arc<Recorded<Bfs>> {
    Arc::new(Recorded::new(Bfs::default(), RECORDS_MAX))
}

/// The decisions of a pool with more busy flows of two tenants than workers, urgent flows from
/// another thread, and flows made by jobs.
fn recorded_in_the_pool(topology: &Topology) -> Vec<Record> {
    let policy = recorder();
    let pool = Pool::start(Options {
        topology: topology.clone(),
        policy: Scheme::Recorded(Arc::clone(&policy)),
        ..Options::with_workers(topology.len())
    });
    let pool = Arc::new(pool.unwrap());
    let (begun, has_ended) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
    let flows = 3 * topology.len();
    for index in 0..flows {
        let flow = pool.flow(Entity::new(Class::Normal).with_tenant(TenantId::new(index % 2)));
        let (begun, has_ended) = (Arc::clone(&begun), Arc::clone(&has_ended));
        let mut has_begun = false;
        flow.submit_steps(move || {
            if !std::mem::replace(&mut has_begun, true) {
                begun.fetch_add(1, Ordering::Relaxed);
            }
            for step in 0..2_000u64 {
                std::hint::black_box(step);
                checkpoint();
            }
            if has_ended.load(Ordering::Relaxed) { Step::Done } else { Step::Again }
        });
    }
    // No flow ends before all have begun, so the first ones are queued again, however the machine
    // schedules its threads.
    while begun.load(Ordering::Relaxed) < flows {
        std::thread::sleep(Duration::from_micros(100));
    }
    let urgent = pool.flow(Entity::new(Class::Iso).with_nice(Nice::MIN));
    let parents = pool.flow(Entity::new(Class::Normal));
    let mut handles = Vec::new();
    for _ in 0..500 {
        urgent.run(|| ()).unwrap();
        let parent = Arc::clone(&pool);
        handles.push(parents.spawn(move || {
            let child = parent.flow(Entity::new(Class::Normal));
            child.submit(|| ());
        }));
    }
    for handle in handles {
        handle.wait().unwrap();
    }
    has_ended.store(true, Ordering::Relaxed);
    drop(urgent);
    policy.records()
}

fn kinds(records: &[Record]) -> BTreeSet<String> {
    // By their names, without their arguments.
    let names = records.iter().map(|record| format!("{:?}", record.call));
    names
        .map(|name| {
            name.split([' ', '{', '('])
                .next()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
}

#[test]
fn the_policy_decides_for_the_pool_as_it_does_anywhere() {
    let topology = Topology::from_spec("2c").unwrap();
    let records = recorded_in_the_pool(&topology);
    // Each of 500 urgent jobs and 500 children calls the policy more than once.
    assert!(records.len() > 2_000, "{}", records.len());
    assert_eq!(replay(&Bfs::default(), &topology, &records), Ok(()));
    let other = Bfs {
        interval_ns: 3_000_000,
        ..Bfs::default()
    };
    assert!(
        replay(&other, &topology, &records).is_err(),
        "a replay that cannot fail proves nothing"
    );
}

#[test]
fn pool_and_simulator_ask_the_policy_the_same_things() {
    let topology = Topology::from_spec("2c").unwrap();
    let in_pool = recorded_in_the_pool(&topology);
    let spec = "flows busy 6 always work=20us checkpoint=1us; flows urgent 1 every=exp:100us work=1us class=iso; run 100ms";
    let experiment = Experiment::from_spec(spec).unwrap();
    let policy = recorder();
    let simulation = Simulation {
        topology: topology.clone(),
        ..experiment.simulation
    };
    simulation.run(&policy_of(&policy)).unwrap();
    let simulated = policy.records();
    assert_eq!(replay(&Bfs::default(), &topology, &simulated), Ok(()));
    let (pool_kinds, simulated_kinds) = (kinds(&in_pool), kinds(&simulated));
    assert_eq!(pool_kinds, simulated_kinds);
    // Every kind of place occurs in both.
    for records in [&in_pool, &simulated] {
        let decisions: BTreeSet<String> = records
            .iter()
            .map(|record| format!("{:?}", record.decision))
            .collect();
        for place in ["Placement(Idle", "Placement(Preempt", "Placement(Queue"] {
            assert!(
                decisions.iter().any(|decision| decision.starts_with(place)),
                "{place}"
            );
        }
    }
}

fn policy_of(policy: &Arc<Recorded<Bfs>>) -> Scheme {
    Scheme::Recorded(Arc::clone(policy))
}
