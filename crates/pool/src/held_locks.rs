//! What the calling thread holds that others may wait for.

use std::cell::Cell;

/// Counts of one thread.
#[derive(Clone, Copy)]
struct Held {
    /// Locks, permits and turns.
    all: u32,
    /// Those during which other jobs may run on top: permits and turns.
    shared: u32,
    /// What jobs below the running one hold.
    below: u32,
}

thread_local! {
    static HELD: Cell<Held> = const { Cell::new(Held { all: 0, shared: 0, below: 0 }) };
}

/// How many locks, permits and turns the calling thread holds.
pub(crate) fn all_held() -> u32 {
    HELD.get().all
}

/// Whether the calling thread holds a lock. Meanwhile a job's checkpoint runs no other job on top
/// of it: that job could need the same lock, and would wait forever.
pub(crate) fn holds_lock() -> bool {
    let held = HELD.get();
    held.all > held.shared
}

/// Whether the calling job must not wait for permits and turns: a job below it on its stack holds
/// some, and goes on only after it.
pub(crate) fn must_not_wait() -> bool {
    HELD.get().below > 0
}

/// Calls `job`, which runs on top of the running one.
pub(crate) fn on_top<R>(job: impl FnOnce() -> R) -> R {
    let held = HELD.get();
    HELD.set(Held {
        below: held.all,
        ..held
    });
    let result = job();
    HELD.set(held);
    result
}

pub(crate) fn add() {
    let held = HELD.get();
    HELD.set(Held {
        all: held.all + 1,
        ..held
    });
}

/// Subtracts one lock; returns whether none remains.
pub(crate) fn remove() -> bool {
    let held = HELD.get();
    HELD.set(Held {
        all: held.all - 1,
        ..held
    });
    !holds_lock()
}

/// Counts as held by the calling thread until it is dropped, without keeping other jobs from
/// running on top. It is not `Send`: it stays on its thread.
#[derive(Debug)]
pub(crate) struct SharedHold(std::marker::PhantomData<*const ()>);

impl SharedHold {
    pub(crate) fn new() -> Self {
        SharedHold::change(1);
        SharedHold(std::marker::PhantomData)
    }

    fn change(by: i32) {
        let held = HELD.get();
        HELD.set(Held {
            all: held.all.wrapping_add_signed(by),
            shared: held.shared.wrapping_add_signed(by),
            ..held
        });
    }
}

impl Drop for SharedHold {
    fn drop(&mut self) {
        SharedHold::change(-1);
    }
}
