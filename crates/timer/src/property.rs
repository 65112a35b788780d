//! Properties of any sequence of calls: the system matches its reference implementation. Used by
//! the property tests, the fuzz target and the long runs.

use std::cell::RefCell;

use crate::reference::ReferenceTimers;
use crate::system::TimerSystem;
use crate::timer_id::{Expired, TimerId};

/// One call. Numbers are reduced modulo the number of valid values, so every value is valid.
#[derive(Debug, Clone, Copy)]
pub enum Operation {
    /// Adds a timer. The delay is `mantissa` shifted by `exponent` (modulo 64); it may be negative.
    Add {
        /// The worker.
        worker: u8,
        /// See above.
        mantissa: u16,
        /// See above.
        exponent: u8,
    },
    /// Cancels a timer of this run, pending or not.
    Cancel {
        /// The index of the timer.
        which: u32,
    },
    /// Advances the time by a delay as in [`Operation::Add`].
    Advance {
        /// See [`Operation::Add`].
        mantissa: u16,
        /// See [`Operation::Add`].
        exponent: u8,
    },
    /// Expires the timers of a worker.
    Expire {
        /// The worker.
        worker: u8,
    },
}

impl Operation {
    /// Converts any numbers to an operation, for fuzzers and generators.
    pub fn from_numbers(
        (kind, worker, exponent, mantissa, which): (u8, u8, u8, u16, u32),
    ) -> Operation {
        match kind % 16 {
            0..6 => Operation::Add {
                worker,
                mantissa,
                exponent,
            },
            6..11 => Operation::Cancel { which },
            11 | 12 => Operation::Advance { mantissa, exponent },
            _ => Operation::Expire { worker },
        }
    }
}

const WORKERS: usize = 3;
/// The number of ids from which operations choose; later ids replace earlier ones.
const IDS_MAX: usize = 5000;

/// The system and its reference implementation, driven in parallel.
pub struct Comparison {
    system: TimerSystem<u64>,
    reference: ReferenceTimers,
    now_ns: u64,
    ids: Vec<TimerId>,
    added: u64,
    ended: u64,
}

impl Default for Comparison {
    fn default() -> Self {
        Comparison {
            system: TimerSystem::new(WORKERS, ()),
            reference: ReferenceTimers::default(),
            now_ns: 0,
            ids: Vec::new(),
            added: 0,
            ended: 0,
        }
    }
}

impl Comparison {
    /// Applies the operation to both and compares the results.
    pub fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Add {
                worker,
                mantissa,
                exponent,
            } => {
                let deadline_ns = self.deadline_ns(mantissa, exponent);
                let worker = usize::from(worker) % WORKERS;
                let id = self.system.add(worker, deadline_ns, self.added);
                self.added(id, worker, deadline_ns);
            }
            Operation::Cancel { which } => {
                if let Some(id) = self.id(which) {
                    let cancelled = self.system.cancel(id).is_some();
                    assert_eq!(cancelled, self.reference.cancel(id));
                    self.ended += u64::from(cancelled);
                }
            }
            Operation::Advance { mantissa, exponent } => {
                let to_ns = self.deadline_ns(mantissa, exponent);
                // The last times are reserved for the end.
                self.now_ns = self.now_ns.max(to_ns.min(u64::MAX >> 1));
            }
            Operation::Expire { worker } => self.expire(usize::from(worker) % WORKERS),
        }
    }

    /// Expires all remaining timers and checks that every timer has ended exactly once.
    pub fn finish(mut self) {
        self.now_ns = u64::MAX;
        for worker in 0..WORKERS {
            self.expire(worker);
            assert_eq!(self.system.pending(worker), 0);
        }
        for worker in 0..WORKERS {
            assert_eq!(self.system.leaked_records(worker), 0);
        }
        assert_eq!(self.added, self.ended);
    }

    /// The number of pending timers.
    pub fn pending(&self) -> usize {
        (0..WORKERS).map(|w| self.system.pending(w)).sum()
    }

    fn deadline_ns(&self, mantissa: u16, exponent: u8) -> u64 {
        let mantissa = i64::from(mantissa.cast_signed());
        let delay_ns = mantissa.unsigned_abs().saturating_mul(1 << (exponent % 64));
        if mantissa < 0 {
            self.now_ns.saturating_sub(delay_ns)
        } else {
            self.now_ns.saturating_add(delay_ns)
        }
    }

    fn added(&mut self, id: TimerId, worker: usize, deadline_ns: u64) {
        self.reference.add(id, worker, deadline_ns);
        self.added += 1;
        if self.ids.len() < IDS_MAX {
            self.ids.push(id);
        } else {
            let index = self.added as usize * 7 % IDS_MAX;
            self.ids[index] = id;
        }
    }

    fn id(&self, which: u32) -> Option<TimerId> {
        let index = (which as usize).checked_rem(self.ids.len())?;
        self.ids.get(index).copied()
    }

    fn expire(&mut self, worker: usize) {
        let fired = RefCell::new(Vec::new());
        let sink = |at: usize, event: Expired<u64>| {
            assert_eq!(at, worker);
            fired.borrow_mut().push((event.id, event.deadline_ns));
        };
        let count = self.system.expire(worker, self.now_ns, &sink);
        let fired = fired.into_inner();
        assert_eq!(count, fired.len());
        assert_eq!(fired, self.reference.expire(worker, self.now_ns));
        self.ended += count as u64;
        let next_ns = self.system.next_ns(worker);
        assert!(next_ns > self.now_ns || self.now_ns == u64::MAX);
        let expected_ns = self.reference.next_ns(worker).unwrap_or(u64::MAX);
        assert!(next_ns <= expected_ns, "{next_ns} after {expected_ns}");
    }
}

/// Applies the operations to the system and to the reference implementation, until all timers
/// ended.
pub fn timers_match_reference(operations: &[Operation]) {
    let mut comparison = Comparison::default();
    for &operation in operations {
        comparison.apply(operation);
    }
    comparison.finish();
}
