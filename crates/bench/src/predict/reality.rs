//! An experiment on the real pool instead of a simulated machine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use refrain_pool::pool::{Flow, Options, Pool, checkpoint};
use refrain_simulator::{Arrivals, Experiment, Group, Random, Times};

/// Shorter than this a thread does not sleep; the timer would be later than that.
const SLEEP_LEAST: Duration = Duration::from_micros(60);
/// "Anywhere" on a real machine.
const CHECKPOINT_LEAST_NS: u64 = 1_000;

/// A flow with what it does.
struct Member {
    flow: Flow,
    group: usize,
    /// Next in its ring.
    next: usize,
}

/// What jobs share with the thread that lets work arrive.
struct Shared {
    groups: Vec<Group>,
    members: Vec<Member>,
    random: Mutex<Random>,
    waits_ns: Vec<Mutex<Vec<u64>>>,
    /// Jobs done whose flow thinks before the next one.
    thinking: Sender<usize>,
    has_ended: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long a worker of the pool spins before it parks.
pub fn spin_ns() -> u64 {
    Options::with_workers(1).spin.as_nanos() as u64
}

/// Runs the experiment on a pool with as many workers as its machine has CPUs: waiting times by group.
pub fn measure(experiment: &Experiment) -> Result<Vec<Times>, String> {
    let simulation = &experiment.simulation;
    let options = Options {
        topology: simulation.topology.clone(),
        policy: experiment.policy.clone(),
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
    let (thinking, thought) = channel();
    let shared = Arc::new(Shared {
        waits_ns: simulation.groups.iter().map(|_| Mutex::default()).collect(),
        groups: simulation.groups.clone(),
        members,
        random: Mutex::new(Random::new(simulation.seed)),
        thinking,
        has_ended: AtomicBool::new(false),
    });
    let has_processor = std::thread::available_parallelism().map_or(1, usize::from) > workers;
    arrive(
        &shared,
        &thought,
        Duration::from_nanos(simulation.span_ns),
        has_processor,
    );
    shared.has_ended.store(true, Ordering::Relaxed);
    shared.members.iter().for_each(|member| {
        member.flow.cancel();
    });
    drop(pool);
    Ok(shared
        .waits_ns
        .iter()
        .map(|waits| Times::new(std::mem::take(&mut *lock(waits))))
        .collect())
}

/// Lets work arrive until `span` is over. With a processor of its own the thread spins between arrivals, else it sleeps.
fn arrive(shared: &Arc<Shared>, thought: &Receiver<usize>, span: Duration, has_processor: bool) {
    let begin = Instant::now();
    let mut due: BinaryHeap<Reverse<(Duration, usize)>> = BinaryHeap::new();
    for (index, member) in shared.members.iter().enumerate() {
        let mut random = lock(&shared.random);
        let first_ns = match shared.groups[member.group].arrivals {
            Arrivals::Always => Some(0),
            Arrivals::Ring(tokens) => (shared.is_among_first(index, tokens)).then_some(0),
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
        for index in thought.try_iter() {
            if let Arrivals::After(think) = shared.groups[shared.members[index].group].arrivals {
                let think_ns = think.draw(&mut lock(&shared.random));
                due.push(Reverse((now + Duration::from_nanos(think_ns), index)));
            }
        }
        match due.peek().copied() {
            Some(Reverse((at, index))) if at <= now => {
                due.pop();
                submit(shared, index);
                if let Arrivals::Every(gap) = shared.groups[shared.members[index].group].arrivals {
                    let gap_ns = gap.draw(&mut lock(&shared.random)).max(1);
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

impl Shared {
    fn is_among_first(&self, index: usize, tokens: usize) -> bool {
        let group = self.members[index].group;
        let before = self.members[..index]
            .iter()
            .filter(|member| member.group == group)
            .count();
        before < tokens
    }
}

fn submit(shared: &Arc<Shared>, index: usize) {
    let job = Arc::clone(shared);
    let work_ns = {
        let group = &shared.groups[shared.members[index].group];
        group.work.draw(&mut lock(&shared.random)).max(1)
    };
    let arrived = Instant::now();
    shared.members[index].flow.submit(move || {
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
            // Nobody listens any more: the experiment is over.
            Arrivals::After(_) => drop(job.thinking.send(index)),
        }
    });
}

/// Keeps the processor busy for so long, with a checkpoint at every `checkpoint_ns` of it.
fn work(work_ns: u64, checkpoint_ns: u64) {
    let piece_ns = checkpoint_ns.max(CHECKPOINT_LEAST_NS);
    let mut left_ns = work_ns;
    while left_ns > 0 {
        let now_ns = left_ns.min(piece_ns);
        // What runs on top of this at a checkpoint does not count as its work.
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
