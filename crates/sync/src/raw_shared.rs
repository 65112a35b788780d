//! The state of a lock for one writer or many readers, without the value.
//!
//! One word: the number of readers, and three bits. A waiting writer keeps new readers out, so
//! readers cannot starve it; when a writer releases the lock, waiting readers and writers have
//! equal chances.

use std::sync::atomic::AtomicU32 as PlainU32;

use super::atomics::atomic::Ordering;
use super::futex::Futex;
use super::raw_mutex::spin;

const WRITING: u32 = 1 << 31;
const AWAITED: u32 = 1 << 30;
/// A writer waits: no more readers.
const CLOSED: u32 = 1 << 29;
const READERS: u32 = CLOSED - 1;

/// The first pause after two attempts to read collided.
const PAUSES_MIN: u32 = 4;
const PAUSES_MAX: u32 = 64;

#[derive(Debug, Default)]
pub(super) struct RawShared {
    state: Futex,
    average_spins: PlainU32,
}

impl RawShared {
    #[cfg(not(loom))]
    pub(super) const fn new() -> RawShared {
        RawShared {
            state: Futex::new(),
            average_spins: PlainU32::new(0),
        }
    }

    fn exchange(&self, before: u32, after: u32) -> bool {
        let word = &self.state.word;
        word.compare_exchange_weak(before, after, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[inline(always)]
    pub(super) fn try_read(&self) -> bool {
        let before = self.state.word.load(Ordering::Relaxed);
        may_read(before) && (self.exchange(before, before + 1) || self.try_read_again())
    }

    /// Backs off after a collision with another reader, for longer each time: when both retry at
    /// once, the cache line of the state bounces between their processors.
    #[cold]
    fn try_read_again(&self) -> bool {
        let mut pauses = PAUSES_MIN;
        loop {
            if !cfg!(loom) {
                (0..pauses).for_each(|_| std::hint::spin_loop());
            }
            pauses = (2 * pauses).min(PAUSES_MAX);
            let before = self.state.word.load(Ordering::Relaxed);
            if !may_read(before) {
                return false;
            }
            if self.exchange(before, before + 1) {
                return true;
            }
        }
    }

    #[inline(always)]
    pub(super) fn try_write(&self) -> bool {
        let word = &self.state.word;
        word.compare_exchange(0, WRITING, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    pub(super) fn read_contended(&self) {
        let word = &self.state.word;
        let look = || match word.load(Ordering::Relaxed) {
            now if may_read(now) => Some(self.try_read()),
            now => (now & AWAITED == 0).then_some(false),
        };
        if spin(&self.average_spins, look) {
            return;
        }
        loop {
            let now = word.load(Ordering::Relaxed);
            if may_read(now) {
                if self.exchange(now, now + 1) {
                    return;
                }
            } else if now & AWAITED != 0 || self.exchange(now, now | AWAITED) {
                self.state.wait(now | AWAITED, None);
            }
        }
    }

    #[cold]
    pub(super) fn write_contended(&self) {
        let word = &self.state.word;
        let look = || match word.load(Ordering::Relaxed) {
            now if may_write(now) => Some(self.exchange(now, WRITING | (now & AWAITED))),
            now => (now & AWAITED == 0).then_some(false),
        };
        if spin(&self.average_spins, look) {
            return;
        }
        loop {
            let now = word.load(Ordering::Relaxed);
            if may_write(now) {
                if self.exchange(now, WRITING | (now & AWAITED)) {
                    return;
                }
                continue;
            }
            let closed = now | AWAITED | CLOSED;
            if now == closed || self.exchange(now, closed) {
                self.state.wait(closed, None);
            }
        }
    }

    #[inline(always)]
    pub(super) fn unlock_read(&self) {
        let before = self.state.word.fetch_sub(1, Ordering::Release);
        if before & READERS == 1 && before & AWAITED != 0 {
            self.wake_after_readers();
        }
    }

    /// The last reader wakes all waiting threads: the writer, and readers, which it keeps out.
    #[cold]
    fn wake_after_readers(&self) {
        let word = &self.state.word;
        let mut now = word.load(Ordering::Relaxed);
        // If somebody takes the lock now, that thread will wake them.
        while now & (WRITING | READERS) == 0 && now & AWAITED != 0 {
            match word.compare_exchange(now, now & !AWAITED, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return self.state.wake(true),
                Err(other) => now = other,
            }
        }
    }

    #[inline(always)]
    pub(super) fn unlock_write(&self) {
        if self.state.word.swap(0, Ordering::Release) & AWAITED != 0 {
            self.wake_after_writer();
        }
    }

    #[cold]
    fn wake_after_writer(&self) {
        self.state.wake(true);
    }
}

fn may_read(state: u32) -> bool {
    state & (WRITING | CLOSED) == 0
}

/// A thread that waits to write may overtake the one that has closed the lock.
fn may_write(state: u32) -> bool {
    state & (WRITING | READERS) == 0
}
