//! The reference implementation: the same rules on a sorted map. It defines what is correct.

use std::collections::{BTreeMap, HashMap};

use crate::timer_id::TimerId;

#[derive(Default)]
pub(crate) struct ReferenceTimers {
    /// By worker, deadline and order of arrival at that worker.
    by_deadline: BTreeMap<(usize, u64, u64), TimerId>,
    by_id: HashMap<TimerId, (usize, u64, u64)>,
    arrivals: u64,
}

impl ReferenceTimers {
    pub(crate) fn add(&mut self, id: TimerId, worker: usize, deadline_ns: u64) {
        self.arrivals += 1;
        let key = (worker, deadline_ns, self.arrivals);
        self.by_deadline.insert(key, id);
        let previous = self.by_id.insert(id, key);
        assert_eq!(previous, None, "an id was reused");
    }

    pub(crate) fn cancel(&mut self, id: TimerId) -> bool {
        let key = self.by_id.remove(&id);
        key.is_some_and(|key| self.by_deadline.remove(&key).is_some())
    }

    /// Removes and returns the timers of `worker` that are due at `now_ns`, in order, with their
    /// deadlines.
    pub(crate) fn expire(&mut self, worker: usize, now_ns: u64) -> Vec<(TimerId, u64)> {
        let due = (worker, 0, 0)..=(worker, now_ns, u64::MAX);
        let due = self.by_deadline.range(due);
        let due: Vec<_> = due.map(|(key, id)| (*id, key.1)).collect();
        for (id, _) in &due {
            self.cancel(*id);
        }
        due
    }

    pub(crate) fn next_ns(&self, worker: usize) -> Option<u64> {
        let mut of_worker = self
            .by_deadline
            .range((worker, 0, 0)..=(worker, u64::MAX, u64::MAX));
        of_worker.next().map(|(key, _)| key.1)
    }
}
