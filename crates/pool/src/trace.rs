//! What is recorded for a timeline: by the pool, and through this module by higher layers.
//!
//! Everything here costs one relaxed load while nothing is recorded.

use std::cell::Cell;

use refrain_sync::ticks::thread_now_ns;
use refrain_trace::{Event, EventKind, TurnEnd, record};

use crate::thread::kernel;

/// The device that is read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// Files and block devices.
    Disk,
    /// Pipes and other streams.
    Stream,
    /// Objects on servers.
    Network,
}

impl Device {
    /// The name in events.
    pub const fn name(self) -> &'static str {
        match self {
            Device::Disk => "disk",
            Device::Stream => "stream",
            Device::Network => "network",
        }
    }
}

/// The name of waits until memory of the budget is free.
pub const MEMORY: &str = "memory";
/// The name of waits of a coordinator for the next result.
pub const RESULTS: &str = "results";

/// A thread that was off its processor for less than this during a transfer did not wait for the
/// device.
const WAIT_NS_MIN: u64 = 20_000;

#[inline(always)]
pub(crate) fn begin() -> Option<u64> {
    refrain_trace::is_on().then(thread_now_ns)
}

/// Records an event that began at `start_ns` and ends now.
#[cold]
pub(crate) fn span(kind: EventKind, name: &'static str, start_ns: u64, argument: u64) {
    record(Event {
        kind,
        name,
        flow: 0,
        start_ns,
        duration_ns: thread_now_ns().saturating_sub(start_ns),
        argument,
    });
}

#[cold]
pub(crate) fn turn(flow: u32, start_ns: u64, end: TurnEnd) {
    record(Event {
        kind: EventKind::Run,
        name: "",
        flow,
        start_ns,
        duration_ns: thread_now_ns().saturating_sub(start_ns),
        argument: end as u64,
    });
}

/// Records an event that takes no time.
#[inline(always)]
pub(crate) fn instant(kind: EventKind, flow: u32, argument: impl FnOnce() -> u64) {
    if let Some(start_ns) = begin() {
        moment(kind, "", flow, start_ns, argument());
    }
}

/// Records that the count `name` is now `value`.
#[inline(always)]
pub fn count(name: &'static str, value: impl FnOnce() -> u64) {
    if let Some(start_ns) = begin() {
        moment(EventKind::Count, name, 0, start_ns, value());
    }
}

#[cold]
fn moment(kind: EventKind, name: &'static str, flow: u32, start_ns: u64, argument: u64) {
    record(Event {
        kind,
        name,
        flow,
        start_ns,
        duration_ns: 0,
        argument,
    });
}

/// A wait of the calling thread, until it is dropped.
#[must_use = "the wait ends when this is dropped"]
#[derive(Debug)]
pub struct Wait {
    what_for: &'static str,
    start_ns: Option<u64>,
}

/// Records that the calling thread waits until the result is dropped.
#[inline(always)]
pub fn waiting(what_for: &'static str) -> Wait {
    Wait {
        what_for,
        start_ns: begin(),
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some(start_ns) = self.start_ns {
            span(EventKind::Wait, self.what_for, start_ns, 0);
        }
    }
}

/// Calls `read`, which returns how many bytes it has read from `device`, and records how long that
/// took, and how long the thread waited.
#[inline(always)]
pub fn reading<E>(device: Device, read: impl FnOnce() -> Result<usize, E>) -> Result<usize, E> {
    let start = begin_transfer();
    let result = read();
    if let Some(start) = start {
        start.end(EventKind::Read, device, *result.as_ref().unwrap_or(&0));
    }
    result
}

/// Like [`reading`], for a `write` of `bytes` bytes.
#[inline(always)]
pub fn writing<T>(device: Device, length_bytes: usize, write: impl FnOnce() -> T) -> T {
    let start = begin_transfer();
    let result = write();
    if let Some(start) = start {
        start.end(EventKind::Write, device, length_bytes);
    }
    result
}

