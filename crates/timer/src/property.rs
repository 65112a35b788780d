//! What must hold for any sequence of calls: the system does what its slow twin does. Shared by the property tests,
//! the fuzz target and the long run.

use std::cell::RefCell;
use std::time::Duration;

use super::naive::NaiveTimers;
use super::{Expired, TimerId, TimerSystem, deadline_after};

/// One call. Numbers are taken modulo what there is, so any are valid.
#[derive(Debug, Clone, Copy)]
pub enum Operation {
    /// Adds a timer; the delay is `mantissa` shifted by `exponent` (modulo 64) and may lie in the past.
    Add {
        /// At which worker.
        worker: u8,
        /// See above.
        mantissa: u16,
        /// See above.
        exponent: u8,
    },
    /// Cancels one of the timers of this run, pending or not.
    Cancel {
        /// Which one.
        which: u32,
    },
    /// Migrates one of the timers of this run.
    Migrate {
        /// Which one.
        which: u32,
        /// Where to.
        worker: u8,
    },
    /// Time passes, as the delays of additions.
    Advance {
        /// See [`Operation::Add`].
        mantissa: u16,
        /// See [`Operation::Add`].
        exponent: u8,
    },
    /// A worker looks at its timers.
    Expire {
        /// Which worker.
        worker: u8,
    },
    /// A transaction of additions at several workers and one or two cancellations.
    Transact {
        /// The number of additions.
        additions: u8,
        /// Which timer is cancelled; with an odd number the next one too, if it is pending.
        which: u32,
        /// The caller's change refuses.
        refuses: bool,
    },
}

impl Operation {
    /// Any numbers as an operation, for fuzzers and generators.
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
            11 => Operation::Migrate { which, worker },
            12 => Operation::Advance { mantissa, exponent },
            13..15 => Operation::Expire { worker },
            _ => Operation::Transact {
                additions: worker,
                which,
                refuses: exponent % 4 == 0,
            },
        }
    }
}

const WORKERS: usize = 3;
/// So many ids are remembered to be cancelled or migrated; later ones take the place of earlier ones.
const REMEMBERED: usize = 5000;

/// The system and its twin, at the same time.
pub struct Twins {
    system: TimerSystem<u64>,
    naive: NaiveTimers,
    now_ns: u64,
    ids: Vec<TimerId>,
    added: u64,
    ended: u64,
}

impl Default for Twins {
    fn default() -> Self {
        Twins {
            system: TimerSystem::new(WORKERS, ()),
            naive: NaiveTimers::default(),
            now_ns: 0,
            ids: Vec::new(),
            added: 0,
            ended: 0,
        }
    }
}

impl Twins {
    /// Does the same to both and compares what they answer.
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
                    assert_eq!(cancelled, self.naive.cancel(id));
                    self.ended += u64::from(cancelled);
                }
            }
            Operation::Migrate { which, worker } => {
                if let Some(id) = self.id(which) {
                    let worker = usize::from(worker) % WORKERS;
                    let migrated = self.system.migrate(id, worker);
                    assert_eq!(migrated, self.naive.migrate(id, worker));
                }
            }
            Operation::Advance { mantissa, exponent } => {
                let to_ns = self.deadline_ns(mantissa, exponent);
                // The last times are kept for the end.
                self.now_ns = self.now_ns.max(to_ns.min(u64::MAX >> 1));
            }
            Operation::Expire { worker } => self.expire(usize::from(worker) % WORKERS),
            Operation::Transact {
                additions,
                which,
                refuses,
            } => self.transact(usize::from(additions % 8), which, refuses),
        }
    }

    /// Lets all that is left expire; then everything has ended exactly once.
    pub fn finish(mut self) {
        self.now_ns = u64::MAX;
        for worker in 0..WORKERS {
            self.expire(worker);
            assert_eq!(self.system.pending(worker), 0);
        }
        for worker in 0..WORKERS {
            assert_eq!(self.system.leftovers(worker), 0);
        }
        assert_eq!(self.added, self.ended);
    }

    /// Timers that are pending.
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
        self.naive.add(id, worker, deadline_ns);
        self.added += 1;
        if self.ids.len() < REMEMBERED {
            self.ids.push(id);
        } else {
            let index = self.added as usize * 7 % REMEMBERED;
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
        assert_eq!(fired, self.naive.expire(worker, self.now_ns));
        self.ended += count as u64;
        let next_ns = self.system.next_ns(worker);
        assert!(next_ns > self.now_ns || self.now_ns == u64::MAX);
        let expected_ns = self.naive.next_ns(worker).unwrap_or(u64::MAX);
        assert!(next_ns <= expected_ns, "{next_ns} after {expected_ns}");
    }

    fn transact(&mut self, additions: usize, which: u32, refuses: bool) {
        let mut transaction = self.system.transaction();
        for index in 0..additions {
            let payload = self.added + index as u64;
            transaction.add_after(index % WORKERS, Self::delay(index), payload);
        }
        let required = self.id(which);
        let optional = self.id(which.wrapping_add(1)).filter(|_| which % 2 == 1);
        required.inspect(|&id| _ = transaction.cancel(id));
        optional.inspect(|&id| _ = transaction.cancel_if_pending(id));
        let is_possible = required.is_none_or(|id| self.naive.is_pending(id));
        let outcome = transaction.commit(self.now_ns, |ids| {
            if refuses { Err(()) } else { Ok(ids.to_vec()) }
        });
        let Ok(committed) = outcome else {
            assert!(refuses || !is_possible);
            return;
        };
        assert!(!refuses && is_possible);
        assert_eq!(committed.ids, committed.value);
        let asked = required.into_iter().chain(optional);
        for (id, payload) in asked.zip(committed.cancelled) {
            assert_eq!(payload.is_some(), self.naive.cancel(id));
            self.ended += u64::from(payload.is_some());
        }
        for (index, id) in committed.ids.into_iter().enumerate() {
            let deadline_ns = deadline_after(self.now_ns, Self::delay(index));
            self.added(id, index % WORKERS, deadline_ns);
        }
    }

    fn delay(index: usize) -> Duration {
        Duration::from_micros(index as u64 * 40)
    }
}

/// Runs the operations on both twins, to the end.
pub fn timers_match_their_twin(operations: &[Operation]) {
    let mut twins = Twins::default();
    for &operation in operations {
        twins.apply(operation);
    }
    twins.finish();
}
