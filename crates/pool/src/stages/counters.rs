//! The resources that a thread has used: time, the kernel's software counters, and the processor's
//! counters where they are available.
//!
//! `unsafe`: `libc` has no safe functions for these calls. `getrusage` writes one structure of
//! ours; `perf_event_open` reads one and returns a file; the kernel keeps no pointer. On systems
//! other than Linux only the time is known.
//!
//! Source: `perf_event_open(2)`, `getrusage(2)`. Page faults and context switches come from
//! `getrusage`, since as perf events they need a privilege that most users do not have
//! (`perf_event_paranoid`). Cycles and instructions count the program's code, not the kernel's.
//! Most virtual machines have no such counters: then they are `None`.

#![allow(unsafe_code)]

use std::time::Duration;

/// The resources that some work used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Elapsed time.
    pub time: Duration,
    /// Processor time.
    pub cpu: Duration,
    /// The number of processed bytes, as the code of the stage reports it.
    pub bytes: u64,
    /// Page faults without input.
    pub minor_faults: u64,
    /// Page faults that read from a disk.
    pub major_faults: u64,
    /// Voluntary context switches: the thread waited.
    pub waits: u64,
    /// Involuntary context switches.
    pub preemptions: u64,
    /// Processor cycles; `None` without a counter.
    pub cycles: Option<u64>,
    /// Processor instructions; `None` without a counter.
    pub instructions: Option<u64>,
}

impl Usage {
    /// Zero, with unknown hardware counters.
    pub(super) const UNKNOWN: Usage = Usage {
        time: Duration::ZERO,
        cpu: Duration::ZERO,
        bytes: 0,
        minor_faults: 0,
        major_faults: 0,
        waits: 0,
        preemptions: 0,
        cycles: None,
        instructions: None,
    };

    /// Zero, with known hardware counters: the beginning of a sum.
    pub(super) const ZERO: Usage = Usage {
        cycles: Some(0),
        instructions: Some(0),
        ..Usage::UNKNOWN
    };

    fn joined(
        &self,
        other: &Usage,
        time: impl Fn(Duration, Duration) -> Duration,
        count: impl Fn(u64, u64) -> u64,
        known: impl Fn(Option<u64>, Option<u64>) -> Option<u64>,
    ) -> Usage {
        Usage {
            time: time(self.time, other.time),
            cpu: time(self.cpu, other.cpu),
            bytes: count(self.bytes, other.bytes),
            minor_faults: count(self.minor_faults, other.minor_faults),
            major_faults: count(self.major_faults, other.major_faults),
            waits: count(self.waits, other.waits),
            preemptions: count(self.preemptions, other.preemptions),
            cycles: known(self.cycles, other.cycles),
            instructions: known(self.instructions, other.instructions),
        }
    }

    /// The sum; a counter that is unknown in either operand is unknown in the sum.
    pub(super) fn plus(&self, other: &Usage) -> Usage {
        self.joined(
            other,
            Duration::saturating_add,
            u64::saturating_add,
            |a, b| a.zip(b).map(|(a, b)| a.saturating_add(b)),
        )
    }

    /// The difference to an earlier or smaller one, whose unknown counters count as zero.
    pub(super) fn since(&self, before: &Usage) -> Usage {
        self.joined(
            before,
            Duration::saturating_sub,
            u64::saturating_sub,
            |a, b| a.map(|a| a.saturating_sub(b.unwrap_or(0))),
        )
    }
}

pub(super) fn of_thread() -> Usage {
    system::of_thread()
}

