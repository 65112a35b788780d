//! The virtual time of one CPU's queue.

use refrain_policy::Entity;

use super::weight::{WEIGHT_NICE_0, virtual_start_ns, weight};

/// The flows that wait for a CPU or run on it, as sums. Virtual time passes at the speed of a flow
/// of nice 0 that is alone.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    weight: i128,
    /// The sum of weight times virtual start.
    moment: i128,
    /// The virtual time while the queue is empty.
    stopped_at_ns: i64,
    running: usize,
    /// When the CPU began what is not yet accounted for, if flows run.
    unaccounted_since_ns: u64,
}

impl Queue {
    /// The average of the flows' virtual times by weight: the lags add up to 0.
    pub fn virtual_time_ns(&self, now_ns: u64) -> i64 {
        if self.weight == 0 {
            return self.stopped_at_ns;
        }
        let since_ns = if self.running > 0 { self.unaccounted_since_ns } else { now_ns };
        let served_ns = i128::from(now_ns.saturating_sub(since_ns));
        let moment = self.moment + served_ns * i128::from(WEIGHT_NICE_0);
        moment.div_euclid(self.weight) as i64 // An average of such numbers.
    }

    pub fn join(&mut self, entity: &mut Entity) {
        entity.is_counted = true;
        self.add(entity, 1);
    }

    /// Does nothing if the flow is in no queue.
    pub fn leave(&mut self, entity: &mut Entity, now_ns: u64) {
        if std::mem::take(&mut entity.is_counted) {
            self.stopped_at_ns = self.virtual_time_ns(now_ns);
            self.add(entity, -1);
        }
    }

    fn add(&mut self, entity: &Entity, count: i128) {
        let weight = i128::from(weight(entity));
        self.weight += count * weight;
        self.moment += count * weight * i128::from(virtual_start_ns(entity));
    }

    pub fn begin_run(&mut self, now_ns: u64) {
        if self.running == 0 {
            self.unaccounted_since_ns = now_ns;
        }
        self.running += 1;
    }

    /// A flow accounts for its time.
    pub fn end_run(&mut self, ran_ns: u64) {
        self.running = self.running.saturating_sub(1);
        self.unaccounted_since_ns = self.unaccounted_since_ns.saturating_add(ran_ns);
    }
}
