//! The set of idle workers, and the handshake by which no wake-up is lost.
//!
//! | a worker that found nothing | a waker |
//! |---|---|
//! | 1. prepares to sleep ([`Sleeper`](crate::idle::Sleeper)) | 1. queues the entry |
//! | 2. enters the set ([`IdleSet::insert`]) | 2. fence |
//! | 3. fence (the end of `insert`) | 3. claims a worker of the set ([`IdleSet::claim`]) |
//! | 4. looks at the queues again; takes what it finds | 4. wakes the worker that it claimed |
//! | 5. spins, then parks | |
//!
//! Of two threads that each write, fence, and then read what the other wrote, at least one sees the
//! other's write (Dekker). So either the worker finds the entry in step 4, or the waker finds the
//! worker in step 3. Claiming removes the worker from the set, so one wake-up wakes one worker. A
//! claimed worker that takes something else in step 4 has to pass the wake-up on: a worker that
//! leaves the set with work, while more is queued, wakes another one (`Domain::pass_on`).

use refrain_policy::topology::{CpuId, CpuMask};
use refrain_sync::atomic::{AtomicU64, Ordering};
use refrain_sync::fence;

pub(crate) struct IdleSet {
    words: Box<[AtomicU64]>,
}

impl IdleSet {
    /// A set of up to `workers` workers, all of them in it.
    pub(crate) fn full(workers: usize) -> IdleSet {
        let all = CpuMask::first(workers);
        let words = all.words().iter().take(workers.div_ceil(64));
        IdleSet {
            words: words.map(|&word| AtomicU64::new(word)).collect(),
        }
    }

    pub(crate) fn mask(&self) -> CpuMask {
        let mut words = [0; CpuMask::WORDS];
        for (word, shared) in words.iter_mut().zip(&self.words) {
            *word = shared.load(Ordering::Relaxed);
        }
        CpuMask::from_words(words)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words
            .iter()
            .all(|word| word.load(Ordering::Relaxed) == 0)
    }

    /// Adds the calling worker. Ends with a fence: what the worker reads next is not older.
    pub(crate) fn insert(&self, cpu: CpuId) {
        let (word, bit) = word_and_bit(cpu);
        self.words[word].fetch_or(bit, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Removes a worker; returns whether it was in the set. If so, the caller has to wake it
    /// (unless it is the caller itself): nobody else will.
    pub(crate) fn claim(&self, cpu: CpuId) -> bool {
        let (word, bit) = word_and_bit(cpu);
        let Some(word) = self.words.get(word) else {
            return false;
        };
        // The load first keeps the cache line shared while there is nothing to claim.
        word.load(Ordering::Relaxed) & bit != 0 && word.fetch_and(!bit, Ordering::SeqCst) & bit != 0
    }

    /// Claims a worker of `allowed`, the one with the lowest number: few awake workers are better
    /// than many half idle ones.
    pub(crate) fn claim_any(&self, allowed: &CpuMask) -> Option<CpuId> {
        for (index, shared) in self.words.iter().enumerate() {
            let mut candidates = shared.load(Ordering::Relaxed) & allowed.words()[index];
            while candidates != 0 {
                let cpu = CpuId::new(index * 64 + candidates.trailing_zeros() as usize);
                if self.claim(cpu) {
                    return Some(cpu);
                }
                candidates &= candidates - 1;
            }
        }
        None
    }
}

fn word_and_bit(cpu: CpuId) -> (usize, u64) {
    (cpu.index() / 64, 1 << (cpu.index() % 64))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_claimed_once() {
        let set = IdleSet::full(70);
        assert_eq!(set.mask().len(), 70);
        assert!(set.claim(CpuId::new(69)));
        assert!(!set.claim(CpuId::new(69)));
        assert!(!set.claim(CpuId::new(70)) && !set.claim(CpuId::new(500)));
        let upper: CpuMask = (64..80).map(CpuId::new).collect();
        assert_eq!(set.claim_any(&upper), Some(CpuId::new(64)));
        set.insert(CpuId::new(69));
        let taken = std::iter::from_fn(|| set.claim_any(&CpuMask::ALL)).count();
        assert_eq!(taken, 69);
        assert!(set.is_empty());
    }
}
