//! The slow twin: the same rules on a sorted map. It defines what is correct.

use std::collections::{BTreeMap, HashMap};

use super::TimerId;

/// All pending timers, of all workers.
#[derive(Default)]
pub(crate) struct NaiveTimers {
    /// By worker, deadline and arrival at that worker.
    by_deadline: BTreeMap<(usize, u64, u64), TimerId>,
    by_id: HashMap<TimerId, (usize, u64, u64)>,
    arrivals: u64,
}

impl NaiveTimers {
    pub(crate) fn add(&mut self, id: TimerId, worker: usize, deadline_ns: u64) {
        self.arrivals += 1;
        let key = (worker, deadline_ns, self.arrivals);
        self.by_deadline.insert(key, id);
        let earlier = self.by_id.insert(id, key);
        assert_eq!(earlier, None, "an id was given twice");
    }

    /// Whether the timer was pending.
    pub(crate) fn cancel(&mut self, id: TimerId) -> bool {
        let key = self.by_id.remove(&id);
        key.is_some_and(|key| self.by_deadline.remove(&key).is_some())
    }

    pub(crate) fn is_pending(&self, id: TimerId) -> bool {
        self.by_id.contains_key(&id)
    }

    pub(crate) fn migrate(&mut self, id: TimerId, worker: usize) -> bool {
        let Some(&(from, deadline_ns, _)) = self.by_id.get(&id) else {
            return false;
        };
        if from != worker {
            self.cancel(id);
            self.add(id, worker, deadline_ns);
        }
        true
    }

    /// What fires at `worker` by `now_ns`, in order, with the deadlines.
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
