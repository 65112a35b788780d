//! The state of a mutex, without the value.
//!
//! A free lock is taken by one compare-and-exchange. A thread that finds it held spins first,
//! because most holders are about to release it: for as long as has paid for this lock so far (a
//! moving average of successful spins with weight 1/8 for the latest, as in glibc's adaptive
//! mutexes), and never when others already sleep. Then it sleeps until it is woken.

use std::sync::atomic::AtomicU32 as PlainU32;
use std::sync::atomic::Ordering::Relaxed;

use super::atomics::atomic::Ordering;
use super::futex::Futex;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and sleeping threads have to be woken.
const AWAITED: u32 = 2;

/// The most rounds of spinning, each of a few to 50 nanoseconds, depending on the processor.
static SPINS_MAX: PlainU32 = PlainU32::new(SPINS_UNKNOWN);
const SPINS_UNKNOWN: u32 = u32::MAX;
const SPINS_DEFAULT: u32 = 100;
/// How often a thread offers its processor to others before it sleeps.
const YIELDS: u32 = 4;
/// The latest number of spins has weight 1 / this in an average, which is stored times this.
const WEIGHT: u32 = 8;
/// Spins allowed beyond twice this lock's average.
const SPINS_MORE: u32 = 10;

/// Sets the most rounds of spinning on a held lock, for all locks of the process: 0 for none.
pub fn set_spins_max(spins_max: u32) {
    SPINS_MAX.store(spins_max.min(SPINS_UNKNOWN - 1), Relaxed);
}

/// The most rounds of spinning: by default none on a single processor, where the holder cannot run
/// while another thread spins.
pub fn spins_max() -> u32 {
    match SPINS_MAX.load(Relaxed) {
        SPINS_UNKNOWN => {
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            let spins_max = if processors > 1 { SPINS_DEFAULT } else { 0 };
            SPINS_MAX.store(spins_max, Relaxed);
            spins_max
        }
        known => known,
    }
}

/// Spins until the attempt succeeds, it stops paying, or the rounds are used up. Never in models:
/// loom would try all rounds.
pub(super) fn spin(average: &PlainU32, mut succeeds: impl FnMut() -> Option<bool>) -> bool {
    if cfg!(loom) {
        return false;
    }
    let before = average.load(Relaxed);
    let limit = (2 * before / WEIGHT + SPINS_MORE).min(spins_max());
    for round in 0..limit {
        match succeeds() {
            Some(true) => {
                learn(average, before, round);
                return true;
            }
            // More spinning does not pay.
            None => return false,
            Some(false) => std::hint::spin_loop(),
        }
    }
    learn(average, before, limit);
    // A holder without a processor gets this one.
    for _ in 0..YIELDS {
        std::thread::yield_now();
        match succeeds() {
            Some(true) => return true,
            None => return false,
            Some(false) => {}
        }
    }
    false
}

/// An update lost to another thread does no harm.
fn learn(average: &PlainU32, before: u32, spins: u32) {
    average.store(before - before / WEIGHT + spins, Relaxed);
}

#[derive(Debug, Default)]
pub(super) struct RawMutex {
    state: Futex,
    average_spins: PlainU32,
}

impl RawMutex {
    #[cfg(not(loom))]
    pub(super) const fn new() -> RawMutex {
        RawMutex {
            state: Futex::new(),
            average_spins: PlainU32::new(0),
        }
    }

    #[inline(always)]
    pub(super) fn try_lock(&self) -> bool {
        let word = &self.state.word;
        word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    pub(super) fn lock_contended(&self) {
        let word = &self.state.word;
        let look = || match word.load(Ordering::Relaxed) {
            FREE => Some(self.try_lock()),
            HELD => Some(false),
            _ => None,
        };
        if spin(&self.average_spins, look) {
            return;
        }
        // A thread that has slept cannot know whether others still do, so it takes the lock as
        // awaited.
        while word.swap(AWAITED, Ordering::Acquire) != FREE {
            self.state.wait(AWAITED, None);
        }
    }

    #[inline(always)]
    pub(super) fn unlock(&self) {
        if self.state.word.swap(FREE, Ordering::Release) == AWAITED {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        self.state.wake(false);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_lock_learns_how_long_to_spin() {
        let average = PlainU32::new(0);
        for _ in 0..100 {
            let mut rounds = 0;
            spin(&average, || {
                rounds += 1;
                Some(rounds > 7)
            });
        }
        assert!((6..=7).contains(&(average.load(Relaxed) / WEIGHT)));
        let mut rounds = 0;
        assert!(!spin(&average, || {
            rounds += 1;
            Some(false)
        }));
        assert!(rounds <= 2 * 7 + SPINS_MORE + YIELDS);
        assert!(!spin(&average, || None));
    }
}
