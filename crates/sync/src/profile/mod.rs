//! A profile of locks: how often and how long they are held and waited for, by the place where they
//! are taken and the type that they guard.
//!
//! The model is FreeBSD's LOCK_PROFILING (Roberson). Each thread counts in its own table, which no
//! other thread writes; [`report`] adds them up. Full profiling reads the clock twice for each
//! lock. Contested profiling does not read it for locks that are found free.

mod table;

use std::panic::Location;
use std::sync::atomic::{AtomicU8, Ordering};

use refrain_trace::{Event, EventKind};
use table::{Counts, with_table};

use crate::ticks::thread_now_ns;
pub use table::{LockProfile, report};

/// Which locks are profiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum LockProfiling {
    /// None.
    Off = 0,
    /// Locks that were found held.
    Contested = 1,
    /// All.
    Full = 2,
}

static MODE: AtomicU8 = AtomicU8::new(LockProfiling::Off as u8);

/// Sets which locks are profiled, in the whole process.
pub fn profile_locks(profiling: LockProfiling) {
    MODE.store(profiling as u8, Ordering::Relaxed);
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Hold {
    row: usize,
    start_ns: u64,
}

type Name = fn() -> &'static str;

/// Records a lock that was taken without waiting.
#[inline(always)]
pub(super) fn uncontended(place: &'static Location<'static>, name: Name) -> Option<Hold> {
    if MODE.load(Ordering::Relaxed) == LockProfiling::Full as u8 {
        record(place, name)
    } else {
        None
    }
}

#[cold]
fn record(place: &'static Location<'static>, name: Name) -> Option<Hold> {
    with_table(|table| {
        let (row, counts) = table.row(place, name())?;
        Counts::add(&counts.acquired, 1);
        Some(Hold {
            row,
            start_ns: thread_now_ns(),
        })
    })
}

#[must_use]
pub(super) struct Wait {
    start_ns: Option<u64>,
}

impl Wait {
    pub(super) fn begin() -> Wait {
        let is_on = MODE.load(Ordering::Relaxed) != LockProfiling::Off as u8;
        Wait {
            start_ns: (is_on || refrain_trace::is_on()).then(thread_now_ns),
        }
    }

    pub(super) fn end(self, place: &'static Location<'static>, name: Name) -> Option<Hold> {
        let start_ns = self.start_ns?;
        let now_ns = thread_now_ns();
        let waited_ns = now_ns.saturating_sub(start_ns);
        refrain_trace::record(Event {
            kind: EventKind::LockWait,
            name: name(),
            flow: 0,
            start_ns,
            duration_ns: waited_ns,
            argument: place.line().into(),
        });
        if MODE.load(Ordering::Relaxed) == LockProfiling::Off as u8 {
            return None;
        }
        with_table(|table| {
            let (row, counts) = table.row(place, name())?;
            Counts::add(&counts.acquired, 1);
            Counts::add(&counts.contended, 1);
            Counts::add(&counts.wait_ns, waited_ns);
            Counts::raise(&counts.wait_ns_max, waited_ns);
            Some(Hold {
                row,
                start_ns: now_ns,
            })
        })
    }
}

/// Records the end of a hold, on the thread that took the lock.
#[inline(always)]
pub(super) fn released(hold: Option<Hold>) {
    if let Some(hold) = hold {
        record_release(hold);
    }
}

#[cold]
fn record_release(hold: Hold) {
    with_table(|table| {
        let held_ns = thread_now_ns().saturating_sub(hold.start_ns);
        let counts = table.counts(hold.row)?;
        Counts::add(&counts.held, 1);
        Counts::add(&counts.hold_ns, held_ns);
        Counts::raise(&counts.hold_ns_max, held_ns);
        Some(())
    });
}
