//! What waits to be encoded. As many blocks are worked on at once as the budget has memory for codecs, however many threads there are.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_pool::{Crew, Lane};

use crate::write::pipeline::assembly::{Encoding, Event};
use crate::write::pipeline::context::PipelineContext;

/// Jobs on their way to the encoders, in order.
///
/// One epoch may fill more blocks than fit at once. When each thread took one, level 8 with 512 MiB and 7 threads had 0.93 GB in use, half of
/// it for codecs. Here they wait as pages.
pub(crate) struct EncodeQueue<'c, 'scope, 'env, C: Encoding> {
    crew: &'c Crew<'scope, 'env, Event<C>>,
    shared: Arc<PipelineContext>,
    waiting: VecDeque<C::Job>,
    running: usize,
    running_max: usize,
}

impl<'c, 'scope, 'env, C: Encoding> EncodeQueue<'c, 'scope, 'env, C> {
    pub(crate) fn new(
        crew: &'c Crew<'scope, 'env, Event<C>>,
        shared: Arc<PipelineContext>,
        running_max: usize,
    ) -> Self {
        EncodeQueue {
            crew,
            shared,
            waiting: VecDeque::new(),
            running: 0,
            running_max,
        }
    }

    /// Hands a job to the encoders. They come after everything that the match stage waits for.
    pub(crate) fn push(&mut self, job: C::Job) {
        match C::is_large(&job) {
            true => self.waiting.push_back(job),
            false => self.submit(job),
        }
        self.start_waiting();
    }

    /// Takes what an encoder made of a job.
    pub(crate) fn done(&mut self, encoded: &C::Encoded) {
        if C::was_large(encoded) {
            self.running -= 1;
        }
        self.start_waiting();
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

    fn submit(&self, job: C::Job) {
        let shared = self.shared.clone();
        self.crew.submit(Lane::Background, move || {
            Event::Encoded(C::encode(&shared, job))
        });
    }
}
