//! Threads for the moments in which a connection needs one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use refrain_pool::{SignalDelivery, start_detached};
use refrain_sync::{Condvar, Mutex, lock, wait_for};

/// How many threads without work are kept, and for how long: starting one takes longer than waking
/// one.
const IDLE_MAX: usize = 8;
const IDLE_TIME: Duration = Duration::from_secs(1);

type Job = Box<dyn FnOnce() + Send>;

/// Threads that have no work now, and work that they have not taken yet.
struct Idle {
    threads: usize,
    jobs: VecDeque<Job>,
}

static IDLE: Mutex<Idle> = Mutex::new(Idle {
    threads: 0,
    jobs: VecDeque::new(),
});

/// Notified for each job.
static HAS_JOB: Condvar = Condvar::new();

/// Runs `job`, which may wait for sockets and disks, on a thread of its own. Returns `false` and
/// drops it if the system allows no more threads.
pub(crate) fn run_on_thread(job: impl FnOnce() + Send + 'static) -> bool {
    let job: Job = Box::new(job);
    let mut idle = lock(&IDLE);
    if idle.threads > idle.jobs.len() {
        idle.jobs.push_back(job);
        HAS_JOB.notify_one();
        return true;
    }
    drop(idle);
    start_detached("client", SignalDelivery::OwnFaults, move || live(job))
}

/// Runs `job` on a thread of its own, or on this one if the system allows no more threads.
pub(crate) fn run_on_thread_or_here(job: impl FnOnce() + Send + 'static) {
    run_on(run_on_thread, job);
}

/// Runs `job` on a thread that `start` starts for its argument, or on this one if it returns
/// `false`.
fn run_on(start: impl FnOnce(Job) -> bool, job: impl FnOnce() + Send + 'static) {
    let there = Arc::new(Mutex::new(Some(job)));
    let here = Arc::clone(&there);
    if !start(Box::new(move || run_once(&there))) {
        run_once(&here);
    }
}

fn run_once(job: &Mutex<Option<impl FnOnce()>>) {
    let job = lock(job).take();
    job.into_iter().for_each(|job| job());
}

/// Runs one job after the other, until there is none for a while.
fn live(first: Job) {
    let mut next = Some(first);
    while let Some(job) = next {
        job();
        next = next_job();
    }
}

fn next_job() -> Option<Job> {
    let mut idle = lock(&IDLE);
    if idle.threads >= IDLE_MAX {
        return None;
    }
    idle.threads += 1;
    if idle.jobs.is_empty() {
        idle = wait_for(&HAS_JOB, idle, IDLE_TIME);
    }
    idle.threads -= 1;
    idle.jobs.pop_front()
}

#[cfg(test)]
mod tests {
    use refrain_pool::OnceValue;
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn a_job_runs_here_if_there_is_no_thread_for_it() {
        let (sender, receiver) = channel();
        let run = |start: fn(Job) -> bool| {
            let sender = sender.clone();
            run_on(start, move || sender.send(thread::current().id()).unwrap());
            receiver.recv().unwrap() == thread::current().id()
        };
        // The system drops the job that it starts no thread for.
        assert!(run(|_| false));
        assert!(!run(run_on_thread));
    }

    #[test]
    fn every_job_runs_on_a_thread_of_its_own() {
        let done: Vec<Arc<OnceValue<()>>> = (0..20).map(|_| Arc::default()).collect();
        for number in 0..done.len() {
            let done = done.clone();
            assert!(run_on_thread(move || {
                // Each needs the next one.
                while done
                    .get(number + 1)
                    .is_some_and(|next| next.get().is_none())
                {
                    std::thread::yield_now();
                }
                let _ = done[number].get_or_try_init(|| Ok::<_, ()>(()));
            }));
        }
        while done[0].get().is_none() {
            std::thread::yield_now();
        }
    }
}
