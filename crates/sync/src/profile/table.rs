//! The tables of the threads, and their sum.

use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The rows of a table. Programs have a few dozen places that take locks.
const ROWS: usize = 512;

/// The counts of a place, written by the thread that owns the table and read by others.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub acquired: AtomicU64,
    pub contended: AtomicU64,
    /// The number of ended holds, which the times cover.
    pub held: AtomicU64,
    pub hold_ns: AtomicU64,
    pub hold_ns_max: AtomicU64,
    pub wait_ns: AtomicU64,
    pub wait_ns_max: AtomicU64,
}

impl Counts {
    /// Adds to a count of the calling thread, the only writer.
    pub(super) fn add(count: &AtomicU64, more: u64) {
        count.store(count.load(Relaxed).wrapping_add(more), Relaxed);
    }

    pub(super) fn raise(most: &AtomicU64, value: u64) {
        if value > most.load(Relaxed) {
            most.store(value, Relaxed);
        }
    }
}

type Place = &'static Location<'static>;
type Key = (Place, &'static str);

#[derive(Debug, Default)]
struct LockTimes {
    key: OnceLock<Key>,
    counts: Counts,
}

struct Rows {
    rows: Vec<LockTimes>,
    rejected: AtomicU64,
}

pub(super) struct ThreadTable {
    rows: Arc<Rows>,
}

/// The tables of running threads, and the sums of ended ones.
struct AllTables {
    running: Vec<Arc<Rows>>,
    ended: BTreeMap<(&'static str, u32, u32, &'static str), LockProfile>,
    rejected: u64,
}

/// Not one of the project's locks, which would record themselves here.
static TABLES: Mutex<AllTables> = Mutex::new(AllTables {
    running: Vec::new(),
    ended: BTreeMap::new(),
    rejected: 0,
});

thread_local! {
    static TABLE: ThreadTable = ThreadTable::new();
}

/// The profile of the locks taken at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockProfile {
    /// The source file of the place.
    pub file: &'static str,
    /// The line in it.
    pub line: u32,
    /// The type that the lock guards.
    pub name: &'static str,
    /// How often a lock was taken there.
    pub acquired: u64,
    /// How often it was found held.
    pub contended: u64,
    /// The number of holds whose time is known.
    pub held: u64,
    /// The total time that it was held, in nanoseconds.
    pub hold_ns: u64,
    /// The longest hold, in nanoseconds.
    pub hold_ns_max: u64,
    /// The total time that threads waited for it, in nanoseconds.
    pub wait_ns: u64,
    /// The longest wait, in nanoseconds.
    pub wait_ns_max: u64,
}

/// Calls `work` with the table of the calling thread, unless the thread is about to end.
pub(super) fn with_table<R>(work: impl FnOnce(&ThreadTable) -> Option<R>) -> Option<R> {
    TABLE.try_with(work).ok().flatten()
}

/// The counts of all threads so far, with the longest total waits first. Also returns how many
/// locks did not fit in their thread's table.
pub fn report() -> (Vec<LockProfile>, u64) {
    let tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut sums = tables.ended.clone();
    let mut rejected = tables.rejected;
    for rows in &tables.running {
        rows.add_to(&mut sums);
        rejected += rows.rejected.load(Relaxed);
    }
    let mut found: Vec<_> = sums.into_values().collect();
    found.sort_by_key(|row| std::cmp::Reverse((row.wait_ns, row.hold_ns, row.acquired)));
    (found, rejected)
}

impl ThreadTable {
    fn new() -> ThreadTable {
        let rows = Arc::new(Rows {
            rows: (0..ROWS).map(|_| LockTimes::default()).collect(),
            rejected: AtomicU64::new(0),
        });
        let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
        tables.running.push(Arc::clone(&rows));
        ThreadTable { rows }
    }

    pub(super) fn row(&self, place: Place, name: &'static str) -> Option<(usize, &Counts)> {
        let rows = &self.rows.rows;
        let first = hash_of(place, name);
        for probe in 0..ROWS {
            let number = (first + probe) % ROWS;
            let row = rows.get(number)?;
            let (found, found_name) = row.key.get_or_init(|| (place, name));
            if is_same(found, place) && *found_name == name {
                return Some((number, &row.counts));
            }
        }
        Counts::add(&self.rows.rejected, 1);
        None
    }

    pub(super) fn counts(&self, row: usize) -> Option<&Counts> {
        Some(&self.rows.rows.get(row)?.counts)
    }
}

/// The compiler may have copies of a place.
fn is_same(one: Place, other: Place) -> bool {
    std::ptr::eq(one, other) || one == other
}

fn hash_of(place: Place, name: &str) -> usize {
    let line = place.line().wrapping_mul(31).wrapping_add(place.column());
    let lengths = place.file().len() * 7 + name.len();
    (line as usize)
        .wrapping_mul(0x9E37_79B9)
        .wrapping_add(lengths)
        >> 3
}

impl Rows {
    fn add_to(&self, sums: &mut BTreeMap<(&'static str, u32, u32, &'static str), LockProfile>) {
        for row in &self.rows {
            let Some((place, name)) = row.key.get() else {
                continue;
            };
            let key = (place.file(), place.line(), place.column(), *name);
            let sum = sums
                .entry(key)
                .or_insert_with(|| LockProfile::new(place, name));
            sum.add(&row.counts);
        }
    }
}

impl LockProfile {
    fn new(place: &'static Location<'static>, name: &'static str) -> LockProfile {
        LockProfile {
            file: place.file(),
            line: place.line(),
            name,
            acquired: 0,
            contended: 0,
            held: 0,
            hold_ns: 0,
            hold_ns_max: 0,
            wait_ns: 0,
            wait_ns_max: 0,
        }
    }

    fn add(&mut self, counts: &Counts) {
        let of = |count: &AtomicU64| count.load(Relaxed);
        self.acquired += of(&counts.acquired);
        self.contended += of(&counts.contended);
        self.held += of(&counts.held);
        self.hold_ns += of(&counts.hold_ns);
        self.hold_ns_max = self.hold_ns_max.max(of(&counts.hold_ns_max));
        self.wait_ns += of(&counts.wait_ns);
        self.wait_ns_max = self.wait_ns_max.max(of(&counts.wait_ns_max));
    }
}

impl Drop for ThreadTable {
    fn drop(&mut self) {
        let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
        let tables = &mut *tables;
        tables.running.retain(|rows| !Arc::ptr_eq(rows, &self.rows));
        self.rows.add_to(&mut tables.ended);
        tables.rejected += self.rows.rejected.load(Relaxed);
    }
}
