//! The row about waiting: the cost of a worker that is woken regularly.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use refrain_policy::{SpinLimits, SpinPolicy};
use refrain_pool::idle::{MachineLoad, Sleeper};

use super::row::{Row, Target};

const WAKE_UPS: u64 = 300;

pub fn rows() -> Vec<Row> {
    vec![wake_ups()]
}

fn wake_ups() -> Row {
    Row::new(
        "wake-1khz",
        "processor time of a worker that is woken 1,000 times per second",
        "%",
        Target::AtMost(5.0),
    )
    .with("refrain, adaptive", || woken_share(true))
    .with("refrain, parks at once", || woken_share(false))
}

fn woken_share(is_adaptive: bool) -> f64 {
    let (sleeper, has_ended) = (Sleeper::default(), AtomicBool::new(false));
    let (load, start) = (MachineLoad::default(), Instant::now());
    let used_ns = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let now_ns = || start.elapsed().as_nanos() as u64;
            let mut spin_policy = SpinPolicy::default();
            sleeper.bind_to_current_thread();
            let before_ns = thread_cpu_ns();
            loop {
                sleeper.prepare_to_sleep();
                if has_ended.load(Ordering::Acquire) {
                    return thread_cpu_ns() - before_ns;
                }
                let has_processor = !load.is_overcommitted(now_ns());
                let limits = if is_adaptive {
                    spin_policy.limits(now_ns(), has_processor)
                } else {
                    SpinLimits::default()
                };
                sleeper.sleep(limits, u64::MAX, now_ns);
                spin_policy.record_wake(now_ns());
            }
        });
        for _ in 0..WAKE_UPS {
            std::thread::sleep(Duration::from_millis(1));
            sleeper.wake();
        }
        has_ended.store(true, Ordering::Release);
        sleeper.wake();
        thread.join().unwrap_or(f64::NAN)
    });
    100.0 * used_ns / start.elapsed().as_nanos() as f64
}

/// The processor time of the calling thread so far; not a number if the kernel does not report it.
fn thread_cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().unwrap_or_default();
    first.parse().unwrap_or(f64::NAN)
}
