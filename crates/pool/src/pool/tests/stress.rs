//! Random work from seeds: every job runs exactly once, whatever the interleaving.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use refrain_policy::topology::Sharing;
use refrain_policy::{Base, Bfs, Interactive, Latency, Nice, PreferredStripe, TenantId};
use refrain_testkit::Rng;

use super::*;

fn options(random: &mut Rng) -> Options {
    let workers = 1 + random.below(5) as usize;
    let mut options = Options::with_workers(workers);
    options.spin = Duration::from_micros([0, 1, 50][random.below(3) as usize]);
    let mut policy = Bfs {
        sharing: [Sharing::Cpu, Sharing::Cache, Sharing::All][random.below(3) as usize],
        interactive: [
            Interactive::EqualShares,
            Interactive::MoreTime,
            Interactive::MostTime,
        ][random.below(3) as usize],
        preferred_stripe: [PreferredStripe::Own, PreferredStripe::Earliest]
            [random.below(2) as usize],
        ..Bfs::default()
    };
    if random.below(3) == 0 {
        policy.base = Base::Now;
    }
    options.policy = policy.into();
    options
}

fn entity(random: &mut Rng, workers: usize) -> Entity {
    let class = Class::from_index(random.below(3) as usize).unwrap();
    let mut entity = Entity::new(class)
        .with_nice(Nice::new(random.below(40) as i32 - 20))
        .with_latency(Latency::from_latnice(random.below(4) as u8))
        .with_tenant(TenantId::new(random.below(3) as usize));
    if random.below(4) == 0 {
        let only = CpuId::new(random.below(workers as u64) as usize);
        entity.allowed = [only].into_iter().collect();
    }
    entity
}

struct StressRun {
    flows: Vec<Flow>,
    remaining: AtomicU64,
    ran: AtomicU64,
}

/// A job that computes and submits up to two more, until no jobs remain.
fn job(run: &Arc<StressRun>, seed: u64) {
    let mut random = Rng::new(seed);
    for _ in 0..random.below(200) {
        checkpoint();
    }
    for _ in 0..2 {
        submit(run, &mut random);
    }
    // At the end: a job that panics is missing.
    run.ran.fetch_add(1, SeqCst);
}

fn submit(run: &Arc<StressRun>, random: &mut Rng) {
    let claim = |left: u64| left.checked_sub(1);
    if run.remaining.fetch_update(SeqCst, SeqCst, claim).is_err() {
        return;
    }
    let flow = &run.flows[random.below(run.flows.len() as u64) as usize];
    let (seed, next) = (random.any(), Arc::clone(run));
    match random.below(2) {
        0 => drop(flow.spawn(move || job(&next, seed))),
        _ => flow.submit(move || job(&next, seed)),
    }
}

fn run_seed(seed: u64, jobs: u64) {
    let mut random = Rng::new(seed);
    let options = options(&mut random);
    let workers = options.topology.len();
    let pool = Pool::start(options).unwrap();
    let flows = (0..1 + random.below(12)).map(|_| pool.flow(entity(&mut random, workers)));
    let run = Arc::new(StressRun {
        flows: flows.collect(),
        remaining: AtomicU64::new(jobs),
        ran: AtomicU64::new(0),
    });
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (run, seed) = (&run, random.any());
            scope.spawn(move || {
                let mut random = Rng::new(seed);
                (0..8).for_each(|_| submit(run, &mut random));
            });
        }
    });
    // Every job submits two more until none remain, so all of them run unless one is lost.
    let start = std::time::Instant::now();
    while run.ran.load(SeqCst) < jobs {
        let ran = run.ran.load(SeqCst);
        let state: Vec<_> = run.flows.iter().collect();
        assert!(
            start.elapsed() < Duration::from_secs(120),
            "seed {seed}: {ran} of {jobs}, {state:?}"
        );
        // Not a loop that yields, which would take half of a processor away from the workers.
        std::thread::sleep(Duration::from_micros(200));
    }
    drop(pool);
    assert_eq!(run.ran.load(SeqCst), jobs, "seed {seed}");
}

#[test]
fn every_job_runs_exactly_once() {
    for seed in 0..60 {
        run_seed(seed, 2000);
    }
}

/// The same for longer. The environment variable `POOL_SEED` sets the first seed.
#[test]
#[ignore = "minutes"]
fn every_job_runs_exactly_once_for_long() {
    let first = std::env::var("POOL_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let first = first.unwrap_or(1000);
    for seed in first..first + 3000 {
        run_seed(seed, 5000);
    }
}
