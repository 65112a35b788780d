//! Jobs before the encoders that the system refused memory, and that have done nothing yet.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::write::pipeline::intake::SegmentFeed;
use crate::write::pipeline::segments::{EpochData, SegmentPlan};

/// A segment to read, with its place.
pub(crate) struct SegmentRead {
    pub epoch: u64,
    pub slot: usize,
    pub plan: SegmentPlan,
    pub feed: SegmentFeed,
}

/// A job to submit again.
pub(crate) enum RefusedJob {
    /// Reads a segment.
    Segment(SegmentRead),
    /// Finds the repeats inside an epoch.
    Candidates { epoch: u64, data: Arc<EpochData> },
}

/// The jobs that wait for others to free memory.
#[derive(Default)]
pub(crate) struct RefusedJobs {
    waiting: Vec<RefusedJob>,
    /// How often jobs were refused memory while no other was in flight, since one has succeeded.
    refused_alone: u32,
}

/// The first time, what the run retains for later is not freed yet.
const REFUSED_ALONE_MAX: u32 = 2;

impl RefusedJobs {
    /// Keeps a job. `is_alone` says that no other is in flight.
    ///
    /// # Errors
    /// `Limit` if nothing is left to wait for.
    pub(crate) fn add(&mut self, job: RefusedJob, is_alone: bool) -> Result<()> {
        self.refused_alone += u32::from(is_alone);
        if self.refused_alone > REFUSED_ALONE_MAX {
            return Err(Error::limit(
                "the system refuses memory for reading and matching",
            ));
        }
        self.waiting.push(job);
        Ok(())
    }

    /// Another job has succeeded, and may have freed memory.
    pub(crate) fn another_job_ended(&mut self) {
        self.refused_alone = 0;
    }

    /// Takes the jobs that wait, in the order in which they were refused.
    pub(crate) fn take(&mut self) -> Vec<RefusedJob> {
        std::mem::take(&mut self.waiting)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> RefusedJob {
        let data = Arc::new(EpochData::new(vec![]));
        RefusedJob::Candidates { epoch: 0, data }
    }

    #[test]
    fn jobs_wait_for_others_and_fail_when_there_are_none() {
        let mut refused = RefusedJobs::default();
        (0..9).for_each(|_| refused.add(job(), false).unwrap());
        assert_eq!(refused.take().len(), 9);
        assert!(refused.is_empty());
        for _ in 0..2 {
            refused.add(job(), true).unwrap();
            refused.add(job(), true).unwrap();
            refused.another_job_ended();
        }
        (0..2).for_each(|_| refused.add(job(), true).unwrap());
        assert!(refused.add(job(), true).is_err());
    }
}
