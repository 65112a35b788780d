//! What a thread has used up: clocks, the kernel's software counters, and the processor's own where they can be had.
//!
//! `unsafe`: `libc` has no safe face for these calls. `getrusage` writes one structure that is ours; `perf_event_open` reads one and returns
//! a file; nothing is kept by the kernel. Elsewhere than on Linux only time is known.
//!
//! Source: `perf_event_open(2)`, `getrusage(2)`. Page faults and switches are taken from `getrusage`, since as perf events they need a privilege
//! that most users do not have (`perf_event_paranoid`). Cycles and instructions count the program's own code, not the kernel's. Virtual machines
//! mostly have none: then they are `None`.

#![allow(unsafe_code)]

use std::time::Duration;

/// What a piece of work took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// By the clock on the wall.
    pub time: Duration,
    /// Of a processor.
    pub cpu: Duration,
    /// Bytes it worked on, if whoever did it said so.
    pub bytes: u64,
    /// Page faults that needed no reading.
    pub minor_faults: u64,
    /// Page faults that did.
    pub major_faults: u64,
    /// Times the thread waited, and gave the processor away.
    pub waits: u64,
    /// Times the kernel took the processor away.
    pub preemptions: u64,
    /// Cycles of the processor; `None` where it has no counter for us.
    pub cycles: Option<u64>,
    /// Instructions of the processor; `None` where it has no counter for us.
    pub instructions: Option<u64>,
}

impl Usage {
    /// Nothing, with no hardware counters.
    pub(super) const NONE: Usage = Usage {
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

    /// The beginning of a sum: nothing, whose hardware counters are known.
    pub(super) const FULL: Usage = Usage {
        cycles: Some(0),
        instructions: Some(0),
        ..Usage::NONE
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

    /// The sum; of what one of the two does not know, nothing is known.
    pub(super) fn plus(&self, other: &Usage) -> Usage {
        self.joined(
            other,
            Duration::saturating_add,
            u64::saturating_add,
            |a, b| a.zip(b).map(|(a, b)| a.saturating_add(b)),
        )
    }

    /// The difference to an earlier or smaller one; what that does not know counts as nothing.
    pub(super) fn since(&self, before: &Usage) -> Usage {
        self.joined(
            before,
            Duration::saturating_sub,
            u64::saturating_sub,
            |a, b| a.map(|a| a.saturating_sub(b.unwrap_or(0))),
        )
    }
}

/// What the calling thread has used up so far.
pub(super) fn of_thread() -> Usage {
    system::of_thread()
}

/// What all threads of the process have used up so far, those that are gone included; without time and hardware counters.
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

    static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);

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

    /// A counter of the calling thread; `None` where the system has none for us.
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
        // SAFETY: the kernel has just opened this file for us, and nobody else has it.
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
            return Usage::NONE;
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
            ..Usage::NONE
        }
    }

    pub(super) fn of_thread() -> Usage {
        Usage {
            time: BEGINNING.elapsed(),
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

    static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);

    pub(super) fn of_thread() -> Usage {
        Usage {
            time: BEGINNING.elapsed(),
            ..Usage::NONE
        }
    }

    pub(super) fn of_process() -> Usage {
        Usage::NONE
    }
}

#[cfg(all(test, target_os = "linux", not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn faults_are_counted() {
        let before = of_thread();
        let pages = std::hint::black_box(vec![1u8; 64 << 20]);
        let used = of_thread().since(&before);
        assert!(used.minor_faults > 0 && used.cpu > Duration::ZERO);
        assert_eq!(pages.len(), 64 << 20);
    }

    /// Cycles cannot be had on every machine; the same calls count something that can.
    #[test]
    fn a_perf_event_is_read() {
        let (software, task_clock) = (1, 1);
        let Some(counter) = system::open(software, task_clock) else {
            return; // Forbidden here (perf_event_paranoid, a container).
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
    fn what_is_not_known_stays_so_in_a_sum() {
        let known = Usage::FULL;
        assert_eq!(known.plus(&known).cycles, Some(0));
        assert_eq!(known.plus(&Usage::NONE).cycles, None);
        assert_eq!(known.since(&Usage::NONE).cycles, Some(0));
    }
}
