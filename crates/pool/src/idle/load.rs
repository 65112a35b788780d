//! Whether the machine has a processor to spare for spinning.

use refrain_sync::atomic::{AtomicBool, AtomicU64, Ordering};

const READING_NS: u64 = 10_000_000;
/// The smallest of this many readings counts: a thread that was runnable for a moment does not stop
/// the spinning.
const READINGS: usize = 4;
/// How many readings come between two of the stolen time, whose file is longer.
const READINGS_PER_STEAL: u64 = 50;
/// If more than one in this many ticks is stolen, the host has no processor to spare either.
const STEAL_SHARE: u64 = 20;

/// The load of the whole machine. Parsing is separate from reading, for tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// The number of threads that run or are ready to run.
    pub runnable: u64,
}

impl Load {
    /// Parses `/proc/loadavg`, such as `0.20 0.18 0.12 2/80 11206`: the first number of the fourth
    /// field.
    pub fn parse(loadavg: &str) -> Option<Load> {
        let (runnable, _) = loadavg.split_ascii_whitespace().nth(3)?.split_once('/')?;
        Some(Load {
            runnable: runnable.parse().ok()?,
        })
    }
}

/// From `/proc/stat`: the number of processors, and their time and stolen time, in ticks since
/// boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Times {
    processors: u64,
    all: u64,
    stolen: u64,
}

impl Times {
    /// The first line is `cpu user nice system idle iowait irq softirq steal ...`; one line `cpuN`
    /// for each processor follows. `guest` and `guest_nice` at its end are included in `user` and
    /// `nice`.
    fn parse(stat: &str) -> Option<Times> {
        let mut lines = stat.lines();
        let mut fields = lines.next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
        let mut times = Times::default();
        for index in 0..8 {
            let ticks: u64 = fields.next()?.parse().ok()?;
            times.all = times.all.saturating_add(ticks);
            if index == 7 {
                times.stolen = ticks;
            }
        }
        let processors = lines.take_while(|line| line.starts_with("cpu")).count();
        times.processors = processors as u64;
        Some(times)
    }
}

/// Whether there have been more runnable threads than processors lately, or the host has stolen
/// time. Read from `/proc` at intervals.
///
/// One value serves all workers. Where the files are missing, the machine counts as not
/// overcommitted.
#[derive(Debug, Default)]
pub struct MachineLoad {
    next_reading_ns: AtomicU64,
    readings: AtomicU64,
    runnable: [AtomicU64; READINGS],
    is_overcommitted: AtomicBool,
    host_steals: AtomicBool,
    processors: AtomicU64,
    all_before: AtomicU64,
    stolen_before: AtomicU64,
}

impl MachineLoad {
    /// Whether a spinning thread would take the processor away from another thread. Usually two
    /// loads; every 10 ms one caller reads a file (a few microseconds). Called by workers that have
    /// nothing to do.
    pub fn is_overcommitted(&self, now_ns: u64) -> bool {
        let next_ns = self.next_reading_ns.load(Ordering::Relaxed);
        if now_ns >= next_ns {
            let after_ns = now_ns.saturating_add(READING_NS);
            let exchange = self.next_reading_ns.compare_exchange(
                next_ns,
                after_ns,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if exchange.is_ok() {
                self.read();
            }
        }
        self.is_overcommitted.load(Ordering::Relaxed)
    }

    fn read(&self) {
        let reading = self.readings.fetch_add(1, Ordering::Relaxed);
        if reading.is_multiple_of(READINGS_PER_STEAL) {
            let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
            self.note_times(Times::parse(&stat).unwrap_or_default());
        }
        let loadavg = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        self.note_load(reading, Load::parse(&loadavg).unwrap_or_default());
    }

    fn note_times(&self, times: Times) {
        let all = times
            .all
            .saturating_sub(self.all_before.swap(times.all, Ordering::Relaxed));
        let stolen_before = self.stolen_before.swap(times.stolen, Ordering::Relaxed);
        let stolen = times.stolen.saturating_sub(stolen_before);
        let steals = stolen.saturating_mul(STEAL_SHARE) > all;
        self.host_steals.store(steals, Ordering::Relaxed);
        self.processors.store(times.processors, Ordering::Relaxed);
    }

    fn note_load(&self, reading: u64, load: Load) {
        let processors = self.processors.load(Ordering::Relaxed);
        self.runnable[reading as usize % READINGS].store(load.runnable, Ordering::Relaxed);
        let readings = self.runnable.iter();
        let least = readings
            .map(|runnable| runnable.load(Ordering::Relaxed))
            .min();
        // The caller is one of the runnable threads.
        let is_full = processors > 0 && least.is_some_and(|least| least > processors);
        let is_overcommitted = is_full || self.host_steals.load(Ordering::Relaxed);
        self.is_overcommitted
            .store(is_overcommitted, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const STAT: &str = "cpu  100 0 50 800 5 1 4 40 7 0\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5\n";

    #[test]
    fn malformed_files_are_ignored() {
        assert_eq!(Load::parse("0.2 0.1 0.1 3/80 12\n").unwrap().runnable, 3);
        for text in ["", "0.2 0.1", "a b c d/e", "0 0 0 7 1"] {
            assert_eq!(Load::parse(text), None, "{text}");
        }
        let times = Times::parse(STAT).unwrap();
        assert_eq!((times.processors, times.all, times.stolen), (2, 1000, 40));
        for text in ["", "cpu", "cpu 1 2 3", "cpu  1 2 3 4 5 6 7 x\n", "intr 1"] {
            assert_eq!(Times::parse(text), None, "{text}");
        }
    }

    #[test]
    fn more_threads_than_processors_or_stolen_time_is_overcommitment() {
        let load = MachineLoad::default();
        for reading in 0..4 {
            load.note_load(reading, Load { runnable: 99 });
        }
        assert!(!load.is_overcommitted.load(Ordering::Relaxed), "unknown");
        load.note_times(Times::parse(STAT).unwrap());
        let rounds = [
            ([2, 2, 9, 9], false),
            ([3, 3, 3, 3], true),
            ([9, 9, 9, 1], false),
        ];
        for (runnable, is_expected) in rounds {
            for (reading, runnable) in (0..).zip(runnable) {
                load.note_load(reading, Load { runnable });
            }
            assert_eq!(load.is_overcommitted.load(Ordering::Relaxed), is_expected);
        }
        let mut times = Times::parse(STAT).unwrap();
        times.all += 100;
        times.stolen += 6;
        load.note_times(times);
        load.note_load(0, Load { runnable: 1 });
        assert!(load.is_overcommitted.load(Ordering::Relaxed));
    }

    #[test]
    fn the_files_are_read_at_intervals() {
        let load = MachineLoad::default();
        for now_ns in [0, 1, READING_NS, 10 * READING_NS] {
            load.is_overcommitted(now_ns);
        }
        assert_eq!(load.readings.load(Ordering::Relaxed), 3);
    }
}
