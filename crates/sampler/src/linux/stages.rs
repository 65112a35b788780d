//! The stage of each thread over time.

use std::collections::HashMap;

use crate::options::StageChange;

/// How long changes are kept: samples are read much sooner.
const KEPT_NS: u64 = 1_000_000_000;

/// The changes of each thread that samples may still need.
#[derive(Debug, Default)]
pub(super) struct StageTimes {
    threads: HashMap<u32, Vec<(u64, Option<&'static str>)>>,
}

impl StageTimes {
    pub(super) fn add(&mut self, change: StageChange) {
        let changes = self.threads.entry(change.thread_id).or_default();
        changes.push((change.at_ns, change.stage));
    }

    pub(super) fn at(&self, thread_id: u32, at_ns: u64) -> Option<&'static str> {
        let changes = self.threads.get(&thread_id)?;
        let after = changes.partition_point(|(from_ns, _)| *from_ns <= at_ns);
        changes.get(after.checked_sub(1)?)?.1
    }

    /// Drops what no sample needs any longer.
    pub(super) fn forget_before(&mut self, now_ns: u64) {
        let from_ns = now_ns.saturating_sub(KEPT_NS);
        for changes in self.threads.values_mut() {
            let after = changes.partition_point(|(at_ns, _)| *at_ns <= from_ns);
            // The last one before tells the stage at that time.
            changes.drain(..after.saturating_sub(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_in_the_stage_that_it_entered_last() {
        let mut times = StageTimes::default();
        let second = KEPT_NS;
        let changes = [(1, Some("scan")), (2, None), (3, Some("encode"))];
        for (seconds, stage) in changes {
            times.add(StageChange {
                thread_id: 8,
                at_ns: seconds * second,
                stage,
            });
        }
        let stage = |times: &StageTimes, at_ns| times.at(8, at_ns);
        assert_eq!(stage(&times, second - 1), None);
        assert_eq!(stage(&times, second), Some("scan"));
        assert_eq!(stage(&times, 2 * second), None);
        assert_eq!(stage(&times, 9 * second), Some("encode"));
        assert_eq!(times.at(9, 9 * second), None);
        times.forget_before(7 * second / 2);
        assert_eq!(stage(&times, 5 * second / 2), None);
        assert_eq!(stage(&times, 3 * second), Some("encode"));
        times.forget_before(90 * second);
        assert_eq!(times.threads[&8].len(), 1);
        assert_eq!(stage(&times, 90 * second), Some("encode"));
    }
}
