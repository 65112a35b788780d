//! Records when each thread changed its stage, so that a sampler knows in which stage it found a
//! thread.
//!
//! Each thread writes its changes to its own ring, without locks, and one reader empties all rings
//! repeatedly while the program runs. So any length of time can be recorded in little memory. A
//! change that finds its ring full is counted and left out: until the next one, the thread seems to
//! be in its former stage.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use refrain_sync::clock::monotonic_ns;
use refrain_sync::plain::Mutex;
use refrain_trace::{NameCache, name_of};

use crate::thread::kernel;

/// The capacity of a ring: the changes of 20 ms if a stage takes 10 µs.
const CAPACITY: usize = 1 << 12;
/// The number of a thread in no stage; names have theirs plus one.
const NO_STAGE: u64 = 0;

/// A thread's change to another stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageChange {
    /// The kernel's number of the thread.
    pub thread_id: u32,
    /// When, by the system's monotonic clock.
    pub at_ns: u64,
    /// The stage after the change; `None` for no stage.
    pub stage: Option<&'static str>,
}

static IS_ON: AtomicBool = AtomicBool::new(false);
static RINGS: Mutex<Vec<Arc<Ring>>> = Mutex::new(Vec::new());

struct Writer {
    ring: Arc<Ring>,
    names: NameCache,
}

thread_local! {
    static CURRENT: Cell<Option<&'static str>> = const { Cell::new(None) };
    static WRITER: RefCell<Option<Writer>> = const { RefCell::new(None) };
}

/// Starts recording.
pub fn start() {
    IS_ON.store(true, Ordering::Relaxed);
}

/// Stops recording.
pub fn stop() {
    IS_ON.store(false, Ordering::Relaxed);
}

/// Takes the changes since the last call, in order per thread. Returns how many were lost since
/// recording began. One thread reads at a time; a second one waits.
pub fn take(mut each: impl FnMut(StageChange)) -> u64 {
    let mut rings = RINGS.lock();
    let mut lost = 0;
    for ring in rings.iter_mut() {
        ring.take(&mut each);
        lost += ring.lost.load(Ordering::Relaxed);
    }
    lost
}

/// The stage of the calling thread, if changes are recorded.
pub(super) fn current() -> Option<&'static str> {
    CURRENT.get()
}

/// Records that the calling thread enters a stage, or none for a while. Returns the surrounding
/// stage if changes are recorded.
#[inline]
pub(super) fn enter(name: Option<&'static str>) -> Option<Option<&'static str>> {
    if !IS_ON.load(Ordering::Relaxed) {
        return None;
    }
    let outer_name = CURRENT.replace(name);
    write(name);
    Some(outer_name)
}

/// Records that the calling thread is back in the surrounding stage.
#[cold]
pub(super) fn leave_to(outer_name: Option<&'static str>) {
    CURRENT.set(outer_name);
    write(outer_name);
}

#[cold]
fn write(stage: Option<&'static str>) {
    // A thread that is about to end records nothing more.
    let _ = WRITER.try_with(|writer| {
        let Ok(mut writer) = writer.try_borrow_mut() else {
            return;
        };
        let Writer { ring, names } = writer.get_or_insert_with(Writer::new);
        let number = stage.map_or(NO_STAGE, |name| u64::from(names.number_of(name)) + 1);
        ring.push(monotonic_ns(), number);
    });
}

impl Writer {
    fn new() -> Writer {
        let ring = Arc::new(Ring::new(kernel::this_thread() as u32));
        RINGS.lock().push(Arc::clone(&ring));
        Writer {
            ring,
            names: NameCache::default(),
        }
    }
}

/// The changes of one thread, which is the only writer.
struct Ring {
    thread_id: u32,
    /// When, and the number of the stage.
    slots: Box<[[AtomicU64; 2]]>,
    written: AtomicU64,
    taken: AtomicU64,
    lost: AtomicU64,
}

impl Ring {
    fn new(thread_id: u32) -> Ring {
        Ring {
            thread_id,
            slots: (0..CAPACITY).map(|_| Default::default()).collect(),
            written: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }

    fn slot(&self, number: u64) -> &[AtomicU64; 2] {
        &self.slots[number as usize % CAPACITY]
    }

    fn push(&self, at_ns: u64, stage: u64) {
        let written = self.written.load(Ordering::Relaxed);
        // The reader no longer reads what it has taken.
        if written - self.taken.load(Ordering::Acquire) >= CAPACITY as u64 {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let [at, number] = self.slot(written);
        at.store(at_ns, Ordering::Relaxed);
        number.store(stage, Ordering::Relaxed);
        // A thread that sees the number of changes sees the change.
        self.written.store(written + 1, Ordering::Release);
    }

    fn take(&self, each: &mut impl FnMut(StageChange)) {
        let written = self.written.load(Ordering::Acquire);
        let taken = self.taken.load(Ordering::Relaxed);
        for number in taken..written {
            let [at_ns, stage] = self
                .slot(number)
                .each_ref()
                .map(|word| word.load(Ordering::Relaxed));
            let name = stage.checked_sub(1).map(|number| name_of(number as u32));
            each(StageChange {
                thread_id: self.thread_id,
                at_ns,
                stage: name,
            });
        }
        self.taken.store(written, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::stage;
    use super::*;

    fn taken_of(thread_id: u32) -> (Vec<StageChange>, u64) {
        let mut changes = vec![];
        let lost = take(|change| {
            if change.thread_id == thread_id {
                changes.push(change);
            }
        });
        (changes, lost)
    }

    /// One test, because recording covers the whole process.
    #[test]
    fn each_change_is_taken_once_and_a_full_ring_loses_the_latest() {
        let this_thread = kernel::this_thread() as u32;
        drop(stage("test too early", 0));
        start();
        let before_ns = monotonic_ns();
        {
            let _outer = stage("test around", 0);
            drop(stage("test inside", 0));
        }
        let (changes, lost) = taken_of(this_thread);
        let stages: Vec<_> = changes.iter().map(|change| change.stage).collect();
        let around = Some("test around");
        assert_eq!(stages, [around, Some("test inside"), around, None]);
        let times = changes.iter().map(|change| change.at_ns);
        assert!(times.is_sorted_by(|a, b| before_ns <= *a && a <= b));
        assert_eq!((taken_of(this_thread).0, lost), (vec![], 0));

        for _ in 0..CAPACITY {
            drop(stage("test many", 0));
        }
        stop();
        drop(stage("test too late", 0));
        let (changes, lost) = taken_of(this_thread);
        assert_eq!((changes.len(), lost), (CAPACITY, CAPACITY as u64));
    }
}
