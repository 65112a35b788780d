//! Runs an experiment on the pool instead of the simulator.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use refrain_pool::pool::{Flow, Options, Pool, checkpoint};
use refrain_simulator::{Arrivals, Contender, Experiment, Group, Random, Times};

/// The shortest sleep of the arrival thread; a timer is less accurate than that.
const SLEEP_LEAST: Duration = Duration::from_micros(60);
/// The smallest distance between checkpoints, for "anywhere".
const CHECKPOINT_LEAST_NS: u64 = 1_000;

struct Member {
    flow: Flow,
    group: usize,
    next: usize,
}

struct PoolRun {
    groups: Vec<Group>,
    members: Vec<Member>,
    random: Mutex<Random>,
    waits_ns: Vec<Mutex<Vec<u64>>>,
    /// Finished jobs whose flows think before the next one.
    thinking: Sender<usize>,
    has_ended: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The spin of the pool's workers before they park.
pub fn spin_ns() -> u64 {
    Options::with_workers(1).spin.as_nanos() as u64
}

/// Runs the experiment on a pool with as many workers as the machine has CPUs. Returns the waiting
/// times by group.
pub fn measure(experiment: &Experiment) -> Result<Vec<Times>, String> {
    let simulation = &experiment.simulation;
    let Contender::Pool(policy) = &experiment.policy else {
        return Err(format!("the pool has no policy {:?}", experiment.policy));
    };
    let options = Options {
        topology: simulation.topology.clone(),
        policy: policy.clone(),
        spin: Duration::from_nanos(simulation.costs.spin_ns),
        ..Options::with_workers(1)
    };
    let workers = options.topology.len();
    let pool = Pool::start(options).map_err(|error| error.to_string())?;
    let mut members = Vec::new();
    for (index, group) in simulation.groups.iter().enumerate() {
        let first = members.len();
        members.extend((0..group.count).map(|member| Member {
            flow: pool.flow(group.entity),
            group: index,
            next: first + (member + 1) % group.count,
        }));
    }
    let (thinking, finished) = channel();
    let run = Arc::new(PoolRun {
        waits_ns: simulation.groups.iter().map(|_| Mutex::default()).collect(),
        groups: simulation.groups.clone(),
        members,
        random: Mutex::new(Random::new(simulation.seed)),
        thinking,
        has_ended: AtomicBool::new(false),
    });
    let has_processor = std::thread::available_parallelism().map_or(1, usize::from) > workers;
    arrive(
        &run,
        &finished,
        Duration::from_nanos(simulation.span_ns),
        has_processor,
    );
    run.has_ended.store(true, Ordering::Relaxed);
    run.members.iter().for_each(|member| {
        member.flow.cancel();
    });
    drop(pool);
    Ok(run
        .waits_ns
        .iter()
        .map(|waits| Times::new(std::mem::take(&mut *lock(waits))))
        .collect())
}

/// Submits jobs as they arrive until `span` is over. Between arrivals the thread spins if it has a
/// processor to itself; otherwise it sleeps.
fn arrive(run: &Arc<PoolRun>, finished: &Receiver<usize>, span: Duration, has_processor: bool) {
    let begin = Instant::now();
    let mut due: BinaryHeap<Reverse<(Duration, usize)>> = BinaryHeap::new();
    for (index, member) in run.members.iter().enumerate() {
        let mut random = lock(&run.random);
        let first_ns = match run.groups[member.group].arrivals {
            Arrivals::Always => Some(0),
            Arrivals::Ring(tokens) => (run.is_among_first(index, tokens)).then_some(0),
            Arrivals::After(think) => Some(think.draw(&mut random)),
            Arrivals::Every(gap) => Some(gap.draw_residual(&mut random)),
        };
        due.extend(first_ns.map(|first_ns| Reverse((Duration::from_nanos(first_ns), index))));
    }
    loop {
        let now = begin.elapsed();
        if now >= span {
            return;
        }
        for index in finished.try_iter() {
            if let Arrivals::After(think) = run.groups[run.members[index].group].arrivals {
                let think_ns = think.draw(&mut lock(&run.random));
                due.push(Reverse((now + Duration::from_nanos(think_ns), index)));
            }
        }
        match due.peek().copied() {
            Some(Reverse((at, index))) if at <= now => {
                due.pop();
                submit(run, index);
                if let Arrivals::Every(gap) = run.groups[run.members[index].group].arrivals {
                    let gap_ns = gap.draw(&mut lock(&run.random)).max(1);
                    due.push(Reverse((at + Duration::from_nanos(gap_ns), index)));
                }
            }
            _ if has_processor => std::hint::spin_loop(),
            next => {
                let until = next.map_or(span, |Reverse((at, _))| at).min(span);
                std::thread::sleep(until.saturating_sub(now).max(SLEEP_LEAST));
            }
        }
    }
}

impl PoolRun {
    fn is_among_first(&self, index: usize, tokens: usize) -> bool {
        let group = self.members[index].group;
        let before = self.members[..index]
            .iter()
            .filter(|member| member.group == group)
            .count();
        before < tokens
    }
}

fn submit(run: &Arc<PoolRun>, index: usize) {
    let job = Arc::clone(run);
    let work_ns = {
        let group = &run.groups[run.members[index].group];
        group.work.draw(&mut lock(&run.random)).max(1)
    };
    let arrived = Instant::now();
    run.members[index].flow.submit(move || {
        let waited = arrived.elapsed();
        let member = &job.members[index];
        work(work_ns, job.groups[member.group].checkpoint_ns);
        lock(&job.waits_ns[member.group]).push(waited.as_nanos() as u64);
        if job.has_ended.load(Ordering::Relaxed) {
            return;
        }
        match job.groups[member.group].arrivals {
            Arrivals::Every(_) => {}
            Arrivals::Always => submit(&job, index),
            Arrivals::Ring(_) => submit(&job, member.next),
            // The send fails if the experiment is over.
            Arrivals::After(_) => drop(job.thinking.send(index)),
        }
    });
}

/// Occupies the processor for `work_ns`, with a checkpoint after every `checkpoint_ns` of it.
fn work(work_ns: u64, checkpoint_ns: u64) {
    let piece_ns = checkpoint_ns.max(CHECKPOINT_LEAST_NS);
    let mut left_ns = work_ns;
    while left_ns > 0 {
        let now_ns = left_ns.min(piece_ns);
        // The time of other jobs that run on top of this one at a checkpoint does not count.
        let (begin, length) = (Instant::now(), Duration::from_nanos(now_ns));
        while begin.elapsed() < length {
            std::hint::spin_loop();
        }
        left_ns -= now_ns;
        if checkpoint_ns != u64::MAX && left_ns > 0 {
            checkpoint();
        }
    }
}
