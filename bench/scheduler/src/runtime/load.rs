//! Full load for rows that measure something else beside it: 8 flows per worker, each of which
//! always has a job of 1 ms.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use refrain_policy::{Class, Entity};
use refrain_pool::pool::{Flow, Options, Pool, checkpoint};

pub const WORKERS: usize = 2;
const JOBS_PER_WORKER: usize = 8;
const JOB: Duration = Duration::from_millis(1);
/// The distance between checkpoints.
const CHECK: Duration = Duration::from_micros(50);

fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        black_box(());
    }
}

/// Runs one job, with a checkpoint (of the given kind) every 50 µs.
pub fn job(check: impl Fn()) {
    for _ in 0..JOB.as_micros() / CHECK.as_micros() {
        spin(CHECK);
        check();
    }
}

/// A pool under that load, until this is dropped.
pub struct Loaded {
    pub pool: Pool,
    stop: Arc<AtomicBool>,
}

impl Loaded {
    /// Starts the load. Without checkpoints it is of the idle class.
    pub fn new(has_checkpoints: bool) -> Result<Loaded, refrain_pool::Error> {
        let pool = Pool::start(Options::with_workers(WORKERS))?;
        let stop = Arc::new(AtomicBool::new(false));
        let class = if has_checkpoints { Class::Normal } else { Class::Idle };
        for _ in 0..JOBS_PER_WORKER * WORKERS {
            let flow = pool.flow(Entity::new(class));
            submit(flow, has_checkpoints, Arc::clone(&stop));
        }
        // Wait until deadlines have spread as they do under load.
        std::thread::sleep(Duration::from_millis(50));
        Ok(Loaded { pool, stop })
    }
}

/// Submits a job that submits the next one, until `stop`.
fn submit(flow: Flow, has_checkpoints: bool, stop: Arc<AtomicBool>) {
    flow.clone().submit(move || {
        job(|| {
            if has_checkpoints {
                checkpoint();
            }
        });
        if !stop.load(Ordering::Relaxed) {
            submit(flow, has_checkpoints, stop);
        }
    });
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The same load on tokio: each job yields every 50 µs, which is tokio's form of a checkpoint.
pub fn load_tokio(runtime: &tokio::runtime::Runtime) {
    for _ in 0..JOBS_PER_WORKER * WORKERS {
        runtime.spawn(async {
            loop {
                for _ in 0..JOB.as_micros() / CHECK.as_micros() {
                    spin(CHECK);
                    tokio::task::yield_now().await;
                }
            }
        });
    }
    std::thread::sleep(Duration::from_millis(50));
}

pub fn tokio_runtime(workers: usize) -> Option<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_time()
        .build()
        .ok()
}
