//! Blocks that wait for an encoder. The number of blocks encoded at once depends on the budget's
//! memory for codecs, not on the number of threads.
//!
//! The system may refuse memory that the budget allows. A job that it refuses is tried again when
//! others have returned theirs, and fewer run at once from then on. Only a job that was refused
//! twice while no other was in flight gets a coding that needs less memory, if the dialect has one;
//! otherwise the run fails. So the bytes of native archives never depend on the memory that there
//! was.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_pool::{Crew, Lane};

use crate::error::{Error, Result};
use crate::progress::Watch;
use crate::write::pipeline::assembly::{EncodeOutcome, Encoding, PipelineEvent};
use crate::write::pipeline::context::PipelineContext;

/// Encode jobs in order: the waiting ones, and the number of running ones.
///
/// One epoch may fill more blocks than the budget allows encoders. When each thread encoded one,
/// level 8 with 512 MiB and 7 threads used 0.93 GB, half of it for codecs. Here blocks wait as
/// pages.
pub(crate) struct EncodeQueue<'c, 'scope, 'env, C: Encoding> {
    crew: &'c Crew<'scope, 'env, PipelineEvent<C>>,
    context: Arc<PipelineContext>,
    waiting: VecDeque<C::EncodeJob>,
    running: usize,
    running_max: usize,
    /// A job that was refused memory. No other starts before it.
    refused: Option<C::EncodeJob>,
    /// Whether the refused job was the only one of the run.
    was_alone: bool,
    is_lighter: bool,
}

/// The notice of a block that was encoded by another coding than the archive's.
const LIGHTER_NOTICE: &str = "the system refuses memory: some blocks are compressed at a lower \
     level, by bzip2, or stored";

impl<'c, 'scope, 'env, C: Encoding> EncodeQueue<'c, 'scope, 'env, C> {
    pub(crate) fn new(
        crew: &'c Crew<'scope, 'env, PipelineEvent<C>>,
        context: Arc<PipelineContext>,
        running_max: usize,
    ) -> Self {
        EncodeQueue {
            crew,
            context,
            waiting: VecDeque::new(),
            running: 0,
            running_max,
            refused: None,
            was_alone: false,
            is_lighter: false,
        }
    }

    /// Adds a job. Encoders run with the lowest priority, after all jobs that the match stage waits
    /// for.
    pub(crate) fn push(&mut self, job: C::EncodeJob) {
        if C::is_large(&job) || self.refused.is_some() {
            self.waiting.push_back(job);
        } else {
            self.submit(job);
        }
        self.start_waiting();
    }

    /// A job has ended: returns its result, if it has one, and starts the next job.
    ///
    /// # Errors
    /// The job's, and refused memory if nothing is left to wait for.
    pub(crate) fn take(
        &mut self,
        outcome: EncodeOutcome<C>,
        watch: &dyn Watch,
    ) -> Result<Option<C::Encoded>> {
        match outcome {
            EncodeOutcome::Encoded(encoded) => {
                self.was_alone = false;
                if C::was_large(&encoded) {
                    self.running -= 1;
                }
                self.start_waiting();
                Ok(Some(encoded))
            }
            EncodeOutcome::Failed(error) => Err(error),
            EncodeOutcome::Refused { job, error } => {
                if C::is_large(&job) {
                    self.running -= 1;
                    self.running_max = self.running_max.min(self.running).max(1);
                }
                self.put_aside(job, error, watch)?;
                Ok(None)
            }
        }
    }

    /// Keeps a job until another event, which may have freed memory; without any other job in
    /// flight, tries it at once.
    fn put_aside(&mut self, job: C::EncodeJob, error: Error, watch: &dyn Watch) -> Result<()> {
        let is_alone = self.crew.in_flight() == 0;
        if self.refused.is_some() {
            self.waiting.push_front(job);
            if is_alone {
                self.retry();
            }
            return Ok(());
        }
        let job = if is_alone && self.was_alone {
            let lighter = C::with_less_memory(job).ok_or(error)?;
            if !std::mem::replace(&mut self.is_lighter, true) {
                watch.notice(LIGHTER_NOTICE);
            }
            lighter
        } else {
            job
        };
        self.was_alone = is_alone;
        self.refused = Some(job);
        if is_alone {
            self.retry();
        }
        Ok(())
    }

    /// Tries the job again that was refused memory: some other job has ended.
    pub(crate) fn retry(&mut self) {
        let Some(job) = self.refused.take() else {
            return;
        };
        self.context.release_idle_memory();
        self.running += usize::from(C::is_large(&job));
        self.submit(job);
    }

