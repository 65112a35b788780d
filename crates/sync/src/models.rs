//! Models, which loom runs in every interleaving.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use super::raw_mutex::RawMutex;
use super::raw_shared::RawShared;
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

    fn read(&self) -> usize {
        self.cell.with(|_| ());
        self.sum.load(Ordering::Relaxed)
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

fn write(shared: &(RawShared, Watched)) {
    if !shared.0.try_write() {
        shared.0.write_contended();
    }
    shared.1.add_one();
    shared.0.unlock_write();
}

fn read(shared: &(RawShared, Watched)) -> usize {
    if !shared.0.try_read() {
        shared.0.read_contended();
    }
    let found = shared.1.read();
    shared.0.unlock_read();
    found
}

#[test]
fn two_writers_and_a_reader_exclude_each_other_and_all_get_in() {
    loom::model(|| {
        let shared = Arc::new((RawShared::default(), Watched::default()));
        let writers = [(); 2].map(|()| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || write(&shared))
        });
        assert!(read(&shared) <= 2);
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(read(&shared), 2);
    });
}

#[test]
fn two_readers_and_a_writer_all_get_in() {
    loom::model(|| {
        let shared = Arc::new((RawShared::default(), Watched::default()));
        let readers = [(); 2].map(|()| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || read(&shared))
        });
        write(&shared);
        for reader in readers {
            assert!(reader.join().unwrap() <= 1);
        }
        assert_eq!(read(&shared), 1);
    });
}
