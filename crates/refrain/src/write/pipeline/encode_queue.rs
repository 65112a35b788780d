//! Blocks that wait for an encoder. The number of blocks encoded at once depends on the budget's
//! memory for codecs, not on the number of threads.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_pool::{Crew, Lane};

use crate::write::pipeline::assembly::{Encoding, PipelineEvent};
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
}

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
        }
    }

    /// Adds a job. Encoders run with the lowest priority, after all jobs that the match stage waits
    /// for.
    pub(crate) fn push(&mut self, job: C::EncodeJob) {
        if C::is_large(&job) {
            self.waiting.push_back(job)
        } else {
            self.submit(job)
        }
        self.start_waiting();
    }

    /// A job is done: starts the next one.
    pub(crate) fn done(&mut self, encoded: &C::Encoded) {
        if C::was_large(encoded) {
            self.running -= 1;
        }
        self.start_waiting();
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
        while self.running < self.running_max {
            let Some(job) = self.waiting.pop_front() else {
                return;
            };
            self.running += 1;
            self.submit(job);
        }
    }

    fn submit(&self, job: C::EncodeJob) {
        let context = self.context.clone();
        self.crew.submit(Lane::Background, move || {
            PipelineEvent::Encoded(C::encode(&context, job))
        });
    }
}