/// The resources that all threads of the process have used so far, including threads that have
/// ended; without time and hardware counters.
pub(super) fn of_process() -> Usage {
    system::of_process()
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::FromRawFd;
    use std::sync::LazyLock;
    use std::time::{Duration, Instant};

    use super::Usage;

    static START: LazyLock<Instant> = LazyLock::new(Instant::now);

    thread_local! {
        static CYCLES: Option<File> = open(HARDWARE, CYCLES_NUMBER);
        static INSTRUCTIONS: Option<File> = open(HARDWARE, INSTRUCTIONS_NUMBER);
    }

    /// `PERF_TYPE_HARDWARE`, `PERF_COUNT_HW_CPU_CYCLES`, `PERF_COUNT_HW_INSTRUCTIONS`.
    const HARDWARE: u32 = 0;
    const CYCLES_NUMBER: u64 = 0;
    const INSTRUCTIONS_NUMBER: u64 = 1;
    /// `exclude_kernel`, `exclude_hv`.
    const USER_ONLY: u64 = 1 << 5 | 1 << 6;

    /// `struct perf_event_attr`, first version (64 bytes).
    #[repr(C)]
    #[derive(Default)]
    struct EventAttr {
        kind: u32,
        size: u32,
        config: u64,
        sample_period: u64,
        sample_type: u64,
        read_format: u64,
        flags: u64,
        wakeup_events: u32,
        breakpoint_kind: u32,
        config1: u64,
    }

    const _: () = assert!(size_of::<EventAttr>() == 64);

    pub(super) fn open(kind: u32, config: u64) -> Option<File> {
        let attr = EventAttr {
            kind,
            size: size_of::<EventAttr>() as u32,
            config,
            flags: USER_ONLY,
            ..EventAttr::default()
        };
        let (this_thread, any_cpu, no_group): (libc::pid_t, libc::c_int, libc::c_int) = (0, -1, -1);
        // PERF_FLAG_FD_CLOEXEC
        let flags: libc::c_ulong = 1 << 3;
        // SAFETY: the kernel reads `size` bytes of `attr`, which lives through the call.
        let file = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                std::ptr::from_ref(&attr),
                this_thread,
                any_cpu,
                no_group,
                flags,
            )
        };
        let file = i32::try_from(file).ok().filter(|&file| file >= 0)?;
        // SAFETY: the kernel has just opened this file for this call; no other code uses it.
        Some(unsafe { File::from_raw_fd(file) })
    }

    pub(super) fn count(counter: Option<&File>) -> Option<u64> {
        let mut bytes = [0; 8];
        let count = counter?.read(&mut bytes).ok()?;
        (count == bytes.len()).then(|| u64::from_ne_bytes(bytes))
    }

    fn resources(who: libc::c_int) -> Usage {
        // SAFETY: a structure of numbers, for which zero is a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes one `rusage`, which is ours.
        if unsafe { libc::getrusage(who, std::ptr::from_mut(&mut usage)) } != 0 {
            return Usage::UNKNOWN;
        }
        let number = |count: libc::c_long| u64::try_from(count).unwrap_or(0);
        let time = |time: libc::timeval| {
            let microseconds = u64::try_from(time.tv_usec).unwrap_or(0);
            Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0))
                + Duration::from_micros(microseconds)
        };
        Usage {
            cpu: time(usage.ru_utime) + time(usage.ru_stime),
            minor_faults: number(usage.ru_minflt),
            major_faults: number(usage.ru_majflt),
            waits: number(usage.ru_nvcsw),
            preemptions: number(usage.ru_nivcsw),
            ..Usage::UNKNOWN
        }
    }

    pub(super) fn of_thread() -> Usage {
        Usage {
            time: START.elapsed(),
            cycles: CYCLES.with(|counter| count(counter.as_ref())),
            instructions: INSTRUCTIONS.with(|counter| count(counter.as_ref())),
            ..resources(libc::RUSAGE_THREAD)
        }
    }

    pub(super) fn of_process() -> Usage {
        resources(libc::RUSAGE_SELF)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::sync::LazyLock;
    use std::time::Instant;

    use super::Usage;

    static START: LazyLock<Instant> = LazyLock::new(Instant::now);

    pub(super) fn of_thread() -> Usage {
        Usage {
            time: START.elapsed(),
            ..Usage::UNKNOWN
        }
    }

    pub(super) fn of_process() -> Usage {
        Usage::UNKNOWN
    }
}

#[cfg(all(test, target_os = "linux", not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn page_faults_are_counted() {
        let before = of_thread();
        let pages = std::hint::black_box(vec![1u8; 64 << 20]);
        let used = of_thread().since(&before);
        assert!(used.minor_faults > 0 && used.cpu > Duration::ZERO);
        assert_eq!(pages.len(), 64 << 20);
    }

    /// Not every machine has a counter for cycles. The same calls can count something that all
    /// have.
    #[test]
    fn a_perf_event_is_read() {
        let (software, task_clock) = (1, 1);
        let Some(counter) = system::open(software, task_clock) else {
            return; // Not permitted here (perf_event_paranoid, a container).
        };
        let before = system::count(Some(&counter)).unwrap();
        let start = of_thread();
        while of_thread().since(&start).cpu < Duration::from_millis(2) {
            std::hint::black_box(());
        }
        let counted_ns = system::count(Some(&counter)).unwrap() - before;
        assert!(counted_ns > 1_000_000, "{counted_ns}");
    }

    #[test]
    fn an_unknown_counter_is_unknown_in_the_sum() {
        let known = Usage::ZERO;
        assert_eq!(known.plus(&known).cycles, Some(0));
        assert_eq!(known.plus(&Usage::UNKNOWN).cycles, None);
        assert_eq!(known.since(&Usage::UNKNOWN).cycles, Some(0));
    }
}
