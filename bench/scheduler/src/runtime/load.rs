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

/// How tokio is set up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tokio {
    Default,
    /// Looks for new tasks from outside and for timers before each task.
    Tuned,
    /// Two runtimes: that of the load has threads of nice value 19.
    Two,
}

impl Tokio {
    pub const ALL: [(&'static str, Tokio); 3] = [
        ("tokio", Tokio::Default),
        ("tokio, queue and event interval 1", Tokio::Tuned),
        ("tokio, the load in a second runtime at nice 19", Tokio::Two),
    ];
}

/// A runtime beside that load: each job yields every 50 µs, which is tokio's form of a checkpoint.
pub struct LoadedTokio {
    pub runtime: tokio::runtime::Runtime,
    second: Option<tokio::runtime::Runtime>,
}

impl LoadedTokio {
    pub fn new(tokio: Tokio) -> Option<LoadedTokio> {
        let runtime = new_runtime(tokio == Tokio::Tuned, false)?;
        let second = if tokio == Tokio::Two { Some(new_runtime(false, true)?) } else { None };
        let loaded = second.as_ref().unwrap_or(&runtime);
        for _ in 0..JOBS_PER_WORKER * WORKERS {
            loaded.spawn(async {
                loop {
                    for _ in 0..JOB.as_micros() / CHECK.as_micros() {
                        spin(CHECK);
                        tokio::task::yield_now().await;
                    }
                }
            });
        }
        std::thread::sleep(Duration::from_millis(50));
        Some(LoadedTokio { runtime, second })
    }

    pub fn end(self) {
        self.runtime.shutdown_background();
        if let Some(second) = self.second {
            second.shutdown_background();
        }
    }
}

fn new_runtime(is_tuned: bool, is_nice: bool) -> Option<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(WORKERS).enable_time();
    if is_tuned {
        builder.global_queue_interval(1).event_interval(1);
    }
    if is_nice {
        // On Linux the nice value is the thread's.
        builder.on_thread_start(|| _ = rustix::process::nice(19));
    }
    builder.build().ok()
}

/// The load without checkpoints on rayon's threads, in the kernel's idle class.
pub struct LoadedRayon {
    _pool: rayon::ThreadPool,
    stop: Arc<AtomicBool>,
}

impl LoadedRayon {
    pub fn new() -> Option<LoadedRayon> {
        let start = || rayon::ThreadPoolBuilder::new().num_threads(WORKERS).build();
        // Threads inherit the class of the thread that starts them.
        let pool = refrain_pool::in_background(start).ok()?;
        let stop = Arc::new(AtomicBool::new(false));
        for _ in 0..WORKERS {
            let stop = Arc::clone(&stop);
            pool.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    job(|| ());
                }
            });
        }
        std::thread::sleep(Duration::from_millis(50));
        Some(LoadedRayon { _pool: pool, stop })
    }
}

impl Drop for LoadedRayon {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
