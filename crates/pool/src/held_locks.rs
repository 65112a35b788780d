//! The number of locks that the calling thread holds.

use std::cell::Cell;

thread_local! {
    static HELD: Cell<u32> = const { Cell::new(0) };
}

/// How many locks (permits, computations of a [`OnceValue`](crate::OnceValue)) the calling thread
/// holds. While it holds any, a job's checkpoint runs no other job on top of it: that job could
/// need the same lock, and would wait forever.
pub(crate) fn locks_held() -> u32 {
    HELD.get()
}

pub(crate) fn add() {
    HELD.set(HELD.get() + 1);
}

/// Subtracts one lock; returns how many remain.
pub(crate) fn remove() -> u32 {
    HELD.set(HELD.get() - 1);
    HELD.get()
}

/// Runs a critical section of a lock that does not count itself.
pub(crate) fn counted<R>(section: impl FnOnce() -> R) -> R {
    struct Uncount;
    impl Drop for Uncount {
        fn drop(&mut self) {
            remove();
        }
    }
    add();
    let _uncount = Uncount;
    section()
}