thread_local! {
    static TRANSFERS: Cell<u64> = const { Cell::new(0) };
}

struct Transfer {
    transfers: u64,
    start_ns: u64,
    cpu_ns: Option<u64>,
    switches: u64,
}

#[inline(always)]
fn begin_transfer() -> Option<Transfer> {
    refrain_trace::is_on().then(Transfer::begin)
}

impl Transfer {
    #[cold]
    fn begin() -> Transfer {
        Transfer {
            transfers: TRANSFERS.get(),
            switches: kernel::voluntary_switches(),
            cpu_ns: kernel::thread_cpu_ns(),
            start_ns: thread_now_ns(),
        }
    }

    #[cold]
    fn end(self, kind: EventKind, device: Device, length_bytes: usize) {
        if TRANSFERS.get() != self.transfers {
            return; // A stream over a file: the file's reads are recorded.
        }
        TRANSFERS.set(self.transfers + 1);
        let duration_ns = thread_now_ns().saturating_sub(self.start_ns);
        let event = Event {
            kind,
            name: device.name(),
            flow: 0,
            start_ns: self.start_ns,
            duration_ns,
            argument: length_bytes as u64,
        };
        record(event);
        if duration_ns < WAIT_NS_MIN {
            return;
        }
        // A thread that lost its processor to another one did not wait for the device.
        let has_waited = kernel::voluntary_switches() > self.switches;
        let cpu_ns = kernel::thread_cpu_ns().zip(self.cpu_ns);
        let Some((cpu_now_ns, cpu_ns)) = cpu_ns.filter(|_| has_waited) else {
            return;
        };
        let waited_ns = duration_ns.saturating_sub(cpu_now_ns.saturating_sub(cpu_ns));
        if waited_ns >= WAIT_NS_MIN {
            record(Event {
                kind: EventKind::Wait,
                duration_ns: waited_ns,
                argument: u64::from(kind == EventKind::Write),
                ..event
            });
        }
    }
}

#[cfg(all(test, target_os = "linux", not(loom)))]
mod tests {
    use std::time::Duration;

    use super::*;

    /// One test, because recording covers the whole process.
    #[test]
    #[allow(clippy::unwrap_used, reason = "clippy does not take this for a test")]
    fn transfers_say_how_long_the_thread_waited() {
        refrain_trace::start(1000);
        let thread = std::thread::Builder::new().name("transfers".into());
        let body = || {
            let slow = || {
                std::thread::sleep(Duration::from_millis(30));
                Ok::<_, ()>(77)
            };
            assert_eq!(reading(Device::Disk, slow), Ok(77));
            let busy = || {
                let start_ns = thread_now_ns();
                while thread_now_ns() < start_ns + 2_000_000 {}
            };
            writing(Device::Stream, 5, busy);
            // For a stream over a file, the file counts.
            let outer = reading(Device::Stream, || {
                reading(Device::Disk, || Ok::<_, ()>(4)).map(|count| count + 1)
            });
            assert_eq!(outer, Ok(5));
            drop(waiting(MEMORY));
            count("things", || 3);
        };
        thread.spawn(body).unwrap().join().unwrap();
        refrain_trace::stop();
        let threads = refrain_trace::collect();
        let found = threads.iter().find(|thread| thread.name == "transfers");
        let events = &found.unwrap().events;
        let rows: Vec<_> = events
            .iter()
            .map(|event| (event.kind, event.name, event.argument))
            .collect();
        let expected = [
            (EventKind::Read, "disk", 77),
            (EventKind::Wait, "disk", 0),
            (EventKind::Write, "stream", 5),
            (EventKind::Read, "disk", 4),
            (EventKind::Wait, "memory", 0),
            (EventKind::Count, "things", 3),
        ];
        assert_eq!(rows, expected);
        assert!(events[1].duration_ns > 25_000_000, "{:?}", events[1]);
    }
}
