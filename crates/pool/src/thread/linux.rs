//! The calls of Linux for the state of threads.
//!
//! `unsafe`: `libc` has no safe functions for these calls. Each takes plain numbers and at most a
//! pointer to a structure of ours, which the kernel or the C library reads or fills during the call
//! and does not keep.
//!
//! Sources: `sched(7)`, `sched_setattr(2)`, `sched_setaffinity(2)`, `pthread_sigmask(3)`; slices of
//! single threads since Linux 6.12 (EEVDF, `sched_attr.sched_runtime`).

#![allow(unsafe_code)]

use super::class::{KernelClass, ThreadId};

/// The first version of `struct sched_attr` (48 bytes), from `sched_setattr(2)`.
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

/// A set of processors, as the kernel takes it. Machines have at most 1024.
pub(super) type Processors = libc::cpu_set_t;

pub(super) fn this_thread() -> ThreadId {
    // SAFETY: no arguments, always succeeds.
    unsafe { libc::gettid() }
}

/// The first thread of the process has the number of the process.
pub(super) fn main_thread() -> ThreadId {
    // SAFETY: no arguments, always succeeds.
    unsafe { libc::getpid() }
}

fn attributes(thread: ThreadId) -> Option<SchedAttr> {
    let mut attr = SchedAttr::default();
    let no_flags: libc::c_uint = 0;
    // SAFETY: the kernel writes at most the given number of bytes to `attr`, which is ours.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            thread,
            std::ptr::from_mut(&mut attr),
            size_of::<SchedAttr>() as libc::c_uint,
            no_flags,
        )
    };
    (result == 0).then_some(attr)
}

fn set_attributes(thread: ThreadId, attr: &SchedAttr) -> bool {
    let no_flags: libc::c_uint = 0;
    // SAFETY: the kernel reads `size` bytes of `attr`, which lives through the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setattr,
            thread,
            std::ptr::from_ref(attr),
            no_flags,
        )
    };
    result == 0
}

fn set_policy(thread: ThreadId, policy: libc::c_int, nice: i32, slice_ns: u64) -> bool {
    let attr = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        policy: policy as u32,
        nice,
        runtime: slice_ns,
        ..SchedAttr::default()
    };
    set_attributes(thread, &attr)
}

fn policy_number(class: KernelClass, is_batch: bool) -> libc::c_int {
    match class {
        KernelClass::Normal if is_batch => libc::SCHED_BATCH,
        KernelClass::Normal => libc::SCHED_OTHER,
        KernelClass::Idle => libc::SCHED_IDLE,
    }
}

pub(super) fn nice_of(thread: ThreadId) -> Option<i32> {
    attributes(thread).map(|attr| attr.nice)
}

pub(super) fn set_class(thread: ThreadId, class: KernelClass) -> bool {
    let nice = nice_of(thread).unwrap_or(0);
    set_policy(thread, policy_number(class, false), nice, 0)
}

/// Sets class and nice value of the calling thread. A nice value that is refused stays as it was.
pub(super) fn set_class_and_nice(class: KernelClass, is_batch: bool, nice: i32) -> bool {
    let thread = this_thread();
    // Separate, since `sched_setattr` ignores the nice value of the class `SCHED_IDLE`. SAFETY:
    // takes numbers. 0 is the calling thread: in Linux each thread has its own value.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    let nice = nice_of(thread).unwrap_or(nice);
    set_policy(thread, policy_number(class, is_batch), nice, 0)
}

fn policy_of(thread: ThreadId) -> libc::c_int {
    // SAFETY: takes a number, returns one.
    unsafe { libc::sched_getscheduler(thread) }
}

pub(super) fn is_idle_class(thread: ThreadId) -> bool {
    policy_of(thread) == libc::SCHED_IDLE
}

pub(super) fn is_batch(thread: ThreadId) -> bool {
    policy_of(thread) == libc::SCHED_BATCH
}

pub(super) fn shorten_slice(slice_ns: u64) -> bool {
    let thread = this_thread();
    policy_of(thread) == libc::SCHED_OTHER
        && nice_of(thread).is_some_and(|nice| set_policy(thread, libc::SCHED_OTHER, nice, slice_ns))
}

pub(super) fn set_exact_wakeups() -> bool {
    let slack_ns: libc::c_ulong = 1;
    // SAFETY: PR_SET_TIMERSLACK takes one number and concerns this thread alone.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns, 0, 0, 0) == 0 }
}

pub(super) fn processors_of(thread: ThreadId) -> Option<Processors> {
    // SAFETY: a structure of bits, for which zero is a value.
    let mut processors: Processors = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most the given number of bytes to `processors`, which is ours.
    let result = unsafe {
        libc::sched_getaffinity(
            thread,
            size_of::<Processors>(),
            std::ptr::from_mut(&mut processors),
        )
    };
    (result == 0).then_some(processors)
}

/// The processors with these numbers.
pub(super) fn processors_with_numbers(numbers: impl Iterator<Item = u32>) -> Processors {
    // SAFETY: a structure of bits, for which zero is a value.
    let mut processors: Processors = unsafe { std::mem::zeroed() };
    let numbers = numbers.map(|number| number as usize);
    for number in numbers.filter(|&number| number < 8 * size_of::<Processors>()) {
        // SAFETY: sets a bit of the set, which has this number.
        unsafe { libc::CPU_SET(number, &mut processors) };
    }
    processors
}

pub(super) fn set_processors(processors: &Processors) -> bool {
    // SAFETY: the kernel reads the given number of bytes of `processors`.
    let result = unsafe {
        libc::sched_setaffinity(
            this_thread(),
            size_of::<Processors>(),
            std::ptr::from_ref(processors),
        )
    };
    result == 0
}

/// Blocks all signals but `delivered` in the calling thread; with `None`, no signals.
pub(super) fn block_signals_except(delivered: Option<&[libc::c_int]>) -> bool {
    // SAFETY: a structure of bits, for which zero is a value.
    let mut mask: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the C library fills and changes one set, which is ours; then it reads it.
    unsafe {
        libc::sigemptyset(&mut mask);
        if let Some(delivered) = delivered {
            libc::sigfillset(&mut mask);
            for &signal in delivered {
                libc::sigdelset(&mut mask, signal);
            }
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut()) == 0
    }
}

pub(super) fn voluntary_switches() -> u64 {
    // SAFETY: a structure of numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one `rusage`, which is ours.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, std::ptr::from_mut(&mut usage)) };
    match result {
        0 => u64::try_from(usage.ru_nvcsw).unwrap_or(0),
        _ => 0,
    }
}

pub(super) fn thread_cpu_ns() -> Option<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec, which is ours.
    let result = unsafe {
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, std::ptr::from_mut(&mut time))
    };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanoseconds = u64::try_from(time.tv_nsec).ok()?;
    (result == 0).then(|| {
        seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(nanoseconds)
    })
}
