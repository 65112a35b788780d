//! Properties that hold on every machine, for every load and seed.

use refrain_policy::topology::{CpuId, Sharing, Topology};
use refrain_policy::{Base, Bfs, Class, Entity, Interactive, Latency, Nice, TenantId, Tenants};
use refrain_testkit::scaled;

use crate::costs::Costs;
use crate::random::{Distribution, Random};
use crate::simulation::Simulation;
use crate::workload::{Arrivals, Group};

const MS: u64 = 1_000_000;
const SEEDS: u32 = 60;
const SEEDS_LONG: u32 = 5000;
const MACHINES: [&str; 8] = [
    "1c",
    "1c2t",
    "2c",
    "2c4t",
    "8-way",
    "2l2c4t",
    "2n2l2c",
    "2c4t+2c@512",
];
const INTERACTIVE: [Interactive; 3] = [
    Interactive::EqualShares,
    Interactive::MoreTime,
    Interactive::MostTime,
];

fn choose<T: Copy>(random: &mut Random, choices: &[T]) -> T {
    choices[random.below(choices.len() as u64) as usize]
}

fn policy(random: &mut Random) -> Bfs {
    let interval_ns = choose(random, &[MS / 2, MS, 6 * MS]);
    Bfs {
        interval_ns,
        base: choose(
            random,
            &[
                Base::Now,
                Base::Carry { lag_max_ns: 0 },
                Base::Carry {
                    lag_max_ns: 7 * interval_ns,
                },
            ],
        ),
        interactive: choose(random, &INTERACTIVE),
        sharing: choose(
            random,
            &[Sharing::Cpu, Sharing::Core, Sharing::Cache, Sharing::All],
        ),
        tenants: choose(
            random,
            &[
                Tenants::Ignored,
                Tenants::Exact,
                Tenants::ByOffset { flows_min: 2 },
            ],
        ),
        ..Bfs::default()
    }
}

fn group(random: &mut Random, index: usize) -> Group {
    let work = choose(
        random,
        &[
            Distribution::Fixed(100_000),
            Distribution::Exponential(MS),
            Distribution::Uniform(1, 3 * MS),
        ],
    );
    let arrivals = choose(
        random,
        &[
            Arrivals::Always,
            Arrivals::Always,
            Arrivals::Every(Distribution::Exponential(20 * MS)),
            Arrivals::After(Distribution::Uniform(0, 5 * MS)),
            Arrivals::Ring(2),
        ],
    );
    let nice = Nice::new(random.below(40) as i32 - 20);
    let entity = Entity::new(Class::Normal)
        .with_nice(nice)
        .with_latency(choose(
            random,
            &[
                Latency::Insensitive,
                Latency::Usual,
                Latency::Sensitive,
                Latency::Exquisite,
            ],
        ))
        .with_tenant(TenantId::new(random.below(3) as usize));
    Group::cpu_bound(&format!("group {index}"), entity)
        .times(1 + random.below(6) as usize)
        .with_work(arrivals, work)
        .with_checkpoints(choose(random, &[0, 50_000, u64::MAX]))
}

fn simulation(random: &mut Random) -> Simulation {
    let groups = (0..1 + random.below(4) as usize)
        .map(|index| group(random, index))
        .collect();
    Simulation {
        topology: Topology::from_spec(choose(random, &MACHINES)).unwrap(),
        costs: Costs::none(),
        groups,
        span_ns: 200 * MS,
        seed: random.bits(),
    }
}

/// Moves some groups to other CPUs half-way.
fn confine_some(random: &mut Random, simulation: &mut Simulation) {
    let cpus = simulation.topology.len() as u64;
    for group in &mut simulation.groups {
        let mut cpu = || CpuId::new(random.below(cpus) as usize);
        let allowed = [cpu(), cpu()].into_iter().collect();
        if random.below(2) == 1 {
            group.confinements.push((simulation.span_ns / 2, allowed));
        }
    }
}

