//! What the pool requests from the kernel's scheduler for running threads.

#[cfg(not(target_os = "linux"))]
use super::elsewhere as system;
#[cfg(target_os = "linux")]
use super::linux as system;

use super::class::{KernelClass, ThreadId};

pub(crate) fn this_thread() -> ThreadId {
    system::this_thread()
}

/// Moves `thread` to `class`; returns whether the kernel agreed. Leaving [`KernelClass::Idle`]
/// needs a privilege: `CAP_SYS_NICE`, or an `RLIMIT_NICE` that allows the thread's nice value (20
/// for nice 0).
pub(crate) fn set_class(thread: ThreadId, class: KernelClass) -> bool {
    system::set_class(thread, class)
}

pub(crate) fn is_idle_class(thread: ThreadId) -> bool {
    system::is_idle_class(thread)
}

pub(crate) fn current_class() -> KernelClass {
    if is_idle_class(this_thread()) {
        KernelClass::Idle
    } else {
        KernelClass::Normal
    }
}

/// Asks the kernel to schedule the calling thread with slices of this length (EEVDF): shorter
/// slices make the thread run sooner after it wakes. Does nothing for threads that are not
/// `SCHED_OTHER`.
pub(crate) fn shorten_slice(slice_ns: u64) -> bool {
    system::shorten_slice(slice_ns)
}

/// Asks that timed waits of the calling thread end on time, not up to 50 µs later together with
/// others (`PR_SET_TIMERSLACK`).
pub(crate) fn set_exact_wakeups() -> bool {
    system::set_exact_wakeups()
}

/// The processor time of the calling thread so far, in nanoseconds; `None` where the system does
/// not count it.
pub(crate) fn thread_cpu_ns() -> Option<u64> {
    system::thread_cpu_ns()
}

/// How often the calling thread has given up its processor to wait; 0 where the system does not
/// count it.
pub(crate) fn voluntary_switches() -> u64 {
    system::voluntary_switches()
}

#[cfg(all(test, target_os = "linux", not(loom)))]
#[allow(
    clippy::unwrap_used,
    reason = "clippy does not take `all(test, not(loom))` for a test"
)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_can_enter_the_idle_class() {
        std::thread::spawn(|| {
            let this = this_thread();
            assert!(!is_idle_class(this));
            assert!(set_class(this, KernelClass::Idle));
            assert!(is_idle_class(this));
            assert!(set_exact_wakeups());
            // The way back needs a privilege that a test may not have. The result must be right in
            // both cases.
            let is_back = set_class(this, KernelClass::Normal);
            assert_eq!(is_idle_class(this), !is_back);
            assert_eq!(shorten_slice(100_000), is_back);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn the_processor_time_of_a_busy_thread_grows() {
        let before = thread_cpu_ns().unwrap();
        let mut sum = 0u64;
        while thread_cpu_ns().unwrap() < before + 1_000_000 {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(sum > 0);
    }
}
