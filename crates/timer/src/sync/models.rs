//! Models, which loom runs in every interleaving.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use super::short_lock::Flag;

/// The guarded data. Loom's cell panics on concurrent or unsynchronised accesses; the sum shows
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
            guarded.flag.set();
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
        guarded.flag.set();
        guarded.add_one_and_clear();
        let sum = 1 + usize::from(other.join().unwrap());
        assert_eq!(guarded.sum.load(Ordering::Relaxed), sum);
    });
}
