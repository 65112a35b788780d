//! What the pool asks of Linux's scheduler: the class and slice of a thread.
//!
//! `unsafe`: `libc` has no safe face for these calls. Each takes plain numbers and, at most, a pointer to a structure on the stack that
//! the kernel reads and does not keep; none touches memory of ours. Elsewhere than on Linux every function says "refused".
//!
//! Sources: `sched(7)`, `sched_setattr(2)`; slices of single threads since Linux 6.12 (EEVDF, `sched_attr.sched_runtime`).

#![allow(unsafe_code)]

/// A kernel thread, by number; 0 where there is no such thing.
pub(crate) type ThreadId = i32;

/// How the kernel is asked to run a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KernelClass {
    /// `SCHED_OTHER`.
    Normal,
    /// `SCHED_IDLE`: any thread of another class that wakes takes the processor away at once.
    Idle,
}

#[cfg(target_os = "linux")]
mod linux {
    use super::{KernelClass, ThreadId};

    /// `struct sched_attr`, first version (48 bytes), as `sched_setattr(2)` gives it.
    #[repr(C)]
    #[derive(Default)]
    struct SchedAttr {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }

    const _: () = assert!(size_of::<SchedAttr>() == 48);

    pub(super) fn this_thread() -> ThreadId {
        // SAFETY: no arguments, always succeeds.
        unsafe { libc::gettid() }
    }

    pub(super) fn set_class(thread: ThreadId, class: KernelClass) -> bool {
        let policy = match class {
            KernelClass::Normal => libc::SCHED_OTHER,
            KernelClass::Idle => libc::SCHED_IDLE,
        };
        set_policy(thread, policy, 0)
    }

    fn set_policy(thread: ThreadId, policy: libc::c_int, slice_ns: u64) -> bool {
        let attr = SchedAttr {
            size: size_of::<SchedAttr>() as u32,
            policy: policy as u32,
            runtime: slice_ns,
            ..SchedAttr::default()
        };
        let no_flags: libc::c_uint = 0;
        // SAFETY: the kernel reads `size` bytes of `attr`, which lives through the call.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_sched_setattr,
                thread,
                std::ptr::from_ref(&attr),
                no_flags,
            )
        };
        answer == 0
    }

    fn policy_of(thread: ThreadId) -> libc::c_int {
        // SAFETY: takes a number, returns one.
        unsafe { libc::sched_getscheduler(thread) }
    }

    pub(super) fn is_idle_class(thread: ThreadId) -> bool {
        policy_of(thread) == libc::SCHED_IDLE
    }

    pub(super) fn shorten_slice(slice_ns: u64) -> bool {
        let thread = this_thread();
        policy_of(thread) == libc::SCHED_OTHER && set_policy(thread, libc::SCHED_OTHER, slice_ns)
    }

    pub(super) fn set_exact_wakeups() -> bool {
        let slack_ns: libc::c_ulong = 1;
        // SAFETY: PR_SET_TIMERSLACK takes one number and concerns this thread alone.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns, 0, 0, 0) == 0 }
    }

    pub(super) fn thread_cpu_ns() -> Option<u64> {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the kernel writes one timespec, which is ours.
        let answer = unsafe {
            libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, std::ptr::from_mut(&mut time))
        };
        let seconds = u64::try_from(time.tv_sec).ok()?;
        let nanoseconds = u64::try_from(time.tv_nsec).ok()?;
        (answer == 0).then(|| {
            seconds
                .saturating_mul(1_000_000_000)
                .saturating_add(nanoseconds)
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod linux {
    use super::{KernelClass, ThreadId};

    pub(super) fn this_thread() -> ThreadId {
        0
    }

    pub(super) fn set_class(_: ThreadId, _: KernelClass) -> bool {
        false
    }

    pub(super) fn is_idle_class(_: ThreadId) -> bool {
        false
    }

    pub(super) fn shorten_slice(_: u64) -> bool {
        false
    }

    pub(super) fn set_exact_wakeups() -> bool {
        false
    }

    pub(super) fn thread_cpu_ns() -> Option<u64> {
        None
    }
}

/// The calling thread.
pub(crate) fn this_thread() -> ThreadId {
    linux::this_thread()
}

/// Asks the kernel to run `thread` so from now on; whether it agreed. Back from [`KernelClass::Idle`] needs a privilege (`CAP_SYS_NICE` or
/// `RLIMIT_NICE` of 20).
pub(crate) fn set_class(thread: ThreadId, class: KernelClass) -> bool {
    linux::set_class(thread, class)
}

/// Puts the calling thread, and those that it will make, into the class `SCHED_IDLE` for good; whether the kernel agreed. What it reads and
/// writes goes behind that of others too: without a priority of its own, a thread's input and output have the class of its processor time.
pub(crate) fn enter_idle_class() -> bool {
    set_class(this_thread(), KernelClass::Idle)
}

/// Whether `thread` is in the class `SCHED_IDLE`.
pub(crate) fn is_idle_class(thread: ThreadId) -> bool {
    linux::is_idle_class(thread)
}

/// Asks the kernel to plan the calling thread with slices of this length (EEVDF): the shorter, the sooner it runs once it wakes. Leaves
/// threads alone that are not `SCHED_OTHER`.
pub(crate) fn shorten_slice(slice_ns: u64) -> bool {
    linux::shorten_slice(slice_ns)
}

/// Asks that timed waits of this thread end on time, and not up to 50 µs later together with others (`PR_SET_TIMERSLACK`).
pub(crate) fn set_exact_wakeups() -> bool {
    linux::set_exact_wakeups()
}

/// Processor time of the calling thread so far, in nanoseconds; `None` where the system does not say.
pub(crate) fn thread_cpu_ns() -> Option<u64> {
    linux::thread_cpu_ns()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_can_be_made_idle() {
        std::thread::spawn(|| {
            let me = this_thread();
            assert!(!is_idle_class(me));
            assert!(set_class(me, KernelClass::Idle));
            assert!(is_idle_class(me));
            assert!(set_exact_wakeups());
            // The way back needs a privilege that a test may not have; either way the answer is the truth.
            let is_back = set_class(me, KernelClass::Normal);
            assert_eq!(is_idle_class(me), !is_back);
            assert_eq!(shorten_slice(100_000), is_back);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn processor_time_grows() {
        let before = thread_cpu_ns().unwrap();
        let mut sum = 0u64;
        while thread_cpu_ns().unwrap() < before + 1_000_000 {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(sum > 0);
    }
}
