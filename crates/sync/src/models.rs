//! Models, which loom runs in every interleaving.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use super::raw_mutex::RawMutex;
use super::short_lock::Flag;

/// The guarded data. Loom's cell panics on concurrent or unsynchronized accesses; the sum shows
/// lost updates.
#[derive(Default)]
struct Guarded {
    flag: Flag,
    cell: UnsafeCell<()>,
    sum: AtomicUsize,
}

impl Guarded {
    /// The caller must have set the flag.
    fn add_one_and_clear(&self) {
        self.cell.with_mut(|_| ());
        let before = self.sum.load(Ordering::Relaxed);
        self.sum.store(before + 1, Ordering::Relaxed);
        self.flag.clear();
    }
}

#[test]
fn a_short_lock_is_exclusive_and_publishes_earlier_writes() {
    loom::model(|| {
        let guarded = Arc::new(Guarded::default());
        let add = |guarded: &Guarded| {
            if !guarded.flag.try_set() {
                guarded.flag.wait(&[]);
            }
            guarded.add_one_and_clear();
        };
        let other = {
            let guarded = Arc::clone(&guarded);
            thread::spawn(move || add(&guarded))
        };
        add(&guarded);
        other.join().unwrap();
        assert_eq!(guarded.sum.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn try_lock_either_succeeds_or_leaves_the_lock_alone() {
    loom::model(|| {
        let guarded = Arc::new(Guarded::default());
        let other = {
            let guarded = Arc::clone(&guarded);
            thread::spawn(move || {
                let has_it = guarded.flag.try_set();
                if has_it {
                    guarded.add_one_and_clear();
                }
                has_it
            })
        };
        if !guarded.flag.try_set() {
            guarded.flag.wait(&[]);
        }
        guarded.add_one_and_clear();
        let sum = 1 + usize::from(other.join().unwrap());
        assert_eq!(guarded.sum.load(Ordering::Relaxed), sum);
    });
}

/// A cell that loom watches, and a sum that shows lost updates.
#[derive(Default)]
struct Watched {
    cell: UnsafeCell<()>,
    sum: AtomicUsize,
}

impl Watched {
    fn add_one(&self) {
        self.cell.with_mut(|_| ());
        let before = self.sum.load(Ordering::Relaxed);
        self.sum.store(before + 1, Ordering::Relaxed);
    }
}

#[test]
fn a_mutex_is_exclusive_and_wakes_every_waiter() {
    loom::model(|| {
        let shared = Arc::new((RawMutex::default(), Watched::default()));
        let add = |(mutex, watched): &(RawMutex, Watched)| {
            if !mutex.try_lock() {
                mutex.lock_contended();
            }
            watched.add_one();
            mutex.unlock();
        };
        let others = [(); 2].map(|()| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || add(&shared))
        });
        add(&shared);
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(shared.1.sum.load(Ordering::Relaxed), 3);
    });
}