    /// Whether a job was refused memory and waits for others to end: nothing else should start.
    pub(crate) fn waits_for_memory(&self) -> bool {
        self.refused.is_some()
    }

    /// The number of blocks being encoded or waiting for a worker.
    pub(crate) fn running(&self) -> usize {
        self.running
    }

    /// Whether blocks wait for memory although a thread could encode them.
    pub(crate) fn is_held_back(&self, threads: usize) -> bool {
        !self.waiting.is_empty() && self.running_max < threads
    }

    fn start_waiting(&mut self) {
        while self.running < self.running_max && self.refused.is_none() {
            let Some(job) = self.waiting.pop_front() else {
                return;
            };
            self.running += usize::from(C::is_large(&job));
            self.submit(job);
        }
    }

    fn submit(&self, job: C::EncodeJob) {
        let context = self.context.clone();
        self.crew.submit(Lane::Background, move || {
            PipelineEvent::Encoded(match C::encode(&context, &job) {
                Ok(encoded) => EncodeOutcome::Encoded(encoded),
                Err(error) if error.is_out_of_memory() => EncodeOutcome::Refused { job, error },
                Err(error) => EncodeOutcome::Failed(error),
            })
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use refrain_pool::crew;

    use super::*;
    use crate::error::ErrorKind;
    use crate::progress::Unwatched;
    use crate::write::pipeline::context::tests::test_context;
    use crate::write::pipeline::segments::EpochData;

    /// A job that is refused memory some times, and may have lighter forms.
    #[derive(Clone)]
    struct Job {
        refusals_left: Arc<AtomicUsize>,
        lighter_forms: usize,
    }

    fn job(refusals: usize, lighter_forms: usize) -> Job {
        Job {
            refusals_left: Arc::new(AtomicUsize::new(refusals)),
            lighter_forms,
        }
    }

    struct Reluctant;

    impl Encoding for Reluctant {
        type EncodeJob = Job;
        type Encoded = usize;
        type Digests = ();

        fn encode(_context: &PipelineContext, job: &Job) -> Result<usize> {
            let left = &job.refusals_left;
            if left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                    left.checked_sub(1)
                })
                .is_ok()
            {
                let none = refrain_pool::BufferPool::new(usize::MAX, 0);
                none.get()?;
            }
            Ok(job.lighter_forms)
        }

        fn with_less_memory(job: Job) -> Option<Job> {
            let lighter_forms = job.lighter_forms.checked_sub(1)?;
            Some(Job {
                lighter_forms,
                ..job
            })
        }

        fn digest(_digests: &mut (), _data: &EpochData) {}
    }

    /// Encodes the jobs, at most two at once. Returns the results in order, and how many may run at
    /// once in the end.
    fn encode(jobs: &[Job]) -> Result<(Vec<usize>, usize)> {
        crew(2, |crew| {
            let mut queue = EncodeQueue::<Reluctant>::new(crew, Arc::new(test_context()), 2);
            jobs.iter().for_each(|job| queue.push(job.clone()));
            let mut results = vec![];
            while let Some(event) = crew.next() {
                let PipelineEvent::Encoded(outcome) = event? else {
                    unreachable!("only encode jobs are submitted");
                };
                if let Some(result) = queue.take(outcome, &Unwatched)? {
                    results.push(result);
                    queue.retry();
                }
            }
            assert!(queue.waiting.is_empty() && queue.refused.is_none() && queue.running == 0);
            results.sort_unstable();
            Ok((results, queue.running_max))
        })
    }

    #[test]
    fn refused_jobs_are_tried_again_and_fewer_run_at_once() {
        let plenty = vec![job(0, 1); 9];
        assert_eq!(encode(&plenty).unwrap(), (vec![1; 9], 2));
        // Nothing is encoded in another way while a job may wait for others.
        let refused = [job(1, 1), job(0, 1), job(1, 1), job(1, 1), job(0, 1)];
        assert_eq!(encode(&refused).unwrap(), (vec![1; 5], 1));
    }

    #[test]
    fn a_job_that_is_refused_alone_gets_a_lighter_form_if_there_is_one() {
        // Twice with the first form, once with the second.
        assert_eq!(encode(&[job(2, 5)]).unwrap().0, [4]);
        assert_eq!(encode(&[job(3, 5)]).unwrap().0, [3]);
        assert_eq!(encode(&[job(1, 5)]).unwrap().0, [5]);
        let error = encode(&[job(9, 3)]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Limit, "{error}");
        let error = encode(&[job(0, 0), job(99, 0), job(0, 0)]).unwrap_err();
        assert!(error.is_out_of_memory(), "{error}");
    }
}
