//! Models: loom runs them in every interleaving that the memory model allows. A lost wake-up, or
//! exclusion of ranges that do not overlap, shows as a deadlock.

use loom::cell::UnsafeCell;
use loom::model;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::{RangeLock, SharedOffset};

/// A number under a lock. The cell panics when two threads use it at the same time and one of them
/// writes, and when a write is not visible.
#[derive(Default)]
struct Page {
    cell: UnsafeCell<()>,
    number: AtomicU64,
}

impl Page {
    fn set(&self, number: u64) {
        self.cell.with_mut(|_| ());
        self.number.store(number, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.cell.with(|_| ());
        self.number.load(Ordering::Relaxed)
    }
}

struct Pages {
    lock: RangeLock,
    cells: [Page; 2],
    latest_arrival: AtomicU64,
}

impl Pages {
    fn new() -> Arc<Pages> {
        Arc::new(Pages {
            lock: RangeLock::new(),
            cells: [Page::default(), Page::default()],
            latest_arrival: AtomicU64::new(0),
        })
    }

    fn fill(&self, number: u64) {
        let guard = self.lock.write(0..2);
        self.enter(guard.arrival());
        for cell in &self.cells {
            cell.set(number);
        }
    }

    fn enter(&self, arrival: Option<u64>) {
        let arrival = arrival.expect("not empty") + 1;
        let before = self.latest_arrival.swap(arrival, Ordering::Relaxed);
        assert!(before < arrival, "{arrival} entered after {before}");
    }
}

#[test]
fn writers_that_overlap_exclude_each_other_in_the_order_of_arrival() {
    model(|| {
        let pages = Pages::new();
        let others: Vec<_> = (1..3)
            .map(|number| {
                let pages = pages.clone();
                thread::spawn(move || pages.fill(number))
            })
            .collect();
        pages.fill(3);
        others.into_iter().for_each(|other| other.join().unwrap());
        let _all = pages.lock.read(0..2);
        assert_eq!(pages.cells[0].get(), pages.cells[1].get());
    });
}

#[test]
fn a_reader_never_sees_a_part_of_a_write() {
    model(|| {
        let pages = Pages::new();
        let writer = {
            let pages = pages.clone();
            thread::spawn(move || pages.fill(1))
        };
        let reader = {
            let pages = pages.clone();
            thread::spawn(move || {
                let _second = pages.lock.read(1..9);
                pages.cells[1].get()
            })
        };
        {
            let _both = pages.lock.read(0..2);
            assert_eq!(pages.cells[0].get(), pages.cells[1].get());
        }
        writer.join().unwrap();
        assert!(reader.join().unwrap() <= 1);
    });
}

/// Both hold their ranges until the other one does too.
#[test]
fn writers_that_do_not_overlap_proceed_together() {
    model(|| {
        let lock = Arc::new(RangeLock::new());
        let meeting = Arc::new((Mutex::new(0), Condvar::new()));
        let meet = |lock: &RangeLock, meeting: &(Mutex<u32>, Condvar), start: u64| {
            let _range = lock.write(start..start + 5);
            let mut present = meeting.0.lock().unwrap();
            *present += 1;
            meeting.1.notify_all();
            while *present < 2 {
                present = meeting.1.wait(present).unwrap();
            }
        };
        let other = {
            let (lock, meeting) = (lock.clone(), meeting.clone());
            thread::spawn(move || meet(&lock, &meeting, 0))
        };
        meet(&lock, &meeting, 5);
        other.join().unwrap();
    });
}

#[test]
fn claims_never_overlap() {
    model(|| {
        let offset = Arc::new(SharedOffset::new(0));
        let other = {
            let offset = offset.clone();
            thread::spawn(move || (offset.claim(2).unwrap(), offset.claim_below(6, 2)))
        };
        let (first, second) = (offset.claim_below(6, 3), offset.claim(1).unwrap());
        let (third, fourth) = other.join().unwrap();
        let mut all = [first, second, third, fourth];
        all.sort_by_key(|range| (range.start, range.end));
        assert_eq!(all[0].start, 0);
        assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start));
    });
}
