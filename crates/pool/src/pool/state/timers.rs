//! The timers of a domain, one set for each worker.

use std::sync::Arc;
use std::time::Duration;

use refrain_timer::{Expired, NEVER_NS, TimerSystem};

use super::ticker::{Ticker, TickerWaker};

pub(crate) struct Timers<P> {
    pub(crate) system: TimerSystem<P, TickerWaker>,
}

impl<P> Timers<P> {
    pub(crate) fn new(workers: usize, ticker: &Arc<Ticker>) -> Timers<P> {
        Timers {
            system: TimerSystem::new(workers, TickerWaker(Arc::clone(ticker))),
        }
    }

    /// The time from `now_ns` until the next deadline; `None` when nothing is pending.
    pub(crate) fn next_after(&self, now_ns: u64) -> Option<Duration> {
        let workers = 0..self.system.workers();
        let next_ns = workers.map(|worker| self.system.next_ns(worker)).min()?;
        (next_ns != NEVER_NS).then(|| Duration::from_nanos(next_ns.saturating_sub(now_ns)))
    }

    pub(crate) fn expire(&self, now_ns: u64, fire: impl Fn(P)) {
        for worker in 0..self.system.workers() {
            if self.system.next_ns(worker) <= now_ns {
                let sink = |_: usize, event: Expired<P>| fire(event.payload);
                self.system.expire(worker, now_ns, &sink);
            }
        }
    }

    /// Drops all timers, so that what they own (flows, and through them the domain) is freed.
    pub(crate) fn drop_all(&self) {
        self.expire(NEVER_NS, drop);
    }
}
