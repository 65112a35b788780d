//! Models: loom runs them in every interleaving.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use super::short_lock::Flag;

/// What the lock guards. Loom's cell panics when two reach it at once, or one that has not seen the other leave; the
/// sum shows what was lost.
#[derive(Default)]
struct Guarded {
    flag: Flag,
    cell: UnsafeCell<()>,
    sum: AtomicUsize,
}

impl Guarded {
    /// To be called by whoever has set the flag.
    fn add_one_and_clear(&self) {
        self.cell.with_mut(|_| ());
        let before = self.sum.load(Ordering::Relaxed);
        self.sum.store(before + 1, Ordering::Relaxed);
        self.flag.clear();
    }
}

#[test]
fn a_short_lock_is_held_by_one_who_sees_what_the_last_did() {
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
fn who_only_tries_gets_it_or_leaves_it() {
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
