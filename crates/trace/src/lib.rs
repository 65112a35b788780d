#![doc = include_str!("../README.md")]
//!
//! [`start`] switches recording on, once, for the whole process; before that, a check costs one
//! relaxed load. Each thread writes to its own ring, without locks: new events replace the oldest
//! when it is full. [`collect`] returns everything when the work has ended. The model is FreeBSD's
//! KTR with schedgraph (Roberson). The crate reads no clock: callers pass the times, in nanoseconds
//! of a common clock.

mod event;
mod names;
mod ring;

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use event::{Event, EventKind, ThreadTrace, TurnEnd};
pub use names::{NameCache, name_of};
use ring::Ring;

impl TurnEnd {
    /// All of them, by their number.
    pub const ALL: [TurnEnd; 4] = [
        TurnEnd::NoJobs,
        TurnEnd::SliceOver,
        TurnEnd::Preempted,
        TurnEnd::Yielded,
    ];
}

static FLOWS: AtomicU32 = AtomicU32::new(0);

/// How many events a ring holds; 0 while nothing is recorded.
static CAPACITY: AtomicUsize = AtomicUsize::new(0);

/// The rings of all threads that have recorded something, including ended ones.
static RINGS: Mutex<Vec<Arc<Ring>>> = Mutex::new(Vec::new());

struct Recorder {
    ring: Arc<Ring>,
    names: NameCache,
}

thread_local! {
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

/// Starts recording the latest `events_per_thread` events of each thread, which take 32 bytes each.
/// The memory of a ring grows with the events.
pub fn start(events_per_thread: usize) {
    CAPACITY.store(events_per_thread.max(1), Ordering::Relaxed);
}

/// Stops recording.
pub fn stop() {
    CAPACITY.store(0, Ordering::Relaxed);
}

/// Whether events are recorded.
#[inline(always)]
pub fn is_on() -> bool {
    CAPACITY.load(Ordering::Relaxed) > 0
}

/// A number for a new flow; 0 while nothing is recorded.
pub fn new_flow() -> u32 {
    if is_on() { FLOWS.fetch_add(1, Ordering::Relaxed).wrapping_add(1) } else { 0 }
}

/// Records an event of the calling thread, if events are recorded.
pub fn record(event: Event) {
    let capacity = CAPACITY.load(Ordering::Relaxed);
    if capacity == 0 {
        return;
    }
    // A thread that is about to end records nothing more.
    let _ = RECORDER.try_with(|recorder| {
        let Ok(mut recorder) = recorder.try_borrow_mut() else {
            return;
        };
        let Recorder { ring, names } = recorder.get_or_insert_with(|| Recorder::new(capacity));
        ring.push(names.number_of(event.name), &event);
    });
}

/// What all threads have recorded so far. May miss events that a thread is recording at the moment.
pub fn collect() -> Vec<ThreadTrace> {
    let rings = RINGS.lock().unwrap_or_else(PoisonError::into_inner);
    rings.iter().map(|ring| ring.read()).collect()
}

impl Recorder {
    fn new(capacity: usize) -> Recorder {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        let ring = Arc::new(Ring::new(name, capacity));
        let mut rings = RINGS.lock().unwrap_or_else(PoisonError::into_inner);
        rings.push(Arc::clone(&ring));
        Recorder {
            ring,
            names: NameCache::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &'static str, number: u64) -> Event {
        Event {
            kind: EventKind::ALL[number as usize % EventKind::ALL.len()],
            name,
            flow: (number as u32).wrapping_mul(0x1000_0001),
            start_ns: number * 10,
            duration_ns: number,
            argument: u64::MAX - number,
        }
    }

    /// One test, because recording covers the whole process.
    #[test]
    fn each_thread_has_its_latest_events_in_their_order() {
        record(event("too early", 1));
        assert_eq!(new_flow(), 0);
        start(100);
        assert_eq!([new_flow(), new_flow()], [1, 2]);
        let threads = ["few", "many"].map(|name| {
            let thread = std::thread::Builder::new().name(name.into());
            thread.spawn(move || {
                let count = if name == "few" { 7 } else { 250 };
                for number in 0..count {
                    let name = if number % 2 == 0 { "even" } else { "odd" };
                    record(event(name, number));
                }
            })
        });
        for thread in threads {
            thread.unwrap().join().unwrap();
        }
        stop();
        record(event("too late", 1));
        let mut traces = collect();
        traces.sort_by_key(|trace| trace.name.clone());
        let expected = |name: &str, numbers: std::ops::Range<u64>| ThreadTrace {
            name: name.into(),
            lost: numbers.start,
            events: numbers
                .map(|number| event(if number % 2 == 0 { "even" } else { "odd" }, number))
                .collect(),
        };
        assert_eq!(traces, [expected("few", 0..7), expected("many", 150..250)]);
    }
}