/// No CPU is idle while a flow that it may run is queued, and CPU time is neither lost nor
/// invented, also when processor sets move.
fn check_work_conservation(seeds: u32) {
    for seed in 0..u64::from(scaled(seeds)) {
        let mut random = Random::new(seed);
        let (policy, mut simulation) = (policy(&mut random), simulation(&mut random));
        confine_some(&mut random, &mut simulation);
        let report = simulation.run(&policy).unwrap();
        assert_eq!(
            report.idle_while_queued_ns, 0,
            "seed {seed}: {policy:?} {simulation:?}\n{report}"
        );
        assert!(report.utilization() <= 1.0 + 1e-9, "seed {seed}\n{report}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..u64::from(scaled(100)) {
        let mut random = Random::new(seed);
        let (policy, simulation) = (policy(&mut random), simulation(&mut random));
        assert_eq!(
            simulation.run(&policy),
            simulation.run(&policy),
            "seed {seed}"
        );
    }
}

/// The bound on the time that a runnable flow can be queued, nanoseconds.
///
/// It waits only for flows with earlier deadlines. With the base `Now` its deadline is at most the
/// longest offset D of real time ahead; after that all other deadlines are later, except for slices
/// already begun and left over. With the carried base its deadline is at most 2 D ahead in virtual
/// time (one D for the current slice, one for the next), plus one D for each slice that it overran.
/// Another flow runs before it once for each of its own offsets that fit into that time and the
/// lag, and for those slices; each time for a slice, and then until its next checkpoint.
fn wait_bound_ns(policy: &Bfs, simulation: &Simulation) -> u64 {
    let offset_ns = |group: &Group| policy.offset_ns(&group.entity);
    let overrun_ns = |group: &Group| match group.checkpoint_ns {
        u64::MAX => 40 * MS,
        checkpoint_ns => checkpoint_ns,
    };
    let longest_ns = simulation.groups.iter().map(offset_ns).max().unwrap_or(0);
    let ahead_ns =
        |group: &Group| offset_ns(group) * (2 + overrun_ns(group) / policy.slice_ns(&group.entity));
    let (real_ns, virtual_ns) = match policy.base {
        Base::Now => (longest_ns, 0),
        Base::Carry { lag_max_ns } => (
            0,
            simulation.groups.iter().map(ahead_ns).max().unwrap_or(0) + lag_max_ns,
        ),
    };
    let slowest_permille = 500;
    let before = |group: &Group| {
        let times = virtual_ns / offset_ns(group) + 3;
        // Slices are real time; the rest of a job until its checkpoint is work.
        let each_ns = policy.slice_ns(&group.entity) + overrun_ns(group) * 1000 / slowest_permille;
        group.count as u64 * times * each_ns
    };
    let all_ns: u64 = simulation.groups.iter().map(before).sum();
    real_ns + all_ns / simulation.topology.len() as u64 + all_ns / 10
}

/// No runnable flow waits longer than the bound. Without tenants, because tenants share CPU time
/// regardless of deadlines.
fn check_wait_bound(seeds: u32) {
    let mut closest = 0.0f64;
    for seed in 0..u64::from(scaled(seeds)) {
        let mut random = Random::new(seed);
        let (mut policy, mut simulation) = (policy(&mut random), simulation(&mut random));
        policy.tenants = Tenants::Ignored;
        simulation.span_ns = 1000 * MS;
        let report = simulation.run(&policy).unwrap();
        let bound_ns = wait_bound_ns(&policy, &simulation);
        for group in &report.groups {
            closest = closest.max(group.longest_queued_ns as f64 / bound_ns as f64);
            assert!(
                group.longest_queued_ns <= bound_ns,
                "seed {seed}: {} waited {} of {bound_ns}\n{policy:?} {simulation:?}\n{report}",
                group.name,
                group.longest_queued_ns
            );
        }
    }
    // A bound far above all waiting times would prove nothing.
    assert!(closest > 0.1, "{closest}");
}

/// CPU-bound flows get time in inverse proportion to their offsets, on any machine of equal CPUs,
/// if no flow's share exceeds one CPU.
fn check_shares(seeds: u32) {
    for seed in 0..u64::from(scaled(seeds / 5)) {
        let mut random = Random::new(seed);
        let machine = choose(&mut random, &["1c", "2c", "8-way", "2l2c"]);
        let topology = Topology::from_spec(machine).unwrap();
        let policy = Bfs {
            sharing: choose(&mut random, &[Sharing::All, Sharing::Cache]),
            interactive: choose(&mut random, &INTERACTIVE),
            tenants: Tenants::Ignored,
            ..Bfs::default()
        };
        let flows = 5 * topology.len();
        let entity = |random: &mut Random| {
            let latency = choose(
                random,
                &[Latency::Usual, Latency::Sensitive, Latency::Exquisite],
            );
            let nice = Nice::new(random.below(7) as i32 - 3);
            Entity::new(Class::Normal)
                .with_nice(nice)
                .with_latency(latency)
        };
        let groups: Vec<Group> = (0..flows)
            .map(|index| Group::cpu_bound(&index.to_string(), entity(&mut random)))
            .collect();
        let weight = |group: &Group| {
            policy.slice_ns(&group.entity) as f64 / policy.offset_ns(&group.entity) as f64
        };
        let weights: f64 = groups.iter().map(weight).sum();
        let simulation = Simulation {
            topology,
            costs: Costs::none(),
            span_ns: 3000 * MS,
            seed,
            groups,
        };
        let report = simulation.run(&policy).unwrap();
        for (index, group) in simulation.groups.iter().enumerate() {
            let error = report.share(index) / (weight(group) / weights) - 1.0;
            assert!(
                error.abs() < 0.05,
                "seed {seed}: {error} on {machine} {policy:?} {group:?}\n{report}"
            );
        }
    }
}

#[test]
fn no_cpu_idles_while_a_flow_waits() {
    check_work_conservation(SEEDS);
}

#[test]
fn no_flow_waits_longer_than_the_bound() {
    check_wait_bound(SEEDS);
}

#[test]
fn shares_are_inversely_proportional_to_offsets() {
    check_shares(SEEDS);
}

/// Takes minutes: `cargo test --release -p refrain-simulator -- --ignored thousands_of_seeds`.
#[test]
#[ignore = "long"]
fn all_properties_hold_for_thousands_of_seeds() {
    check_work_conservation(SEEDS_LONG);
    check_wait_bound(SEEDS_LONG);
    check_shares(SEEDS_LONG);
}
