//! The pool of the process, which follows the processors that the process may use.

use std::sync::Arc;

use refrain_policy::topology::{Allowance, Machine};
use refrain_sync::clock::RealClock;
use refrain_sync::plain::Mutex;

use super::worker_pool::{Options, Pool};
use crate::error::Error;

/// How often the system is asked at most.
const ASK_NS: u64 = 1_000_000_000;

static CURRENT: Mutex<Option<Current>> = Mutex::new(None);

struct Current {
    pool: Arc<Pool>,
    allowance: Allowance,
    clock: RealClock,
    /// When the system was asked last, by that clock.
    asked_ns: u64,
}

impl Current {
    fn start(allowance: Allowance) -> Result<Current, Error> {
        let options = Options::on_machine(&Machine::discover());
        Ok(Current {
            pool: Arc::new(Pool::start(options)?),
            allowance,
            clock: RealClock::new(),
            asked_ns: 0,
        })
    }

    /// Whether the process may use other processors than when the pool was made. `None` if the
    /// system was asked a moment ago.
    fn changed(&mut self, now_ns: u64, ask: impl FnOnce() -> Allowance) -> Option<Allowance> {
        if now_ns < self.asked_ns.saturating_add(ASK_NS) {
            return None;
        }
        self.asked_ns = now_ns;
        let allowance = ask();
        (allowance != self.allowance).then_some(allowance)
    }
}

impl Pool {
    /// The pool of the process, for all who make no pool of their own: one worker for each
    /// processor that the process may use. If these have changed (`taskset(1)`, control groups,
    /// processors that went on or off line), it is another pool from then on. Who uses the former
    /// one goes on with it, and its threads end when it is dropped.
    ///
    /// # Errors
    /// [`Error::ThreadUnavailable`] when the system refuses the first thread; a later call tries
    /// again.
    pub fn of_process() -> Result<Arc<Pool>, Error> {
        let mut current = CURRENT.lock();
        let former = match current.as_mut() {
            None => {
                *current = Some(Current::start(Allowance::of_process())?);
                None
            }
            // Where the system refuses another pool, the former one goes on.
            Some(existing) => {
                let changed = existing.changed(existing.clock.now_ns(), Allowance::of_process);
                match changed.map(Current::start) {
                    Some(Ok(next)) => current.replace(next),
                    _ => None,
                }
            }
        };
        let pool = current.as_ref().map(|current| Arc::clone(&current.pool));
        drop(current);
        // Without the lock: it waits for the threads of the former pool.
        drop(former);
        pool.ok_or(Error::ThreadUnavailable)
    }
}

#[cfg(all(test, not(loom), target_os = "linux"))]
#[allow(
    clippy::unwrap_used,
    reason = "clippy does not take `all(test, not(loom))` for a test"
)]
mod tests {
    use super::*;
    use crate::thread::class::KernelClass;
    use crate::thread::settings::ThreadSettings;

    /// What a thread on one processor may use.
    fn of_one_processor() -> Allowance {
        let on_one = || {
            let machine = Machine::discover();
            let first = machine.topology.cpus().first().unwrap().os_number;
            let all = ThreadSettings::from_process(KernelClass::Normal);
            all.on_processors(std::iter::once(first)).apply();
            Allowance::of_this_thread()
        };
        std::thread::spawn(on_one).join().unwrap()
    }

    #[test]
    fn the_system_is_asked_at_intervals_and_a_change_is_seen() {
        let (all, one) = (Allowance::of_process(), of_one_processor());
        assert_eq!(one.workers(), 1);
        let mut current = Current::start(all.clone()).unwrap();
        assert_eq!(current.changed(ASK_NS - 1, || unreachable!()), None);
        let changed = current.changed(ASK_NS, || one.clone());
        assert_eq!(changed, (one != all).then_some(one));
        assert_eq!(current.changed(2 * ASK_NS, || all), None);
    }

    #[test]
    fn all_use_one_pool() {
        let pools = [(); 2].map(|()| Pool::of_process().unwrap());
        assert!(Arc::ptr_eq(&pools[0], &pools[1]));
    }
}
